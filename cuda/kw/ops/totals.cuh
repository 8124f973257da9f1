// Totals of rows that several blocks of a tensor have a share of: a warpgroup adds its rows' totals to a
// scratch, one float a row, and a pass behind the kernel sums the scratch over the dimensions that a result
// lacks. So the gradient of a vector is made, of which every score of a head, or of a key, has used a value.
//
//   kw::add_rows(part_r, args.part, {b, h, j0});                     a warpgroup, for its rows of a tile
//   kw::add_each(dp, kw::Origin{j0, i0}, args.part, b, h,            a warpgroup, each element of a tile where
//                [&](kw::Place i, kw::Place j) { return j - i; });   it belongs
//   kw::add_diagonals(dp, kw::Origin{j0, i0}, args.part, b, h,       the same, where it belongs by j - i
//                     [&](int d) { return d / 8; });
//   kw::sum_over(args.part, w, args.d_bias);                         the threads of the pass
//
// A pre-pass has written zeros. All that is added to one row, one thread adds: nobody else adds to it, and a
// thread's additions to one address come in the order of its program (PTX ISA 8.10, causality order). The
// order of sum_over is that of the sizes and of the pass's threads. So both give the same bits from run to run.
// What add_each adds to one element, many threads add, in any order.
#pragma once
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
#include "parts.cuh"
#include "places.cuh"
#include "row_maps.cuh"
namespace kw {

namespace detail {
#ifdef KW_EXACT
KW_DEVICE void add_in_memory(bool here, float* to, real x) {
  if (here) *to = to_memory(__builtin_bit_cast(real, *to) + x);
}
#else
// No branch: products may be in flight, and would be waited for.
KW_DEVICE void add_in_memory(bool here, float* to, real x) { ptx::add_if(here, to, x); }
#endif
KW_DEVICE real value_at(const float* x) {
  return __builtin_bit_cast(real, from_memory(reinterpret_cast<const int*>(x)));
}
KW_DEVICE void put_rounded(float& to, real x) { to = to_memory(x); }
template <class T> KW_DEVICE void put_rounded(T& to, real x) {
  to = __builtin_bit_cast(T, static_cast<unsigned short>(ptx::pack(T{}, x, x)));
}

constexpr int kManyTerms = 256;  // of a sum that more than one thread makes

template <char D, char... Dims> constexpr bool is_one_of = ((D == Dims) || ...);

// The three dimensions of a scratch, of which a result keeps some: where in it result x begins, and how far
// behind that the result's term t lies.
template <bool k0, bool k1, bool k2> struct Kept {
  int extent[3];
  static constexpr KW_DEVICE bool is_kept(int d) { return d == 0 ? k0 : d == 1 ? k1 : k2; }
  // At index `n` of those dimensions that are kept, or of the others: the last runs fastest.
  template <bool kMine> KW_DEVICE i64 offset(int n) const {
    i64 at = 0, apart = 1;
#pragma unroll
    for (int d = 2; d >= 0; --d) {
      const bool first = (d < 1 || is_kept(0) != kMine) && (d < 2 || is_kept(1) != kMine);  // n is below its extent
      if (is_kept(d) == kMine) {
        at += (first ? n : n % extent[d]) * apart;
        n = first ? 0 : n / extent[d];
      }
      apart *= extent[d];
    }
    return at;
  }
  template <bool kMine> KW_DEVICE int count() const {
    int all = 1;
#pragma unroll
    for (int d = 0; d < 3; ++d) all *= is_kept(d) == kMine ? extent[d] : 1;
    return all;
  }
};

template <class T, char... Dims> KW_DEVICE T& element_at(const Tensor<T, Dims...>& t, int x) {
  i64 at = 0;
#pragma unroll
  for (int d = int(sizeof...(Dims)) - 1; d > 0; --d) {
    at += x % t.extent[d] * t.stride[d];
    x /= t.extent[d];
  }
  return t.data[at + x * t.stride[0]];
}

// Terms `first`, `first + step`, ... of the result that begins at x.
template <class Place> KW_DEVICE real sum_of_terms(const float* x, const Place& place, int first, int step) {
  const int terms = place.template count<false>();
  real sum = 0.0f;
#pragma unroll 8
  for (int t = first; t < terms; t += step) sum += value_at(x + place.template offset<false>(t));
  return sum;
}

// What a block's threads have of one sum, all of them, or of 32 side by side, each lane of one: in the
// first warp, all of it.
template <bool kSideBySide> KW_DEVICE real sum_of_block(real sum) {
  __shared__ real parts[32][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
  for (int lanes = kSideBySide ? 0 : 16; lanes > 0; lanes /= 2) sum += from_lane_across(sum, lanes);
  __syncthreads();  // the sum before is read
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp == 0)
    for (int n = 1; n < warps; ++n) sum += parts[n][lane];
  return sum;
}
}  // namespace detail

// By a warpgroup: rows `row` ... of the scratch are raised by the totals; rows past the end are dropped.
template <int R, char... Dims>
KW_DEVICE void add_rows(const LaneSum<real, R>& from, const Tensor<scratch<float>, Dims...>& to, Coords at) {
  static_assert(sizeof...(Dims) == 3, "one float a row");
  const RowVector<real, R> sum = total(from);
  const int row = ptx::not_before_here(at.row + Accumulator<real, 64, 8>::thread_row()),
            batch = ptx::not_before_here(at.batch), rows = to.extent[2];
  float* const out = to.row_to_write(batch, at.head, 0);
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    const int i = row + r / 2 * 64 + r % 2 * 8;
    detail::add_in_memory(threadIdx.x % 4 == 0 && i < rows, out + i, sum.x[r]);
  }
}

// By a warpgroup: each element x[i, j] of a tile is added to the value of which f(i, j) says the number; those
// that the scratch does not have are dropped. Neighbours that have one number are added up before, in the
// thread, and in the warp where all of it has one: of a table by distances most of a tile shares an entry.
template <int R, int C, char... Dims, class F>
KW_DEVICE void add_each(const Accumulator<real, R, C>& from, Origin at, const Tensor<scratch<float>, Dims...>& to, int batch,
                        int head, F f) {
  static_assert(sizeof...(Dims) == 3, "a number is one coordinate");
  using Tile = Accumulator<real, R, C>;
  const int i0 = ptx::not_before_here(at.i + Tile::thread_row()), j0 = ptx::not_before_here(at.j + Tile::thread_column()),
            values = to.extent[2];
  float* const out = to.row_to_write(ptx::not_before_here(batch), head, 0);
  const auto number_of = [&](int n) { return int(f(Place{i0, Tile::below(n)}, Place{j0, Tile::column(n)})); };
  const auto add = [&](bool here, int number, real x) {
    const bool inside = number >= 0 && number < values;
    detail::add_in_memory(here && inside, out + (inside ? number : 0), x);
  };
  int number = number_of(Tile::in_row(0, 0));
  real sum = 0.0f;
#pragma unroll
  for (int r = 0; r < R / 32; ++r)
#pragma unroll
    for (int k = 0; k < C / 4; ++k) {
      const int n = Tile::in_row(r, k), now = ptx::not_before_here(number_of(n));
      add(now != number, number, sum);
      sum = now == number ? sum + from.x[n] : from.x[n];
      number = now;
    }
  const bool all = __all_sync(~0u, number == __shfl_sync(~0u, number, 0));
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const real across = detail::from_lane_across(sum, lanes);
    sum += all ? across : real(0.0f);
  }
  add(!all || threadIdx.x % 32 == 0, number, sum);
}

// The same where the number is one of d = j - i: a warp asks for those of its diagonals, three a lane, and where
// all have one, of what a table says of all that is far, it adds up its elements and says so once.
template <int R, int C, char... Dims, class F>
KW_DEVICE void add_diagonals(const Accumulator<real, R, C>& from, Origin at, const Tensor<scratch<float>, Dims...>& to, int batch,
                             int head, F f) {
  const auto each = [&] { add_each(from, at, to, batch, head, [&](Place i, Place j) { return f(int(j - i)); }); };
  if constexpr (R != 64) return each();  // a warp's 16 rows are not side by side
  constexpr int kDiagonals = C + 15;
  const int lane = threadIdx.x % 32, lowest = ptx::not_before_here(at.j - (at.i + threadIdx.x % 128 / 32 * 16 + 15)),
            mine = f(lowest + lane), number = __shfl_sync(~0u, mine, 0);
  bool one = mine == number;
#pragma unroll
  for (int first = 32; first < kDiagonals; first += 32) one = one && f(lowest + min(first + lane, kDiagonals - 1)) == number;
  if (!__all_sync(~0u, one)) return each();
  real sum = 0.0f;
#pragma unroll
  for (int n = 0; n < from.count; ++n) sum += from.x[n];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += detail::from_lane_across(sum, lanes);
  const bool inside = number >= 0 && number < to.extent[2];
  detail::add_in_memory(lane == 0 && inside, to.row_to_write(ptx::not_before_here(batch), head, 0) + (inside ? number : 0), sum);
}

// By the threads of the pass: each element of the result is the sum of the scratch over the dimensions that
// the result lacks. Sums of few terms have a thread each. Where they have many, a block's threads share
// them: all of them one sum, or, where neighbouring results lie side by side in the scratch, a warp the
// same terms of 32 results; then what warps have is added in their order.
template <char... From, class T, char... To>
KW_DEVICE void sum_over(const Tensor<scratch<float>, From...>& from, Thread w, const Tensor<T, To...>& to) {
  static_assert(sizeof...(From) == 3, "one float a row");
  const detail::Kept<detail::is_one_of<From, To...>...> place = {{from.extent[0], from.extent[1], from.extent[2]}};
  constexpr bool side_by_side = place.is_kept(2);
  const int results = place.template count<true>();
  const float* const x = from.row_to_write(0, 0, 0);
  if (place.template count<false>() < detail::kManyTerms) {
    for (i64 n = w.index; n < results; n += w.count)
      detail::put_rounded(detail::element_at(to, int(n)),
                          detail::sum_of_terms(x + place.template offset<true>(int(n)), place, 0, 1));
    return;
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, at_once = side_by_side ? 32 : 1;
  for (i64 y = i64(blockIdx.x) * at_once; y < results; y += i64(gridDim.x) * at_once) {
    const int first = int(y), n = min(first + lane % at_once, results - 1);
    const real part = detail::sum_of_terms(x + place.template offset<true>(n), place, side_by_side ? warp : threadIdx.x,
                                           blockDim.x / at_once);
    const real sum = detail::sum_of_block<side_by_side>(part);
    if (warp == 0 && lane < at_once && first + lane < results) detail::put_rounded(detail::element_at(to, n), sum);
  }
}

}  // namespace kw
