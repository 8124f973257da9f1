// NumPy's .npy files, version 1.0 (numpy.lib.format), little-endian, C order.
//
// NumPy has no bfloat16 and no FP8: such values are written as their bits, `<u2` and `|u1`, and the
// caller says on reading that they are bf16 or e4m3.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "num/tensor.h"
#include "support/diagnostic.h"

namespace kw {

// `as` reads the file's `<u2` as bf16 bits, its `|u1` as e4m3; otherwise `<u2` is refused, and
// `|u1` is u8.
std::optional<Tensor> read_npy(const std::filesystem::path& path, Diagnostics& diagnostics,
                               std::optional<Dtype> as = std::nullopt);

// The same from a file's bytes; `name` is for messages.
std::optional<Tensor> parse_npy(const std::string& bytes, const std::string& name,
                                Diagnostics& diagnostics, std::optional<Dtype> as = std::nullopt);

// Writes whole or not at all. False, with errno, when it cannot.
bool write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace kw
