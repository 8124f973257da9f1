#include "report/family.h"

namespace kw::report::families {
namespace {

class RmsNorm : public Family {
 public:
  Markup formula(const spec::Form& form) const override {
    const spec::Norm& n = *form.norm;
    Markup out = line("output", html("y = s · rsqrt(mean<sub>d</sub> s² + {}) · {}[d]",
                                     spec::print(n.eps), n.weight.argument));
    out += line("with", html("s = {}", with_signs(spec::print(n.sum))));
    if (form.returns("h")) out += line("also", html("s"));
    return out;
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::report::families
