// Lines: rows of a tensor in a warpgroup's registers. A row is read twice, from bf16 and from reals, summed,
// mapped and written, all of it as plain loops say. Widths fill the threads once, several times, in part and
// not at all; rows are vectors of memory and are none; two warpgroups have a row each, and the last has one
// past the end.
#include <algorithm>

#include "conformance.h"

namespace conformance {
namespace {

using From = kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'C'>;
using Reals = kw::Tensor<const float, 'C'>;
using To = kw::Tensor<kw::bf16, 'B', 'H', 'M', 'C'>;

// 2 * x + weight, where twice the sum of the products x * weight has no part; two sums follow each other.
template <int C> __global__ void line_kernel(From from, Reals weight, To to, float* sums) {
  const int me = threadIdx.x / 128, warpgroups = blockDim.x / 128;
  const int tiles = (from.extent[2] + warpgroups - 1) / warpgroups, block = blockIdx.x;
  const int h = block / tiles, i = block % tiles * warpgroups + me;
  kw::Line<kw::bf16, C> x, y;
  kw::Line<kw::real, C> w, z;
  kw::set_line(x, [&]() { return from.row(0, h, i); });
  kw::set_line(w, [&]() { return weight.row(); });
  const kw::real products = kw::sum_line([](kw::real a, kw::real b) { return a * b; }, x, w);
  dawdle(block);
  const kw::real plain = kw::sum_line([](kw::real a) { return a; }, x);
  kw::map_line(z, [](kw::real a, kw::real b) { return 2.0f * a + b; }, x, w);
  kw::map_line(y, [](kw::real a) { return a; }, z);
  kw::store_line(y, to, {0, h, i});
  const int thread = (block * warpgroups + me) * 128 + threadIdx.x % 128;
  sums[2 * thread] = products;
  sums[2 * thread + 1] = plain;
}

// H x M rows of C columns; `apart` elements from one column to the next, and rows that begin `shift`
// elements into memory.
template <int C>
void lines(Report& report, const char* what, int H, int M, int warpgroups, int apart = 1, int shift = 0) {
  const int tiles = (M + warpgroups - 1) / warpgroups;
  const size_t pitch = size_t(C) * apart + (apart > 1 ? 0 : 8), head = (M + warpgroups) * pitch;  // with a gap behind
  const size_t all = H * head + shift;
  Random random(unsigned(C + M));
  std::vector<float> values = random.integers(all, -16, 16), weights = random.integers(C, -8, 8);
  Device<kw::bf16> data(to_bf16(values)), out(all, round_to_bf16(-1.0f));
  Device<float> weight(weights), sums(size_t(H) * tiles * warpgroups * 256, -1.0f);
  const From from = {data.data() + shift, {0, kw::i64(head), kw::i64(pitch), apart}, {1, H, M, C}};
  const To to = {out.data() + shift, {0, kw::i64(head), kw::i64(pitch), apart}, {1, H, M, C}};
  running = "set_line";
  launch(line_kernel<C>, H * tiles, 128 * warpgroups, from, Reals{weight.data(), {1}, {C}}, to, sums.data());
  std::vector<kw::bf16> want(all, round_to_bf16(-1.0f));
  std::vector<float> sum(size_t(H) * tiles * warpgroups * 256);
  for (int h = 0; h < H; ++h)
    for (int i = 0; i < tiles * warpgroups; ++i) {
      const size_t row = shift + h * head + std::min(i, M - 1) * pitch;  // what is past the end reads the last
      float products = 0, plain = 0;
      for (int j = 0; j < C; ++j) {
        const float x = values[row + size_t(j) * apart];
        products += x * weights[j];  // integers below 2^24: exact in any order
        plain += x;
        want[row + size_t(j) * apart] = round_to_bf16(2 * x + weights[j]);
      }
      for (int t = 0; t < 128; ++t) {
        const size_t thread = (size_t(h) * tiles * warpgroups + i) * 128 + t;
        sum[2 * thread] = products;
        sum[2 * thread + 1] = plain;
      }
    }
  report.exact("sum_line", what, sums.read(), sum);
  for (const char* one : {"set_line", "map_line", "store_line"}) report.exact(one, what, out.read(), want);
}

}  // namespace

void test_lines(Report& report) {
  lines<1024>(report, "1024 columns", 2, 5, 1);
  lines<4096>(report, "4096 columns, two warpgroups, an odd row", 3, 7, 2);
  lines<1032>(report, "1032 columns", 1, 3, 1);
  lines<64>(report, "64 columns, four warpgroups", 2, 9, 4);
  lines<2560>(report, "2560 columns, two apart", 1, 4, 1, 2);
  lines<2048>(report, "2048 columns, off by two bytes", 2, 3, 1, 1, 1);
  lines<16384>(report, "16384 columns", 1, 3, 1);
}

}  // namespace conformance
