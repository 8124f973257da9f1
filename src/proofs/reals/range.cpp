#include "proofs/reals/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "operator/family.h"
#include "proofs/names.h"
#include "proofs/reals/past_the_end.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

constexpr double kLargest = 0x1p40;  // of a program's own constants, and 1 over the least
// Binades that a reference may lag behind, and so a weight or a sum of them that asks for a new
// one exceed 1: the largest fp16 is below 2^16, and of fp32 it leaves room for 2^24 keys' values.
constexpr double kSlack = 20, kSlackOfHalves = 15;
// Of an exponential without a reference: sums of 2^24 of them, times values up to 2^23, are floats.
constexpr double kBounded = 80;

bool has_poles(const tl::Expr& e) {
  if (e.kind == ExprKind::binary) return e.text == "/";
  return e.kind == ExprKind::call &&
         (e.text == "reciprocal" || e.text == "log2" || e.text == "rsqrt");
}

// Whether a part of one of the specification's formulas is such.
bool has_part(const spec::Form& form, const std::function<bool(const spec::Expr&)>& is_such) {
  bool found = false;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      found |= is_such(*part);
      return spec::ExprPtr();
    });
  });
  return found;
}

// Whether the specification itself has numbers at which it is none.
bool divides(const spec::Expr& e) {
  static const std::set<std::string> poles = {"log", "log2", "sqrt", "rsqrt"};
  return e.kind == spec::Kind::binary ? e.name == "/"
                                      : e.kind == spec::Kind::unary && poles.count(e.name) > 0;
}

// An exponential that nothing divides by itself: numbers of the specification's own are as large.
bool is_exponential(const spec::Expr& e) {
  return e.kind == spec::Kind::unary && (e.name == "exp" || e.name == "exp2");
}

// The numbers that a product has as factors, multiplied; of a choice or a sum the largest.
double factor_of(const spec::ExprPtr& e) {
  using spec::Kind;
  const auto of = [&](size_t n) { return factor_of(e->args[n]); };
  if (spec::is_number(e)) return spec::number_value(e) == 0 ? 1 : std::fabs(spec::number_value(e));
  if (e->kind == Kind::unary && e->name == "-") return of(0);
  if (e->kind == Kind::where) return std::max(of(1), of(2));
  if (e->kind != Kind::binary) return 1;
  return e->name == "*" ? of(0) * of(1) : e->name == "/" ? of(0) / of(1) : std::max(of(0), of(1));
}

// Of all parts of what rows become; and, of gradients, of the specification's other formulas.
std::set<double> factors_of(const spec::Form& form) {
  std::set<double> out;
  const auto add = [&](const spec::ExprPtr& e) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (part->type == spec::Type::real) out.insert(factor_of(part));
      return spec::ExprPtr();
    });
  };
  spec::Form copy = form;
  const spec::Family& family = spec::Family::of(form);
  family.each_operand(copy, [&](spec::Operand& o) {
    if (o.row) add(o.row->element);
  });
  for (const spec::RowMap& row : family.turned_rows(form)) add(row.element);
  if (form.training() == spec::Training::backward)
    family.each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) { add(e); });
  return out;
}

bool is_positive_literal(const ExprPtr& e) {
  return (e->kind == ExprKind::integer || e->kind == ExprKind::real) && std::stod(e->text) > 0;
}

// The number that an expression of numbers is.
std::optional<double> constant(const ExprPtr& e) {
  if (e->kind == ExprKind::integer || e->kind == ExprKind::real) return std::stod(e->text);
  if (e->kind == ExprKind::unary && e->text == "-") {
    const auto x = constant(e->args[0]);
    return x ? std::optional(-*x) : std::nullopt;
  }
  if (e->kind == ExprKind::call && e->text == "exp2") {
    const auto x = constant(e->args[0]);
    return x ? std::optional(std::exp2(*x)) : std::nullopt;
  }
  if (e->kind != ExprKind::binary || e->args.size() != 2) return std::nullopt;
  const auto a = constant(e->args[0]), b = constant(e->args[1]);
  if (!a || !b) return std::nullopt;
  return e->text == "*"   ? std::optional(*a * *b)
         : e->text == "/" ? std::optional(*a / *b)
         : e->text == "+" ? std::optional(*a + *b)
         : e->text == "-" ? std::optional(*a - *b)
                          : std::nullopt;
}

class Reals {
 public:
  Reals(const tl::Program& program, const spec::Form& form)
      : program_(program),
        divides_(has_part(form, divides)),
        exponentials_(has_part(form, is_exponential)),
        halves_(form.dtype == Dtype::f16),
        factors_(halves_ ? factors_of(form) : std::set<double>()),
        of_gradients_(form.training() == spec::Training::backward),
        softmax_(std::any_of(
            form.terms.begin(), form.terms.end(),
            [](const spec::Term& t) { return t.normaliser == spec::Normaliser::softmax; })),
        slack_(halves_ ? kSlackOfHalves : kSlack) {}

  std::string run() {
    tl::walk(program_.body, [&](const Stmt& s) {
      for (const Stmt& a : s.body)
        if (a.op == Op::arg_f32)
          for (const tl::Item& d : a.names()) of_launch_[d.name] = d.expr;
    });
    tl::walk(program_.body, [&](const Stmt& s) { statement(s); });
    if (references_.empty()) without_reference();
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op == Op::rows || s.op == Op::after) pass(s);
    });
    if (!of_gradients_ && !exponentials_) of_data();
    if (halves_) passes_of_halves();
    if (halves_ && of_gradients_) gradients_of_halves();
    if (of_gradients_ && softmax_)
      if (const std::string why = weights_past_the_end(program_); !why.empty()) open(why);
    for (const std::string& m : references_)
      if (halves_ && begun_.count(m))
        open(fmt::format("weights in fp16 by the reference `{}`, which begins above them", m));
    return why_;
  }

 private:
  void statement(const Stmt& s) {
    if (s.op == Op::online_max) online_max(s);
    if (s.op == Op::any_exceeds) any_exceeds(s);
    if (s.op == Op::fill && !is_minus_infinity(s.value())) begun_.insert(tl::base_name(s.target()));
    // Of gradients, by a row's log-sum, of which no weight of the row is more.
    if (of_gradients_ && (s.op == Op::fill_columns || s.op == Op::add_columns))
      by_log_sums_.insert(tl::base_name(s.dst()));
    if (tl::begins_scores(s.op)) tiles_of_scores_.insert(tl::base_name(s.acc()));
    if (s.op == Op::let)
      for (const tl::Item& d : s.names()) lets_[d.name] = d.expr;
    if (s.op == Op::sum)
      for (const tl::Item& d : s.names()) sums_[d.name] = s.value();
    tl::each_expression(s, [&](const ExprPtr& e) { expression(e, nullptr); });
  }

  // `guarded`: what is known to be no zero here.
  void expression(const ExprPtr& e, const ExprPtr& guarded) {
    if (const auto x = constant(e); x && *x != 0)
      if (std::fabs(*x) > kLargest || std::fabs(*x) < 1 / kLargest)
        open(fmt::format("the constant {}", tl::print(e)));
    if (has_poles(*e) && !divides_) {
      const ExprPtr& of = e->args.back();
      if (!(guarded && tl::equal(guarded, of)) && !is_positive(of))
        open(fmt::format("`{}`, where it is 0 or less", tl::print(e)));
    }
    if (e->kind == ExprKind::where && e->args[0]->kind == ExprKind::binary &&
        e->args[0]->text == "==" && is_zero(e->args[0]->args[1])) {
      expression(e->args[1], guarded);
      return expression(e->args[2], e->args[0]->args[0]);
    }
    for (const ExprPtr& a : e->args) expression(a, guarded);
  }

  // A positive number, alone or with what is not below 0 added, or a number of the launch; products
  // and quotients of these.
  bool is_positive(const ExprPtr& e) const {
    if (is_positive_literal(e)) return true;
    if (e->kind == ExprKind::name)
      return of_launch_.count(e->text) || (e->text.size() == 1 && std::isupper(e->text[0]));
    if (e->kind == ExprKind::call && e->text == "f32") return is_positive(e->args[0]);
    if (e->kind == ExprKind::binary && e->text == "+")
      return (is_positive_literal(e->args[0]) && is_no_less(e->args[1])) ||
             (is_positive_literal(e->args[1]) && is_no_less(e->args[0]));
    if (e->kind == ExprKind::binary && (e->text == "*" || e->text == "/"))
      return is_positive(e->args[0]) && is_positive(e->args[1]);
    return false;
  }

  bool is_no_less(const ExprPtr& e) const {
    return is_positive(e) || (e->kind == ExprKind::call && (e->text == "exp2" || e->text == "abs"));
  }

  // ---- references
  void online_max(const Stmt& s) {
    references_.insert(tl::base_name(s.max()));
    if (!is_positive(s.scale()))
      open(fmt::format("a reference of scores times `{}`, which may be negative",
                       tl::print(s.scale())));
    ExprPtr slack = s.threshold();
    if (slack->kind == ExprKind::name && of_launch_.count(slack->text) &&
        of_launch_.at(slack->text))
      slack = of_launch_.at(slack->text);
    const ExprPtr binades =
        slack->kind == ExprKind::binary && slack->text == "/" ? slack->args[0] : slack;
    const bool scaled = slack != binades && tl::equal(slack->args[1], s.scale());
    if (!(scaled || is_zero(slack)) || !(is_zero(binades) || is_positive_literal(binades)) ||
        std::stod(binades->text) > slack_)
      open(fmt::format("references that lag behind by `{}`", tl::print(slack)));
  }

  // Weights are what they are: nothing divides them by about the row's largest.
  void without_reference() {
    bool rounded = false;
    tl::walk(program_.body, [&](const Stmt& s) {
      rounded |= s.op == Op::to_operand;
      if (softmax_ && tl::is(s.op, tl::Family::map) && s.has(tl::Hole::value) &&
          !by_log_sums_.count(tl::base_name(s.target())))
        exponentials(s.value());
    });
    if (halves_ && rounded && by_log_sums_.empty())
      open("weights in fp16 without a reference, which nothing bounds");
  }

  void exponentials(const ExprPtr& e) {
    if (e->kind == ExprKind::call && e->text == "exp2") {
      const std::optional<double> most = bound(e->args[0]);
      if (!most || *most > kBounded)
        open(fmt::format("`{}` without a reference, which {}", tl::print(e),
                         most ? fmt::format("may be 2^{:.4g}", *most) : "nothing bounds"));
    }
    if (e->kind == ExprKind::call && e->text == "reciprocal" && bound(e)) return;
    for (const ExprPtr& a : e->args) exponentials(a);
  }

  // No value of e is larger than this, or smaller than its negative; but for -inf, of what is
  // dropped.
  std::optional<double> bound(const ExprPtr& e) const {
    if (const auto x = constant(e)) return std::fabs(*x);
    if (e->kind == ExprKind::name) {
      if (e->text == "-inf") return 0;
      if (e->text == "log2e") return 1.4427;
      if (e->text == "ln2") return 0.6932;
      const auto at = of_launch_.find(e->text);
      return at != of_launch_.end() && at->second ? bound(at->second) : std::nullopt;
    }
    if (e->kind == ExprKind::call && e->text == "tanh") return 1;
    if (e->kind == ExprKind::call && e->text == "reciprocal") {
      const ExprPtr& of = e->args[0];
      const bool sum = of->kind == ExprKind::binary && of->text == "+";
      for (size_t n = 0; sum && n < 2; ++n)
        if (is_positive_literal(of->args[n]) && is_no_less(of->args[1 - n]))
          return 1 / std::stod(of->args[n]->text);
      return std::nullopt;
    }
    std::vector<double> parts;
    for (size_t n = e->kind == ExprKind::where; n < e->args.size(); ++n) {
      const auto part = bound(e->args[n]);
      if (!part) return std::nullopt;
      parts.push_back(*part);
    }
    if (e->kind == ExprKind::unary && e->text == "-") return parts[0];
    if (e->kind == ExprKind::where) return std::max(parts[0], parts[1]);
    if (e->kind == ExprKind::call && (e->text == "min" || e->text == "max"))
      return std::max(parts[0], parts[1]);
    if (e->kind == ExprKind::call && e->text == "fma") return parts[0] * parts[1] + parts[2];
    if (e->kind != ExprKind::binary) return std::nullopt;
    if (e->text == "*") return parts[0] * parts[1];
    if (e->text == "+" || e->text == "-") return parts[0] + parts[1];
    return std::nullopt;
  }

  // ---- passes over rows
  // A difference of what is nearly equal has no digits left, and no sign: a variance that is a mean
  // of squares less the square of the mean has a root that is no number.
  void pass(const Stmt& of) {
    tl::walk(of.body, [&](const Stmt& s) {
      tl::each_expression(s, [&](const ExprPtr& whole) {
        tl::rewrite(whole, [&](const ExprPtr& e) -> ExprPtr {
          if (has_poles(*e) && differs(e->args.back()))
            open(fmt::format("`{}`, where terms of `{}` cancel", tl::print_head(s),
                             tl::print(e->args.back())));
          return nullptr;
        });
      });
    });
  }

  bool differs(const ExprPtr& e) const {
    if (constant(e)) return false;
    if (e->kind == ExprKind::name) {
      for (const auto* named : {&lets_, &sums_})
        if (const auto at = named->find(e->text); at != named->end()) return differs(at->second);
      return false;
    }
    if (e->kind == ExprKind::call && (has_poles(*e) || e->text == "exp2" || e->text == "abs"))
      return false;
    if (e->kind == ExprKind::binary && e->text == "*" && tl::equal(e->args[0], e->args[1]))
      return false;
    if (e->kind == ExprKind::binary && e->text == "-") return true;
    if (e->kind == ExprKind::binary && e->text == "+" &&
        (is_negative(e->args[0]) || is_negative(e->args[1])))
      return true;
    return std::any_of(e->args.begin(), e->args.end(),
                       [&](const ExprPtr& a) { return differs(a); });
  }

  static bool is_negative(const ExprPtr& e) {
    if (const auto x = constant(e)) return *x < 0;
    if (e->kind == ExprKind::unary && e->text == "-") return true;
    return e->kind == ExprKind::binary && e->text == "*" &&
           (is_negative(e->args[0]) != is_negative(e->args[1]));
  }

  // Exponentials of data, where the function has none: a sigmoid that is exp(x) / (1 + exp(x)) is
  // no number from 89 on. Of scores, where there is a reference, it bounds them.
  void of_data() {
    tl::walk(program_.body, [&](const Stmt& s) {
      const bool map = tl::is(s.op, tl::Family::map);
      if (!map || !softmax_) tl::each_expression(s, [&](const ExprPtr& e) { unbounded(e, map); });
    });
  }

  void unbounded(const ExprPtr& e, bool weights) {
    if (e->kind == ExprKind::call && e->text == "exp2" && (weights || reads(e->args[0]) > 0)) {
      const std::optional<double> most = bound(e->args[0]);
      if (!most || *most > kBounded) open(fmt::format("`{}`, which nothing bounds", tl::print(e)));
    }
    if (e->kind == ExprKind::call && e->text == "reciprocal" && bound(e)) return;
    for (const ExprPtr& a : e->args) unbounded(a, weights);
  }

  // What is written of a row, in fp16, has the function's own constants and no others: multiplied
  // by 16 what is 5000 leaves the range, and divided by 16 what is 10^-5 loses its bits. So have
  // gradients of scores, which become fp16 before their products.
  void passes_of_halves() {
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op != Op::write_row) return;
      hold_to_function("rows", s.value());
      if (reads(s.value()) > 1)
        open(fmt::format("rows of fp16 times data, `{}`", tl::print(s.value())));
    });
  }
  void gradients_of_halves() {
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op != Op::map && s.op != Op::map_at && s.op != Op::map_real) return;
      const bool of_scores = tiles_of_scores_.count(tl::base_name(s.target())) > 0;
      const bool weights = s.value()->kind == ExprKind::call && s.value()->text == "exp2";
      if (of_scores && !weights) hold_to_function("gradients", s.value());
    });
  }

  // Some product of the function's has as much of constants, to a factor of two.
  void hold_to_function(const char* what, const ExprPtr& e) {
    const double times = factor(e);
    const auto near = [&](double own) { return times <= 2 * own && own <= 2 * times; };
    if (!near(1) && std::none_of(factors_.begin(), factors_.end(), near))
      open(fmt::format("{} of fp16 times {:.4g}", what, times));
  }

  // How many elements of data, or numbers of the user's, are multiplied in a product.
  int reads(const ExprPtr& e) const {
    if (e->kind == ExprKind::index) return 1;
    if (e->kind == ExprKind::name) {
      const auto let = lets_.find(e->text);
      if (let != lets_.end()) return reads(let->second);
      const auto number = of_launch_.find(e->text);
      return number != of_launch_.end() && (!number->second || reads(number->second) > 0);
    }
    const bool product = e->kind == ExprKind::binary && (e->text == "*" || e->text == "/");
    int out = 0;
    for (size_t n = e->kind == ExprKind::where; n < e->args.size(); ++n)
      out = product ? out + reads(e->args[n]) : std::max(out, reads(e->args[n]));
    return out;
  }

  // The numbers that a product has as factors, multiplied; of a choice the largest.
  double factor(const ExprPtr& e) const {
    if (const auto x = constant(e)) return *x == 0 ? 1 : std::fabs(*x);
    if (e->kind == ExprKind::name && lets_.count(e->text)) return factor(lets_.at(e->text));
    if (e->kind == ExprKind::unary) return factor(e->args[0]);
    if (e->kind == ExprKind::where) return std::max(factor(e->args[1]), factor(e->args[2]));
    if (e->kind != ExprKind::binary) return 1;
    if (e->text == "*") return factor(e->args[0]) * factor(e->args[1]);
    if (e->text == "/") return factor(e->args[0]) / factor(e->args[1]);
    return std::max(factor(e->args[0]), factor(e->args[1]));
  }

  void any_exceeds(const Stmt& s) {
    if (!is_positive_literal(s.threshold()) || std::stod(s.threshold()->text) > std::exp2(slack_))
      open(fmt::format("sums up to `{}`", tl::print(s.threshold())));
    if (!references_.count(tl::base_name(s.max())))
      open(fmt::format("the reference `{}`, which no maximum sets", tl::print(s.max())));
  }

  void open(const std::string& why) {
    if (why_.empty()) why_ = why;
  }

  const tl::Program& program_;
  const bool divides_, exponentials_, halves_;
  const std::set<double> factors_;  // constants of the function's products
  const bool of_gradients_, softmax_;
  std::set<std::string> tiles_of_scores_;
  const double slack_;
  std::map<std::string, ExprPtr> lets_, sums_;  // of a row
  std::map<std::string, ExprPtr> of_launch_;    // floats that are arguments; null: the user's
  std::set<std::string> references_, begun_;    // vectors that begin with a number
  std::set<std::string> by_log_sums_;           // tiles
  std::string why_;
};

}  // namespace

std::string out_of_range(const tl::Program& program, const spec::Form& form) {
  return Reals(program, form).run();
}

}  // namespace kw::proofs
