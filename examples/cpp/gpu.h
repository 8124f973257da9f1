// What both programs need of the CUDA driver: the first GPU's primary context (which the CUDA
// runtime and PyTorch use too), and memory on it. Whatever fails ends the program with the driver's
// own words.
#pragma once
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gpu {

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s: %s\n", what, name ? name : "unknown error", text ? text : "");
  std::exit(2);
}

// Makes GPU 0 current for this thread, and says how many multiprocessors it has.
inline int open() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  int multiprocessors = 0;
  check(cuInit(0), "there is no GPU to run on");
  check(cuDeviceGet(&device, 0), "there is no GPU 0");
  check(cuDevicePrimaryCtxRetain(&context, device), "the GPU's context");
  check(cuCtxPushCurrent(context), "the GPU's context");
  check(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "the GPU's multiprocessors");
  return multiprocessors;
}

// `count` elements on the GPU; freed with the object.
template <class T>
class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    check(cuMemAlloc(&address_, count * sizeof(T)), "memory on the GPU");
  }
  explicit Array(const std::vector<T>& from) : Array(from.size()) {
    check(cuMemcpyHtoD(address_, from.data(), count_ * sizeof(T)), "a copy to the GPU");
  }
  Array(const Array&) = delete;
  ~Array() { cuMemFree(address_); }

  CUdeviceptr address() const { return address_; }
  // Waits for what was launched before, in every stream.
  std::vector<T> download() const {
    std::vector<T> out(count_);
    check(cuCtxSynchronize(), "the kernel");
    check(cuMemcpyDtoH(out.data(), address_, count_ * sizeof(T)), "a copy from the GPU");
    return out;
  }

 private:
  CUdeviceptr address_ = 0;
  size_t count_;
};

}  // namespace gpu
