#include "tl/syntax/renamed.h"

namespace kw::tl {

std::string_view new_name(std::string_view was) {
#define RENAMED(old, now) \
  if (was == #old) return #now;
#include "tl/syntax/renamed.def"
  return {};
}

OldName old_name(const std::vector<Token>& line) {
  const auto is = [&](size_t k, std::string_view text) {
    return k < line.size() && line[k].text == text;
  };
  for (size_t k = 0; k < line.size(); ++k) {
    const std::string_view now = new_name(line[k].text);
    if (now.empty()) continue;
    const bool name_of_its_own = is(k + 1, "(") || is(k + 1, "=") || is(k + 1, ":");
    const bool first = k == 0 && !name_of_its_own;                 // gemm s = ..., publish
    const bool loop = k > 0 && is(k - 1, "in") && is(k + 1, "(");  // for u, w in deal(...)
    const bool flag = k > 0 && is(k - 1, "=") && k + 1 < line.size() &&
                      is_identifier(line[k + 1].text);             // raised = raise m, ...
    const bool head = is(0, "kernel") && k > 0 && is(k - 1, ",");  // kernel k, ..., workers me:
    if (first || loop || flag || head)
      return {&line[k], "`" + line[k].text + "` is now `" + std::string(now) + "`"};
  }
  return {};
}

}  // namespace kw::tl
