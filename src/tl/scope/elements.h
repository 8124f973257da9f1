// How many bytes an element takes in memory, by the name of its type. Laws and launch plans ask
// here; the executor has values, and their sizes are num/dtype.h's.
#pragma once
#include <cstdint>
#include <string_view>

namespace kw::tl {

// `element` is bf16 or f16.
constexpr int64_t bytes_of(std::string_view type) {
  if (type == "e4m3" || type == "u8" || type == "bool") return 1;
  if (type == "element" || type == "bf16" || type == "f16") return 2;
  return type == "i64" || type == "f64" ? 8 : 4;
}

}  // namespace kw::tl
