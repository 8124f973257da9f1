#include "fake_attention.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "num/dtype.h"

namespace fake {
namespace {

constexpr int kBf16 = 9;  // CUtensorMapDataType; 6 is f16
bool changed = true;
std::map<uint64_t, uint64_t> given;  // the first address after each piece of memory, and its own

float read(const char* at, int dtype) {
  uint16_t bits;
  memcpy(&bits, at, 2);
  return dtype == kBf16 ? kw::bf16_value(bits) : kw::f16_value(bits);
}

void write(char* at, int dtype, float x) {
  const uint16_t bits = dtype == kBf16 ? kw::bf16_bits(x) : kw::f16_bits(x);
  memcpy(at, &bits, 2);
}

struct View : TensorMap {
  explicit View(const unsigned char* map) {
    memcpy(static_cast<TensorMap*>(this), map, sizeof(TensorMap));
  }
  int columns() const { return dims[0] * dims[2]; }
  char* at(int b, int h, int row, int c) const {
    return data + b * strides[3] + h * strides[2] + c / dims[0] * strides[1] + row * strides[0] +
           c % dims[0] * 2;
  }
  std::vector<float> rows(int b, int h) const {
    std::vector<float> out;
    for (int r = 0; r < dims[1]; ++r)
      for (int c = 0; c < columns(); ++c) out.push_back(read(at(b, h, r, c), dtype));
    return out;
  }
};

// kw::Tensor.
template <int Rank>
struct Strided {
  char* data;
  int64_t stride[Rank];
  int32_t extent[Rank];
  explicit Strided(const unsigned char* at) { memcpy(this, at, 12 * Rank + 8); }
  template <class T>
  T& element(const int (&i)[Rank]) const {
    int64_t offset = 0;
    for (int d = 0; d < Rank; ++d) offset += i[d] * stride[d];
    return reinterpret_cast<T*>(data)[offset];
  }
};

bool is_ours(const View& view) {
  const auto address = reinterpret_cast<uint64_t>(view.data);
  const auto piece = given.upper_bound(address);
  return piece != given.end() && piece->second <= address;
}

void head(const View& q, const View& k, const View& v, const View& o, int b, int h,
          const Strided<3>& lse, const Strided<4>* saved) {
  const int group = h / (q.dims[3] / k.dims[3]), D = q.columns(), V = v.columns(), N = k.dims[1];
  const std::vector<float> qs = q.rows(b, h), ks = k.rows(b, group), vs = v.rows(b, group);
  std::vector<float> p(N), sum(V);
  for (int i = 0; i < q.dims[1]; ++i) {
    float highest = -INFINITY, total = 0;
    for (int j = 0; j < N; ++j) {
      float s = 0;
      for (int d = 0; d < D; ++d) s += qs[i * D + d] * ks[j * D + d];
      highest = std::max(highest, p[j] = s / std::sqrt(static_cast<float>(D)));
    }
    sum.assign(V, 0);
    for (int j = 0; j < N; ++j) {
      p[j] = std::exp(p[j] - highest);
      total += p[j];
      for (int d = 0; d < V; ++d) sum[d] += p[j] * vs[j * V + d];
    }
    for (int d = 0; d < V; ++d) {
      write(o.at(b, h, i, d), o.dtype, sum[d] / total);
      if (saved) saved->element<float>({b, h, i, d}) = sum[d] / total;
    }
    lse.element<float>({b, h, i}) = highest + std::log(total);
  }
}

}  // namespace

void memory_changed() { changed = true; }

void memory_given(uint64_t address, uint64_t bytes) {
  given[address + bytes] = address;
  changed = true;
}

void memory_taken(uint64_t address) {
  std::erase_if(given, [&](const auto& piece) { return piece.second == address; });
}

void attention(const unsigned char* arguments) {
  static std::string last;
  const std::string now(reinterpret_cast<const char*>(arguments), 560 + 56);
  const View q(arguments), k(arguments + 128), v(arguments + 256), o(arguments + 384);
  const bool told = is_ours(q) && is_ours(k) && is_ours(v) && is_ours(o);
  if (told && !changed && now == last) return;
  last = now;
  changed = false;
  const Strided<3> lse(arguments + 512);
  const Strided<4> saved(arguments + 560);
  int32_t sizes[2];  // where nothing is saved B and H follow the log-sums
  memcpy(sizes, arguments + 560, sizeof sizes);
  const bool saves = sizes[0] != q.dims[4] || sizes[1] != q.dims[3];
  for (int b = 0; b < q.dims[4]; ++b)
    for (int h = 0; h < q.dims[3]; ++h) head(q, k, v, o, b, h, lse, saves ? &saved : nullptr);
}

void gradients(const unsigned char* arguments) {
  const View q(arguments), k(arguments + 128), v(arguments + 256), d_o(arguments + 512),
      dk(arguments + 704), dv(arguments + 832);
  const Strided<4> o(arguments + 384), dq(arguments + 960);
  const Strided<3> lse(arguments + 640);
  const int D = q.columns(), M = q.dims[1], N = k.dims[1], group = q.dims[3] / k.dims[3];
  const float scale = 1 / std::sqrt(static_cast<float>(D));
  std::vector<float> dks, dvs;
  const auto dot = [&](const float* a, const float* b) {
    float out = 0;
    for (int d = 0; d < D; ++d) out += a[d] * b[d];
    return out;
  };
  for (int n = 0; n < q.dims[4] * q.dims[3]; ++n) {
    const int b = n / q.dims[3], h = n % q.dims[3];
    const std::vector<float> qs = q.rows(b, h), ks = k.rows(b, h / group),
                             vs = v.rows(b, h / group), gs = d_o.rows(b, h);
    if (h % group == 0) dks.assign(N * D, 0), dvs.assign(N * D, 0);
    for (int i = 0; i < M; ++i) {
      const float *g = &gs[i * D], *row = &qs[i * D];
      std::vector<float> sum(D, 0);
      const float delta = dot(g, &o.element<float>({b, h, i, 0}));
      for (int j = 0; j < N; ++j) {
        const float p = std::exp(dot(row, &ks[j * D]) * scale - lse.element<float>({b, h, i})),
                    ds = p * (dot(g, &vs[j * D]) - delta) * scale;
        for (int d = 0; d < D; ++d) {
          sum[d] += ds * ks[j * D + d];
          dks[j * D + d] += ds * row[d];
          dvs[j * D + d] += p * g[d];
        }
      }
      for (int d = 0; d < D; ++d)
        write(reinterpret_cast<char*>(&dq.element<uint16_t>({b, h, i, d})), q.dtype, sum[d]);
    }
    for (int c = 0; (h + 1) % group == 0 && c < N * D; ++c) {
      write(dk.at(b, h / group, c / D, c % D), k.dtype, dks[c]);
      write(dv.at(b, h / group, c / D, c % D), v.dtype, dvs[c]);
    }
  }
}

}  // namespace fake
