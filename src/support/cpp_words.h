// Words that a name in C++ cannot be (C++20, lex.key, with alternative tokens), and CUDA's `asm`.
#pragma once
#include <string_view>

namespace kw {

bool is_cpp_word(std::string_view name);

}  // namespace kw
