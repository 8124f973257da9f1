// Maps: a scalar expression for every element. The lambda takes the element, then (map_at, map_real)
// its global coordinates, then one value of each row vector, column vector, operand or other accumulator that
// follows.
//
// What data says at a row or at a key is asked once: set_rows and set_columns put it into vectors,
// and a map reads those. A thread needs a quarter of a tile's columns and could not hold them all: a
// warp divides a column vector among its lanes, and a map fetches each element by a shuffle just
// before the rows that use it. No barrier and no shared memory is involved.
//
// What depends on the distance j - i alone, set_diagonals computes for each distance of the tile, some 200,
// and not for each of its 8192 elements; a map fetches it by a shuffle for the two rows of a thread that
// have it at the same distance.
//
// What 16-bit data or bools say at every pair of a row and a key, set_tile reads by 16 bytes; the four
// threads of a row exchange them, so that each has its own, in twos as an operand packs them or as bits,
// and a map unpacks each just before it is used.
#pragma once
#include "../tile/tensors.cuh"
#include "../tile/tiles.cuh"
#include "places.cuh"
namespace kw {

template <int R, int C> KW_DEVICE void fill(Accumulator<real, R, C>& t, real v) {
#pragma unroll
  for (int n = 0; n < t.count; ++n) t.x[n] = v;
}
template <template <class, int> class V, int R> KW_DEVICE void fill(V<real, R>& t, real v) {
  for (int r = 0; r < R / 32; ++r) t.x[r] = v;
}

namespace detail {
template <class T> KW_DEVICE T from_lane_of(T x, int lane) { return __shfl_sync(~0u, x, lane); }
#ifdef KW_EXACT
KW_DEVICE real from_lane_of(real x, int lane) { return real::of(__shfl_sync(~0u, x.bits, lane)); }
#endif

template <class V> struct IsColumns {
  static constexpr bool value = false;
};
template <class T, int C> struct IsColumns<ColumnVector<T, C>> {
  static constexpr bool value = true;
};

template <class V> struct IsDiagonals {
  static constexpr bool value = false;
};
template <class T, int R, int C> struct IsDiagonals<DiagonalVector<T, R, C>> {
  static constexpr bool value = true;
};

// What a vector has in the diagonal of squares m, for the left (e = 0) or the right one of the thread's
// columns; anything else has itself.
template <class V> KW_DEVICE const V& at_diagonal(const V& v, int, int) { return v; }
template <class T, int R, int C>
KW_DEVICE T at_diagonal(const DiagonalVector<T, R, C>& v, int m, int e) {
  return from_lane_of(v.x[m / 3], v.lane() + m % 3 * 8 + e);
}

// What a vector or an operand has for the thread's columns at distance `column` from its first, and of
// that, what it has for the element x[n] of an accumulator.
template <class T, int R>
KW_DEVICE const RowVector<T, R>& at_column(const RowVector<T, R>& v, int, int) {
  return v;
}
template <class T, int C>
KW_DEVICE T at_column(const ColumnVector<T, C>& v, int first, int column) {
  return from_lane_of(v.x[column / 32], first + column % 32);
}
template <class T, int R, int C>
KW_DEVICE const Operand<T, R, C>& at_column(const Operand<T, R, C>& v, int, int) {
  return v;
}
template <int R, int C>
KW_DEVICE const Accumulator<real, R, C>& at_column(const Accumulator<real, R, C>& v, int, int) {
  return v;
}
KW_DEVICE real at_column(real x, int, int) { return x; }  // of a diagonal, already fetched
KW_DEVICE int at_column(int x, int, int) { return x; }
template <class Tile, class T, int R> KW_DEVICE T element(const RowVector<T, R>& v, int n) {
  return v.x[Tile::row(n)];
}
template <class Tile, class T, int R, int C>
KW_DEVICE real element(const Operand<T, R, C>& v, int n) {
  return from_word(T{}, v.x[n / 2], n % 2);
}
template <class Tile, int R, int C> KW_DEVICE real element(const Accumulator<real, R, C>& v, int n) {
  return v.x[n];
}
template <class Tile, int R, int C>
KW_DEVICE bool element(const Operand<bool, R, C>& v, int n) {
  return v.x[v.word(n)] >> v.bit(n) & 1;
}
template <class Tile, class T> KW_DEVICE T element(T x, int) { return x; }

// A map's lambda with the coordinates of a tile's element n.
template <class Tile, class F> struct AtIndex {
  const F& f;
  int i, j;
  template <class... X> KW_DEVICE real operator()(real x, int n, X... v) const {
    return f(x, Place{i, Tile::below(n)}, Place{j, Tile::column(n)}, v...);
  }
};
template <class Tile, class F> struct AtReal {
  const F& f;
  real i, j;
  template <class... X> KW_DEVICE real operator()(real x, int n, X... v) const {
    return f(x, Coordinate{i, Tile::below(n)}, Coordinate{j, Tile::column(n)}, v...);
  }
};

template <int R, int C, class F, class... Xs>
KW_DEVICE void map_column(Accumulator<real, R, C>& t, int k, const F& f, const Xs&... fetched) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    const int n = t.in_row(r, k);
    t.x[n] = f(t.x[n], n, element<Accumulator<real, R, C>>(fetched, n)...);
  }
}
// The elements in the diagonal of squares m, left or right (e) of the thread's columns: one of each row
// that the tile has there.
template <int R, int C, class F, class... Xs>
KW_DEVICE void map_diagonal(Accumulator<real, R, C>& t, int m, int e, const F& f, const Xs&... fetched) {
  using Tile = Accumulator<real, R, C>;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    const int square = m - DiagonalVector<real, R, C>::below + r / 2 * 8 + r % 2, n = Tile::in_row(r, square * 2 + e);
    if (square < 0 || square >= C / 8) continue;
    t.x[n] = f(t.x[n], n, element<Tile>(at_column(fetched, Tile::thread_column(), Tile::column(n)), n)...);
  }
}
// Where there are columns it goes from column to column, so that one fetched element serves all rows
// and few live at once; where there are diagonals, from one to the next for the same reason.
template <int R, int C, class F, class... Vs>
KW_DEVICE void map_placed(Accumulator<real, R, C>& t, const F& f, const Vs&... v) {
  if constexpr ((IsDiagonals<Vs>::value || ...)) {
#pragma unroll
    for (int k = 0; k < DiagonalVector<real, R, C>::squares * 2; ++k)
      map_diagonal(t, k / 2, k % 2, f, at_diagonal(v, k / 2, k % 2)...);
  } else if constexpr ((IsColumns<Vs>::value || ...)) {
#pragma unroll
    for (int k = 0; k < C / 4; ++k)
      map_column(t, k, f, at_column(v, t.thread_column(), t.column(t.in_row(0, k)))...);
  } else {
#pragma unroll
    for (int n = 0; n < t.count; ++n)
      t.x[n] = f(t.x[n], n, element<Accumulator<real, R, C>>(v, n)...);
  }
}

// Elements j and j + 1 of a row, packed.
template <class T> KW_DEVICE u32 pair_at(const TensorRow<T>& row, int j) {
  return __ldg(&row.at(j)->bits) | u32(__ldg(&row.at(j + 1)->bits)) << 16;
}

// Four threads share a row. Thread q has read 8 neighbours, from column 8 * q on; of every 8 columns it
// needs those from 2 * q on: word g of thread q and word q of thread g change places.
KW_DEVICE void exchange(u32 (&words)[4]) {
#pragma unroll
  for (u32 bit = 1; bit < 4; bit *= 2) {
    const bool upper = threadIdx.x & bit;
#pragma unroll
    for (u32 n = 0; n < 4; ++n) {
      if (n & bit) continue;
      const u32 got = __shfl_xor_sync(~0u, upper ? words[n] : words[n + bit], bit);
      words[n] = upper ? got : words[n];
      words[n + bit] = upper ? words[n + bit] : got;
    }
  }
}

// A bit for each of four bytes that is not 0.
KW_DEVICE u32 bits_of(u32 bytes) {
  const u32 ones = (((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) | bytes) >> 7 & 0x01010101u;
  return ones * 0x10204080u >> 28;
}
KW_DEVICE u32 bits_of(uint4 v) {
  return bits_of(v.x) | bits_of(v.y) << 4 | bits_of(v.z) << 8 | bits_of(v.w) << 12;
}

// Of 16 columns that thread k of a row has looked at, the bits of this one's four, for all k.
KW_DEVICE u32 exchange_bits(u32 looked_at) {
  u32 own = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const u32 got = __shfl_sync(~0u, looked_at, k, 4);
    own |= (got >> threadIdx.x % 4 * 2 & 0x03030303u) << k * 2;
  }
  return own;
}

// The tensor's rows that row_of names for the thread's rows of a tile; and whether 16-byte loads may read
// the tile: its rows are vectors of memory, and all of its columns are the tensor's. A warp decides as
// one: lanes that part take registers.
template <class T, int R, int C, class F>
KW_DEVICE bool find_rows(TensorRow<const T> (&row)[R / 32], Origin at, const F& row_of) {
  const int i = at.i + Accumulator<real, R, C>::thread_row();
  bool vectors = at.j >= 0;
#pragma unroll
  for (int r = 0; r < R / 32; ++r) {
    row[r] = row_of(i + r / 2 * 64 + r % 2 * 8);
    vectors = vectors && row[r].apart == sizeof(T) && u64(row[r].data + at.j) % 16 == 0;
    vectors = vectors && at.j + C - 1 <= int(row[r].last);
  }
  return __all_sync(~0u, vectors);
}
}  // namespace detail

template <int R, int C, class F, class... Vs>
KW_DEVICE void map(Accumulator<real, R, C>& t, F f, const Vs&... v) {
#pragma unroll
  for (int n = 0; n < t.count; ++n)
    t.x[n] = f(t.x[n], detail::element<Accumulator<real, R, C>>(v, n)...);
}
template <int R, int C, class F, class... Vs>
KW_DEVICE void map_at(Accumulator<real, R, C>& t, Origin at, F f, const Vs&... v) {
  using Tile = Accumulator<real, R, C>;
  const detail::AtIndex<Tile, F> placed{f, at.i + t.thread_row(), at.j + t.thread_column()};
  detail::map_placed(t, placed, v...);
}
// Like map_at with coordinates as reals: exact below 2^24, and no conversion for each element.
template <int R, int C, class F, class... Vs>
KW_DEVICE void map_real(Accumulator<real, R, C>& t, Origin at, F f, const Vs&... v) {
  using Tile = Accumulator<real, R, C>;
  const detail::AtReal<Tile, F> placed{f, real(at.i + t.thread_row()),
                                       real(at.j + t.thread_column())};
  detail::map_placed(t, placed, v...);
}
template <template <class, int> class V, int R, class F, class... Vs>
KW_DEVICE void map_rows(V<real, R>& t, F f, const Vs&... v) {
#pragma unroll
  for (int r = 0; r < R / 32; ++r) t.x[r] = f(t.x[r], v.x[r]...);
}
// What f says at each of the warpgroup's rows, of which i0 is the first.
template <class T, int R, class F> KW_DEVICE void set_rows(RowVector<T, R>& t, int i0, F f) {
  const int i = i0 + Accumulator<real, R, 16>::thread_row();
  decltype(f(0)) said[R / 32];
#pragma unroll
  for (int r = 0; r < R / 32; ++r) said[r] = f(i + r / 2 * 64 + r % 2 * 8);
  narrow(t.x, said);
}
// What f says at each of C columns, of which j0 is the first. Lanes may be asked for columns beyond,
// which nobody reads.
template <class T, int C, class F> KW_DEVICE void set_columns(ColumnVector<T, C>& t, int j0, F f) {
  decltype(f(0)) said[(C + 31) / 32];
#pragma unroll
  for (int k = 0; k < (C + 31) / 32; ++k) said[k] = f(j0 + k * 32 + int(threadIdx.x % 32));
  narrow(t.x, said);
}

// What f says at each distance j - i of the tile that begins at `at`. Lanes may be asked for distances
// beyond, which nobody reads.
template <class T, int R, int C, class F>
KW_DEVICE void set_diagonals(DiagonalVector<T, R, C>& t, Origin at, F f) {
  constexpr int kShares = (DiagonalVector<T, R, C>::squares + 2) / 3;
  const int lowest = t.lowest(at.i, at.j);
  decltype(f(0)) said[kShares];
#pragma unroll
  for (int k = 0; k < kShares; ++k) said[k] = f(lowest + k * 24 + int(threadIdx.x % 32));
  narrow(t.x, said);
}

// What the tensor's rows that row_of names for the tile's rows have at its columns, of which at.j is the
// first. Where 16-byte loads may, a thread reads 8 neighbours by one, a quarter of what loads of two take
// from the cache; else element by element, each brought inside.
template <class T, int R, int C, class F>
KW_DEVICE void set_tile(Operand<T, R, C>& t, Origin at, F row_of) {
  using Tile = Accumulator<real, R, C>;
  const int j = at.j + Tile::thread_column();
  TensorRow<const T> row[R / 32];
  if (detail::find_rows<T, R, C>(row, at, row_of)) {
#pragma unroll
    for (int r = 0; r < R / 32; ++r) {
      const T* from = row[r].data + at.j;
#pragma unroll
      for (int c = 0; c + 32 <= C; c += 32) {
        const uint4 v = __ldg(reinterpret_cast<const uint4*>(from + c) + threadIdx.x % 4);
        u32 words[4] = {v.x, v.y, v.z, v.w};
        detail::exchange(words);
#pragma unroll
        for (int n = 0; n < 4; ++n) t.x[Tile::in_row(r, c / 4 + 2 * n) / 2] = words[n];
      }
#pragma unroll
      for (int c = C / 32 * 32; c < C; c += 8)
        t.x[Tile::in_row(r, c / 4) / 2] = __ldg(reinterpret_cast<const u32*>(row[r].data + j + c));
    }
  } else {
#pragma unroll
    for (int n = 0; n < t.count; ++n)
      t.x[n] = detail::pair_at(row[Tile::row(2 * n)], j + Tile::column(2 * n));
  }
}

// Of bools, 16 neighbours by one load.
template <int R, int C, class F>
KW_DEVICE void set_tile(Operand<bool, R, C>& t, Origin at, F row_of) {
  using Tile = Accumulator<real, R, C>;
  TensorRow<const bool> row[R / 32];
  if (detail::find_rows<bool, R, C>(row, at, row_of)) {
#pragma unroll
    for (int n = 0; n < R / 32 * t.words; ++n) {
      const bool* from = row[n / t.words].data + at.j;
      u32 looked_at = 0;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int c = n % t.words * 128 + half * 64 + threadIdx.x % 4 * 16;
        if (c < C) looked_at |= detail::bits_of(__ldg(reinterpret_cast<const uint4*>(from + c))) << half * 16;
      }
      t.x[n] = detail::exchange_bits(looked_at);
    }
  } else {
    const int j = at.j + Tile::thread_column();
#pragma unroll
    for (u32& word : t.x) word = 0;
#pragma unroll
    for (int n = 0; n < Tile::count; ++n)
      t.x[t.word(n)] |= u32(from_memory(row[Tile::row(n)].at(j + Tile::column(n)))) << t.bit(n);
  }
}

// From accumulator to operand, rounding to its type, to nearest even.
template <class T, int R, int C>
KW_DEVICE void to_operand(Operand<T, R, C>& p, const Accumulator<real, R, C>& s) {
#pragma unroll
  for (int n = 0; n < p.count; ++n) p.x[n] = ptx::pack(T{}, s.x[2 * n], s.x[2 * n + 1]);
}

}  // namespace kw
