// The pre-pass: which key blocks are visited for some query rows, where the data says so.
//
// A CTA writes one list. Its warps take key blocks in turn, and all lanes of a warp compute
// the same about one of them, but that each reads a part of the elements that `least` and `greatest`
// are asked for. Classes go through shared memory, a chunk of key blocks at a time, and one warp
// puts the numbers one behind the other.
#pragma once
#include "../tile/tensors.cuh"
namespace kw {

// What rows do with a key block: some entry may be kept, every entry is.
struct Kept {
  bool some, all;
};

namespace detail {

// The elements of one dimension that indices from first to last read, as one range: an index outside
// of it, on either side, reads the last one, and then all from the first up to there count.
struct Span {
  int first, last;
};
KW_DEVICE Span inside(Span s, int extent) {
  const bool outside = s.first < 0 || s.last >= extent;
  return {min(max(s.first, 0), extent - 1), outside ? extent - 1 : s.last};
}

// An element as an int; `wide` becomes true where it has more than 32 bits, which ends the kernel once
// the whole box is read.
template <class T> KW_DEVICE int read_int(const T* x, bool&) { return int(from_memory(x)); }
KW_DEVICE int read_int(const i64* x, bool& wide) {
  const Wide element = from_memory(x);
  wide = wide || !element.fits();
  return int(element.value);
}

// Calls f on this lane's share of one or more rows of a box, which follow each other at `pitch`; lanes
// follow the last dimension, along which memory mostly does. Four elements of each of kRows rows are
// under way at a time, the last ones again where there are fewer: nobody minds.
template <int kRows, class T, class F>
KW_DEVICE void each_in_rows(Span rows, i64 pitch, Span columns, i64 apart, const T* from, bool& wide, F& f) {
  constexpr int kAtOnce = 4;
  for (int x = rows.first; x <= rows.last; x += kRows)
    for (int y = columns.first + int(threadIdx.x % 32); y <= columns.last; y += 32 * kAtOnce) {
      int found[kRows * kAtOnce];
#pragma unroll
      for (int n = 0; n < kRows * kAtOnce; ++n) {
        const int row = min(x + n / kAtOnce, rows.last), column = min(y + n % kAtOnce * 32, columns.last);
        found[n] = read_int(from + row * pitch + column * apart, wide);
      }
#pragma unroll
      for (int n = 0; n < kRows * kAtOnce; ++n) f(found[n]);
    }
}
// Bools, four to a word, where rows are words of memory: f is given the least and the greatest of each
// word. False where they are none.
template <class F>
KW_DEVICE bool each_word(Span rows, i64 pitch, Span columns, i64 apart, const bool* from, F& f) {
  constexpr int kRows = 16;
  const u64 place = u64(from + columns.first) | u64(pitch) | u64(columns.last + 1 - columns.first);
  if (apart != 1 || place % 4 != 0) return false;
  for (int x = rows.first; x <= rows.last; x += kRows)
    for (int y = columns.first + 4 * int(threadIdx.x % 32); y <= columns.last; y += 4 * 32) {
      u32 found[kRows];
#pragma unroll
      for (int n = 0; n < kRows; ++n)
        found[n] = __ldg(reinterpret_cast<const u32*>(from + min(x + n, rows.last) * pitch + y));
#pragma unroll
      for (int n = 0; n < kRows; ++n) {
        const u32 zero_bytes = (found[n] - 0x01010101u) & ~found[n] & 0x80808080u;
        f(zero_bytes == 0);
        f(found[n] != 0);
      }
    }
  return true;
}
template <int d, class T, char... D, class F>
KW_DEVICE void each(const Tensor<const T, D...>& t, const Span (&box)[sizeof...(D)], const T* from, bool& wide,
                    F& f) {
  constexpr int rank = sizeof...(D);
  if constexpr (d == rank - 1) {
    each_in_rows<1>({0, 0}, 0, box[d], t.stride[d], from, wide, f);
  } else if constexpr (d == rank - 2) {
    constexpr int kRows = sizeof(T) > 4 ? 4 : 8;
    if constexpr (sizeof(T) == sizeof(bool))
      if (each_word(box[d], t.stride[d], box[d + 1], t.stride[d + 1], from, f)) return;
    if (box[d].first == box[d].last)
      each<d + 1>(t, box, from + box[d].first * t.stride[d], wide, f);
    else
      each_in_rows<kRows>(box[d], t.stride[d], box[d + 1], t.stride[d + 1], from, wide, f);
  } else {
    for (int x = box[d].first; x <= box[d].last; ++x)
      each<d + 1>(t, box, from + x * t.stride[d], wide, f);
  }
}

// f is such that an element counts as often as it is given: a minimum, a maximum.
template <class T, char... D, class F, class... Index>
KW_DEVICE void each_of(const Tensor<const T, D...>& t, F f, Index... at) {
  constexpr int rank = sizeof...(D);
  static_assert(sizeof...(Index) == 2 * rank, "a first and a last index for each dimension");
  const int ends[2 * rank] = {at...};
  Span box[rank];
#pragma unroll
  for (int d = 0; d < rank; ++d) box[d] = inside({ends[2 * d], ends[2 * d + 1]}, t.extent[d]);
  bool wide = false;
  each<0>(t, box, t.data, wide, f);
  if (wide) __trap();
}

// A bit for each group that may keep some entry, or kAll where each keeps every one.
constexpr u32 kAll = 1u << 15;
template <int Groups, class F> KW_DEVICE u32 class_of(int n, F& keeps) {
  u32 found = 0;
  bool all = true;
  for (int r = 0; r < Groups; ++r) {
    const Kept kept = keeps(n, r, r + 1);
    found |= u32(kept.some) << r;
    all = all && kept.all;
  }
  return all ? kAll : found;
}

}  // namespace detail

namespace detail {
// Over a warp, for all of its lanes.
KW_DEVICE int least_of_warp(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(~0u, x);
#else
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x = min(x, __shfl_xor_sync(~0u, x, apart));
  return x;
#endif
}
KW_DEVICE int greatest_of_warp(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(~0u, x);
#else
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x = max(x, __shfl_xor_sync(~0u, x, apart));
  return x;
#endif
}
}  // namespace detail

// The least and the greatest element of a box, indices from first to last for each dimension. By
// all lanes of a warp, with the same indices.
template <class T, char... D, class... Index>
KW_DEVICE int least(const Tensor<const T, D...>& t, Index... at) {
  int found = 0x7fffffff;
  detail::each_of(t, [&](int x) { found = min(found, x); }, at...);
  return detail::least_of_warp(found);
}
template <class T, char... D, class... Index>
KW_DEVICE int greatest(const Tensor<const T, D...>& t, Index... at) {
  int found = -0x7fffffff - 1;
  detail::each_of(t, [&](int x) { found = max(found, x); }, at...);
  return detail::greatest_of_warp(found);
}

// The words of a list from `at` on: how many visits, how many of them without a mask, how many for
// each of `Groups` groups of rows, and the key blocks: first those of which every group keeps all,
// then those of which some group may keep some, each in ascending order; key block 0 where there
// are none. A group has no use for visits from its number on. All threads of the block, once.
//
//   keeps(n, r, s)   what the groups from r to s - 1, taken together, do with key block n; asked by
//                    a whole warp, first of all groups, then of each where that does not decide
template <int Groups, class F>
KW_DEVICE void list_blocks(const Scratch& out, int at, int first, int end, F keeps) {
  using detail::kAll;
  constexpr int kChunk = 8192;
  static_assert(Groups >= 1 && Groups <= 15, "a class has a bit for each group and one for all");
  __shared__ unsigned short classes[kChunk];
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const u32 lane = threadIdx.x % 32, before = (1u << lane) - 1;
  int* const blocks = out.words + at + 2 + Groups;
  int count = 0, full = 0, mine = 1;  // mine: the visits of group `lane`
  for (int pass = 0; pass < 2; ++pass) {
    for (int from = first; from < end; from += kChunk) {
      const int to = min(end, from + kChunk);
      if (pass == 0 || end - first > kChunk) {  // else the classes are still there
        __syncthreads();
        for (int n = from + warp; n < to; n += warps) {
          const Kept kept = keeps(n, 0, Groups);
          const u32 found = !kept.some ? 0 : kept.all ? kAll : Groups == 1 ? 1 : detail::class_of<Groups>(n, keeps);
          if (lane == 0) classes[n - from] = found;
        }
        __syncthreads();
      }
      if (warp != 0) continue;
      for (int base = from; base < to; base += 32) {
        const int n = base + int(lane);
        const u32 found = n < to ? classes[n - from] : 0;
        const bool listed = pass == 0 ? found & kAll : found && !(found & kAll);
        const u32 votes = __ballot_sync(~0u, listed);
        if (listed) blocks[count + __popc(votes & before)] = n;
#pragma unroll
        for (int r = 0; r < Groups; ++r) {
          const u32 needed = __ballot_sync(~0u, pass == 1 && listed && (found >> r & 1));
          if (needed && lane == r) mine = count + __popc(votes & ((2u << (31 - __clz(int(needed)))) - 1));
        }
        count += __popc(votes);
      }
    }
    if (pass == 0) full = count;
  }
  if (warp != 0) return;
  if (lane == 0) {
    if (count == 0) blocks[0] = 0;
    out.words[at] = max(count, 1);
    out.words[at + 1] = full;
  }
  if (lane < Groups) out.words[at + 2 + lane] = max(mine, max(full, 1));
}

}  // namespace kw
