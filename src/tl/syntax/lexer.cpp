// One lexer for both spellings: they differ in their comments, in `//`, and in directives.
#include "tl/syntax/lexer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace kw::tl {
namespace {

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view text, Spelling spelling, uint32_t at)
      : text_(text), cuda_(spelling == Spelling::cuda), at_(at) {}

  std::vector<Token> run() {
    while (p_ < text_.size()) {
      if (!skip()) add(length());
    }
    close_directive();
    return std::move(out_);
  }

 private:
  char peek(size_t k = 0) const { return p_ + k < text_.size() ? text_[p_ + k] : '\0'; }
  bool here(std::string_view s) const { return text_.substr(p_, s.size()) == s; }

  void add(size_t length) {
    if (cuda_ && text_[p_] == '#') directive_ = true;
    const uint32_t begin = at_ + static_cast<uint32_t>(p_);
    out_.push_back(
        {std::string(text_.substr(p_, length)), begin, begin + static_cast<uint32_t>(length)});
    p_ += length;
  }

  void close_directive() {
    if (!directive_) return;
    directive_ = false;
    const uint32_t end = out_.back().end;
    out_.push_back({"\n", end, end});
  }

  // White space and comments.
  bool skip() {
    const char c = peek();
    if (c == '\n') close_directive();
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') return ++p_, true;
    if (cuda_ ? here("//") : c == '#') {
      p_ = std::min(text_.find('\n', p_), text_.size());
      return true;
    }
    if (cuda_ && here("/*")) {
      const size_t end = text_.find("*/", p_ + 2);
      p_ = end == std::string_view::npos ? text_.size() : end + 2;
      return true;
    }
    return false;
  }

  size_t word(size_t from) const {
    while (letter(peek(from)) || digit(peek(from))) ++from;
    return from;
  }

  size_t number() const {
    size_t n = 0;
    while (digit(peek(n))) ++n;
    if (peek(n) == '.' && digit(peek(n + 1))) {
      ++n;
      while (digit(peek(n))) ++n;
    }
    if (peek(n) == 'e' &&
        (digit(peek(n + 1)) || ((peek(n + 1) == '-' || peek(n + 1) == '+') && digit(peek(n + 2)))))
      n += 2;
    return word(n);  // a suffix, or letters that make it no number
  }

  size_t length() const {
    const char c = peek();
    if (letter(c)) return word(0);
    if (digit(c)) return number();
    if (c == '"') {
      const size_t end = text_.find_first_of("\"\n", p_ + 1);
      if (end == std::string_view::npos || text_[end] == '\n') return 1;
      return end + 1 - p_;
    }
    if (c == '\'' && peek(2) == '\'') return 3;
    if (c == '$' && letter(peek(1))) {
      const size_t n = word(1);
      return peek(n) == ':' && letter(peek(n + 1)) ? word(n + 1) : n;
    }
    for (std::string_view two :
         {"::", "->", "++", "--", "&&", "||", "<=", ">=", "==", "!=", "+=", "<<", ">>"})
      if (here(two)) return 2;
    return !cuda_ && here("//") ? 2 : 1;
  }

  std::string_view text_;
  bool cuda_;
  uint32_t at_;
  size_t p_ = 0;
  bool directive_ = false;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> lex(std::string_view text, Spelling spelling, uint32_t at) {
  return Lexer(text, spelling, at).run();
}

bool is_identifier(std::string_view text) {
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return letter(c) || digit(c); });
}

bool is_integer(std::string_view text) {
  constexpr size_t kDigits = 10;
  constexpr std::string_view kLargest = "2147483647";
  return !text.empty() && std::all_of(text.begin(), text.end(), digit) &&
         (text[0] != '0' || text.size() == 1) &&
         (text.size() < kDigits || (text.size() == kDigits && text <= kLargest));
}

bool is_real(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || point == 0) return false;
  const size_t e = text.find('e', point);
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(point + 1, e - point - 1);
  const auto digits = [](std::string_view s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), digit);
  };
  if (e == std::string_view::npos) return digits(whole) && digits(text.substr(point + 1));
  std::string_view exponent = text.substr(e + 1);
  if (!exponent.empty() && (exponent[0] == '-' || exponent[0] == '+')) exponent.remove_prefix(1);
  return digits(whole) && digits(part) && digits(exponent);
}

float fp32_of(std::string_view real) { return std::strtof(std::string(real).c_str(), nullptr); }

bool is_normal(std::string_view real) {
  const std::string_view digits = real.substr(0, real.find('e'));
  return digits.find_first_not_of("0.") == std::string_view::npos || std::isnormal(fp32_of(real));
}

}  // namespace kw::tl
