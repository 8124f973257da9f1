// A JSON text held against a JSON Schema (draft 2020-12), as much of it as docs/*.schema.json use.
//
// One form for everybody: what the schema file says is what kernelwright refuses, and what any
// other validator refuses. Keywords: type, const, enum, pattern, minimum, maximum, minItems, items,
// required, properties, additionalProperties, oneOf, $ref to "#/$defs/NAME". A schema with another
// keyword is a fault of ours and is said to be one (schema.keyword).
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace kw::driver {

// What is wrong first, in words: "/files: has no 'kernel.cu'"; nothing when `value` fits.
std::optional<std::string> mismatch(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace kw::driver
