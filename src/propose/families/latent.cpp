#include "propose/families/attention.h"

namespace kw::propose::families {

const Family& latent() {
  static const Attention family;
  return family;
}

}  // namespace kw::propose::families
