// What the rules make of a text, for make and, again, for verify; and the constants that they set.
//
// Which row of which tile database was taken is nobody's claim: the program has its constants. So
// the rules are run again with those constants as the only row, and everything else that they write
// must be what the program has.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/form.h"
#include "transfer/transfer.h"

namespace kw::driver {

// `plain` says that the text computes plain attention, or is of a family without such a word: the
// rules change it. Else it was written for the function: no rule changes it, and which of its
// arguments are the user's is all that is asked. Reports what transfer() and begin() do, and
// propose.argument.
std::optional<transfer::Result> by_rules(const tl::Program& source, const spec::Form& form,
                                         const transfer::Target& target, bool plain,
                                         Diagnostics& diagnostics);

// The constants of `now` that are numbers or truth values, and others in `was`.
std::vector<transfer::Constant> constants_set(const tl::Program& was, const tl::Program& now);

// A row for the form's head dimensions with those of the constants that `kernel` has.
transfer::Tiles row_of(const std::vector<transfer::Constant>& constants, const spec::Form& form,
                       const std::string& target, const tl::Program& kernel);

}  // namespace kw::driver
