#include "transfer/declarations.h"

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

}  // namespace kw::transfer
