// A stand-in for libcuda.so.1, so that launching can be tested on machines without a GPU.
//
// Device memory is host memory, streams are ignored, and a "kernel" is one of the C++ functions
// below, chosen by the entry's name. Each is a copy y = x over [batch, head, row, column] tensors
// of 16-bit elements, with lse[b, h, m] = the first column; all but the first are wrong in one way
// that a prover must notice. With FAKE_CUDA_ATTENTION=1 the entry attention_fwd is attention
// (fake_attention.h). Every call is appended to the file that FAKE_CUDA_LOG names. A GPU that says
// it has no clusters is FAKE_CUDA_NO_CLUSTERS=1, one that refuses to launch them
// FAKE_CUDA_REFUSES_CLUSTERS=1. It is of compute capability 9.0, or what FAKE_CUDA_CAPABILITY says
// (80, 86, 89). FAKE_CUDA_CAPTURE=ID says that every stream but NULL and our own captures a graph
// of that number; allocating then takes relaxed capture mode.
//
// Time is a count: a launch takes half a millisecond, and a millionth of one more for each byte of
// its dynamic shared memory, so that a test knows which of two kernels is faster.
//
// The argument struct: x at 0 and y at 56 (rank 4), lse at 112 (rank 3, f32), a pointer to a
// workspace of one u32 at 160; 168 bytes.
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "fake_attention.h"

namespace {

void note(const std::string& call) {
  const char* path = getenv("FAKE_CUDA_LOG");
  if (!path) return;
  if (FILE* file = fopen(path, "a")) {
    fprintf(file, "%s\n", call.c_str());
    fclose(file);
  }
}

template <class T>
T field(const unsigned char* arguments, int offset) {
  T value;
  memcpy(&value, arguments + offset, sizeof value);
  return value;
}

struct View {
  char* data;
  int64_t stride[4] = {};
  int32_t extent[4] = {1, 1, 1, 1};
  View(const unsigned char* arguments, int offset, int rank)
      : data(field<char*>(arguments, offset)) {
    for (int d = 0; d < rank; ++d) {
      stride[d] = field<int64_t>(arguments, offset + 8 + 8 * d);
      extent[d] = field<int32_t>(arguments, offset + 8 + 8 * rank + 4 * d);
    }
  }
  int64_t at(int b, int h, int m, int c = 0) const {
    return b * stride[0] + h * stride[1] + m * stride[2] + c * stride[3];
  }
};

struct Kernel {
  std::string name;
};
int capability() {
  const char* text = getenv("FAKE_CUDA_CAPABILITY");
  return text ? atoi(text) : 90;
}
int shared_bytes() {  // of a CTA at most
  return (capability() == 90 ? 227 : capability() == 80 ? 163 : 99) * 1024;
}
std::list<Kernel> kernels;  // a list: functions are pointers into it
thread_local std::vector<void*> contexts;
int pending_error = 0;
int capture_mode = 0;
double now_ms = 0;  // what all launches so far have taken

void copy(const unsigned char* arguments, const std::string& how) {
  static uint16_t launches = 0;
  static std::map<int64_t, uint16_t> remembered;
  ++launches;
  const View x(arguments, 0, 4), y(arguments, 56, 4), lse(arguments, 112, 3);
  uint32_t* queue = field<uint32_t*>(arguments, 160);
  if (*queue != 0) abort();  // the workspace must arrive zeroed
  const int rows = y.extent[2];
  for (int b = 0; b < y.extent[0]; ++b)
    for (int h = 0; h < y.extent[1]; ++h)
      for (int m = 0; m < rows; ++m) {
        const bool last = m == rows - 1;
        if (how == "copy_skip" && last) continue;
        for (int c = 0; c < y.extent[3]; ++c) {
          uint16_t bits = reinterpret_cast<uint16_t*>(x.data)[x.at(b, h, m, c)];
          if (how == "copy_wrong" && last && c == 0) bits ^= 0x8000;
          if (how == "copy_large" && last && rows > 16) bits ^= 0x8000;
          if (how == "copy_drift" && m == 0) bits ^= launches & 1;
          if (how == "copy_late" && launches == 5) bits ^= 1;
          if (how == "copy_replay")
            bits = remembered.try_emplace(x.at(b, h, m, c), bits).first->second;
          if (how == "copy_input") reinterpret_cast<uint16_t*>(x.data)[x.at(b, h, m, c)] = 0;
          reinterpret_cast<uint16_t*>(y.data)[y.at(b, h, m, c)] = bits;
        }
        const uint32_t wide = reinterpret_cast<uint16_t*>(x.data)[x.at(b, h, m)];
        float first = std::bit_cast<float>(wide << 16);
        if (how == "copy_lse") first += 1;
        reinterpret_cast<float*>(lse.data)[lse.at(b, h, m)] = first;
      }
  if (how == "copy_past")
    reinterpret_cast<uint16_t*>(
        y.data)[y.at(y.extent[0] - 1, y.extent[1] - 1, rows - 1, y.extent[3] - 1) + 1] = 7;
  if (how == "copy_dirty") *queue = 1;
  if (how == "copy_fault") pending_error = 700;
  while (how == "copy_hang") sleep(1);
}

// CUlaunchAttribute and CUlaunchConfig of cuda.h; attribute 4 is the size of a cluster.
struct LaunchAttribute {
  int id, padding;
  alignas(8) unsigned cluster[16];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

}  // namespace

extern "C" {
int cuInit(unsigned) { return getenv("FAKE_CUDA_NO_GPU") ? 100 : 0; }
int cuDriverGetVersion(int* v) { return *v = 13000, 0; }
int cuGetErrorName(int e, const char** s) {
  return *s = e == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
              : e == 912 ? "CUDA_ERROR_INVALID_CLUSTER_SIZE"
                         : "CUDA_ERROR_FAKE",
         0;
}
int cuGetErrorString(int, const char** s) { return *s = "as the fake was told", 0; }
int cuDeviceGetCount(int* n) { return *n = 1, 0; }
int cuDeviceGet(int* d, int ordinal) { return *d = ordinal, ordinal == 0 ? 0 : 101; }
int cuDeviceGetName(char* s, int n, int) { return snprintf(s, n, "Fake GPU"), 0; }
int cuDeviceGetAttribute(int* v, int attribute, int) {
  switch (attribute) {
    case 13:  // kHz
      return *v = 1980000, 0;
    case 16:
      return *v = 132, 0;
    case 36:
      return *v = 3201000, 0;
    case 37:
      return *v = 6144, 0;
    case 38:
      return *v = 1 << 20, 0;
    case 75:
      return *v = capability() / 10, 0;
    case 76:
      return *v = capability() % 10, 0;
    case 97:
      return *v = shared_bytes(), 0;
    case 120:
      return *v = getenv("FAKE_CUDA_NO_CLUSTERS") ? 0 : 1, 0;
    default:
      return *v = 1, 0;
  }
}
int cuDevicePrimaryCtxRetain(void** c, int) { return *c = reinterpret_cast<void*>(0x1000), 0; }
int cuCtxGetCurrent(void** c) { return *c = contexts.empty() ? nullptr : contexts.back(), 0; }
int cuCtxPushCurrent_v2(void* c) { return contexts.push_back(c), 0; }
int cuCtxPopCurrent_v2(void** c) {
  if (contexts.empty()) return 201;
  return *c = contexts.back(), contexts.pop_back(), 0;
}
int cuCtxSynchronize() { return pending_error; }
int cuModuleLoadData(void** m, const void*) {
  note("load");
  return *m = reinterpret_cast<void*>(0x2000), 0;
}
int cuModuleUnload(void*) { return note("unload"), 0; }
int cuModuleGetFunction(void** f, void*, const char* name) {
  note(std::string("function ") + name);
  return *f = &kernels.emplace_back(Kernel{name}), 0;
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  const char* name = attribute == 8 ? "shared " : attribute == 9 ? "carveout " : "attribute? ";
  return note(name + std::to_string(value)), 0;
}
int cuLaunchKernelEx(const LaunchConfig* config, void* f, void** parameters, void**) {
  const Kernel& kernel = *static_cast<Kernel*>(f);
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->attribute_count; ++i)
    if (config->attributes[i].id == 4) cluster = config->attributes[i].cluster[0];
  note("launch " + kernel.name + " grid " + std::to_string(config->grid[0]) + " cluster " +
       std::to_string(cluster) + " threads " + std::to_string(config->block[0]) + " shared " +
       std::to_string(config->shared_bytes));
  if (cluster == 0 || config->grid[0] % cluster != 0) return 1;
  if (cluster > 1 && getenv("FAKE_CUDA_REFUSES_CLUSTERS")) return 912;
  const auto* arguments = static_cast<const unsigned char*>(parameters[0]);
  if (kernel.name.rfind("copy", 0) == 0) copy(arguments, kernel.name);
  if (kernel.name == "attention_fwd" && getenv("FAKE_CUDA_ATTENTION")) fake::attention(arguments);
  if (kernel.name == "attention_bwd" && getenv("FAKE_CUDA_ATTENTION")) fake::gradients(arguments);
  now_ms += 0.5 + 1e-6 * config->shared_bytes;
  return 0;
}
int cuStreamCreate(void** s, unsigned) {
  note("stream");
  return *s = reinterpret_cast<void*>(0x5000), 0;
}
int cuStreamDestroy_v2(void*) { return note("stream ends"), 0; }
int cuStreamSynchronize(void*) { return note("wait"), pending_error; }
int cuStreamGetCaptureInfo_v2(void* s, int* status, uint64_t* id, void**, const void***, size_t*) {
  const char* captures = getenv("FAKE_CUDA_CAPTURE");
  const bool captured = captures && s && s != reinterpret_cast<void*>(0x5000);
  return *status = captured, *id = captured ? strtoull(captures, nullptr, 10) : 0, 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuMemAlloc_v2(uint64_t* p, size_t n) {
  if (getenv("FAKE_CUDA_CAPTURE") && capture_mode != 2) return 900;
  note("allocate " + std::to_string(n));
  *p = reinterpret_cast<uint64_t>(aligned_alloc(256, (n + 255) / 256 * 256));
  fake::memory_given(*p, n);
  return *p ? 0 : 2;
}
int cuMemFree_v2(uint64_t p) {
  note("free");
  fake::memory_taken(p);
  return free(reinterpret_cast<void*>(p)), 0;
}
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, void* s) {
  note("fill " + std::to_string(n) + (s == reinterpret_cast<void*>(0x5000) ? " apart" : ""));
  fake::memory_changed();
  return memset(reinterpret_cast<void*>(p), v, n), 0;
}
int cuMemcpyHtoD_v2(uint64_t p, const void* s, size_t n) {
  fake::memory_changed();
  return memcpy(reinterpret_cast<void*>(p), s, n), 0;
}
int cuMemcpyDtoH_v2(void* d, uint64_t p, size_t n) {
  return memcpy(d, reinterpret_cast<void*>(p), n), 0;
}
int cuEventCreate(void** e, unsigned) { return *e = new double(0), 0; }
int cuEventDestroy_v2(void* e) { return delete static_cast<double*>(e), 0; }
int cuEventRecord(void* e, void*) { return *static_cast<double*>(e) = now_ms, 0; }
int cuEventSynchronize(void*) { return pending_error; }
int cuEventElapsedTime(float* ms, void* a, void* b) {
  return *ms = static_cast<float>(*static_cast<double*>(b) - *static_cast<double*>(a)), 0;
}
// The fake's tensor map is a fake::TensorMap; the log has the rest as text.
int cuTensorMapEncodeTiled(void* map, int dtype, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t*, int,
                           int swizzle, int, int) {
  if (contexts.empty()) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  std::string call = "encode dtype " + std::to_string(dtype) + " dims";
  for (uint32_t i = 0; i < rank; ++i) call += " " + std::to_string(dims[i]);
  call += " strides";
  for (uint32_t i = 0; i + 1 < rank; ++i) call += " " + std::to_string(strides[i]);
  call += " box";
  for (uint32_t i = 0; i < rank; ++i) call += " " + std::to_string(box[i]);
  call += " swizzle " + std::to_string(swizzle);
  note(call);
  memset(map, 0, 128);
  fake::TensorMap view{static_cast<char*>(address), dtype, {}, {}};
  for (uint32_t i = 0; i < rank && i < 5; ++i) view.dims[i] = static_cast<int32_t>(dims[i]);
  for (uint32_t i = 0; i + 1 < rank && i < 4; ++i) view.strides[i] = strides[i];
  return memcpy(map, &view, sizeof view), 0;
}
int cuTensorMapReplaceAddress(void* map, void* address) {
  note("address");
  return memcpy(map, &address, sizeof address), 0;
}
}
