// What the backward kernels add to the vocabulary: values of rows by bulk copies and what is filled with them,
// tiles stored transposed, an accumulator that another map reads, and sums of tiles over CTAs. All numbers are
// small integers, so that sums are exact in any order; all comparisons are exact.
#include <algorithm>

#include "conformance.h"

namespace conformance {
namespace {

using Element = kw::bf16;
using Values = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'>;
using Sums = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P', 'D'>;
using Out = kw::Tensor<Element, 'B', 'H', 'M', 'D'>;

template <class T> T dense(float* data, int B, int H, int P, int D) {
  T t;
  if constexpr (T::rank == 3)
    static_cast<kw::Tensor<const float, 'B', 'H', 'P'>&>(t) = {data, {kw::i64(H) * P, P, 1}, {B, H, P}};
  else
    static_cast<kw::Tensor<const float, 'B', 'H', 'P', 'D'>&>(t) = {
        data, {kw::i64(H) * P * D, kw::i64(P) * D, D, 1}, {B, H, P, D}};
  return t;
}

// ---- one value a row
__global__ void value_kernel(Values of, Sums rows) {
  const kw::Warp w = kw::warp_of(gridDim.x);
  for (const kw::RowPlace at : kw::each_row(rows, w)) {
    const kw::real value = float((at.batch * 10 + at.head) * 1000 + at.row);
    kw::write_value(of, at, value);
    kw::write_row<64>(rows, at, [&](int j) { return value + float(j); });
  }
}

struct RowsShared {
  kw::RowRing<kw::real, 64, 2> ring;
  kw::Barriers<2, 1> full;
};
// Slot 1 of two uses is filled last; a warpgroup fills a tile's rows with each.
__global__ void load_rows_kernel(Values from, kw::Coords at, float* slots, float* tiles) {
  auto& shared = kw::shared_memory<RowsShared>();
  kw::init(shared.full);
  for (int t = 0; threadIdx.x == 0 && t < 2; ++t)
    kw::tma_load_rows(from, {at.batch, at.head, at.row + t * 64}, shared.ring[t], shared.full[t]);
  for (int t = 0; t < 2; ++t) {
    kw::wait(shared.full[t]);
    if (threadIdx.x < 64) slots[t * 64 + threadIdx.x] = shared.ring[t].x[threadIdx.x];
    kw::Accumulator<kw::real, 64, 64> tile;
    kw::fill_columns(tile, shared.ring[t]);
    put(tile, tiles + t * 4096);
  }
  kw::Accumulator<kw::real, 64, 64> sum;
  kw::fill_columns(sum, shared.ring[0]);
  kw::add_columns(sum, shared.ring[1]);
  put(sum, tiles + 2 * 4096);
}

void values_of_rows(Report& report) {
  const int B = 2, H = 3, P = 192;
  Device<float> values(B * H * P, -1.0f), rows(B * H * P * 64, -1.0f), slots(128), tiles(3 * 4096);
  const Values of = dense<Values>(values.data(), B, H, P, 0);
  running = "write_value";
  launch(value_kernel, 3, 96, of, dense<Sums>(rows.data(), B, H, P, 64));
  std::vector<float> want, all, columns;
  for (int n = 0; n < B * H * P; ++n) {
    want.push_back(float((n / P / H * 10 + n / P % H) * 1000 + n % P));
    for (int j = 0; j < 64; ++j) all.push_back(want.back() + float(j));
  }
  report.exact("write_value", "a value a row, by warps", values.read(), want);
  report.exact("write_row", "rows of floats", rows.read(), all);
  running = "tma_load_rows";
  launch(load_rows_kernel, 1, 128, of, kw::Coords{1, 2, 64}, slots.data(), tiles.data());
  const std::vector<float> part(want.begin() + (H + 2) * P + 64, want.begin() + (H + 2) * P + 192);
  report.exact("tma_load_rows", "two uses of a ring", slots.read(), part);
  for (int t = 0; t < 2; ++t)
    for (int n = 0; n < 4096; ++n) columns.push_back(part[t * 64 + n % 64]);
  for (int n = 0; n < 4096; ++n) columns.push_back(part[n % 64] + part[64 + n % 64]);
  const std::vector<float> found = tiles.read();
  const auto two = [](const std::vector<float>& of) { return std::vector<float>(of.begin(), of.begin() + 2 * 4096); };
  const auto third = [](const std::vector<float>& of) { return std::vector<float>(of.begin() + 2 * 4096, of.end()); };
  report.exact("fill_columns", "64 columns", two(found), two(columns));
  report.exact("add_columns", "64 columns", third(found), third(columns));
}

// ---- transposed, and maps of two accumulators
template <int C> __global__ void transposed_kernel(const float* from, const float* other, Element* to, float* mapped) {
  struct Shared {
    kw::SharedTile<Element, C, 64> tile;
  };
  auto& shared = kw::shared_memory<Shared>();
  kw::Accumulator<kw::real, 64, C> a, b;
  get(a, from);
  get(b, other);
  kw::store_transposed(a, shared.tile);
  __syncthreads();
  put_shared(shared.tile, to);
  kw::map(a, [&](kw::real x, kw::real y) { return x * 3.0f - y; }, b);
  put(a, mapped);
}

template <int C> void transposed(Report& report, Random& random, const char* what) {
  const std::vector<float> a = random.integers(64 * C, -250, 250), b = random.integers(64 * C, -250, 250);
  Device<float> in(a), other(b), mapped(64 * C);
  Device<Element> out(64 * C, Element{});
  running = "store_transposed";
  launch(transposed_kernel<C>, 1, 128, in.data(), other.data(), out.data(), mapped.data());
  std::vector<Element> want(64 * C);
  std::vector<float> both(64 * C);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < C; ++c) {
      want[c * 64 + r] = round_to_bf16(a[r * C + c]);
      both[r * C + c] = a[r * C + c] * 3 - b[r * C + c];
    }
  report.exact("store_transposed", what, out.read(), want);
  report.exact("map", "of two accumulators", mapped.read(), both);
}

// ---- sums of tiles
struct SumShared {
  kw::SharedTile<float, 64, 64> tile;
};
// CTA x adds its tile to tile x % (B H rows columns) of the tensor.
__global__ void add_kernel(const float* from, Sums to) {
  auto& shared = kw::shared_memory<SumShared>();
  const int rows = to.extent[2] / 64, columns = to.extent[3] / 64;
  const int x = blockIdx.x % (to.extent[0] * to.extent[1] * rows * columns), head = x / columns / rows;
  kw::Accumulator<kw::real, 64, 64> tile;
  get(tile, from + blockIdx.x * 4096);
  kw::store(tile, shared.tile);
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    kw::tma_add(shared.tile, to, {head / to.extent[1], head % to.extent[1], x / columns % rows * 64, x % columns * 64});
    kw::tma_store_wait_read();
  }
  __syncthreads();
  for (int n = threadIdx.x; n < 4096; n += blockDim.x) shared.tile.data[n] = 1e30f;
  if (threadIdx.x == 0) kw::tma_store_wait();
}
__global__ void round_kernel(Sums from, Out to) {
  kw::round_sums(from, 0.5f, kw::thread_of(gridDim.x), to);
}

void sums(Report& report, Random& random, int M, int D, int blocks, const char* what) {
  const int B = 2, H = 2, P = (M + 63) / 64 * 64, rows = P / 64, columns = D / 64, tiles = B * H * rows * columns;
  const std::vector<float> x = random.integers(size_t(3) * tiles * 4096, -40, 40);
  Device<float> in(x), scratch(size_t(B) * H * P * D, 0.0f);
  const int gap = 8;
  std::vector<Element> want(size_t(B) * H * (M * (D + gap) + gap), round_to_bf16(7.0f));
  Device<Element> out(want);
  const kw::i64 row = D + gap, head = M * row + gap;
  const Out to = {out.data(), {H * head, head, row, 1}, {B, H, M, D}};
  const Sums of = dense<Sums>(scratch.data(), B, H, P, D);
  running = "tma_add";
  launch(add_kernel, 3 * tiles, 128, in.data(), of);
  running = "round_sums";
  launch(round_kernel, blocks, 96, of, to);
  for (int bh = 0; bh < B * H; ++bh)
    for (int i = 0; i < M; ++i)
      for (int d = 0; d < D; ++d) {
        const int tile = (bh * rows + i / 64) * columns + d / 64;
        float sum = 0;
        for (int n = 0; n < 3; ++n) sum += x[size_t(n * tiles + tile) * 4096 + i % 64 * 64 + d % 64];
        want[bh * head + i * row + d] = round_to_bf16(sum * 0.5f);
      }
  report.exact("tma_add, store, round_sums", what, out.read(), want);
}

}  // namespace

void test_sums(Report& report) {
  Random random(12);
  values_of_rows(report);
  transposed<64>(report, random, "64 columns");
  transposed<128>(report, random, "128 columns");
  sums(report, random, 128, 128, 5, "whole tiles, 128 columns");
  sums(report, random, 77, 64, 300, "rows that end in a tile, 64 columns");
}

}  // namespace conformance
