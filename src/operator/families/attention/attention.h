// What the parts of this family share; latent attention is a special case of it.
#pragma once
#include "operator/family.h"

namespace kw::spec {

namespace attention {

std::string print(const Form& form);
bool heads_are_alike(const Form& form);
std::optional<Form> with_key_heads(const Form& form, int64_t key_heads);
std::unique_ptr<Truth> truth(const Form& form, const Problem& problem);
ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                int64_t h);

}  // namespace attention

namespace families {

class Attention : public Family {
 public:
  std::string what() const override { return "attention"; }
  bool is(const Form& form) const override { return !form.terms.empty(); }
  std::optional<Form> recognise(const Graph& graph, Diagnostics& diagnostics) const override;
  std::string print(const Form& form) const override { return attention::print(form); }
  std::vector<Axis> axes(const Form& form) const override;
  std::vector<Output> outputs(const Form& form) const override;
  std::string no_output(const Form& form, const std::string& name) const override;
  void each_expression(Form& form, const EachExpression& visit) const override;
  void each_operand(Form& form, const EachOperand& visit) const override;
  bool heads_are_alike(const Form& form) const override { return attention::heads_are_alike(form); }
  std::optional<Form> with_key_heads(const Form& form, int64_t key_heads) const override {
    return attention::with_key_heads(form, key_heads);
  }
  std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) const override {
    return attention::truth(form, problem);
  }
  ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                  int64_t h) const override {
    return attention::exact(form, named, algebra, b, h);
  }
};

}  // namespace families
}  // namespace kw::spec
