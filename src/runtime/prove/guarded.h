// Device memory between two guard bands, filled with a canary.
//
// A kernel that writes past its tensor breaks a band; an element that it never writes keeps the
// canary. The canary is the 16-bit word 0xffa5, a NaN of bf16 and f16 and, doubled, of f32 and f64,
// that no arithmetic gives: an instruction's NaN is 0x7fff, or carries an operand's payload, and
// no input holds this one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/launch/driver_api.h"

namespace kw::runtime {

class Guarded {
 public:
  static constexpr int64_t band = 64 * 1024;  // bytes, on either side
  static constexpr uint16_t canary = 0xffa5;

  // Null, with driver.call reported, when memory is short. `name` is the argument's.
  static std::unique_ptr<Guarded> allocate(const Driver& driver, std::string name, int64_t bytes,
                                           Diagnostics& diagnostics);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // The tensor's first byte, aligned to 256.
  CuDevicePointer data() const { return base_ + band; }
  const std::string& name() const { return name_; }
  int64_t bytes() const { return bytes_; }

  // Canary everywhere; then `contents` (of the tensor's size) inside the bands.
  bool poison(Diagnostics& diagnostics) const;
  bool fill(const std::string& contents, Diagnostics& diagnostics) const;
  // Reads the tensor back. Reports prove.guard, with how far outside the first broken byte is.
  bool read(std::string& contents, Diagnostics& diagnostics) const;

 private:
  Guarded(const Driver& driver, std::string name, int64_t bytes)
      : driver_(driver), name_(std::move(name)), bytes_(bytes) {}
  const Driver& driver_;
  std::string name_;
  int64_t bytes_;
  CuDevicePointer base_ = 0;
};

// A string of `bytes` bytes of canary words.
std::string canaries(int64_t bytes);

}  // namespace kw::runtime
