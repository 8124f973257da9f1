// Inputs, and attention on the CPU to hold the kernel's answer against: softmax(q kᵀ / √D) v
// without a mask, where H / G query heads share a key head. All tensors are [batch, head, row,
// column] without gaps; elements are bf16, as their bits.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace attention {

// No multiples of the kernel's tiles: the last ones are cut.
constexpr int64_t B = 2, H = 4, G = 2, M = 200, N = 300, D = 128;
using Bf16s = std::vector<uint16_t>;

inline float to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// `count` numbers between -1 and 1, the same for the same seed.
inline Bf16s numbers(size_t count, uint32_t seed) {
  Bf16s out(count);
  for (uint16_t& bits : out) {
    seed = seed * 1664525u + 1013904223u;
    const float x = float(int32_t(seed)) / 2147483648.0f;
    bits = uint16_t(std::bit_cast<uint32_t>(x) >> 16);
  }
  return out;
}

// Row i of head h, in double precision.
inline std::vector<double> row(const Bf16s& q, const Bf16s& k, const Bf16s& v, int64_t b, int64_t h,
                               int64_t i) {
  const uint16_t* query = &q[((b * H + h) * M + i) * D];
  const size_t keys = (b * G + h / (H / G)) * N * D;
  std::vector<double> weight(N), out(D);
  double highest = -INFINITY, total = 0;
  for (int64_t j = 0; j < N; ++j) {
    for (int64_t d = 0; d < D; ++d)
      weight[j] += double(to_float(query[d])) * to_float(k[keys + j * D + d]);
    highest = std::fmax(highest, weight[j] /= std::sqrt(double(D)));
  }
  for (double& w : weight) total += w = std::exp(w - highest);
  for (int64_t j = 0; j < N; ++j)
    for (int64_t d = 0; d < D; ++d) out[d] += weight[j] / total * to_float(v[keys + j * D + d]);
  return out;
}

// Compares a few rows of each head, the last one among them; prints what it finds. True where every
// row is within 2^-7 of the CPU's, relative to the row's length: twice the last place of bf16.
inline bool agrees(const Bf16s& o, const Bf16s& q, const Bf16s& k, const Bf16s& v) {
  const double accepted = 1.0 / 128;
  double worst = 0;
  int rows = 0;
  bool good = true;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (const int64_t i : {int64_t(0), M / 2, M - 1}) {
        const std::vector<double> truth = row(q, k, v, b, h, i);
        double wrong = 0, length = 0;
        for (int64_t d = 0; d < D; ++d) {
          const double x = to_float(o[((b * H + h) * M + i) * D + d]);
          wrong += (x - truth[d]) * (x - truth[d]);
          length += truth[d] * truth[d];
        }
        const double error = std::sqrt(wrong / length);
        good = good && error <= accepted;  // no NaN either
        worst = std::fmax(worst, error);
        ++rows;
      }
  uint64_t checksum = 14695981039346656037u;  // FNV-1a
  for (const uint16_t bits : o) checksum = (checksum ^ bits) * 1099511628211u;
  std::printf("checksum %016llx; %d rows %s the CPU's, worst error %.2g of %.2g accepted\n",
              static_cast<unsigned long long>(checksum), rows, good ? "agree with" : "are NOT",
              worst, accepted);
  return good;
}

}  // namespace attention
