#include "transfer/families/attention_bwd/edit.h"

#include "transfer/edits.h"
#include "transfer/spell.h"

namespace kw::transfer::bwd {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

Edit::Edit(const tl::Program& source, const spec::Form& form, const Target& target,
           Diagnostics& diagnostics)
    : form(form),
      term(form.terms.front()),
      target(target),
      diagnostics(diagnostics),
      result{source, {}, {}, {}, {}},
      program(result.program) {}

Span Edit::place(const ExprPtr& e) const {
  const Span found = spec::place_of(e);
  const spec::Argument* q = form.argument(term.q.argument);
  return found.known() || !q ? found : q->span;
}

bool Edit::refuse(const char* code, const Span& where, const std::string& why,
                  const std::string& hint) {
  diagnostics.error(code, where, why).hint = hint;
  return false;
}

bool Edit::condition(const std::string& holds, const std::string& why) {
  return add_condition(result, holds, why, diagnostics);
}

ExprPtr Edit::named(const ExprPtr& e) const {
  return spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::size) return nullptr;
    for (const auto& [size, letter] : {std::pair{&form.B, "B"}, {&form.M, "M"}, {&form.N, "N"}})
      if (size->name == x->name) return spec::leaf(Kind::size, spec::Type::integer, letter);
    return nullptr;
  });
}

std::optional<std::string> Edit::spelled(const ExprPtr& e, const std::string& query,
                                         const std::string& key) {
  Spelling how;
  how.indices = {{"i", tl::parse_expr(query, diagnostics)},
                 {"j", tl::parse_expr(key, diagnostics)},
                 {"b", tl::field(tl::name("c"), "b")}};
  const std::optional<tl::ExprPtr> out = spell(e, how, diagnostics);
  if (!out) return std::nullopt;
  return tl::print(*out);
}

bool Edit::replace(std::vector<Stmt>& block, const std::vector<std::string>& texts) {
  return replace_block(block, texts, diagnostics);
}

Stmt* Edit::queries_def() {
  for (Stmt& s : program.body)
    if (s.op == Op::def && s.name() == "query_blocks") return &s;
  return nullptr;
}

Stmt* Edit::mask() {
  Stmt* found = nullptr;
  tl::walk(program.body, [&](Stmt& s) {
    if (s.op == Op::if_ && s.body.size() == 1 && s.body[0].op == Op::map_at) found = &s;
  });
  return found;
}

}  // namespace kw::transfer::bwd
