// Steps of an edit that every family's rules take.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "transfer/transfer.h"

namespace kw::transfer {

// Adds a condition of launches, TL text over the kernel's arguments. False where it cannot be read.
bool add_condition(Result& result, const std::string& holds, std::string why,
                   Diagnostics& diagnostics);

// Conditions for the sizes that the user's code fixes, under the letters that the kernel has for
// batch entries, query and key heads, queries and keys. A trace fixes every head count, but a
// function that never computes with a head's number means the same for any; a single head may be an
// absent dimension, so one stays one.
struct Letters {
  std::string batch, heads, groups, queries, keys;
};
bool fix_sizes(Result& result, const spec::Form& form, const Letters& letters,
               Diagnostics& diagnostics);

// Puts the statements of these texts in the place of a block's. False where one cannot be read.
bool replace_block(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts,
                   Diagnostics& diagnostics);

// e with other names for its sizes, and for the arguments that it reads; those not among them stay.
spec::ExprPtr renamed(const spec::ExprPtr& e, const std::map<std::string, std::string>& sizes,
                      const std::map<std::string, std::string>& arguments);

}  // namespace kw::transfer
