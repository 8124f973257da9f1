// The gradients of attention's operands: what the layers ask of them. Forms are made by derive.cpp.
#include "operator/families/attention_bwd/attention_bwd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "operator/families/attention/attention.h"

namespace kw::spec::families {
namespace {

const std::map<Gradients::Of, const char*> kOf = {{Gradients::Of::score, ""},
                                                  {Gradients::Of::sink, ", of the sink"},
                                                  {Gradients::Of::epilogue, ", of the epilogue"}};

class AttentionBwd : public Attention {
 public:
  std::string what() const override { return "the gradients of attention"; }
  bool is(const Form& form) const override { return form.gradients.has_value(); }
  std::optional<Form> recognise(const Graph&, Diagnostics&) const override { return {}; }

  std::string print(const Form& form) const override {
    std::string out = Attention::print(form);
    out += fmt::format("  slope   {}\n", spec::print(form.gradients->slope));
    if (const ExprPtr& by = form.gradients->of_epilogue)
      out += fmt::format("  d_o by  {}\n", spec::print(by));
    for (size_t n = 0; n < Gradients::kOperands; ++n)
      if (const auto& map = form.gradients->rows[n]) {
        out += fmt::format("  {} row  {}\n", form.outputs[n].name, spec::print(map->element));
        for (size_t s = 0; s < map->sums.size(); ++s)
          out += fmt::format("    sum{}  over d of {}\n", s, spec::print(map->sums[s]));
      }
    std::vector<std::string> gives;
    for (const Output& o : form.outputs) gives.push_back(o.name);
    for (const Gradients::Learned& l : form.gradients->learned)
      out += fmt::format("  learns  {}{}: {}{}\n", l.argument,
                         l.element ? fmt::format("[{}]", spec::print(l.element)) : "",
                         spec::print(l.slope), kOf.at(l.of));
    out += fmt::format("  gives   {}\n", fmt::join(gives, ", "));
    return out;
  }

  std::vector<Axis> axes(const Form& form) const override {
    std::vector<Axis> out = Attention::axes(form);
    for (Axis& a : out) {
      if (a.letter == "G") a.index = "g";
      if (a.letter == "D") a.index = "c";
    }
    return out;
  }

  std::vector<Output> outputs(const Form& form) const override { return form.outputs; }
  // What the forward kernel saved, and the gradient of its output, are read by no operand.
  std::optional<Form> with_key_heads(const Form&, int64_t) const override { return {}; }
  std::string no_output(const Form& form, const std::string& name) const override {
    return form.returns(name) ? "" : "the function has no such gradient";
  }

  // Gradients->rows read what the rows of the function read, and follow from them.
  void each_expression(Form& form, const EachExpression& visit) const override {
    Attention::each_expression(form, visit);
    visit(form.gradients->slope, {form.H, form.Dv});
    if (form.gradients->of_epilogue) visit(form.gradients->of_epilogue, {form.H, form.Dv});
    for (Gradients::Learned& l : form.gradients->learned) {
      visit(l.slope, {form.H, form.Dv});
      if (l.element) visit(l.element, {form.H, form.Dv});
    }
  }

  std::vector<ExprPtr> derivatives(const Form& form) const override {
    std::vector<ExprPtr> out = {form.gradients->slope};
    for (const Gradients::Learned& l : form.gradients->learned) out.push_back(l.slope);
    return out;
  }

  void each_turned_row(Form& form, const EachRow& visit) const override {
    for (std::optional<RowMap>& map : form.gradients->rows)
      if (map) visit(*map);
  }

  void complete(const Form& form, Problem& problem) const override {
    attention_bwd::save_forward(form, problem);
  }

  std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) const override {
    return attention_bwd::truth(form, problem);
  }
  ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                  int64_t h) const override {
    return attention_bwd::exact(form, named, algebra, b, h);
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::spec::families
