// Sketches. Nothing in them has a size or a place, so the laws of shapes wait for the sized
// program; what can be wrong is the order: a tile is made by the statement that writes it first,
// and nothing reads it before.
#include <algorithm>

#include "tl/analysis/effects.h"
#include "tl/laws/laws_check.h"

namespace kw::tl {

bool in_sketch(const Check& c) { return c.facts.level == "sketch" && c.inside(Op::plan); }

void judge_sketched(Check& c, std::set<std::string>& made) {
  const Effects effects = effects_of(c.stmt);
  const auto known = [&](const std::string& name) {
    return name == "i" || name == "j" || made.contains(name) || c.scope.find(name) ||
           find_constant(name);
  };
  for (const std::string& name : effects.reads)
    if (!known(name)) {
      c.broken_as("plan", "C2", c.stmt.span,
                  fmt::format("`{}` is read here, and no statement before has made it", name));
      break;  // once a statement
    }
  for (const std::string& name : effects.writes)
    if (const Symbol* s = c.scope.find(name); s && !s->written && s->category == Category::tensor)
      c.broken_as("plan", "C3", c.stmt.span,
                  fmt::format("`{}` is an `in` tensor, and written here", name))
          .notes.push_back({"declared here", s->span});
  made.insert(effects.writes.begin(), effects.writes.end());
}

}  // namespace kw::tl
