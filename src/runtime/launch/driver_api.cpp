#include "runtime/launch/driver_api.h"

#include <fmt/format.h>

namespace kw::runtime {

std::shared_ptr<const Driver> Driver::open(Diagnostics& diagnostics, const std::string& path) {
  std::string why;
  auto driver = std::make_shared<Driver>();
  driver->library = SharedObject::open(path, why);
  if (!driver->library) {
    diagnostics.error("driver.missing", {}, "no CUDA driver on this machine: " + why);
    return nullptr;
  }
#define KW_FIND(member, symbol, parameters)                \
  if (!driver->library->find(symbol, driver->member)) {    \
    diagnostics.error("driver.missing", {},                \
                      path + " has no " symbol             \
                             ": the driver is older than " \
                             "CUDA 12.0");                 \
    return nullptr;                                        \
  }
  KW_DRIVER_FUNCTIONS(KW_FIND)
#undef KW_FIND
  int devices = 0;
  CuResult result = driver->init(0);
  if (result == 0) result = driver->device_count(&devices);
  if (result == 0 && devices > 0) return driver;
  diagnostics.error("driver.no_device", {},
                    result ? "the CUDA driver finds no GPU: " + driver->describe(result)
                           : "the CUDA driver counts 0 GPUs");
  return nullptr;
}

std::string Driver::describe(CuResult result) const {
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  return fmt::format("{}: {} ({})", name ? name : "unknown error", text ? text : "", result);
}

bool Driver::ok(CuResult result, const std::string& attempted, Diagnostics& diagnostics) const {
  if (result == 0) return true;
  diagnostics.error("driver.call", {}, fmt::format("{}: {}", attempted, describe(result)));
  return false;
}

}  // namespace kw::runtime
