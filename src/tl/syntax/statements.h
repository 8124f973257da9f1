// One statement, read and written by its row of ops.def.
#pragma once
#include <optional>
#include <string>

#include "tl/syntax/holes.h"
#include "tl/syntax/reader.h"
#include "tl/syntax/table.h"

namespace kw::tl {

// Reads the row's own words (not its block) from where the reader stands. Nothing after a failure;
// reader.at is then how far it came. CUDA text is refused unless writing the statement gives back
// exactly the tokens that were read: this is the gate that makes lift injective.
// Where C allows a single statement without braces, reader.braced says whether there was one.
std::optional<Stmt> read_statement(const Row& row, Reader& reader);

// The statement's own words in CUDA, or nothing and why not.
std::optional<std::string> print_cuda(const Stmt& stmt, const Scope& scope, const Lambda* lambda,
                                      std::string& problem);

}  // namespace kw::tl
