// Faults, and how a message cites a statement.
#include "exec/faults.h"

#include <fmt/format.h>

#include "exec/value.h"

namespace kw::exec {

std::string cite(const tl::Stmt& s) { return fmt::format("`{}`", tl::print_head(s)); }

Diagnostic& Faults::raise(const std::string& code, const tl::Stmt* at, const std::string& message) {
  Diagnostic d;
  d.code = code;
  if (at) d.span = at->span;
  d.message = agent.empty() ? message : fmt::format("{} ({})", message, agent);
  Diagnostic& place = any_ ? scratch_ : first_;
  place = std::move(d);
  any_ = true;
  return place;
}

std::string word_of(const tl::Stmt& s, tl::Hole hole) {
  const tl::Item& item = s.items(hole)[0];
  return item.expr && item.name.empty() ? item.expr->text : item.name;
}

}  // namespace kw::exec
