// A product of matrices, a function of each of its elements, and sums of its rows.
#include "operator/families/gemm/gemm.h"

#include "operator/families/gemm/recognise.h"

namespace kw::spec::families {
namespace {

class Gemm : public Family {
 public:
  std::string what() const override { return "a product of matrices"; }
  bool is(const Form& form) const override { return form.product.has_value(); }

  std::optional<Form> recognise(const Graph& graph, Diagnostics& diagnostics) const override {
    return recognise_gemm(graph, diagnostics);
  }

  std::string print(const Form& form) const override { return gemm::print(form); }

  std::vector<Axis> axes(const Form& form) const override {
    return {{"B", "b", form.B},
            {"H", "h", form.H},
            {"M", "i", form.M},
            {"N", "j", form.N},
            {"K", "d", form.D}};
  }

  std::vector<Output> outputs(const Form& form) const override { return form.outputs; }

  std::string no_output(const Form& form, const std::string& name) const override {
    if (form.returns(name) || (name != "o" && name != "sums")) return {};
    return std::string("the function does not give ") + (name == "o" ? "the matrix" : "row sums");
  }

  void each_expression(Form& form, const EachExpression& visit) const override {
    visit(form.product->value, {form.H, form.Dv});
  }

  void each_operand(Form& form, const EachOperand& visit) const override {
    visit(form.product->a);
    visit(form.product->b);
  }

  bool heads_are_alike(const Form&) const override { return false; }  // all are looked at

  std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) const override {
    return gemm::truth(form, problem);
  }

  ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                  int64_t h) const override {
    return gemm::exact(form, named, algebra, b, h);
  }
};

}  // namespace

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace kw::spec::families
