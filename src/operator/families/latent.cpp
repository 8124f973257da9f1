// Attention whose values are the first columns of its keys (DeepSeek's multi-head latent
// attention): kernels read each key once, for both. Its meaning is attention's, whose recogniser
// finds it.
#include "operator/families/attention/attention.h"

namespace kw::spec::families {
namespace {

class Latent : public Attention {
 public:
  bool is(const Form& form) const override {
    if (form.terms.size() != 1) return false;
    const Term& t = form.terms[0];
    return t.v.argument == t.k.argument && !t.k.row && !t.v.row &&
           form.Dv.constant < form.D.constant;
  }
  std::optional<Form> recognise(const Graph&, Diagnostics&) const override { return {}; }
};

}  // namespace

const Family& latent() {
  static const Latent family;
  return family;
}

}  // namespace kw::spec::families
