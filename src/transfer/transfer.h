// Transfer: the kernel of one specification becomes the kernel of another.
//
// Rules propose; nothing that they propose is trusted, and the common checker decides. Each family
// of operators (family.h) finds the places of the source program that a specification changes and
// changes each by one rule (docs/rules.md). The source computes the family's plain operator, such
// as softmax attention; what a form asks for beyond that is written in, and what no rule can write
// is refused: a diagnostic transfer.*, the user's line, and the nearest form that is supported.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/form.h"
#include "support/diagnostic.h"
#include "tl/program.h"
#include "transfer/tile_database.h"

namespace kw::transfer {

// One rule that fired: the statements it took out and put in, as TL text, one a line.
struct AppliedRule {
  std::string name, before, after;
};

// Which argument of the user's function a tensor or scalar of the kernel is. Dimension k of the
// kernel's tensor is dimension dims[k] of the user's; -1: the user's has no such dimension, and the
// size is 1. The output has no name at the user's: "". With a group, dimensions 1 and 2 are both of
// one of the user's: its heads, of which each run of `group` are rows of one kernel head; the
// user's queries, of which there is one, are no dimension of the kernel's then (pack.h).
struct Binding {
  std::string argument, user;
  std::vector<int> dims;
  int64_t group = 1;
};

// What must hold of a launch's sizes and scalars for the program to mean the specification.
struct Condition {
  tl::ExprPtr holds;  // over the kernel's arguments: N == 256, temperature > 0.0
  std::string why;
};

struct Result {
  tl::Program program;
  std::vector<AppliedRule> rules;
  std::vector<Binding> bindings;  // in the order of the kernel's arguments that the user's are
  std::vector<Condition> conditions;
  std::vector<std::string> notes;  // what a person should know: a mask that visits every block
  int statements_removed = 0, statements_added = 0;
  bool roomier = false;     // other tiles leave more registers: Target::tried may be one more
  Keys keys = Keys::alike;  // whether the range of keys that a row sees moves with the row
  std::string tiles;        // the row of the tile database, by its place; empty: the text's own
  std::string proposer = "rules";  // or "model (who answered)"
};

// What the program will be compiled for, and the tile database: the rows of the user's files first,
// best first. What a score or a mask computes may need registers that the best tiles do not leave,
// which only the compiler knows: `tried` is how many tiles were in vain. `keep_order` leaves blocks
// of the output in the order that the kernel has them in, which may be its launch's to say.
// `deterministic`: what CTAs add to the same sums they add in one order; a family whose kernels do
// not is as it is.
struct Target {
  std::string name;  // sm_90a
  std::vector<Tiles> tiles;
  int tried = 0;
  bool keep_order = false;
  bool deterministic = false;
};

// What no proposer decides: which of the user's arguments are the operands and the output, which
// sizes the user's code fixes, and the constants that the tile database has for the function. The
// result's program is the source with these constants.
std::optional<Result> begin(const tl::Program& source, const spec::Form& form, const Target& target,
                            Diagnostics& diagnostics);

// What the rules propose.
std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                               const Target& target, Diagnostics& diagnostics);

}  // namespace kw::transfer
