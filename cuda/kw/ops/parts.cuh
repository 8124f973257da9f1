// Sums of rows whose columns are shared out among CTAs: each leaves the sum of its part in a
// scratch, and a pass behind the kernel adds up the parts.
//
//   kw::store_part(total_r, args.parts, part, i0, args.M);           a warpgroup, for its rows of a tile
//   kw::add_parts(args.parts, args.columns, w, args.sums);           the threads of the pass
//
// Nothing is added across CTAs, so the order of the additions is always the same. A part has one
// value for each row, rows of neighbouring threads next to each other.
#pragma once
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
namespace kw {

// A thread among those of all CTAs, of which there are as many as the launcher was told: below 2^31. Their threads
// may be more than an int holds.
struct Thread {
  i64 index, count;
};
KW_DEVICE Thread thread_of(int) {
  return {i64(blockIdx.x) * blockDim.x + threadIdx.x, i64(gridDim.x) * blockDim.x};
}

// Rows `row` ... of part number `part`, of which each has `rows`; rows past the end are dropped.
template <int R>
KW_DEVICE void store_part(const RowVector<real, R>& from, const Scratch& to, int part, int row, int rows) {
  int* const out = to.words + i64(part) * rows;
  const int first = row + Accumulator<real, 64, 8>::thread_row();
  if (threadIdx.x % 4 == 0) {
#pragma unroll
    for (int r = 0; r < R / 32; ++r) {
      const int i = first + r / 2 * 64 + r % 2 * 8;
      if (i < rows) out[i] = __builtin_bit_cast(int, from.x[r]);
    }
  }
}

// By a thread: its share of the rows, each the sum of `count` parts, the first of them first.
template <char... Dims>
KW_DEVICE void add_parts(const Scratch& from, int count, Thread w, const Tensor<float, Dims...>& to) {
  const int rows = to.extent[2];
  const i64 all = i64(to.extent[0]) * to.extent[1] * rows;
  for (i64 x = w.index; x < all; x += w.count) {
    const int u = int(x / rows), i = int(x - i64(u) * rows);
    const int* const part = from.words + i64(u) * count * rows + i;
    real sum = __builtin_bit_cast(real, from_memory(part));
#pragma unroll 8
    for (int n = 1; n < count; ++n) sum += __builtin_bit_cast(real, from_memory(part + i64(n) * rows));
    to.element(u / to.extent[1], u % to.extent[1], i) = to_memory(sum);
  }
}

}  // namespace kw
