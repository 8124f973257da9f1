// Transfer of a product of matrices: the kernel of C = A B becomes that of a function of its
// elements and of the sums of its rows.
#include "transfer/families/gemm/rules/rules.h"
#include "transfer/family.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

constexpr Rule<gemm::Edit> kRules[] = {
    {"tiles", gemm::rule_tiles},     {"product", gemm::rule_product},
    {"batches", gemm::rule_batches}, {"right_rows", gemm::rule_right_rows},
    {"value", gemm::rule_value},     {"row_sums", gemm::rule_row_sums},
    {"matrix", gemm::rule_matrix}};

class Gemm : public Family {
 public:
  std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                                 const Target& target, Diagnostics& diagnostics) const override {
    gemm::Edit edit(source, form, target, diagnostics);
    if (!edit.find_facts()) return std::nullopt;
    return apply_rules<gemm::Edit>(kRules, source, edit);
  }

  // Without the rules that write what becomes of an element and the sums.
  std::optional<Result> begin(const tl::Program& source, const spec::Form& form,
                              const Target& target, Diagnostics& diagnostics) const override {
    gemm::Edit edit(source, form, target, diagnostics);
    if (!edit.find_facts() || !gemm::rule_tiles(edit) || !gemm::rule_product(edit) ||
        !gemm::rule_batches(edit) || !gemm::rule_right_rows(edit) || !gemm::rule_matrix(edit))
      return std::nullopt;
    if (form.returns("sums"))
      edit.result.bindings.push_back({"sums", "", edit.dims_of_output(false)});
    return std::move(edit.result);
  }
};

}  // namespace

namespace families {

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace families
}  // namespace kw::transfer
