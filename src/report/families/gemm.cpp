#include "report/family.h"

namespace kw::report::families {
namespace {

class Gemm : public Family {
 public:
  Markup formula(const spec::Form& form) const override {
    const spec::Product& p = *form.product;
    Markup out = line("output", html("c = {}, with s = Σ<sub>d</sub> {} · {}",
                                     with_signs(spec::print(p.value)), read_of(p.a), read_of(p.b)));
    if (form.returns("sums"))
      out += line(form.returns("o") ? "also" : "given", html("Σ<sub>j</sub> c, for each row"));
    return out;
  }
};

}  // namespace

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace kw::report::families
