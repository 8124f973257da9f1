#include "propose/family.h"

namespace kw::propose::families {
namespace {

class Gemm : public Family {
 public:
  std::string nameless() const override { return "product"; }
  const std::string& letters(const Templates& templates) const override {
    return templates.product;
  }
  std::string operands(const spec::Form& form) const override {
    std::string out = operand_text("a", form.product->a) + operand_text("b", form.product->b);
    if (!form.returns("o")) out += "  no o: the matrix is not asked for\n";
    if (form.returns("sums")) out += "  the sums are a new argument, `sums: out f32[B, H, M]`\n";
    return out;
  }
};

}  // namespace

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace kw::propose::families
