#include "proofs/reals/formulas.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "operator/family.h"
#include "proofs/names.h"
#include "tl/scope/scope.h"

namespace kw::proofs {

using tl::ExprKind;
using tl::ExprPtr;

namespace {

// Each operand is asked once: formulas are deep.
template <typename Expr, typename Degree>
int sum_or_most(bool sum, const std::vector<Expr>& operands, const Degree& degree) {
  int out = 0;
  for (const Expr& e : operands) out = sum ? out + degree(e) : std::max(out, degree(e));
  return out;
}

int degree_of(const spec::ExprPtr& e) {
  if (!e || e->kind == spec::Kind::number) return 0;
  if (e->args.empty() || e->kind == spec::Kind::read || e->type == spec::Type::integer) return 1;
  if (spec::is_binary(e, "**") && spec::is_number(e->args[1]))
    return int(std::ceil(degree_of(e->args[0]) * std::fabs(e->args[1]->value)));
  return sum_or_most(spec::is_binary(e, "*") || spec::is_binary(e, "/"), e->args, degree_of);
}

double gain_of(const spec::ExprPtr& e) {
  if (spec::is_number(e)) {
    const double x = std::fabs(spec::number_value(e));
    return x == 0 ? 0 : std::fabs(std::log2(x));
  }
  double all = 0;
  for (const spec::ExprPtr& a : e->args) all += gain_of(a);
  return all;
}

void look(const spec::ExprPtr& e, Degrees::Has& has) {
  if (!e) return;
  spec::rewrite(e, [&](const spec::ExprPtr& part) {
    static const std::set<std::string> orders = {
        "min", "max", "abs", "<", "<=", ">", ">=", "==", "!=", "relu"};
    const bool unary = part->kind == spec::Kind::unary, power = spec::is_binary(part, "**");
    const bool of_reals =
        !part->args.empty() && std::any_of(part->args.begin(), part->args.end(),
                                           [](auto& a) { return a->type == spec::Type::real; });
    const bool order = orders.count(part->name) > 0;
    has.orders |= of_reals && order;
    has.logarithms |= part->name == "log" || part->name == "log2";
    has.functions |= power || (unary && of_reals && !order && part->name != "-");
    return spec::ExprPtr();
  });
}

}  // namespace

Degrees degrees_of(const spec::Form& form) {
  Degrees out;
  const spec::Term& term = form.terms[0];
  out.score = std::max({1, degree_of(term.score), degree_of(term.sink)});
  out.output = std::max(1, degree_of(form.epilogue)) + degree_of(term.factor);
  out.sink = term.sink != nullptr;
  out.gradient = out.score;
  for (const spec::ExprPtr& slope : spec::Family::of(form).derivatives(form))
    out.gradient = std::max(out.gradient, 1 + degree_of(slope));
  for (const spec::Term& t : form.terms)
    for (const spec::ExprPtr& e : {t.score, t.keep}) look(e, out.scores);
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    look(e, out.all);
    if (e) out.gain += gain_of(e);
  });
  return out;
}

int combined(const ExprPtr& e, const std::function<int(const ExprPtr&)>& degree) {
  const bool product = (e->kind == ExprKind::binary && (e->text == "*" || e->text == "/")) ||
                       (e->kind == ExprKind::call && e->text == "fma");
  return sum_or_most(product, e->args, degree);
}

bool is_more(const ExprPtr& e, const std::string& name) {
  return e->kind == ExprKind::binary && e->text == "+" && tl::base_name(e->args[0]) == name &&
         e->args[1]->kind == ExprKind::call && e->args[1]->text == "exp2";
}

ExprPtr scale_of_offset(const ExprPtr& e, const std::string& name) {
  const auto is_it = [&](const ExprPtr& x) {
    return x->kind == ExprKind::index && tl::base_name(x) == name;
  };
  if (e->kind != ExprKind::where) return nullptr;
  const ExprPtr &empty = e->args[0], &times = e->args[2];
  const bool formed = empty->kind == ExprKind::binary && empty->text == "==" &&
                      is_it(empty->args[0]) && is_minus_infinity(empty->args[1]) &&
                      is_zero(e->args[1]) && times->kind == ExprKind::binary &&
                      times->text == "*" && is_it(times->args[0]);
  return formed ? times->args[1] : nullptr;
}

double exponent(const ExprPtr& e) {
  if (e->kind == ExprKind::real || e->kind == ExprKind::integer)
    return std::fabs(std::stod(e->text));
  const bool fma = e->kind == ExprKind::call && e->text == "fma";
  const bool adds = (e->kind == ExprKind::binary && (e->text == "+" || e->text == "-")) ||
                    e->kind == ExprKind::unary;
  double most = 0;
  for (const ExprPtr& a : e->args)
    if (adds || (fma && a == e->args[2])) most = std::max(most, exponent(a));
  return most;
}

void Constants::remember(const std::string& name, const ExprPtr& e) {
  gains_[name] = gain(e);
  if (counts(e)) counts_.insert(name);
}

double Constants::gain(const ExprPtr& e) const {
  if (e->kind == ExprKind::real || e->kind == ExprKind::integer) {
    const double x = std::fabs(std::stod(e->text));
    return x == 0 ? 0 : std::fabs(std::log2(x));
  }
  if (const auto known = gains_.find(tl::base_name(e)); known != gains_.end()) return known->second;
  if (e->kind == ExprKind::index) return 0;
  if (e->kind == ExprKind::where) return std::max(gain(e->args[1]), gain(e->args[2]));
  double all = e->kind == ExprKind::call && e->text == "exp2" ? exponent(e->args[0]) : 0;
  for (const ExprPtr& a : e->args) all += gain(a);
  return all;
}

bool Constants::counts(const ExprPtr& e) const {
  if (e->kind == ExprKind::call && e->text == "f32") return true;
  if (counts_.count(tl::base_name(e))) return true;
  const size_t first = e->kind == ExprKind::index ? e->args.size() : 0;
  return std::any_of(e->args.begin() + std::ptrdiff_t(first), e->args.end(),
                     [&](const ExprPtr& a) { return counts(a); });
}

}  // namespace kw::proofs
