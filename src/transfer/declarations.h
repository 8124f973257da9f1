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

}  // namespace kw::transfer
