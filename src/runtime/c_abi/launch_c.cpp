// The C interface over launch.h: translates types, keeps the last error for each thread, and lets
// no exception out.
#include <kernelwright/launch_c.h>

#include <exception>
#include <memory>
#include <string>

#include "runtime/launch/launch.h"

using namespace kw;
using namespace kw::runtime;

struct kw_kernel {
  std::unique_ptr<Kernel> kernel;
};
struct kw_plan {
  std::unique_ptr<Plan> plan;
};

namespace {

thread_local std::string last_error;

// Runs `body`, which reports into diagnostics, and turns what it reports into a status.
template <class Body>
int guarded(Body body) {
  try {
    Diagnostics diagnostics;
    last_error.clear();
    if (body(diagnostics)) return 0;
    last_error = render(diagnostics);
  } catch (const std::exception& e) {
    last_error = std::string("internal error: ") + e.what();
  }
  return 1;
}

// One driver for the process. A failed attempt is tried again: a GPU may be attached later.
std::shared_ptr<const Driver> driver(Diagnostics& diagnostics) {
  static std::mutex mutex;
  static std::shared_ptr<const Driver> opened;
  const std::lock_guard lock(mutex);
  if (!opened) opened = Driver::open(diagnostics);
  return opened;
}

// What a caller forgot to set must not end the process.
bool is_there(const void* pointer, const char* what, Diagnostics& diagnostics) {
  if (!pointer) diagnostics.error("launch.missing", {}, std::string(what) + " is NULL");
  return pointer != nullptr;
}

bool read_tensor(const kw_tensor& in, Tensors& tensors, Diagnostics& diagnostics) {
  if (!is_there(in.name, "a tensor's name", diagnostics) ||
      !is_there(in.dtype, "a tensor's dtype", diagnostics))
    return false;
  if (in.rank < 0 || (in.rank > 0 && (!in.shape || !in.strides))) {
    diagnostics.error("launch.shape", {},
                      std::string(in.name) + ": rank is " + std::to_string(in.rank) +
                          (in.rank < 0 ? "" : ", and shape or strides is NULL"));
    return false;
  }
  const std::optional<Dtype> dtype = dtype_named(in.dtype);
  if (!dtype) {
    diagnostics.error("launch.dtype", {}, std::string(in.name) + ": unknown type " + in.dtype);
    return false;
  }
  tensors[in.name] = {
      in.data, *dtype, {in.shape, in.shape + in.rank}, {in.strides, in.strides + in.rank}};
  return true;
}

}  // namespace

extern "C" {

const char* kw_last_error(void) { return last_error.c_str(); }

int kw_kernel_load(const char* folder, int device, kw_kernel** out) {
  return guarded([&](Diagnostics& diagnostics) {
    if (!is_there(folder, "the folder", diagnostics)) return false;
    const std::shared_ptr<const Driver> cuda = driver(diagnostics);
    if (!cuda) return false;
    auto kernel = Kernel::load_folder(cuda, folder, device, diagnostics);
    if (!kernel) return false;
    *out = new kw_kernel{std::move(kernel)};
    return true;
  });
}

void kw_kernel_free(kw_kernel* kernel) { delete kernel; }

int kw_kernel_plan(kw_kernel* kernel, const kw_tensor* tensors, int tensor_count,
                   const kw_scalar* scalars, int scalar_count, kw_plan** out) {
  return guarded([&](Diagnostics& diagnostics) {
    if (!is_there(kernel, "the kernel", diagnostics)) return false;
    Tensors views;
    for (int i = 0; i < tensor_count; ++i)
      if (!read_tensor(tensors[i], views, diagnostics)) return false;
    Scalars values;
    for (int i = 0; i < scalar_count; ++i) {
      if (!is_there(scalars[i].name, "a scalar's name", diagnostics)) return false;
      values[scalars[i].name] = scalars[i].value;
    }
    auto plan = kernel->kernel->plan(views, values, diagnostics);
    if (!plan) return false;
    *out = new kw_plan{std::move(plan)};
    return true;
  });
}

void kw_plan_free(kw_plan* plan) { delete plan; }

int kw_plan_enqueue(const kw_plan* plan, const uint64_t* addresses, int count, void* stream) {
  return guarded([&](Diagnostics& diagnostics) {
    if (!is_there(plan, "the plan", diagnostics)) return false;
    return plan->plan->enqueue(addresses, count, static_cast<CuStream>(stream), diagnostics);
  });
}
}
