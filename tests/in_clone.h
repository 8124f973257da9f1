// Where this clone lies, for tests that read its files. One small file of its own is told, so that
// what a compiler cache holds of every other test serves any clone.
#pragma once
#include <string>
#include <string_view>

namespace kw {

// in_clone("/tests/corpus/sm90_gemm.tl"): that file's path; of nothing, the clone's.
std::string in_clone(std::string_view path = {});

}  // namespace kw
