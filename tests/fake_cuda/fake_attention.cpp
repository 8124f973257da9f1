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

bool is_ours(const View& view) {
  const auto address = reinterpret_cast<uint64_t>(view.data);
  const auto piece = given.upper_bound(address);
  return piece != given.end() && piece->second <= address;
}

void head(const View& q, const View& k, const View& v, const View& o, int b, int h, float* lse,
          int64_t lse_stride) {
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
    for (int d = 0; d < V; ++d) write(o.at(b, h, i, d), o.dtype, sum[d] / total);
    lse[i * lse_stride] = highest + std::log(total);
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
  const std::string now(reinterpret_cast<const char*>(arguments), 512 + 48);
  const View q(arguments), k(arguments + 128), v(arguments + 256), o(arguments + 384);
  const bool told = is_ours(q) && is_ours(k) && is_ours(v) && is_ours(o);
  if (told && !changed && now == last) return;
  last = now;
  changed = false;
  char* lse;
  int64_t stride[3];
  memcpy(&lse, arguments + 512, 8);
  memcpy(stride, arguments + 520, 24);
  for (int b = 0; b < q.dims[4]; ++b)
    for (int h = 0; h < q.dims[3]; ++h)
      head(q, k, v, o, b, h, reinterpret_cast<float*>(lse) + b * stride[0] + h * stride[1],
           stride[2]);
}

}  // namespace fake
