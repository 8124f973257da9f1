// Weights of scores times values; one or several terms.
#include "operator/families/attention/attention.h"

#include "operator/recognise/recognise.h"

namespace kw::spec::families {

std::optional<Form> Attention::recognise(const Graph& graph, Diagnostics& diagnostics) const {
  return recognise_attention(graph, diagnostics);
}

std::vector<Axis> Attention::axes(const Form& form) const {
  return {{"B", "b", form.B}, {"H", "h", form.H},      {"G", "", form.G},        {"M", "i", form.M},
          {"N", "j", form.N}, {"D", "", form.D, true}, {"V", "d", form.Dv, true}};
}

namespace {
Output unrounded_output() {
  Output o{"o_f32", "bhid"};
  o.unrounded = true;
  return o;
}
}  // namespace

// A kernel has the log-sum of one softmax at hand, whether the function returns it or not.
std::vector<Output> Attention::outputs(const Form& form) const {
  std::vector<Output> out = form.outputs;
  if (!form.returns("lse") && form.terms.size() == 1)
    out.insert(out.begin() + 1, {"lse", "bhi", Rule::log_sum, false});
  for (Output& o : out)
    if (o.name == "lse") o.returned = form.saves;  // of programs it is not asked
  if (form.saves) out.push_back(unrounded_output());
  return out;
}

std::string Attention::no_output(const Form& form, const std::string& name) const {
  if (name == "o_f32" && !form.saves) return "nobody asks for the output before it is rounded";
  if (name != "lse" || form.terms.size() == 1) return {};
  return "a sum of several softmax terms has no log-sum-exp; remove it";
}

void Attention::each_expression(Form& form, const EachExpression& visit) const {
  const auto at = [&](ExprPtr& e, const Extents& extents) {
    if (e) visit(e, extents);
  };
  const auto rows = [&](Operand& operand, const Extents& extents) {
    if (!operand.row) return;
    at(operand.row->element, extents);
    for (ExprPtr& e : operand.row->sums) at(e, extents);
  };
  for (Term& t : form.terms) {
    for (ExprPtr* e : {&t.score, &t.keep, &t.sink, &t.factor}) at(*e, {form.H, form.Dv});
    rows(t.q, {form.H, form.D});
    rows(t.k, {form.G, form.D});
    rows(t.v, {form.G, form.Dv});
    for (FurtherProduct& m : t.more) {
      rows(m.q, {form.H, {"", m.D}});
      rows(m.k, {form.H, {"", m.D}});
    }
  }
  at(form.epilogue, {form.H, form.Dv});
}

void Attention::each_operand(Form& form, const EachOperand& visit) const {
  for (Term& t : form.terms)
    for (Operand* o : operands(t)) visit(*o);
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::spec::families
