#include "runtime/prove/guarded.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kw::runtime {
namespace {

// The upper band begins on a 16-byte boundary, so the canary's phase is the same everywhere.
int64_t padded(int64_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

std::string canaries(int64_t bytes) {
  std::string out(bytes, static_cast<char>(Guarded::canary >> 8));
  for (int64_t i = 0; i < bytes; i += 2) out[i] = static_cast<char>(Guarded::canary & 0xff);
  return out;
}

std::unique_ptr<Guarded> Guarded::allocate(const Driver& driver, std::string name, int64_t bytes,
                                           Diagnostics& diagnostics) {
  std::unique_ptr<Guarded> memory(new Guarded(driver, std::move(name), bytes));
  const int64_t total = padded(bytes) + 2 * band;
  if (!driver.ok(driver.allocate(&memory->base_, total),
                 fmt::format("allocating {} bytes for {}", total, memory->name_), diagnostics))
    return nullptr;
  return memory;
}

Guarded::~Guarded() {
  if (base_) driver_.release(base_);
}

bool Guarded::poison(Diagnostics& diagnostics) const {
  const std::string all = canaries(padded(bytes_) + 2 * band);
  return driver_.ok(driver_.copy_to_device(base_, all.data(), all.size()), "poisoning " + name_,
                    diagnostics);
}

bool Guarded::fill(const std::string& contents, Diagnostics& diagnostics) const {
  return driver_.ok(driver_.copy_to_device(data(), contents.data(), contents.size()),
                    "filling " + name_, diagnostics);
}

bool Guarded::read(std::string& contents, Diagnostics& diagnostics) const {
  std::string all(padded(bytes_) + 2 * band, '\0');
  if (!driver_.ok(driver_.copy_from_device(all.data(), base_, all.size()), "reading " + name_,
                  diagnostics))
    return false;
  const std::string expected = canaries(band + padded(bytes_) - bytes_ + 16);
  const std::string_view below(all.data(), band);
  const std::string_view above = std::string_view(all).substr(band + bytes_);
  // A tensor of an odd number of bytes begins the upper band in the middle of a canary.
  const std::string_view above_expected(expected.data() + bytes_ % 2, above.size());
  contents = all.substr(band, bytes_);
  if (below == std::string_view(expected).substr(0, band) && above == above_expected) return true;
  const auto first = [](std::string_view a, std::string_view b) {
    return std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  };
  diagnostics.error(
      "prove.guard", {},
      above != above_expected
          ? fmt::format("{}: memory after the tensor was written, {} bytes past its end", name_,
                        first(above, above_expected))
          : fmt::format("{}: memory before the tensor was written, {} bytes before it", name_,
                        band - first(below, expected)));
  return false;
}

}  // namespace kw::runtime
