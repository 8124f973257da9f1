// Whether what clang is about to read asks for a file that is not of the device vocabulary, or for
// more words than it has.
#pragma once
#include <string>

#include "support/diagnostic.h"

namespace kw::lift {

// The kernel's text, and, once a folder, each file of `include`/kw. Reports lift.include at the
// place (support/includes.h), and lift.unrecognised where the kernel has a macro: no preprocessor
// sees one. A link in kw/ may lead to a file of the same name in another kw/, as
// where an installation is made of links; anywhere else it is refused.
bool reads_only_the_vocabulary(const SourcePtr& kernel, const std::string& include,
                               Diagnostics& diagnostics);

// Whether a preprocessor has nothing to expand but words of the vocabulary; also of texts that are
// compiled without being lifted first. Reports lift.unrecognised.
bool has_no_macros(const SourcePtr& kernel, Diagnostics& diagnostics);

}  // namespace kw::lift
