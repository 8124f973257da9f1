// The parts of TL's reference that a prompt holds, made of the tables that the language is made of:
// the statements (ops.def), the laws (laws.def), the functions and the operators' order.
//
// Left out is what no edit of a lifted kernel needs: what exists before scheduling, and includes.
#pragma once
#include <string>

#include "tl/table.h"

namespace kw::propose {

// Whether an edit may write this statement.
bool may_write(const tl::Row& row);

std::string statements_manual();   // a line a statement, by the block that it stands in
std::string expressions_manual();  // operators from the loosest, functions, constants
std::string laws_manual();         // of those statements, and of names, types and uses

}  // namespace kw::propose
