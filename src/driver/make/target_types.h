// Whether a target's hardware can do the types of a function at all, before anything is made for
// it.
#pragma once
#include <string>

#include "operator/form.h"
#include "support/diagnostic.h"

namespace kw::driver {

// Refuses with driver.dtype, at the user's argument: bf16 before sm_80, e4m3 before sm_89. A target
// that nobody knows is for others to refuse.
bool types_fit(const spec::Form& form, const std::string& target, Diagnostics& diagnostics);

}  // namespace kw::driver
