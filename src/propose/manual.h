// The parts of TL's reference that a prompt holds, made of the tables that the language is made of:
// the statements (ops.def), the laws (laws.def), the functions and the operators' order.
//
// Left out is what a program of that level has not: of a scheduled one what exists before
// scheduling, of a sketch what sizing and scheduling add; and includes.
#pragma once
#include <string>

#include "tl/syntax/table.h"

namespace kw::propose {

// Whether somebody may write this statement in a program of the level.
bool may_write(const tl::Row& row, tl::Level level = tl::Level::scheduled);

// A line a statement, by the block that it stands in.
std::string statements_manual(tl::Level level = tl::Level::scheduled);
std::string expressions_manual();  // operators from the loosest, functions, constants
// Of those statements, and of names, types and uses.
std::string laws_manual(tl::Level level = tl::Level::scheduled);

}  // namespace kw::propose
