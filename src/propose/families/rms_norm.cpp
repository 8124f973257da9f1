#include "propose/family.h"

namespace kw::propose::families {
namespace {

class RmsNorm : public Family {
 public:
  std::string nameless() const override { return "rms_norm"; }
  const std::string& letters(const Templates& templates) const override { return templates.rows; }
  std::string operands(const spec::Form& form) const override {
    const spec::Norm& n = *form.norm;
    std::string out = operand_text("x", n.x);
    if (n.residual) out += operand_text("residual", *n.residual);
    out += operand_text("weight", n.weight);
    return out +
           (form.returns("h") ? "  the outputs are y and the sum, h\n" : "  the output is y\n");
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::propose::families
