// Attention whose keys are split over CTAs: each leaves what it knows of a row from its part of the keys, an
// output and the log of the sum that it was divided by, and a pass behind the kernel makes one of those of a row.
//
//   kw::store_rows(lse_r, args.part_lse, {b, h * splits + s, i0});      a warpgroup, for its rows of a tile
//   kw::store_accumulator(acc, args.part_o, {b, h * splits + s, i0});
//   kw::combine_parts(args.part_o, args.part_lse, args.splits, w, args.o, args.lse);  the threads of the pass
//
// Parts are added in their order, so that a row has the same bits in every run.
#pragma once
#include "totals.cuh"
namespace kw {

// By a thread: its share of the rows, four columns at a time. Log-sums are of base 2. A part whose log-sum is -inf
// has no keys: it counts as nothing, and its output is not read, which may be anything. The log-sum that is written
// is a natural logarithm. All loads of a row's log-sums, and then of its outputs, are under way together.
template <class T, char... From, char... FromSums, char... To, char... ToSums>
KW_DEVICE void combine_parts(const Tensor<scratch<float>, From...>& from, const Tensor<scratch<float>, FromSums...>& from_sums,
                             int count, Thread w, const Tensor<T, To...>& to, const Tensor<float, ToSums...>& to_sums) {
  static_assert(sizeof...(From) == 4 && sizeof...(FromSums) == 3 && sizeof...(To) == 4 && sizeof...(ToSums) == 3,
                "rows, and one float a row");
  const int heads = to.extent[1], rows = to.extent[2], chunks = to.extent[3] / 4;
  const i64 all = i64(to.extent[0]) * heads * rows * chunks;
  for (i64 x = w.index; x < all; x += w.count) {
    const u32 line = u32(x / chunks), column = u32(x - i64(line) * chunks) * 4;
    const int row = line % rows, head = line / rows % heads, batch = line / rows / heads;
    const float* const sums = from_sums.row_to_write(batch, head * count, row);
    const float* const parts = from.row_to_write(batch, head * count, row) + column;
    real most = minus_infinity;
#pragma unroll 8
    for (int n = 0; n < count; ++n) most = max(most, detail::value_at(sums + n * from_sums.stride[1]));
    real sum = 0.0f, o[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
    for (int n = 0; n < count; ++n) {
      const real a = detail::value_at(sums + n * from_sums.stride[1]);
      const bool empty = a == minus_infinity;
      const float4 part = empty ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
                                : __ldg(reinterpret_cast<const float4*>(parts + n * from.stride[1]));
      const real weight = empty ? real(0.0f) : exp2(a - most);
      sum += weight;
      o[0] += weight * __builtin_bit_cast(real, part.x);
      o[1] += weight * __builtin_bit_cast(real, part.y);
      o[2] += weight * __builtin_bit_cast(real, part.z);
      o[3] += weight * __builtin_bit_cast(real, part.w);
    }
    const bool none = most == minus_infinity;
    const real inverse = none ? real(0.0f) : reciprocal(sum);
    auto* const out = detail::row_to_write(to, {batch, head, row}) + column;
    detail::write_pair(out, o[0] * inverse, o[1] * inverse);
    detail::write_pair(out + 2, o[2] * inverse, o[3] * inverse);
    if (column == 0) to_sums.element(batch, head, row) = to_memory(none ? real(minus_infinity) : (most + log2(sum)) * ln2);
  }
}

}  // namespace kw
