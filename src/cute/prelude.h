// The device functions that a printed kernel calls, in its own text: scalars, strided tensors of
// the arguments, tiles, copies, products, and what goes along rows.
#pragma once
#include <string>

namespace kw::cute {

// What a program has decides which parts stand in its text.
struct Parts {
  bool hopper;  // the copy engine, barriers in shared memory, products under way
  bool queue;
  bool lists;  // a pre-pass lists key blocks
};
std::string prelude(Parts parts);

}  // namespace kw::cute
