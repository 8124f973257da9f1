#include "report/families/attention.h"

namespace kw::report::families {
namespace {

class AttentionBwd : public Attention {
 public:
  Markup formula(const spec::Form& form) const override {
    Markup out = Attention::formula(form);
    out +=
        line("gradients",
             html("dv[j] = Σ<sub>i</sub> p do[i], dq[i] = Σ<sub>j</sub> ds k[j], "
                  "dk[j] = Σ<sub>i</sub> ds q[i], with ds = p (do[i] · v[j] - do[i] · o[i]) · {}",
                  with_signs(spec::print(form.gradients->slope))));
    return out;
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::report::families
