// Kernels that read each key once, as a value too, have attention's places, and its rules change
// them.
#include "transfer/families/attention/attention.h"

namespace kw::transfer::families {

const Family& latent() {
  static const Attention family;
  return family;
}

}  // namespace kw::transfer::families
