// Words of TL text and of CUDA text. Comments and white space separate tokens and are not tokens.
//
// A preprocessor directive ends with its line, so in CUDA text a token "\n" closes it: otherwise
// `#pragma unroll 1 for (...)` on one line would read like the same words on two.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kw::tl {

enum class Spelling { tl, cuda };

struct Token {
  std::string text;
  uint32_t begin = 0, end = 0;  // bytes
};

// Offsets in the result count from `at`. Never fails: an odd character is a token of its own.
// `$name` and `$name:kind` are one token each, for the patterns of ops.def.
std::vector<Token> lex(std::string_view text, Spelling spelling, uint32_t at = 0);

bool is_identifier(std::string_view text);
bool is_integer(std::string_view text);  // decimal, an int in C: no leading zero, below 2^31
bool is_real(std::string_view text);     // digits, a point, digits, perhaps an exponent
// What fp32 makes of a real: rounded, 0 below its subnormals, infinite above its largest.
float fp32_of(std::string_view real);
// Whether a real is 0 or one of fp32's normal numbers. Others are none of TL: instructions that
// flush subnormals and those that do not would differ about them, and a number of 1e39 be infinite.
bool is_normal(std::string_view real);

}  // namespace kw::tl
