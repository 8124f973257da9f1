// Naming the statement that a refutation is about.
//
// Key blocks are decided by the function behind a key loop's bounds. For everything else the
// failing case runs once more, watched.
#include "check/locator.h"

namespace kw::check {

using tl::Op;
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

namespace {

// What decides which key blocks run: the return of the function behind the bounds of a key loop.
const Stmt* range_statement(const tl::Program& program) {
  std::string keys, def;
  const Stmt* found = nullptr;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::down || !keys.empty()) return;
    tl::rewrite(s.expr("a"), [&](const tl::ExprPtr& e) {
      if (e->kind == tl::ExprKind::field) keys = e->args[0]->text;
      return tl::ExprPtr();
    });
  });
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::let) return;
    for (const tl::Item& d : s.items("d"))
      if (d.name == keys && d.expr->kind == tl::ExprKind::call) def = d.expr->text;
  });
  for (const Stmt& s : program.body)
    if (s.op == Op::def && s.word("n") == def)
      tl::walk(s.body, [&](const Stmt& r) {
        if (r.op == Op::return_) found = &r;
      });
  return found;
}

}  // namespace

void name_statement(const tl::Program& program, const Stmt* statement, const std::string& text,
                    Counterexample& what) {
  if (!statement) return;
  what.statement = tl::print_head(*statement);
  what.line = canonical_line(program, statement);
  what.span = statement->span;
  what.difference = text;
}

void locate(const tl::Program& program, const spec::Capture& capture, const Case& c,
            Counterexample& what) {
  Diagnostics ignored;
  const auto problem = spec::make_problem(capture.form, c.sizes, c.draws, ignored);
  if (!problem) return;
  if (what.output == "key blocks") {
    const Stmt* range = range_statement(program);
    return name_statement(program, range, "the key range is decided here", what);
  }
  const auto launch = bind(program, capture.form, *problem, c, ignored);
  if (!launch) return;
  spec::Evaluator evaluator(capture.form, *problem);
  const std::unique_ptr<Locator> locator = make_locator(c, evaluator);
  exec::run(program, *launch, locator.get());
  const Difference found = locator->found();
  name_statement(program, found.statement, found.text, what);
}

}  // namespace kw::check
