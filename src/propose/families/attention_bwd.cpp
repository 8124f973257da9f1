#include "propose/families/attention.h"

namespace kw::propose::families {
namespace {

class AttentionBwd : public Attention {
 public:
  std::string nameless() const override { return "attention_bwd"; }
  std::string operands(const spec::Form& form) const override {
    return Attention::operands(form) +
           "  o is the forward kernel's output, lse its log-sums, d_o and do_rows the output's "
           "gradient\n  the outputs are dq, dk and dv\n";
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::propose::families
