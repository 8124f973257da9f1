#include "transfer/change.h"

#include <algorithm>
#include <sstream>

#include "support/lines.h"

namespace kw::transfer {
namespace {

std::vector<std::string> lines(const tl::Program& program) {
  std::vector<std::string> out;
  std::istringstream text(tl::print(program));
  for (std::string line; std::getline(text, line);) {
    out.push_back(line.substr(std::min(line.find_first_not_of(' '), line.size())));
  }
  return out;
}

}  // namespace

Change change(const tl::Program& before, const tl::Program& after) {
  const std::vector<std::string> a = lines(before), b = lines(after);
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  Change out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      out.removed.push_back(a[i++]);
    } else {
      out.added.push_back(b[j++]);
    }
  }
  return out;
}

void note_rule(Result& result, const char* name, const tl::Program& before,
               const tl::Program& after) {
  const Change c = change(before, after);
  if (!c.removed.empty() || !c.added.empty())
    result.rules.push_back({name, joined(c.removed), joined(c.added)});
}

}  // namespace kw::transfer
