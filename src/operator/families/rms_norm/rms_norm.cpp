// Rows, or sums of two, divided by their root mean square, times a weight: its meaning in fp64 and
// in the exact algebra, a row at a time.
#include <fmt/format.h>

#include "operator/evaluate/exact_program.h"
#include "operator/evaluate/row_map.h"
#include "operator/families/rms_norm/recognise.h"
#include "operator/family.h"

namespace kw::spec::families {
namespace {

class Rows : public Truth {
 public:
  Rows(const Form& form, const Problem& problem)
      : B_(value_of(form.B, problem.sizes)),
        H_(form.H.constant),
        M_(value_of(form.M, problem.sizes)),
        C_(form.D.constant),
        square_(form.norm->row.sums[0], problem),
        element_(form.norm->row.element, problem),
        sum_(form.norm->sum, problem) {
    held_.resize(form.outputs.size());
    for (Held& held : held_) held.want.resize(C_);
  }

  int64_t batches() const override { return B_; }
  int64_t heads() const override { return H_; }
  int64_t rows() const override { return M_; }

  void row(int64_t b, int64_t h, int64_t i) override {
    Program::Inputs in = Program::at(b, h, i, 0);
    double total = 0;
    for (int64_t d = 0; d < C_; ++d) {
      in[Program::d] = static_cast<double>(d);
      total += square_.run(in);
    }
    in[Program::totals] = total;
    for (int64_t d = 0; d < C_; ++d) {
      in[Program::d] = static_cast<double>(d);
      held_[0].want[d] = element_.run(in);
      if (held_.size() > 1) held_[1].want[d] = sum_.run(in);
    }
  }

 private:
  const int64_t B_, H_, M_, C_;
  Program square_, element_, sum_;
};

class RmsNorm : public Family {
 public:
  std::string what() const override { return "an RMS normalisation of rows"; }
  bool is(const Form& form) const override { return form.norm.has_value(); }

  std::optional<Form> recognise(const Graph& graph, Diagnostics& diagnostics) const override {
    return recognise_rms_norm(graph, diagnostics);
  }

  std::string print(const Form& form) const override {
    std::string sizes, any;
    for (const Axis& axis : axes(form)) {
      if (axis.size.name.empty() && axis.size.constant != 1)
        sizes += fmt::format(", {} {}", axis.letter, axis.size.constant);
      if (!axis.size.name.empty()) any += (any.empty() ? "; any " : ", ") + axis.size.name;
    }
    const Norm& n = *form.norm;
    std::string out =
        fmt::format("{}: {}, {}{}{}\n", form.name, kw::name(form.dtype), what(), sizes, any);
    out += "  row     " + spec::print(n.sum) + "\n";
    out += fmt::format("  eps     {}\n", spec::print(n.eps));
    out += fmt::format("  weight  {}[d]\n", n.weight.argument);
    if (form.returns("h")) out += "  also    the sum\n";
    return out;
  }

  std::vector<Axis> axes(const Form& form) const override {
    return {{"B", "b", form.B}, {"H", "h", form.H}, {"M", "i", form.M}, {"C", "d", form.D, true}};
  }

  std::vector<Output> outputs(const Form& form) const override { return form.outputs; }

  std::string no_output(const Form& form, const std::string& name) const override {
    if (form.returns(name)) return {};
    return "the function does not return it";
  }

  void each_expression(Form& form, const EachExpression& visit) const override {
    Norm& n = *form.norm;
    for (ExprPtr* e : {&n.eps, &n.sum, &n.row.element}) visit(*e, {form.H, form.D});
    for (ExprPtr& e : n.row.sums) visit(e, {form.H, form.D});
  }

  void each_operand(Form& form, const EachOperand& visit) const override {
    visit(form.norm->x);
    if (form.norm->residual) visit(*form.norm->residual);
    visit(form.norm->weight);
  }

  bool heads_are_alike(const Form&) const override { return false; }  // all are looked at

  std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) const override {
    return std::make_unique<Rows>(form, problem);
  }

  ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                  int64_t h) const override {
    const int64_t M = value_of(form.M, named.sizes), C = form.D.constant;
    const auto rows = [&](const RowMap& map) {
      return exact_mapped_rows(map, named, algebra, Program::i, b, h, M, C);
    };
    ExactHead out;
    out.outputs.push_back({rows(form.norm->row), {}});
    if (form.returns("h")) out.outputs.push_back({rows({{}, form.norm->sum}), {}});
    return out;
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::spec::families
