// Values that are columns of the keys are read as any others.
#include "check/families/attention.h"

namespace kw::check::families {

const Family& latent() {
  static const Attention family;
  return family;
}

}  // namespace kw::check::families
