// A text as its lines and back.
#pragma once
#include <string>
#include <vector>

namespace kw {

// Without their ends; the last one may lack its own.
std::vector<std::string> lines_of(const std::string& text);

// Each with an end.
std::string joined(const std::vector<std::string>& lines);

}  // namespace kw
