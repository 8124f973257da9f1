#include "transfer/editing/declarations.h"

#include <algorithm>
#include <utility>

namespace kw::transfer {

using tl::Op;
using tl::Program;
using tl::Stmt;

const tl::Item* constant_named(const Program& program, const std::string& name) {
  for (const Stmt& s : program.body)
    if (s.op == Op::param || s.op == Op::toggle)
      for (const tl::Item& d : s.names())
        if (d.name == name) return &d;
  return nullptr;
}

tl::Item* constant_named(Program& program, const std::string& name) {
  return const_cast<tl::Item*>(constant_named(std::as_const(program), name));
}

const Stmt* declaration_of_argument(const Program& program, const std::string& name) {
  const Stmt* args = program.find(Op::args);
  if (!args) return nullptr;
  for (const Stmt& s : args->body)
    for (const tl::Item& d : s.names())
      if (d.name == name) return &s;
  return nullptr;
}

const tl::Stmt* tensor_read(const tl::Expr& e, const tl::Program& program) {
  if (e.kind != tl::ExprKind::index || e.args[0]->kind != tl::ExprKind::name) return nullptr;
  const tl::Stmt* s = declaration_of_argument(program, e.args[0]->text);
  return s && s->op == tl::Op::arg_tensor && s->access().at(0).name == "in" ? s : nullptr;
}

bool is_given(const tl::ExprPtr& e, const tl::Program& program) {
  if (e->kind == tl::ExprKind::index && !tensor_read(*e, program)) return false;
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](const tl::ExprPtr& a) { return is_given(a, program); });
}

tl::Stmt* step_named(tl::Program& program, const std::string& name) {
  tl::Stmt* step = nullptr;
  tl::walk(program.body, [&](tl::Stmt& s) {
    if (s.op == tl::Op::step && s.name() == name) step = &s;
  });
  return step;
}

}  // namespace kw::transfer
