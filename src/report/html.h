// HTML in which text cannot become markup.
//
// A page shows what others wrote: a user's file, names in it, messages. So text and markup are two
// types, and one function turns the one into the other (escape, html.cpp). Whoever writes
// html("<p>{}</p>", name) need not think of it: an argument is escaped unless it is markup itself.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace kw::report {

class Markup {
 public:
  Markup() = default;
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  Markup& operator+=(const Markup& o) {
    text_ += o.text_;
    return *this;
  }
  friend Markup operator+(Markup a, const Markup& b) { return a += b; }

 private:
  explicit Markup(std::string text) : text_(std::move(text)) {}
  template <size_t kLength, class... A>
  friend Markup html(const char (&pattern)[kLength], const A&... arguments);
  friend Markup escape(std::string_view text);
  std::string text_;
};

// Text as markup that shows it, in an element or in a quoted attribute. Bytes that are not UTF-8,
// and control characters that HTML does not allow, become U+FFFD.
Markup escape(std::string_view text);

template <class T>
auto shown(const T& value) {
  if constexpr (std::is_same_v<T, Markup>)
    return value.text();
  else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, char>)
    return value;
  else
    return escape(std::string_view(value)).text();
}

// A pattern of fmt's, written out in the program, with its arguments; numbers are numbers. Without
// arguments it is no pattern, and stands as it is.
template <size_t kLength, class... A>
Markup html(const char (&pattern)[kLength], const A&... arguments) {
  const std::string_view written(pattern, kLength - 1);
  if constexpr (sizeof...(A) == 0)
    return Markup(std::string(written));
  else
    return Markup(fmt::format(fmt::runtime(written), shown(arguments)...));
}

// "80,096"
std::string with_commas(int64_t n);
// "no lines", "1 line", "17 lines"
std::string count(int64_t n, const std::string& noun);

}  // namespace kw::report
