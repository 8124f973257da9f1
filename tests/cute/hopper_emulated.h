// What Hopper's instructions do, on the host: barriers in shared memory, the copy engine, wgmma.
//
// Addresses in shared memory are distances from its start, as descriptors and swizzles count them.
// Everything is done when it is asked for: which orders there may be, `check` explores. A cluster
// has one CTA. From the PTX manual: mbarrier 9.7.13.15, cp.async.bulk.tensor 9.7.9.27,
// wgmma 9.7.15.5.1 (fragments, matrix descriptors).
#pragma once

namespace emulated {
inline unsigned char* shared_memory;  // 1024-byte aligned
}
#define CUTE_CVTA_GENERIC_TO_SHARED_ACTIVATED 1
inline unsigned __cvta_generic_to_shared(const void* p) {
  return unsigned(static_cast<const unsigned char*>(p) - emulated::shared_memory);
}
#include <map>

#include "emulated.h"

inline Index gridDim;
inline unsigned atomicAdd(unsigned* at, unsigned x) { return (*at += x) - x; }
inline unsigned atomicExch(unsigned* at, unsigned x) { return std::exchange(*at, x); }
inline unsigned atomicInc(unsigned* at, unsigned last) {
  return std::exchange(*at, *at >= last ? 0 : *at + 1);
}

namespace emulated {

struct Barrier {
  unsigned count = 0, pending = 0, phase = 0;
  long bytes = 0;
};
struct Barriers {
  static Barrier& of(const uint64_t* place) {
    static std::map<const uint64_t*, Barrier> all;
    return all[place];
  }
  static void init(const uint64_t* place, unsigned count) { of(place) = {count, count}; }
  static void change(Barrier& b, unsigned arrivals, long bytes) {
    b.pending -= arrivals;
    b.bytes += bytes;
    if (b.pending != 0 || b.bytes != 0) return;
    b.phase ^= 1;
    b.pending = b.count;
  }
  static void wait(const uint64_t* place, unsigned parity) {
    while (of(place).phase == parity) give_way();
  }
  static void arrive(const uint64_t* place) { change(of(place), 1, 0); }
  static void arrive(const uint64_t* place, unsigned, bool does) {
    if (does) arrive(place);
  }
  static void arrive_and_expect_tx(const uint64_t* place, unsigned bytes) {
    Barrier& b = of(place);
    b.bytes += bytes;
    change(b, 1, 0);
  }
};

// A swizzle of rows of 128 or 64 bytes, by the address.
inline unsigned swizzled(unsigned address, int pitch) {
  return address ^ (address >> 7 & (pitch == 128 ? 7 : 3)) << 4;
}

// What a tensor map says.
struct Box {
  char* data;
  long stride[4];  // in elements of 16 bits: batch, head, row, column
  int extent[4];
  int rows, columns;  // of the box
};
template <class F>
void each_of_box(const void* map, const void* place, int row, int panel, int head, int batch, F f) {
  const Box& box = **reinterpret_cast<Box* const*>(map);
  const int wide = box.extent[3] % 64 == 0 ? 64 : 32;
  const unsigned start = __cvta_generic_to_shared(place);
  for (int r = 0; r < box.rows; ++r)
    for (int c = 0; c < box.columns; ++c) {
      const unsigned to = start + (c / wide * box.rows + r) * wide * 2 + c % wide * 2;
      const int i = row + r, j = panel * wide + c;
      const long from =
          batch * box.stride[0] + head * box.stride[1] + i * box.stride[2] + j * box.stride[3];
      const bool inside = i < box.extent[2] && j < box.extent[3];
      f(shared_memory + swizzled(to, wide * 2), inside ? box.data + from * 2 : nullptr);
    }
}
inline void load(const void* map, uint64_t* full, uint64_t, void* to, int, int row, int panel,
                 int head, int batch) {
  long bytes = 0;
  each_of_box(map, to, row, panel, head, batch, [&](void* shared, const void* global) {
    global ? std::memcpy(shared, global, 2) : std::memset(shared, 0, 2);
    bytes += 2;
  });
  Barriers::change(Barriers::of(full), 0, -bytes);
}
inline void store(const void* map, const void* from, int, int row, int panel, int head, int batch) {
  each_of_box(map, from, row, panel, head, batch, [&](const void* shared, void* global) {
    if (global) std::memcpy(global, shared, 2);
  });
}

// The element at (n, k) of the matrix that a descriptor describes.
template <class T>
T element_of(cute::GmmaDescriptor d, bool by_rows, int n, int k) {
  const int pitch = d.bitfield.layout_type_ == 1 ? 128 : 64;
  const unsigned start = d.bitfield.start_address_ * 16;
  const unsigned leading = d.bitfield.leading_byte_offset_ * 16;
  const unsigned stride = d.bitfield.stride_byte_offset_ * 16;
  const unsigned at = by_rows ? start + n / (pitch / 2) * leading + n % (pitch / 2) * 2 +
                                    k / 8 * stride + k % 8 * pitch
                              : start + n / 8 * stride + n % 8 * pitch + k * 2;
  T x;
  std::memcpy(&x, shared_memory + swizzled(at, pitch), sizeof(x));
  return x;
}

// One wgmma of depth 16: c, 64 rows, of which this thread has two of its warp's 16.
template <class Gmma, class A, class B, class C>
void wgmma(const Gmma& gmma, const A& a, const B& b, C& c) {
  using T = typename Gmma::ValTypeB;
  const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, columns = size(c) * 2;
  constexpr bool by_rows =
      std::is_same_v<typename Gmma::FrgTypeB, cute::GMMA::smem_desc<cute::GMMA::Major::MN>>;
  struct Left {
    T x[8];
  } mine;
  float left[2][16];
  if constexpr (std::is_same_v<typename A::value_type, T>) {
    for (int n = 0; n < 8; ++n) mine.x[n] = a(n);
    const std::vector<Left> all = show(mine);
    for (int h = 0; h < 2; ++h)
      for (int k = 0; k < 16; ++k)
        left[h][k] = float(all[lane / 4 * 4 + k % 8 / 2].x[k % 2 + h * 2 + k / 8 * 4]);
  } else {
    for (int h = 0; h < 2; ++h)
      for (int k = 0; k < 16; ++k)
        left[h][k] = float(element_of<T>(a(0), false, warp * 16 + lane / 4 + h * 8, k));
  }
  for (int j = 0; j < columns / 8; ++j)
    for (int e = 0; e < 2; ++e) {
      float right[16];
      for (int k = 0; k < 16; ++k)
        right[k] = float(element_of<T>(b(0), by_rows, j * 8 + lane % 4 * 2 + e, k));
      for (int h = 0; h < 2; ++h) {
        float& d = c(j * 4 + h * 2 + e);
        if (gmma.accumulate_ == cute::GMMA::ScaleOut::Zero) d = 0;
        for (int k = 0; k < 16; ++k) d += left[h][k] * right[k];
      }
    }
}

}  // namespace emulated

namespace cute {
struct StoreMatrices : SM90_U32x4_STSM_N {
  static void copy(uint32_t const& s0, uint32_t const& s1, uint32_t const& s2, uint32_t const& s3,
                   uint128_t& row) {
    const std::vector<uint128_t*> rows = show(&row);
    const uint32_t words[4] = {s0, s1, s2, s3};
    const int lane = threadIdx.x % 32;
    for (int m = 0; m < 4; ++m)
      std::memcpy(reinterpret_cast<char*>(rows[m * 8 + lane / 4]) + lane % 4 * 4, &words[m], 4);
  }
};
template <>
struct Copy_Traits<StoreMatrices> : Copy_Traits<SM90_U32x4_STSM_N> {};
}  // namespace cute
