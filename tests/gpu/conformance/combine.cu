// Results of parts: what warpgroups leave of them in two scratches, and one result of those of a row. Log-sums are
// multiples of 1/8, so that their differences are exact; what is left where a part has no keys is no number.
#include <algorithm>
#include <limits>

#include "conformance.h"

namespace conformance {
namespace {

using Parts = kw::Tensor<kw::scratch<float>, 'B', 'E', 'M', 'V'>;
using PartSums = kw::Tensor<kw::scratch<float>, 'B', 'E', 'M'>;
using LogSums = kw::Tensor<float, 'B', 'H', 'M'>;
template <class T> using Out = kw::Tensor<T, 'B', 'H', 'M', 'V'>;

// Each CTA has a tile of 64 rows of one part.
template <int C> __global__ void leave_kernel(const float* tiles, const float* values, Parts parts, PartSums sums) {
  const int in_part = (parts.extent[2] + 63) / 64, part = blockIdx.x / in_part, row = blockIdx.x % in_part * 64;
  const kw::Coords at{part / parts.extent[1], part % parts.extent[1], row};
  kw::Accumulator<kw::real, 64, C> tile;
  get(tile, tiles + kw::i64(blockIdx.x) * 64 * C);
  kw::store_accumulator(tile, parts, at);
  kw::RowVector<kw::real, 64> v;
  get_rows(v, values + blockIdx.x * 64);
  kw::store_rows(v, sums, at);
}
template <class T> __global__ void combine_kernel(Parts parts, PartSums sums, int count, Out<T> to, LogSums to_sums) {
  kw::combine_parts(parts, sums, count, kw::thread_of(gridDim.x), to, to_sums);
}

float widen(float x) { return x; }
using conformance::widen;
float rounding(float) { return 0; }
float rounding(kw::bf16) { return 1 / 256.0f; }  // half a unit in the last place, of the value at most
float rounding(kw::f16) { return 1 / 2048.0f; }

template <class T> std::vector<float> widened(const std::vector<T>& of) {
  std::vector<float> out;
  for (const T& x : of) out.push_back(widen(x));
  return out;
}

// B 2, H 3; of the rows of the result, which lie apart, each seventh has no keys at all.
template <class T, int C> void combined(Report& report, Random& random, int M, int count, int blocks) {
  const int B = 2, H = 3, E = H * count, in_part = (M + 63) / 64, ctas = B * E * in_part, gap = 8;
  const float nan = std::numeric_limits<float>::quiet_NaN(), none = -std::numeric_limits<float>::infinity();
  std::vector<float> tiles = random.normals(size_t(ctas) * 64 * C), sums(ctas * 64);
  for (int n = 0; n < ctas * 64; ++n) {
    const int row = n / 64 % in_part * 64 + n % 64;
    sums[n] = row % 7 == 3 || random.integer(0, 3) == 0 ? none : float(random.integer(-320, 320)) / 8;
    if (sums[n] == none) std::fill_n(tiles.begin() + size_t(n) * C, C, nan);
  }
  Device<float> in(tiles), values(sums), left(size_t(B) * E * M * C, 7.0f), left_sums(B * E * M, 7.0f);
  Parts parts;
  static_cast<kw::Tensor<const float, 'B', 'E', 'M', 'V'>&>(parts) = {
      left.data(), {kw::i64(E) * M * C, kw::i64(M) * C, C, 1}, {B, E, M, C}};
  PartSums part_sums;
  static_cast<kw::Tensor<const float, 'B', 'E', 'M'>&>(part_sums) = {left_sums.data(), {kw::i64(E) * M, M, 1}, {B, E, M}};
  running = "store_accumulator";
  launch(leave_kernel<C>, ctas, 128, in.data(), values.data(), parts, part_sums);

  const kw::i64 row = C + gap, head = M * row + gap;
  Device<T> o(std::vector<T>(size_t(B * H * head)));
  Device<float> lse(B * H * M, 7.0f);
  running = "combine_parts";
  launch(combine_kernel<T>, blocks, 96, parts, part_sums, count, Out<T>{o.data(), {H * head, head, row, 1}, {B, H, M, C}},
         LogSums{lse.data(), {kw::i64(H) * M, M, 1}, {B, H, M}});
  const std::vector<float> got = widened(o.read()), got_sums = lse.read();
  std::vector<float> of_rows, of_sums, of_none;
  std::vector<double> want, want_sums, bound, bound_of_sums;
  for (int n = 0; n < B * H * M; ++n) {
    const int i = n % M, bh = n / M;
    const auto at = [&](int part) { return size_t((bh * count + part) * in_part + i / 64) * 64 + i % 64; };
    double most = none, sum = 0;
    for (int part = 0; part < count; ++part) most = std::max(most, double(sums[at(part)]));
    std::vector<double> x(C), size(C);
    for (int part = 0; part < count && most != none; ++part) {
      if (sums[at(part)] == none) continue;
      const double weight = std::exp2(sums[at(part)] - most);
      sum += weight;
      for (int c = 0; c < C; ++c) {
        x[c] += weight * tiles[at(part) * C + c];
        size[c] += weight * std::fabs(tiles[at(part) * C + c]);
      }
    }
    const float* const mine = got.data() + bh * head + i * row;
    if (most == none) {
      of_none.insert(of_none.end(), mine, mine + C);
      of_none.push_back(got_sums[n] == none ? 0.0f : 1.0f);
      continue;
    }
    of_rows.insert(of_rows.end(), mine, mine + C);
    of_sums.push_back(got_sums[n]);
    want_sums.push_back((most + std::log2(sum)) * std::log(2.0));
    bound_of_sums.push_back(std::ldexp(std::fabs(most) + 8, -22));  // log2: 2^-22, and roundings of fp32
    for (int c = 0; c < C; ++c) {
      want.push_back(x[c] / sum);
      // exp2: 2 ulp; an addition a part, of the output and of the sum; the quotient; the result's rounding.
      bound.push_back(size[c] / sum * std::ldexp(8.0 + 2 * count, -23) + std::fabs(x[c] / sum) * rounding(T{}) + 1e-7);
    }
  }
  const std::string what = std::to_string(count) + " parts of " + std::to_string(M) + " rows, " + std::to_string(C) + " columns";
  report.close("combine_parts, store_accumulator", what.c_str(), of_rows, want, bound);
  report.close("combine_parts, store_rows", what.c_str(), of_sums, want_sums, bound_of_sums);
  if (!of_none.empty()) report.exact("combine_parts", "rows without keys", of_none, std::vector<float>(of_none.size(), 0.0f));
}

}  // namespace

void test_combine(Report& report) {
  Random random(23);
  combined<float, 64>(report, random, 4, 1, 2);
  combined<float, 128>(report, random, 5, 16, 3);
  combined<float, 128>(report, random, 100, 3, 40);
  combined<kw::bf16, 128>(report, random, 8, 17, 7);
  combined<kw::bf16, 64>(report, random, 1, 66, 1);
  combined<kw::f16, 256>(report, random, 70, 2, 5);
}

}  // namespace conformance
