// What a program declares, by name.
#pragma once
#include <string>

#include "tl/program.h"

namespace kw::transfer {

// The param or toggle of this name, or null.
tl::Item* constant_named(tl::Program& program, const std::string& name);
const tl::Item* constant_named(const tl::Program& program, const std::string& name);

// The statement of args: that declares this name, or null.
const tl::Stmt* declaration_of_argument(const tl::Program& program, const std::string& name);

// The step of this name, or null.
tl::Stmt* step_named(tl::Program& program, const std::string& name);

// Of the expressions in maps: the `in` tensor of args: that e is an element of, or null; and
// whether e is there before the step runs: no element of a tile or a vector is part of it.
const tl::Stmt* tensor_read(const tl::Expr& e, const tl::Program& program);
bool is_given(const tl::ExprPtr& e, const tl::Program& program);

}  // namespace kw::transfer
