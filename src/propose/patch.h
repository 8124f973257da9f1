// Edits become a program: lines are put in and taken out, the text is read as TL, and what is not
// the proposer's to change must be as it was.
//
// Not the proposer's are the names and types of the arguments that the source has (whoever launches
// the kernel and whoever checks it goes by them), and what is included. New arguments must be the
// function's: check/bind.cpp refuses others. A value that an argument has (`scale: f32 = ...`) may
// change.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "propose/answer.h"
#include "tl/program.h"

namespace kw::propose {

// The program's canonical text, a line an entry.
std::vector<std::string> lines_of(const tl::Program& program);

// `  12|    let a = b`: what a proposer sees, and counts in.
std::string numbered(const std::vector<std::string>& lines);

// The text after the edits. Refuses with edit.limit (too many), edit.range (lines that there are
// not), edit.text (an edit that lacks lines or has too many, a line with a control character),
// edit.expect, edit.overlap.
std::optional<std::string> apply(const std::vector<std::string>& lines, const Edits& edits,
                                 Refusal& refusal);

// The first error as a sentence for a proposer: what and where, its notes, and the law or the hint.
Refusal refusal_of(const Diagnostics& diagnostics);

// Reads the text and holds it against the source and the laws. Refuses with tl.syntax,
// edit.include, edit.arguments, edit.kernel (another module than one with the source's kernel) and
// with the number of the first law that is broken.
// With `no_lse` the argument of that name may go: a sum of several softmaxes has none.
std::optional<tl::Program> read_program(const std::string& text, const tl::Program& source,
                                        bool no_lse, Refusal& refusal);

}  // namespace kw::propose
