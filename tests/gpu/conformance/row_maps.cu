// The pre-pass over rows: which rows a warp has, sums over columns, and rows that are written. Rows are
// normalised by the sum of their squares and their halves change places, as a norm and a rotation do; all
// of it is made again here, in plain loops; so are products of rows. Widths fill the lanes several times and in part;
// CTAs have more warps than there are rows, and fewer.
#include <algorithm>
#include <cmath>
#include <type_traits>

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
    sums[((b * from.extent[1] + h) * from.extent[2] + r) * 8 + threadIdx.x % 8] = squares;  // in every lane
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
  Device<float> sums(size_t(count) * 8, -1.0f);
  From from = {data.data(), {kw::i64(M) * H * C, C, kw::i64(H) * C, 1}, {B, H, M, C}};
  Rows to;
  static_cast<kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'>&>(to) = {
      out.data(), {kw::i64(H) * M * C, kw::i64(M) * C, C, 1}, {B, H, M, C}};
  running = "each_row";
  launch(row_kernel<C, To>, blocks, threads, from, as(to), sums.data());
  std::vector<kw::bf16> want(values.size());
  std::vector<float> squares(size_t(count) * 8);
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
        std::fill_n(squares.begin() + row * 8, 8, sum);
      }
  report.exact("sum", what, sums.read(), squares);
  report.exact("write_row", what, out.read(), want);
}

// Of floats and elements, where the passes' rows are more than theirs.
using Floats = kw::Tensor<const float, 'B', 'H', 'M', 'D'>;
using Values = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'>;
template <class T> using Elements = kw::Tensor<const T, 'B', 'H', 'M', 'D'>;

template <int C, class T> __global__ void dot_kernel(Floats a, Elements<T> b, Values to) {
  for (const kw::RowPlace at : kw::each_row(to, kw::warp_of(gridDim.x)))
    kw::write_value(to, at, kw::dot_row<C>(a, b, at));
}

template <int C, class T>
void dots(Report& report, const char* what, int B, int H, int M, int P, int blocks, int threads) {
  Random random(unsigned(C + M));
  const kw::i64 row = C + 8, head = M * row + 8;  // gaps behind rows and heads
  std::vector<float> x(size_t(B) * H * head), z(x.size()), want(size_t(B) * H * P, 0.0f);
  std::vector<T> y;
  for (size_t n = 0; n < x.size(); ++n) {
    x[n] = float(random.integer(-64, 64)) / 16;
    z[n] = float(random.integer(-64, 64)) / 16;
  }
  if constexpr (std::is_same_v<T, kw::bf16>)
    y = to_bf16(z);
  else
    y = to_f16(z);
  for (int bh = 0; bh < B * H; ++bh)
    for (int r = 0; r < M; ++r)
      for (int j = 0; j < C; ++j)  // multiples of 2^-8 below 2^16: exact in any order
        want[bh * P + r] += x[bh * head + r * row + j] * z[bh * head + r * row + j];
  Device<float> a(x), out(want.size(), -1.0f);
  Device<T> b(y);
  Values to;
  static_cast<kw::Tensor<const float, 'B', 'H', 'P'>&>(to) = {out.data(), {kw::i64(H) * P, P, 1}, {B, H, P}};
  running = "dot_row";
  launch(dot_kernel<C, T>, blocks, threads, Floats{a.data(), {H * head, head, row, 1}, {B, H, M, C}},
         Elements<T>{b.data(), {H * head, head, row, 1}, {B, H, M, C}}, to);
  report.exact("dot_row", what, out.read(), want);
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
  rows<128>(report, "128 columns, heads of fewer rows than are taken at once", 3, 5, 2, 1, 64, plain);
  dots<128, kw::bf16>(report, "128 columns of bf16, rows behind the last", 2, 3, 77, 128, 12, 256);
  dots<64, kw::f16>(report, "64 columns of f16, heads of one row", 2, 5, 1, 1, 1, 32);
  dots<96, kw::bf16>(report, "96 columns of bf16", 1, 2, 33, 64, 3, 96);
}

}  // namespace conformance
