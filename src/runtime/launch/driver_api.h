// The CUDA driver, loaded at run time.
//
// libcuda.so.1 belongs to the machine's driver, so it is opened with dlopen and never linked. The
// few types that its functions take are declared here: cuda.h need not be installed, and these
// signatures are the driver's stable ABI (CUDA Driver API, "Difference between the driver and
// runtime APIs"; a name with _v2 is the form in use since CUDA 4). A Driver is a plain table of
// functions, so a test can fill one with its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "support/diagnostic.h"
#include "support/shared_object.h"

namespace kw::runtime {

using CuResult = int;  // 0 is success
using CuDevice = int;
using CuContext = struct CuContextOpaque*;
using CuModule = struct CuModuleOpaque*;
using CuFunction = struct CuFunctionOpaque*;
using CuStream = struct CuStreamOpaque*;
using CuEvent = struct CuEventOpaque*;
using CuDevicePointer = uint64_t;

// A tensor map is 128 opaque bytes; the hardware wants them on a 64-byte boundary.
struct alignas(64) CuTensorMap {
  unsigned char bytes[128];
};

// How a kernel is launched (CUlaunchConfig); the one attribute (CUlaunchAttribute) that we set is
// the cluster's size in CTAs.
struct alignas(8) CuLaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
  };
};
struct CuLaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  CuStream stream;
  CuLaunchAttribute* attributes;
  unsigned attribute_count;
};
enum : int { launch_cluster_dimension = 4 };  // CUlaunchAttributeID
enum : int { capture_active = 1 };            // CUstreamCaptureStatus
enum : int { capture_mode_relaxed = 2 };      // CUstreamCaptureMode
enum : unsigned { stream_non_blocking = 1 };  // CUstream_flags

enum : int {  // CUdevice_attribute
  device_multiprocessor_count = 16,
  device_clock_khz = 13,
  device_memory_clock_khz = 36,
  device_memory_bus_bits = 37,
  device_l2_bytes = 38,
  device_capability_major = 75,
  device_capability_minor = 76,
  device_shared_bytes_optin = 97,
  device_cluster_launch = 120,
};
enum : int {  // CUfunction_attribute
  function_max_dynamic_shared_bytes = 8,
  function_shared_carveout = 9,  // percent of what shared memory and L1 cache divide
};

// member, symbol, parameters
#define KW_DRIVER_FUNCTIONS(X)                                                              \
  X(init, "cuInit", (unsigned))                                                             \
  X(driver_version, "cuDriverGetVersion", (int*))                                           \
  X(error_name, "cuGetErrorName", (CuResult, const char**))                                 \
  X(error_string, "cuGetErrorString", (CuResult, const char**))                             \
  X(device_count, "cuDeviceGetCount", (int*))                                               \
  X(device_get, "cuDeviceGet", (CuDevice*, int))                                            \
  X(device_name, "cuDeviceGetName", (char*, int, CuDevice))                                 \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, CuDevice))                        \
  X(primary_context_retain, "cuDevicePrimaryCtxRetain", (CuContext*, CuDevice))             \
  X(context_current, "cuCtxGetCurrent", (CuContext*))                                       \
  X(context_push, "cuCtxPushCurrent_v2", (CuContext))                                       \
  X(context_pop, "cuCtxPopCurrent_v2", (CuContext*))                                        \
  X(context_synchronize, "cuCtxSynchronize", ())                                            \
  X(module_load, "cuModuleLoadData", (CuModule*, const void*))                              \
  X(module_unload, "cuModuleUnload", (CuModule))                                            \
  X(module_function, "cuModuleGetFunction", (CuFunction*, CuModule, const char*))           \
  X(function_set, "cuFuncSetAttribute", (CuFunction, int, int))                             \
  X(launch, "cuLaunchKernelEx", (const CuLaunchConfig*, CuFunction, void**, void**))        \
  X(allocate, "cuMemAlloc_v2", (CuDevicePointer*, size_t))                                  \
  X(release, "cuMemFree_v2", (CuDevicePointer))                                             \
  X(fill_bytes, "cuMemsetD8Async", (CuDevicePointer, unsigned char, size_t, CuStream))      \
  X(copy_to_device, "cuMemcpyHtoD_v2", (CuDevicePointer, const void*, size_t))              \
  X(copy_from_device, "cuMemcpyDtoH_v2", (void*, CuDevicePointer, size_t))                  \
  X(stream_create, "cuStreamCreate", (CuStream*, unsigned))                                 \
  X(stream_destroy, "cuStreamDestroy_v2", (CuStream))                                       \
  X(stream_synchronize, "cuStreamSynchronize", (CuStream))                                  \
  X(capture_info, "cuStreamGetCaptureInfo_v2",                                              \
    (CuStream, int*, uint64_t*, void**, const void***, size_t*))                            \
  X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                     \
  X(event_create, "cuEventCreate", (CuEvent*, unsigned))                                    \
  X(event_destroy, "cuEventDestroy_v2", (CuEvent))                                          \
  X(event_record, "cuEventRecord", (CuEvent, CuStream))                                     \
  X(event_synchronize, "cuEventSynchronize", (CuEvent))                                     \
  X(event_elapsed, "cuEventElapsedTime", (float*, CuEvent, CuEvent))                        \
  X(tensor_map_encode, "cuTensorMapEncodeTiled",                                            \
    (CuTensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, \
     const uint32_t*, int, int, int, int))                                                  \
  X(tensor_map_address, "cuTensorMapReplaceAddress", (CuTensorMap*, void*))

struct Driver {
#define KW_DECLARE(member, symbol, parameters) CuResult(*member) parameters = nullptr;
  KW_DRIVER_FUNCTIONS(KW_DECLARE)
#undef KW_DECLARE
  std::shared_ptr<SharedObject> library;

  // Opens `path` and calls cuInit. Reports driver.missing (no library, or one that is too old) or
  // driver.no_device and returns null when this machine cannot run kernels.
  static std::shared_ptr<const Driver> open(Diagnostics& diagnostics,
                                            const std::string& path = "libcuda.so.1");

  // "CUDA_ERROR_INVALID_VALUE: invalid argument (1)".
  std::string describe(CuResult result) const;
  // True for success; else reports driver.call with what was attempted.
  bool ok(CuResult result, const std::string& attempted, Diagnostics& diagnostics) const;
};

// Makes a context current for a scope, and the caller's own again afterwards.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CuContext context) : driver_(driver) {
    CuContext now = nullptr;
    driver.context_current(&now);
    pushed_ = now != context && driver.context_push(context) == 0;
  }
  ~CurrentContext() {
    CuContext ignored;
    if (pushed_) driver_.context_pop(&ignored);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool pushed_;
};

// While it lives, this thread may allocate and load although some stream captures (CUDA Driver API,
// cuThreadExchangeStreamCaptureMode).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
    driver_.exchange_capture_mode(&mode_);
  }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = capture_mode_relaxed;  // and then what it was before
};

}  // namespace kw::runtime
