// The device functions that a printed kernel calls, in its own text: scalars, strided tensors of
// the arguments, tiles, copies, products, and what goes along rows.
#pragma once
#include <string>

namespace kw::cute {

// `lists`: a pre-pass lists key blocks.
std::string prelude(bool lists);

}  // namespace kw::cute
