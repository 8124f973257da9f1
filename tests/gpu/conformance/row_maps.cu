// The pre-pass over rows: which rows a warp has, sums over columns, and rows that are written. Rows are
// normalised by the sum of their squares and their halves change places, as a norm and a rotation do; all
// of it is made again here, in plain loops. Widths fill the lanes once, twice and in part;
// CTAs have more warps than there are rows, and fewer.
#include <algorithm>
#include <cmath>

#include "conformance.h"

namespace conformance {
namespace {

using From = kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'>;
using Rows = kw::Tensor<kw::scratch<kw::bf16>, 'B', 'H', 'M', 'D'>;
using Tiles = kw::TensorMap<kw::scratch<kw::bf16>, 'B', 'H', 'M', 'D'>;

template <int C, class To> __global__ void row_kernel(From from, To to, float* sums) {
  const kw::Warp w = kw::warp_of(gridDim.x);
  for (const kw::RowPlace at : kw::each_row(to, w)) {
    const int b = at.batch, h = at.head, r = at.row;
    const kw::real squares = kw::sum<C>([&](int j) { return from(b, h, r, j) * from(b, h, r, j); });
    sums[((b * from.extent[1] + h) * from.extent[2] + r) * 32 + threadIdx.x % 32] = squares;  // in every lane
    kw::write_row<C>(to, at,
                     [&](int j) { return j < C / 2 ? -from(b, h, r, j + C / 2) : from(b, h, r, j - C / 2); });
  }
}

// A tensor of B x H x M rows of C columns, whose head and row dimensions are exchanged in memory.
template <int C, class To>
void rows(Report& report, const char* what, int B, int H, int M, int blocks, int threads, To (*as)(Rows)) {
  const int count = B * H * M;
  Random random(unsigned(C + count));
  std::vector<kw::bf16> values(size_t(count) * C);
  std::vector<float> x(values.size());
  for (size_t n = 0; n < values.size(); ++n) {
    x[n] = float(random.integer(-64, 64)) / 16;  // exact
    values[n] = round_to_bf16(x[n]);
  }
  const auto at = [&](int b, int h, int r) { return size_t((b * M + r) * H + h) * C; };
  Device<kw::bf16> data(values), out(values.size(), kw::bf16{});
  Device<float> sums(size_t(count) * 32, -1.0f);
  From from = {data.data(), {kw::i64(M) * H * C, C, kw::i64(H) * C, 1}, {B, H, M, C}};
  Rows to;
  static_cast<kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'>&>(to) = {
      out.data(), {kw::i64(H) * M * C, kw::i64(M) * C, C, 1}, {B, H, M, C}};
  running = "each_row";
  launch(row_kernel<C, To>, blocks, threads, from, as(to), sums.data());
  std::vector<kw::bf16> want(values.size());
  std::vector<float> squares(size_t(count) * 32);
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h)
      for (int r = 0; r < M; ++r) {
        const int row = (b * H + h) * M + r;
        float sum = 0;
        for (int j = 0; j < C; ++j) {
          const float value = x[at(b, h, r) + j];
          sum += value * value;  // multiples of 2^-8 below 2^16: exact in any order
          const float turned = j < C / 2 ? -x[at(b, h, r) + j + C / 2] : x[at(b, h, r) + j - C / 2];
          want[size_t(row) * C + j] = round_to_bf16(turned);
        }
        std::fill_n(squares.begin() + row * 32, 32, sum);
      }
  report.exact("sum", what, sums.read(), squares);
  report.exact("write_row", what, out.read(), want);
}

Rows plain(Rows t) { return t; }
Tiles tiled(Rows t) {
  Tiles m{};
  m.rows = t;
  return m;
}

}  // namespace

void test_row_maps(Report& report) {
  rows<128>(report, "128 columns, two rows a warp", 2, 3, 40, 15, 256, plain);
  rows<64>(report, "64 columns, tiled", 1, 2, 33, 4, 128, tiled);
  rows<96>(report, "96 columns", 2, 2, 17, 3, 96, plain);
  rows<192>(report, "192 columns, more warps than rows", 1, 1, 5, 4, 512, tiled);
  rows<256>(report, "256 columns, one warp", 3, 2, 4, 1, 32, plain);
}

}  // namespace conformance
