// Naming the statement that a refutation is about.
#include "check/locator.h"

namespace kw::check {

using tl::Stmt;

int canonical_line(const tl::Program& program, const Stmt* statement) {
  int index = -1, n = 0;
  tl::walk(program.body, [&](const Stmt& s) {
    if (&s == statement) index = n;
    ++n;
  });
  Diagnostics ignored;
  const auto canonical = tl::parse(make_source("canonical", tl::print(program)), ignored);
  int line = 0;
  if (canonical && index >= 0)
    tl::walk(canonical->body, [&](const Stmt& s) {
      if (index-- == 0) line = s.span.start().line;
    });
  return line;
}

void name_statement(const tl::Program& program, const Stmt* statement, const std::string& text,
                    Counterexample& what) {
  if (!statement) return;
  what.statement = tl::print_head(*statement);
  what.line = canonical_line(program, statement);
  what.span = statement->span;
  what.difference = text;
}

}  // namespace kw::check
