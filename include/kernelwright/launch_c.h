/* Launching kernels that kernelwright made: the C interface of libkernelwright_launch.so.
 *
 * A folder with kernel.cubin and launch.json is a kernel. It is loaded once, planned once for each
 * set of shapes and strides, and enqueued often:
 *
 *   kw_kernel* kernel;   kw_plan* plan;
 *   if (kw_kernel_load("out/causal", 0, &kernel)) fail(kw_last_error());
 *   if (kw_kernel_plan(kernel, tensors, 5, NULL, 0, &plan)) fail(kw_last_error());
 *   kw_plan_enqueue(plan, addresses, 5, stream);
 *
 * Every function that returns int gives 0 for success and otherwise leaves its reason in
 * kw_last_error(), for the calling thread. No function throws. A plan may be enqueued from any
 * thread and must be freed before its kernel.
 */
#ifndef KERNELWRIGHT_LAUNCH_C_H
#define KERNELWRIGHT_LAUNCH_C_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kw_kernel kw_kernel;
typedef struct kw_plan kw_plan;

/* A tensor in device memory; strides count elements, dtype is "bf16", "f16", "f32", "i32", ... */
typedef struct {
  const char* name;
  const char* dtype;
  uint64_t data;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
} kw_tensor;

typedef struct {
  const char* name;
  double value;
} kw_scalar;

/* What went wrong last on this thread, one finding a line; empty when nothing did. */
const char* kw_last_error(void);

/* `device` is the GPU's number, as CUDA_VISIBLE_DEVICES leaves them. Uses its primary context, the
 * one that the CUDA runtime and PyTorch use. */
int kw_kernel_load(const char* folder, int device, kw_kernel** out);
void kw_kernel_free(kw_kernel* kernel);

/* Checks tensors and scalars against launch.json and packs the arguments. */
int kw_kernel_plan(kw_kernel* kernel, const kw_tensor* tensors, int tensor_count,
                   const kw_scalar* scalars, int scalar_count, kw_plan** out);
void kw_plan_free(kw_plan* plan);

/* Launches on `stream` (a CUstream; NULL is the default stream). `addresses` are those of the
 * tensors in launch.json's order; shapes, strides and types are those of the plan. */
int kw_plan_enqueue(const kw_plan* plan, const uint64_t* addresses, int count, void* stream);

#ifdef __cplusplus
}
#endif
#endif
