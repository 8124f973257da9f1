/* Launching kernels that kernelwright made: the C interface of libkernelwright_launch.so.
 *
 * A folder with kernel.cubin and launch.json is a kernel. It is loaded once, planned once for
 * each set of shapes and strides, and enqueued often:
 *
 *   kw_kernel* kernel;   kw_plan* plan;
 *   if (kw_kernel_load("out/causal", 0, &kernel)) fail(kw_last_error());
 *   if (kw_kernel_plan(kernel, tensors, 5, NULL, 0, &plan)) fail(kw_last_error());
 *   if (kw_plan_enqueue(plan, addresses, 5, stream)) fail(kw_last_error());
 *
 * Errors. A function that returns int gives 0 for success. Otherwise it has done nothing that
 * lasts, leaves what it was to give untouched, and its reason is in kw_last_error(), for the
 * calling thread. No function throws, aborts or prints. A finding is a line "error[CODE]: what";
 * a code launch.* is about the folder or the call, driver.* about the machine; "internal error:
 * ..." is a fault of ours. What a kernel does wrong on the GPU is no error of its launch: the
 * driver reports it at a later call, as for any kernel.
 *
 * Lifetime. A kernel must outlive its plans, and the GPU's primary context outlives the kernel.
 * Plans and kernels are freed by whoever made them; free takes NULL. Freeing a kernel waits for
 * all work on its GPU, since a launch may still run. Strings and arrays that are passed in are
 * copied.
 *
 * Threads. All functions may be called from any threads at a time; a plan may be enqueued from
 * several, and a kernel planned from several. Only freeing needs the caller's care: nobody else
 * may be using what is freed. No CUDA context needs to be current; one that is stays so.
 *
 * Streams. A launch is put into the stream that is given and returns at once; the passes that
 * launch.json names before and after the kernel go with it, in their order. Launches in
 * different streams may run side by side: each stream has memory of its own for what a kernel
 * needs besides its arguments (a counter, lists of key blocks, parts of a sum), allocated and
 * cleared at the first launch there and kept until the kernel is freed.
 *
 * Graphs. A launch can be captured into a CUDA graph, the first one too. Shapes and addresses
 * become part of it. Memory of a kernel's own is then the graph's own, kept until the kernel is
 * freed, so replays may overlap launches and other graphs; replays of one graph must not overlap
 * each other.
 *
 * Requirements. The library needs glibc, libgcc_s and, when a kernel is loaded, the NVIDIA driver
 * (libcuda.so.1, CUDA 12.0 or newer), which it opens by itself.
 */
#ifndef KERNELWRIGHT_LAUNCH_C_H
#define KERNELWRIGHT_LAUNCH_C_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel on one GPU, and a launch of it for certain shapes. */
typedef struct kw_kernel kw_kernel;
typedef struct kw_plan kw_plan;

/* A tensor in device memory. `name` is the kernel's own, from launch.json; `dtype` is "bf16",
 * "f16", "f32", "f64", "e4m3", "i32", "i64", "u8" or "bool"; `data` is the address of the first
 * element. `rank` numbers follow in `shape` and in `strides`, which count elements, in the order
 * in which launch.json names the dimensions, whatever their order in memory. */
typedef struct {
  const char* name;
  const char* dtype;
  uint64_t data;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
} kw_tensor;

/* A number that the kernel takes beside its tensors, by launch.json's name. What it computes
 * from others (the scale, the number of blocks) is not given. */
typedef struct {
  const char* name;
  double value;
} kw_scalar;

/* What went wrong in this thread's last call, one finding a line; empty when nothing did. Valid
 * until the thread's next call. */
const char* kw_last_error(void);

/* Loads FOLDER's kernel.cubin onto a GPU, in its primary context, the one that the CUDA runtime
 * and PyTorch use. `device` is the GPU's number, as CUDA_VISIBLE_DEVICES leaves them. Errors:
 * launch.folder (a file is missing), launch.json and launch.layout (launch.json is damaged),
 * cubin.not_elf, launch.parameters (cubin and launch.json do not belong together), launch.target
 * (another architecture, no clusters, too little shared memory), driver.missing,
 * driver.no_device, driver.call. */
int kw_kernel_load(const char* folder, int device, kw_kernel** out);

/* Frees a kernel whose plans are freed. Waits for the GPU. */
void kw_kernel_free(kw_kernel* kernel);

/* Checks tensors and scalars against launch.json and packs the arguments: some microseconds, to
 * be spent once for each set of shapes, strides, types and scalars. Tensors come in any order,
 * outputs among them. Errors name the argument: launch.missing, launch.unknown, launch.dtype,
 * launch.shape, launch.stride, launch.alignment, launch.requires (a size or scalar that the
 * kernel does not hold for), launch.range (a size above 2^24, for which nothing is proved, or a
 * number that its type does not hold), launch.expression (a size that no tensor says), driver.call.
 * Where rows are copied whole, the last dimension must be contiguous, and the address and all other
 * strides multiples of 16 bytes. */
int kw_kernel_plan(kw_kernel* kernel, const kw_tensor* tensors, int tensor_count,
                   const kw_scalar* scalars, int scalar_count, kw_plan** out);

/* Frees a plan that nobody is enqueuing. Launches that it made may still run. */
void kw_plan_free(kw_plan* plan);

/* Launches. `stream` is a CUstream or cudaStream_t; NULL is the default stream. `addresses` are
 * those of the tensors in launch.json's order, `count` of them; they may differ from call to
 * call, while shapes, strides and types are the plan's. Errors: launch.missing (another count),
 * launch.alignment, driver.call. */
int kw_plan_enqueue(const kw_plan* plan, const uint64_t* addresses, int count, void* stream);

#ifdef __cplusplus
}
#endif
#endif
