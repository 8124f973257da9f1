// The formula says by its operands that the values are columns of the keys.
#include "report/families/attention.h"

namespace kw::report::families {

const Family& latent() {
  static const Attention family;
  return family;
}

}  // namespace kw::report::families
