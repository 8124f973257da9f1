// A shared library opened at run time.
//
// NVRTC and the CUDA driver are found on the user's machine and never linked: the build needs no
// CUDA, and what is missing is said in words instead of by the dynamic linker. What was opened
// stays loaded as long as the process runs: NVRTC and the driver keep threads and memory of their
// own that do not survive being unloaded.
#pragma once
#include <dlfcn.h>

#include <memory>
#include <string>

namespace kw::runtime {

class SharedObject {
 public:
  // Opens `path`, or a bare name along the linker's own search; null when it cannot, with the
  // linker's reason in `why`.
  static std::shared_ptr<SharedObject> open(const std::string& path, std::string& why) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      why = dlerror();
      return nullptr;
    }
    return std::shared_ptr<SharedObject>(new SharedObject(handle, path));
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  const std::string& path() const { return path_; }
  // Sets `function` to the symbol; false when the library has none of that name.
  template <class F>
  bool find(const char* name, F*& function) const {
    function = reinterpret_cast<F*>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  SharedObject(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

}  // namespace kw::runtime
