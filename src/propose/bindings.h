// What a launcher needs to know of an accepted program: which arguments are the user's.
#pragma once
#include <string>

#include "propose/answer.h"
#include "transfer/transfer.h"

namespace kw::propose {

// Adds a binding for each argument that the program has beyond the source's, and the condition that
// positions computed with an i32 stay within 32 bits, as the rules do. Refuses with
// propose.argument what the user's function has not.
bool bind_arguments(transfer::Result& result, const tl::Program& source, const spec::Form& form,
                    Refusal& refusal);

// What was changed, for reports: statements, and who did it.
void describe_change(transfer::Result& result, const tl::Program& source, const std::string& who);

}  // namespace kw::propose
