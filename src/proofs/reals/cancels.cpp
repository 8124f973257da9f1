#include "proofs/reals/cancels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "operator/family.h"
#include "tl/scope/scope.h"

namespace kw::proofs {
namespace {

// An operation that is followed no further, by what it is of: sums in that are asked for alone.
std::string plain_call(const std::string& name, const std::set<std::string>& of) {
  return of.empty() ? Expanded::kNumber : fmt::format("{}({})", name, fmt::join(of, " "));
}

// What a part of the specification's formulas is called in sums, of which `of` are.
std::string plain(const spec::ExprPtr& e, const std::set<std::string>& of) {
  using spec::Kind;
  if (e->type != spec::Type::real)
    return spec::is_number(e) ? Expanded::kNumber : Expanded::kInteger;
  if (e->kind == Kind::score) return Expanded::kScore;
  if (e->kind == Kind::output) return Expanded::kOutput;
  if (e->kind == Kind::total) return Expanded::kTotal;
  if (e->kind == Kind::argument) return Expanded::kOfLaunch + e->name;
  if (e->kind == Kind::read) {
    const auto mentions = [&](const char* index) {
      return std::any_of(e->args.begin(), e->args.end(), [&](const spec::ExprPtr& a) {
        return spec::mentions(a, Kind::index, index);
      });
    };
    return e->name + Expanded::place(mentions("i"), mentions("j"));
  }
  return plain_call(e->name == "log" ? "log2" : e->name, of);
}

Arms arms_of(const spec::ExprPtr& e, Expanded& x);

void addends(const spec::ExprPtr& e, double sign,
             std::vector<std::pair<spec::ExprPtr, double>>& out) {
  const bool adds = spec::is_binary(e, "+"), takes = spec::is_binary(e, "-");
  if (!adds && !takes) return out.push_back({e, sign});
  addends(e->args[0], sign, out);
  addends(e->args[1], takes ? -sign : sign, out);
}

// (s + x) - y may be taken as s + (x - y): what x - y is rounded by, s has been before.
void add_without_score(const spec::ExprPtr& e, Expanded& x) {
  std::vector<std::pair<spec::ExprPtr, double>> all;
  addends(e, 1, all);
  const size_t before = all.size();
  std::erase_if(all, [](const auto& a) { return spec::mentions(a.first, spec::Kind::score); });
  if (all.size() < 2 || all.size() == before) return;
  Arms sum = x.number(0);
  for (const auto& [addend, sign] : all) {
    const Arms more = arms_of(addend, x);
    if (&addend == &all.back().first) x.written(sum, more, sign);
    sum = x.sum(sum, more, sign);
  }
}

Arms arms_of(const spec::ExprPtr& e, Expanded& x) {
  using spec::Kind;
  const auto of = [&](size_t n) { return arms_of(e->args[n], x); };
  if (e->type != spec::Type::real)
    return spec::is_number(e) ? x.number(double(e->integer)) : x.letter(print(e), plain(e, {}));
  if (e->kind == Kind::number) return x.number(e->value);
  if (e->kind == Kind::infinity) return {};
  if (e->kind == Kind::where) return x.either(of(1), of(2));
  const std::string& op = e->name;
  if (e->kind == Kind::binary) {
    if (op == "+" || op == "-") {
      const Arms a = of(0), b = of(1);
      x.written(a, b, op == "+" ? 1 : -1);
      add_without_score(e, x);
      return x.sum(a, b, op == "+" ? 1 : -1);
    }
    if (op == "*") return x.product(of(0), of(1));
    if (op == "/") return x.product(of(0), x.inverse(of(1)));
    if (op == "min" || op == "max") return x.either(of(0), of(1));
    if (op == "**" && spec::is_number(e->args[1]))
      return x.power(of(0), spec::number_value(e->args[1]));
  }
  if (e->kind == Kind::unary) {
    if (op == "-") return x.product(x.number(-1), of(0));
    if (op == "exp") return x.exp2(x.product(x.number(std::numbers::log2e), of(0)));
    if (op == "exp2") return x.exp2(of(0));
    if (op == "tanh") return x.tanh(of(0));
    if (op == "sigmoid") {  // as kernels take it
      const Arms one = x.number(1), e = x.exp2(x.product(x.number(-std::numbers::log2e), of(0)));
      x.written(one, e, 1);
      return x.inverse(x.sum(one, e, 1));
    }
    if (op == "sqrt") return x.power(of(0), 0.5);
    if (op == "rsqrt") return x.power(of(0), -0.5);
    if (op == "relu") return x.either(of(0), x.number(0));
    if (op == "abs") return x.either(of(0), x.product(x.number(-1), of(0)));
    if (op == "float") return of(0);
  }
  std::set<std::string> names;
  for (size_t n = 0; n < e->args.size(); ++n)
    if (e->kind != Kind::read) names.merge(x.names(of(n)));
  return x.letter(print(e), plain(e, names));
}

}  // namespace

Losses losses_of(const spec::Form& form) {
  Expanded expanded;
  spec::Form copy = form;
  const spec::Family& family = spec::Family::of(form);
  family.each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    if (e) arms_of(e, expanded);
  });
  for (const spec::Term& term : form.terms)  // a softmax's own exponentials
    if (term.normaliser == spec::Normaliser::softmax && term.score)
      expanded.exp2(
          expanded.product(expanded.number(std::numbers::log2e), arms_of(term.score, expanded)));
  std::set<std::string> rows;
  const auto add = [&](const spec::RowMap& row) {
    for (const spec::ExprPtr& sum : row.sums) rows.merge(expanded.terms(arms_of(sum, expanded)));
  };
  family.each_operand(copy, [&](spec::Operand& operand) {
    if (operand.row) add(*operand.row);
  });
  for (const spec::RowMap& row : family.turned_rows(form)) {  // none of the expressions above
    arms_of(row.element, expanded);
    add(row);
  }
  if (form.training() == spec::Training::backward) {
    // What a row takes off its gradients, where its log-sum has one, too; the inverse of its sum,
    // and the weight of its sink.
    const Arms log_sum = expanded.letter("lse", Expanded::kLogSum);
    expanded.exp2(expanded.product(expanded.number(-1), log_sum));
    for (const spec::Term& term : form.terms)
      if (term.sink) {
        const Arms sink = arms_of(term.sink, expanded);
        expanded.written(sink, log_sum, -1);
        expanded.exp2(expanded.product(expanded.number(std::numbers::log2e),
                                       expanded.sum(sink, log_sum, -1)));
      }
    expanded.written(expanded.letter("d_lse", Expanded::kOfLogSum),
                     expanded.letter("delta", Expanded::kTotal), -1);
  }
  return {expanded.cancels(), expanded.shares(), expanded.sums(), std::move(rows)};
}

std::map<std::string, std::set<std::string>> places_of(const spec::Form& form) {
  std::map<std::string, std::set<std::string>> out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (part->kind == spec::Kind::read) out[part->name].insert(plain(part, {}));
      return spec::ExprPtr();
    });
  });
  return out;
}

Losses Formulas::losses(const tl::ExprPtr& e) {
  expanded_.forget();
  arms(e);
  return {expanded_.cancels(), expanded_.shares(), expanded_.sums(), {}};
}

std::set<std::string> Formulas::terms(const tl::ExprPtr& e, bool sums) {
  return expanded_.terms(arms(e), sums);
}

void Formulas::set(const std::string& name, const tl::ExprPtr& e, bool sometimes) {
  Arms now = arms(e);
  before_.erase(name);
  if (sometimes) {
    Arms old = known_.count(name) ? known_[name] : letter(tl::name(name));
    now = expanded_.either(now, old);
    if (!under_.empty()) before_[name] = {under_.back(), std::move(old)};
  }
  known_[name] = std::move(now);
}

void Formulas::let(const std::string& name, const tl::ExprPtr& e) {
  set(name, e);
  lets_[name] = with_lets(e);
}

void Formulas::of_launch(const std::string& name, const tl::ExprPtr& e) {
  let(name, e);
  expanded_.constant(known_[name]);
}

bool Formulas::excluded(const tl::ExprPtr& condition) const {
  if (under_.empty()) return false;
  const auto negates = [&](const tl::ExprPtr& a, const tl::ExprPtr& b) {
    return a->kind == tl::ExprKind::unary && a->text == "not" && tl::equal(a->args[0], b) &&
           b->kind == tl::ExprKind::name && lets_.count(b->text) > 0;
  };
  return negates(condition, under_.back()) || negates(under_.back(), condition);
}

Arms Formulas::letter(const tl::ExprPtr& e) {
  const tl::ExprPtr whole = with_lets(e);
  return expanded_.letter(tl::print(whole), plain(whole));
}

std::string Formulas::plain(const tl::ExprPtr& e) {
  using tl::ExprKind;
  if (e->kind == ExprKind::name || e->kind == ExprKind::index || e->kind == ExprKind::field)
    return plain_(e);
  if (e->kind == ExprKind::call && e->text == "f32") return Expanded::kInteger;
  const Expanded::Noted before = expanded_.noted();
  std::set<std::string> names;
  for (const tl::ExprPtr& a : e->args) {
    const bool named = a->kind == ExprKind::name || a->kind == ExprKind::index;
    if (!named || plain_(a) != Expanded::kOfRow) names.merge(expanded_.names(arms(a)));
  }
  expanded_.note(before);
  return plain_call(e->text, names);
}

// Letters are told apart by their text, in which a name may stand for one thing here and another
// elsewhere.
tl::ExprPtr Formulas::with_lets(const tl::ExprPtr& e) const {
  if (const auto let = lets_.find(e->text); e->kind == tl::ExprKind::name && let != lets_.end())
    return let->second;
  auto copy = std::make_shared<tl::Expr>(*e);
  for (tl::ExprPtr& a : copy->args) a = with_lets(a);
  return copy;
}

Arms Formulas::arms(const tl::ExprPtr& e) {
  using tl::ExprKind;
  Expanded& x = expanded_;
  switch (e->kind) {
    case ExprKind::integer:
    case ExprKind::real:
      return x.number(std::stod(e->text));
    case ExprKind::name:
    case ExprKind::index: {
      const std::string name = tl::base_name(e);
      if (const auto before = before_.find(name);
          before != before_.end() && excluded(before->second.condition))
        return before->second.arms;
      if (const auto known = known_.find(name); known != known_.end()) return known->second;
      if (name == "-inf") return {};
      if (name == "log2e") return x.number(std::numbers::log2e);
      if (name == "ln2") return x.number(std::numbers::ln2);
      return letter(e);
    }
    case ExprKind::field:
      return letter(e);
    case ExprKind::where:
      return x.either(arms(e->args[1]), arms(e->args[2]));
    case ExprKind::unary:
      return e->text == "-" ? x.product(x.number(-1), arms(e->args[0])) : letter(e);
    case ExprKind::binary:
      if (e->text == "+" || e->text == "-") {
        const Arms a = arms(e->args[0]), b = arms(e->args[1]);
        x.written(a, b, e->text == "+" ? 1 : -1);
        return x.sum(a, b, e->text == "+" ? 1 : -1);
      }
      if (e->text == "*") return x.product(arms(e->args[0]), arms(e->args[1]));
      if (e->text == "/") return x.product(arms(e->args[0]), x.inverse(arms(e->args[1])));
      return letter(e);
    case ExprKind::call:
      return of_call(e);
  }
  return letter(e);
}

// The number that an expression of integers is: f32(D) * 8.0 - 1024.0 has terms that cancel.
std::optional<double> Formulas::whole(const tl::ExprPtr& e) const {
  if (e->kind == tl::ExprKind::integer) return std::stod(e->text);
  if (const auto let = lets_.find(e->text); e->kind == tl::ExprKind::name && let != lets_.end())
    return let->second->is_name(e->text) ? std::nullopt : whole(let->second);
  if (e->kind != tl::ExprKind::binary) return std::nullopt;
  const auto a = whole(e->args[0]), b = whole(e->args[1]);
  if (!a || !b) return std::nullopt;
  return e->text == "*"              ? std::optional(*a * *b)
         : e->text == "+"            ? std::optional(*a + *b)
         : e->text == "-"            ? std::optional(*a - *b)
         : e->text == "//" && *b > 0 ? std::optional(std::floor(*a / *b))
                                     : std::nullopt;
}

Arms Formulas::of_call(const tl::ExprPtr& e) {
  Expanded& x = expanded_;
  const std::string& f = e->text;
  const auto of = [&](size_t n) { return arms(e->args[n]); };
  if (f == "fma") {
    const Arms product = x.product(of(0), of(1)), more = of(2);
    x.written(product, more, 1);
    return x.sum(product, more, 1);
  }
  if (f == "exp2") return x.exp2(of(0));
  if (f == "tanh") return x.tanh(of(0));
  if (f == "reciprocal") return x.inverse(of(0));
  if (f == "rsqrt") return x.power(of(0), -0.5);
  if (f == "max" || f == "min") return x.either(of(0), of(1));
  if (f == "abs") return x.either(of(0), x.product(x.number(-1), of(0)));
  if (f == "log2") of(0);
  if (f == "f32")
    if (const auto n = whole(e->args[0])) return x.number(*n);
  return letter(e);
}

}  // namespace kw::proofs
