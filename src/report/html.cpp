#include "report/html.h"

namespace kw::report {
namespace {

// How many bytes the UTF-8 sequence at the beginning of `text` has; 0 where it is none, or spells
// a surrogate, a number past the last one, or another number at more length than it needs.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t n) { return n < text.size() ? uint8_t(text[n]) : 0; };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  for (size_t n = 1; n < length; ++n)
    if ((byte(n) & 0xc0) != 0x80) return 0;
  const uint8_t second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

// Other than those that HTML allows: of ASCII, and U+0080 to U+009F.
bool is_control(std::string_view character) {
  const uint8_t c = character[0];
  if (character.size() == 2) return c == 0xc2 && uint8_t(character[1]) < 0xa0;
  return character.size() == 1 && ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f);
}

}  // namespace

Markup escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 0 || is_control(text.substr(0, length)))
      out += "\xef\xbf\xbd";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return Markup(out);
}

std::string with_commas(int64_t n) {
  const std::string digits = fmt::format("{}", n);
  std::string out;
  for (size_t at = 0; at < digits.size(); ++at) {
    const size_t left = digits.size() - at;
    if (at > 0 && left % 3 == 0 && digits[at - 1] != '-') out += ',';
    out += digits[at];
  }
  return out;
}

std::string count(int64_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n == 0 ? "no" : with_commas(n), noun, n == 1 ? "" : "s");
}

}  // namespace kw::report
