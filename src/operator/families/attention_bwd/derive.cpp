// From a function's form to that of its gradients: the derivative of the score, three more
// arguments, and an output for each operand.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/expr/derivative.h"
#include "operator/expr/fold.h"
#include "operator/expr/places.h"
#include "operator/families/attention_bwd/adjoint.h"
#include "operator/recognise/recognise.h"

namespace kw::spec {
namespace {

class Gradient {
 public:
  Gradient(const Form& forward, Diagnostics& diagnostics)
      : forward_(forward), form_(forward), diagnostics_(diagnostics) {}

  std::optional<Form> run() {
    if (forward_.terms.size() != 1 || !forward_.terms[0].more.empty())
      return refuse({}, "the function is no one softmax of one product", "");
    const Term& t = forward_.terms[0];
    if (t.normaliser == Normaliser::sum && !is_never_negative(t.score))
      return refuse(place_of(t.score),
                    "the weights are divided by their sum, and some may be negative", "");
    if (t.normaliser == Normaliser::sum && forward_.dtype == Dtype::f16)
      return refuse(place_of(t.score),
                    "the weights are divided by their sum, which is of weights that are rounded to "
                    "bfloat16",
                    "use bfloat16");
    if (t.finite_mask)
      return refuse(place_of(t.keep),
                    "dropped scores are a finite number, and some row may keep none",
                    "drop them with -inf");
    for (const Output& o : forward_.outputs)
      if (o.name != "o" && o.name != "lse")
        return refuse({}, "the function returns sums of columns", "return the output alone");
    if (t.v.argument == t.k.argument) return refuse({}, "the values are columns of the keys", "");
    if (t.q.argument == t.k.argument || t.q.argument == t.v.argument)
      return refuse(place_of(t.score), "its queries are its keys or its values, too", "");
    ExprPtr operation;
    const auto slope = derivative(t.score, score_leaf(0), operation);
    if (!slope)
      return refuse(place_of(operation), fmt::format("`{}` has no derivative", print(operation)),
                    "");
    form_.gradients = Gradients{forward_.output_dims, {}, *slope, nullptr, {}, {}};
    if (!turn_epilogue() || !turn_rows(t)) return std::nullopt;
    add_arguments();
    add_outputs(t);
    // A kernel has the gradients of whole scores where what they change by with s is not of s.
    if (has_softmax(forward_) && !mentions(*slope, Kind::score))
      learn_from(t.score, "bhj", Gradients::Of::score);
    if (t.sink) learn_from(t.sink, "bh", Gradients::Of::sink);
    if (forward_.epilogue && takes_saved(forward_))
      learn_from(forward_.epilogue, "bh", Gradients::Of::epilogue);
    return std::move(form_);
  }

 private:
  // The output's gradient, before it reaches the weights, is multiplied by what the epilogue
  // changes by.
  bool turn_epilogue() {
    const ExprPtr& e = forward_.epilogue;
    if (!e || e->kind == Kind::output) return true;
    ExprPtr operation;
    const auto by = derivative(e, output_leaf(), operation);
    std::string why;
    if (!by)
      why = fmt::format("`{}` has no derivative", print(operation));
    else if (mentions(e, Kind::index, "d"))
      why = "the output becomes another function for each of its elements";
    else if (mentions(*by, Kind::output) && !takes_saved(forward_))
      why = "what becomes of the output is no multiple of it, and the weights are not divided";
    if (!why.empty()) {
      refuse(place_of(by ? e : operation), why, "");
      return false;
    }
    form_.gradients->of_epilogue = *by;
    return true;
  }

  static bool is_never_negative(const ExprPtr& e) {
    const auto of = [&](size_t n) { return is_never_negative(e->args[n]); };
    if (e->kind == Kind::number) return e->value >= 0;
    if (e->kind == Kind::where) return of(1) && of(2);
    if (e->kind == Kind::unary) {
      static const std::set<std::string> never = {"exp", "exp2", "sigmoid", "relu", "abs", "sqrt"};
      return never.contains(e->name) || (e->name == "float" && of(0));
    }
    if (e->kind != Kind::binary) return false;
    const bool square = e->name == "*" && equal(e->args[0], e->args[1]);
    const bool keeps = e->name == "*" || e->name == "+" || e->name == "/" || e->name == "min";
    return square || (keeps && of(0) && of(1)) || (e->name == "max" && (of(0) || of(1)));
  }

  static ExprPtr output_leaf() { return leaf(Kind::output, Type::real, "o"); }

  // Where rows change before their product, their gradient is that of what they become, changed.
  bool turn_rows(const Term& t) {
    const auto of = operands(t);
    for (size_t n = 0; n < Gradients::kOperands; ++n) {
      if (!of[n]->row) continue;
      std::string why;
      auto& map = form_.gradients->rows[n];
      const Size& columns = n == 2 ? forward_.Dv : forward_.D;
      map = adjoint(*of[n], n ? "j" : "i", columns.constant, Gradients::kOfRows[n], why);
      if (map) continue;
      refuse(place_of(of[n]->row->element), "rows change before their product, and " + why, "");
      return false;
    }
    return true;
  }

  // The floating vectors that e reads, each at one place that these indices name, plainly, beside
  // places where it changes nothing. Of others a kernel gives no gradient, and a call that asks for
  // it is refused.
  void learn_from(const ExprPtr& e, const std::string& axes, Gradients::Of of) {
    for (const Argument& a : forward_.arguments) {
      const bool held = a.dtype == Dtype::f32 || a.dtype == forward_.dtype;
      if (!a.is_tensor || !held || a.dims.empty() || is_operand(a.name)) continue;
      if (is_read_beside(e, a.name)) continue;
      ExprPtr place, slope;
      bool one_place = true;
      for (const ExprPtr& read : places_of(e, a.name)) {
        ExprPtr operation;
        const ExprPtr by = derivative_by(e, read, operation).value_or(nullptr);
        // The gradients of a row's scores add up to nothing where its weights add up to 1 and
        // nobody asks for its log-sum.
        const auto varies = [&](const ExprPtr& x) { return mentions(x, Kind::index, "j"); };
        const bool to_nothing =
            of == Gradients::Of::score && !forward_.terms[0].sink && !forward_.returns("lse");
        if (by && to_nothing && !varies(read) && !varies(by) && !mentions(by, Kind::score))
          continue;
        one_place = one_place && by && !place;
        place = read, slope = by;
      }
      if (!place || !one_place) continue;
      ExprPtr element;
      Output output = output_of(a, *place, axes, element);
      // Of tables and pairs where a score changes with s by one number: what a kernel has as
      // operands then is the scores' gradient, and registers are left.
      const auto try_as = [&](const char* axes) {
        if (output.dims.empty()) output = output_of(a, *place, axes, element);
      };
      if (of == Gradients::Of::score && constant(form_.gradients->slope)) {
        if (constant(slope)) try_as("bhij");
        try_as("bhx");
      }
      if (output.dims.empty()) continue;
      form_.gradients->learned.push_back({a.name, slope, of, element});
      form_.outputs.push_back(std::move(output));
    }
  }

  // Whether something else than e reads the argument too: its gradient is a sum of both.
  bool is_read_beside(const ExprPtr& e, const std::string& argument) const {
    const Term& t = forward_.terms[0];
    for (const ExprPtr& other : {t.score, t.sink, forward_.epilogue})
      if (other && other != e && mentions(other, Kind::read, argument)) return true;
    return false;
  }

  bool is_operand(const std::string& name) const {
    for (const Operand* o : operands(forward_.terms[0]))
      if (o->argument == name) return true;
    return false;
  }

  // The gradient of an argument; without dims where it is not read as a kernel's vectors are, or,
  // where x is among the axes, its tables: at one index of any kind, `element`; or, where i is, its
  // pairs: at the query and the key. A dimension of one element has no index: "".
  Output output_of(const Argument& a, const Expr& read, const std::string& axes,
                   ExprPtr& element) const {
    element = nullptr;
    Output out{"d_" + a.name, "", Rule::sum};
    if (out.name == "d_o") out.name += kGiven;
    out.unrounded = a.dtype == Dtype::f32;
    out.of = a.name;
    for (size_t n = 0; n < read.args.size(); ++n) {
      const Expr& e = *read.args[n];
      const bool one = is_number(read.args[n], 0) && a.dims[n].constant == 1;
      const bool only_head =
          one && forward_.H.constant == 1 && !std::count(out.dims.begin(), out.dims.end(), "h");
      const std::string index = e.kind == Kind::index ? e.name : only_head ? "h" : "";
      if (one && !only_head) {
        out.dims.emplace_back();
        continue;
      }
      const Size size = index == "j" ? forward_.N : size_of(forward_, index);
      const bool plain = index.size() == 1 && axes.find(index) != std::string::npos &&
                         std::count(out.dims.begin(), out.dims.end(), index) == 0 &&
                         a.dims[n].name == size.name && a.dims[n].constant == size.constant;
      if (!plain && (element || axes.find('x') == std::string::npos)) {
        out.dims.clear();
        return out;
      }
      if (!plain) element = read.args[n], out.own = a.dims[n];
      out.dims.push_back(plain ? index : "x");
    }
    for (const char axis : axes)
      if (std::count(out.dims.begin(), out.dims.end(), std::string(1, axis))) out.axes += axis;
    const bool pairs = axes.find('i') != std::string::npos;
    if (out.axes.empty() || (pairs && !(out.has('i') && out.has('j')))) out.dims.clear();
    return out;
  }

  std::optional<Form> refuse(const Span& where, const std::string& why, const std::string& hint) {
    const Argument* q =
        forward_.terms.empty() ? nullptr : forward_.argument(forward_.terms[0].q.argument);
    Diagnostic& d = diagnostics_.error("spec.gradient", where.known() || !q ? where : q->span,
                                       "no gradient is made of this function: " + why);
    d.hint = hint.empty()
                 ? "kernelwright.compile(..., backward=\"recompute\") differentiates it in "
                   "PyTorch"
                 : hint;
    return std::nullopt;
  }

  static Size size_of(const Form& form, const std::string& index) {
    return index == "b" ? form.B : index == "h" ? form.H : index == "i" ? form.M : form.Dv;
  }

  void add_arguments() {
    add_given(Gradients::kOfOutput, form_.dtype, forward_.output_dims);
    for (const Output& o : forward_.outputs)
      if (o.name == "lse") add_of_log_sum(o);
    if (!takes_saved(forward_)) return;
    const auto saved = [&](const char* name, std::vector<Size> dims, std::vector<int> order) {
      form_.arguments.push_back(
          {name, Dtype::f32, true, std::move(dims), std::move(order), 0, {}, true});
    };
    saved(Gradients::kOutput, {form_.B, form_.H, form_.M, form_.Dv}, {0, 1, 2, 3});
    saved(Gradients::kLogSum, {form_.B, form_.H, form_.M}, {0, 1, 2});
  }

  void add_of_log_sum(const Output& lse) {
    std::vector<std::string>& dims = form_.gradients->log_sum_dims;
    dims = lse.dims.empty() ? std::vector<std::string>{"b", "h", "i"} : lse.dims;
    add_given(Gradients::kOfLogSum, Dtype::f32, dims);
  }

  // The gradient of an output, in the order in which the function returns it.
  void add_given(const char* name, Dtype type, const std::vector<std::string>& dims) {
    Argument given{name, type, true, {}, {}, 0, {}};
    for (const std::string& index : dims) {
      given.stride_order.push_back(static_cast<int>(given.dims.size()));
      given.dims.push_back(size_of(forward_, index));
    }
    form_.arguments.push_back(std::move(given));
  }

  // The index names of an operand's dimensions, where the head's and the column's are these. A
  // batch or a head of its own is a dimension of one element, read at 0.
  std::vector<std::string> dims_of(const Operand& o, const std::string& head,
                                   const char* column) const {
    const auto reads = [&](const char* index) {
      return std::any_of(o.indices.begin(), o.indices.end(),
                         [&](const ExprPtr& e) { return mentions(e, Kind::index, index); });
    };
    std::vector<std::string> single, out;
    if (!reads("b")) single.push_back("b");
    if (!reads("h")) single.push_back(head);
    const Argument* argument = forward_.argument(o.argument);
    for (size_t n = 0; n < o.indices.size(); ++n) {
      const ExprPtr& e = o.indices[n];
      const bool of_one = argument && n < argument->dims.size() && argument->dims[n].constant == 1;
      if (mentions(e, Kind::index, "h")) {
        out.push_back(head);
      } else if (e->kind == Kind::index) {
        out.push_back(e->name == "d" ? column : e->name);
      } else if (of_one && !single.empty()) {
        out.push_back(single.front());
        single.erase(single.begin());
      }
    }
    return out;
  }

  void add_outputs(const Term& t) {
    form_.outputs = {{"dq", "bhic"}, {"dk", "bgjc"}, {"dv", "bgjd"}};
    form_.output_dims = form_.outputs[0].dims = dims_of(t.q, "h", "c");
    form_.outputs[1].dims = dims_of(t.k, "g", "c");
    form_.outputs[2].dims = dims_of(t.v, "g", "d");
    const auto of = operands(t);
    for (size_t n = 0; n < 3; ++n) form_.outputs[n].of = of[n]->argument;
  }

  const Form& forward_;
  Form form_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<Form> gradients_of(const Form& forward, Diagnostics& diagnostics) {
  return Gradient(forward, diagnostics).run();
}

}  // namespace kw::spec
