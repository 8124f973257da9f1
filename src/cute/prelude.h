// The device functions that a printed kernel calls, in its own text: scalars, strided tensors of
// the arguments, tiles, copies, products, and what goes along rows.
#pragma once
#include <string>

namespace kw::cute {

std::string prelude();

}  // namespace kw::cute
