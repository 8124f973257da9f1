#include "lift/shim.h"

namespace kw::lift {

const char* const kCudaShim = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define KW_SHIM extern __attribute__((device))
struct uint3 { unsigned x, y, z; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct dim3 { unsigned x, y, z; };
KW_SHIM const uint3 threadIdx, blockIdx;
KW_SHIM const dim3 blockDim, gridDim;
KW_SHIM unsigned long long __cvta_generic_to_shared(const void*);
template <class T> __attribute__((device)) T __shfl_sync(unsigned, T, int, int = 32);
template <class T> __attribute__((device)) T __shfl_xor_sync(unsigned, T, int, int = 32);
template <class T> __attribute__((device)) T __shfl_down_sync(unsigned, T, int, int = 32);
KW_SHIM void __syncthreads();
KW_SHIM void __syncwarp(unsigned = ~0u);
KW_SHIM int __any_sync(unsigned, int);
KW_SHIM int __all_sync(unsigned, int);
KW_SHIM unsigned __ballot_sync(unsigned, int);
KW_SHIM int __reduce_min_sync(unsigned, int);
KW_SHIM int __reduce_max_sync(unsigned, int);
KW_SHIM int __clz(int);
KW_SHIM int __popc(unsigned);
KW_SHIM float __uint_as_float(unsigned);
KW_SHIM unsigned __float_as_uint(float);
KW_SHIM int __float_as_int(float);
KW_SHIM float __int_as_float(int);
KW_SHIM float fmaxf(float, float);
KW_SHIM float fminf(float, float);
KW_SHIM float fmaf(float, float, float);
KW_SHIM float __fdividef(float, float);
KW_SHIM float __fmaf_rn(float, float, float);
KW_SHIM float __fadd_rn(float, float);
KW_SHIM float __fsub_rn(float, float);
KW_SHIM int max(int, int);
KW_SHIM int min(int, int);
KW_SHIM unsigned max(unsigned, unsigned);
KW_SHIM unsigned min(unsigned, unsigned);
KW_SHIM int __vimax3_s32(int, int, int);
template <class T> __attribute__((device)) T __ldg(const T*);
template <class T> __attribute__((device)) T __ldcg(const T*);
template <class T> __attribute__((device)) T __ldca(const T*);
KW_SHIM float2 make_float2(float, float);
KW_SHIM float4 make_float4(float, float, float, float);
template <class T> __attribute__((device)) void __stcs(T*, T);
KW_SHIM uint4 make_uint4(unsigned, unsigned, unsigned, unsigned);
KW_SHIM void __trap();
KW_SHIM int atomicAdd(int*, int);
KW_SHIM unsigned atomicAdd(unsigned*, unsigned);
KW_SHIM unsigned atomicInc(unsigned*, unsigned);
KW_SHIM unsigned atomicExch(unsigned*, unsigned);
#undef KW_SHIM
)";

}  // namespace kw::lift
