// What kernelwright-prove says: a table that grows as cases end, and one JSON object at the end.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kw::prove {

// The column heads, and one line for a case (of the facts that runtime/prove/prove.h describes)
// with its findings under it. Both end with a newline.
std::string table_head();
std::string table_line(const nlohmann::json& facts);

}  // namespace kw::prove
