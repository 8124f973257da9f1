// Conformance of the device vocabulary: each function of cuda/kw/ on random tiles, against what its
// statement means, computed here on the CPU in plain loops that share nothing with it.
//
// One .cu file a family, each with small kernels and a function that runs them and reports one line
// a device function: `Report::exact` where the operation is exact, `Report::close` where it rounds,
// with the bound and its source. Layouts are spelled out again below, from the PTX ISA and not from
// cuda/kw/tile/, so that an error there is seen.
#pragma once
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kw/kw.cuh"

namespace conformance {

inline void succeed(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(2);
}

// Device memory with the contents of a host vector.
template <class T>
class Device {
 public:
  explicit Device(const std::vector<T>& host) : size_(host.size()) {
    succeed(cudaMalloc(&data_, bytes()), "cudaMalloc");
    succeed(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice), "copy to the device");
  }
  explicit Device(size_t size, T value = T{}) : Device(std::vector<T>(size, value)) {}
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  T* data() { return data_; }
  std::vector<T> read() const {
    std::vector<T> host(size_);
    succeed(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost),
            "copy from the device");
    return host;
  }

 private:
  size_t bytes() const { return size_ * sizeof(T); }
  T* data_ = nullptr;
  size_t size_;
};

extern const char* running;  // the function under test: set before a kernel that might not end well

// Ends the run: `running` is wrong, because its kernel hangs or faults.
[[noreturn]] void wrong(const char* how);

// Runs a kernel to its end, `ctas` CTAs a cluster; 192 KB of dynamic shared memory, what
// no test exceeds.
template <class... Params, class... Args>
void launch_clusters(int ctas, void (*kernel)(Params...), int blocks, int threads, Args&&... args) {
  constexpr int kShared = 192 << 10;
  succeed(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
          "shared memory");
  cudaLaunchAttribute clusters = {};
  clusters.id = cudaLaunchAttributeClusterDimension;
  clusters.val.clusterDim.x = unsigned(ctas);
  clusters.val.clusterDim.y = clusters.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = kShared;
  config.attrs = &clusters;
  config.numAttrs = ctas > 1 ? 1 : 0;
  succeed(cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...), "launch");
  alarm(5);
  const cudaError_t result = cudaDeviceSynchronize();
  alarm(0);
  if (result != cudaSuccess) wrong(cudaGetErrorString(result));
}
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), int blocks, int threads, Args&&... args) {
  launch_clusters(1, kernel, blocks, threads, std::forward<Args>(args)...);
}

#ifdef __CUDACC__
// A different delay for every warp and turn, up to some thousand cycles: an order that is not
// enforced comes out wrong. Such a test can miss an error; it cannot report one that is not there.
inline __device__ void dawdle(int turn) {
  const unsigned mixed = (threadIdx.x / 32 * 2654435761u) ^ (turn * 40503u + blockIdx.x * 97u);
  const long long end = clock64() + (mixed >> 7) % 3000;
  while (clock64() < end) {
  }
}
#endif

// ---- numbers
inline float as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t as_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float widen(kw::bf16 x) { return as_float(uint32_t(x.bits) << 16); }
inline float widen(kw::f16 x) { return __half2float(__half(__half_raw{x.bits})); }
// To nearest, ties to even; the values of these tests are no NaNs.
inline kw::bf16 round_to_bf16(float x) {
  const uint32_t b = as_bits(x);
  return {uint16_t((b + 0x7FFF + (b >> 16 & 1)) >> 16)};
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float normal(float scale = 1) { return normal_(engine_) * scale; }
  int integer(int from, int to) { return from + int(engine_() % uint32_t(to - from + 1)); }
  std::vector<float> normals(size_t n, float scale = 1) {
    std::vector<float> v(n);
    for (float& x : v) x = normal(scale);
    return v;
  }
  std::vector<float> integers(size_t n, int from, int to) {
    std::vector<float> v(n);
    for (float& x : v) x = float(integer(from, to));
    return v;
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

inline std::vector<kw::bf16> to_bf16(const std::vector<float>& v) {
  std::vector<kw::bf16> out(v.size());
  for (size_t n = 0; n < v.size(); ++n) out[n] = round_to_bf16(v[n]);
  return out;
}

inline std::vector<kw::f16> to_f16(const std::vector<float>& v) {
  std::vector<kw::f16> out;
  for (float x : v) out.push_back({static_cast<__half_raw>(__float2half_rn(x)).x});
  return out;
}

// ---- layouts, once more, from the PTX ISA
// 9.7.15.5.1.1, D fragment of wgmma m64nNk16: register n of thread t holds this row and column.
__host__ __device__ inline int fragment_row(int t, int n) {
  return t / 32 * 16 + t % 32 / 4 + (n & 2 ? 8 : 0);
}
__host__ __device__ inline int fragment_column(int t, int n) {
  return n / 4 * 8 + t % 4 * 2 + (n & 1);
}
// 5.5.6.1, 128-byte swizzle: where element (row, column) of R x C 16-bit elements lies, in
// elements; bits 4-6 of the byte address are xored with bits 7-9; panels of 64 columns follow each
// other. Where 64 does not divide C: panels of 32, 64-byte swizzle, bits 4-5 xored with bits 7-8.
__host__ __device__ inline int swizzled(int row, int column, int R, int C) {
  const int panel = C % 64 ? 32 : 64;
  const int byte = column / panel * R * panel * 2 + row * panel * 2 + column % panel * 2;
  return (byte ^ (byte >> 7 & (panel / 8 - 1)) << 4) / 2;
}

// Tiles between global memory (row-major) and registers, for kernels that test something else.
template <int C>
__device__ void get(kw::Accumulator<kw::real, 64, C>& tile, const float* from) {
  for (int n = 0; n < C / 2; ++n)
    tile.x[n] = from[fragment_row(threadIdx.x % 128, n) * C + fragment_column(threadIdx.x % 4, n)];
}
template <int C>
__device__ void put(const kw::Accumulator<kw::real, 64, C>& tile, float* to) {
  for (int n = 0; n < C / 2; ++n)
    to[fragment_row(threadIdx.x % 128, n) * C + fragment_column(threadIdx.x % 4, n)] = tile.x[n];
}
// A fragment in registers, 9.7.15.5.1.1: two elements a word, in the order of D's fragment.
template <class T, int C>
__device__ void get(kw::Operand<T, 64, C>& tile, const T* from) {
  for (int n = 0; n < C / 4; ++n) {
    const T* two =
        from + fragment_row(threadIdx.x % 128, 2 * n) * C + fragment_column(threadIdx.x % 4, 2 * n);
    tile.x[n] = two[0].bits | uint32_t(two[1].bits) << 16;
  }
}
template <class T, int C>
__device__ void put(const kw::Operand<T, 64, C>& tile, T* to) {
  for (int n = 0; n < C / 4; ++n) {
    T* two =
        to + fragment_row(threadIdx.x % 128, 2 * n) * C + fragment_column(threadIdx.x % 4, 2 * n);
    two[0].bits = uint16_t(tile.x[n]);
    two[1].bits = uint16_t(tile.x[n] >> 16);
  }
}
// Row vectors: a thread has rows g and g + 8 of its warp's 16.
template <class Vector>
__device__ void get_rows(Vector& v, const float* from) {
  for (int r = 0; r < 2; ++r) v.x[r] = from[fragment_row(threadIdx.x % 128, 2 * r)];
}
// Writes every lane's copy, [row][lane of the row]: all four must agree in a row vector.
template <class Vector>
__device__ void put_rows(const Vector& v, float* to) {
  for (int r = 0; r < 2; ++r)
    to[fragment_row(threadIdx.x % 128, 2 * r) * 4 + threadIdx.x % 4] = v.x[r];
}
// Whole shared tiles, row-major in global memory.
template <class T, int R, int C>
__device__ void get_shared(kw::SharedTile<T, R, C>& tile, const T* from) {
  for (int n = threadIdx.x; n < R * C; n += blockDim.x)
    tile.data[swizzled(n / C, n % C, R, C)] = from[n];
}
template <class T, int R, int C>
__device__ void put_shared(const kw::SharedTile<T, R, C>& tile, T* to) {
  for (int n = threadIdx.x; n < R * C; n += blockDim.x)
    to[n] = tile.data[swizzled(n / C, n % C, R, C)];
}

// ---- the table
class Report {
 public:
  // Bit for bit; +0 and -0 differ. Counts as one check of `function`, what says which.
  void exact(const std::string& function, const char* what, const std::vector<float>& got,
             const std::vector<float>& want);
  void exact(const std::string& function, const char* what, const std::vector<int>& got,
             const std::vector<int>& want);
  void exact(const std::string& function, const char* what, const std::vector<kw::bf16>& got,
             const std::vector<kw::bf16>& want);
  // |got - want| <= bound, element by element; prints the largest share of the bound used.
  void close(const std::string& function, const char* what, const std::vector<float>& got,
             const std::vector<double>& want, const std::vector<double>& bound);
  int failures() const { return failures_; }

 private:
  void line(const std::string& function, const char* what, size_t n, double worst, const char* unit,
            bool ok);
  int failures_ = 0;
};

void test_scalars(Report&);
void test_maps(Report&);
void test_rows(Report&);
void test_copies(Report&);
void test_matrices(Report&);
void test_products(Report&);
void test_sync(Report&);
void test_clusters(Report&);
void test_blocks(Report&);
void test_lists(Report&);
void test_row_maps(Report&);
void test_sums(Report&);
void test_combine(Report&);
void test_lines(Report&);
void test_ampere(Report&);

}  // namespace conformance
