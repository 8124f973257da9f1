// rebase: a variant once more, on a newer version of the expert's kernel.
//
// The variant's folder knows what it was made from (`from/`) and what was checked
// (certificate.json). What made it is done again with the new kernel:
//
//   rules     transfer's, on the new kernel, for the specification in from/
//   tiles     the constants that the rules set then are set again, where the new kernel has them
//   by hand   what a person changed in kernel.cu, or in kernel.tl, since then. It is the difference
//             between that file and what the rules wrote, and goes into what they write now: a
//             merge of three texts (lower/merge.h)
//
// The result is checked and written like any other variant, into a folder of its own; the old one
// is only read. Edits by hand are never lost: each is in the result, or a conflict that names both
// places, or the rebase is refused because something else than the kernel was edited. A variant
// that has edits on top of its rules keeps the rules' text in from/rules.cu, for the next rebase.
//
// `--onto` the same kernel again checks and builds a variant that was edited.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "driver/make/make.h"
#include "transfer/transfer.h"

namespace kw::driver {

struct RebaseOptions {
  std::string variant;  // a folder that make, port or rebase wrote
  std::string onto;     // the new kernel's file
  std::string tiles;    // a tile database of the user's, or empty
  std::string out;      // empty: the variant's name with "-rebased"
  check::Effort effort = check::Effort::usual;
  bool gpu = false;
};

// Reports rebase.variant (no folder of ours), rebase.edited (a file other than the kernel was
// edited or is missing), rebase.two_edits (kernel.cu and kernel.tl were, differently),
// rebase.conflict, rebase.argument, driver.out, and what the stages report.
Made rebase(const RebaseOptions& options, const Say& say, Diagnostics& diagnostics);

// ---- what make asks, of an earlier variant

// The constants that it set, as the first row of `rows`, for a kernel with the form's head
// dimensions; returns those that `kernel` does not have.
std::vector<std::string> add_row_of(const Earlier& earlier, const spec::Form& form,
                                    const std::string& target, const tl::Program& kernel,
                                    std::vector<transfer::Tiles>& rows);

struct Replay {
  std::optional<std::string> text;  // nothing where edits are in conflict
  std::string said;                 // for the stage's line
};
// A person's edits in `by_rules`, the text that the rules wrote into `expert` now. Reports
// rebase.conflict with both places.
Replay replay(const Earlier& earlier, const SourcePtr& expert, const std::string& by_rules,
              Diagnostics& diagnostics);

// Whether the program still has every argument that the user's function gives it. Reports
// rebase.argument.
bool keeps_arguments(const transfer::Result& transferred, const tl::Program& program,
                     Diagnostics& diagnostics);

}  // namespace kw::driver
