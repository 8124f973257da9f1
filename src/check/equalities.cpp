#include "check/equalities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "operator/family.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::check {
namespace {

bool is_equality(const std::string& op) { return op == "==" || op == "!="; }
bool is_order(const std::string& op) { return op == "<" || op == "<=" || op == ">" || op == ">="; }

// What the form asks reals to be equal to: the numbers that are written there, and whether it asks
// so of two reals, neither of which is one.
struct Asked {
  std::set<double> numbers;
  bool any = false;
};

Asked asked_in(const spec::Form& form, bool (*is_asked)(const std::string& op)) {
  Asked found;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (part->kind != spec::Kind::binary || !is_asked(part->name)) return spec::ExprPtr();
      const spec::ExprPtr &a = part->args[0], &b = part->args[1];
      if (a->type != spec::Type::real && b->type != spec::Type::real) return spec::ExprPtr();
      if (spec::is_number(a) || spec::is_number(b))
        found.numbers.insert(spec::number_value(spec::is_number(a) ? a : b));
      else
        found.any = true;
      return spec::ExprPtr();
    });
  });
  return found;
}

bool is_infinity(const tl::ExprPtr& e) {
  return e->is_name("-inf") ||
         (e->kind == tl::ExprKind::unary && e->text == "-" && is_infinity(e->args[0]));
}

// A number, or minus one, as it is written.
std::optional<double> number(const tl::ExprPtr& e) {
  if (e->kind == tl::ExprKind::real || e->kind == tl::ExprKind::integer) return std::stod(e->text);
  if (e->kind != tl::ExprKind::unary || e->text != "-") return std::nullopt;
  const std::optional<double> of = number(e->args[0]);
  return of ? std::optional(-*of) : std::nullopt;
}

bool is_zero(const tl::ExprPtr& e) { return number(e) == 0.0; }

// Of the form's: where that has several, a program may ask it elsewhere, which cases show.
bool is_asked(const tl::ExprPtr& a, const tl::ExprPtr& b, const Asked& asked) {
  const std::optional<double> written = number(a) ? number(a) : number(b);
  if (!written) return asked.any;
  return std::any_of(asked.numbers.begin(), asked.numbers.end(), [&](double x) {
    return std::fabs(x - *written) <= 1e-6 * std::fabs(x);  // as fp32 has it
  });
}

// ---- comparisons of data, as they are computed
// Which of two reals is greater may hang on their last bits, so that a program computes them as the
// function does. Both sides as text: of the user's names, numbers as fp32 has them, and operands
// that commute in order. "" where there is more than data.
using Sides = std::set<std::string>;

std::string text_of(double x) { return fmt::format("{:.7g}", static_cast<float>(x)); }

std::string text_of(const std::string& op, std::vector<std::string> of) {
  if (std::count(of.begin(), of.end(), "")) return "";
  if (op == "+" || op == "*" || op == "max" || op == "min") std::sort(of.begin(), of.end());
  return fmt::format("{}({})", op, fmt::join(of, ", "));
}

std::string text_of(const spec::ExprPtr& e) {
  using spec::Kind;
  if (spec::is_number(e)) return text_of(spec::number_value(e));
  if (e->kind == Kind::read || e->kind == Kind::argument || e->kind == Kind::size ||
      e->kind == Kind::index)
    return e->name;
  if (e->kind == Kind::score || e->kind == Kind::output || e->kind == Kind::total) return "";
  std::vector<std::string> of;
  for (const spec::ExprPtr& a : e->args) of.push_back(text_of(a));
  return e->name == "float" ? of[0] : text_of(e->name, std::move(of));
}

std::set<Sides> sides_in(const spec::Form& form) {
  std::set<Sides> out;
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      if (spec::is_comparison(part)) out.insert({text_of(part->args[0]), text_of(part->args[1])});
      return spec::ExprPtr();
    });
  });
  return out;
}

// Vectors and names stand for what they hold; a name that holds two things, for nothing known.
class Written {
 public:
  Written(const tl::Program& program, const spec::Form& form) : form_(form) {
    tl::walk(program.body, [&](const tl::Stmt& s) {
      if (tl::is(s.op, tl::Family::gather)) {
        if (s.has(tl::Hole::value)) hold(tl::base_name(s.target()), s.value());
      } else if (s.op == tl::Op::let) {
        for (const tl::Item& d : s.names()) hold(d.name, d.expr);
      } else if (tl::is(s.op, tl::Family::argument) || tl::is(s.op, tl::Family::tensor)) {
        for (const tl::Item& d : s.names())
          if (!d.expr) given_.insert(d.name);
      }
    });
  }

  std::string text(const tl::ExprPtr& e, int depth = 0) const {
    using tl::ExprKind;
    if (depth > 16) return "";
    if (const auto x = number(e)) return text_of(*x);
    if (e->kind == ExprKind::name || e->kind == ExprKind::index) {
      const std::string& name = e->kind == ExprKind::name ? e->text : tl::base_name(e);
      if (const auto held = held_.find(name); held != held_.end())
        return held->second ? text(held->second, depth + 1) : "";
      return given_.count(name) || name == "i" || name == "j" ? form_.user_name(name) : "";
    }
    if (e->kind == ExprKind::field) return "";
    std::vector<std::string> of;
    for (const tl::ExprPtr& a : e->args) of.push_back(text(a, depth + 1));
    return e->text == "f32" ? of[0] : text_of(e->text, std::move(of));
  }

 private:
  void hold(const std::string& name, const tl::ExprPtr& e) {
    const auto [known, is_new] = held_.emplace(name, e);
    if (!is_new && (!e || !known->second || !tl::equal(known->second, e))) known->second = nullptr;
  }

  const spec::Form& form_;
  std::map<std::string, tl::ExprPtr> held_;
  std::set<std::string> given_;
};

// The value of a row of scores, as `total` and online_max leave it.
bool is_of_row(const tl::ExprPtr& e, const tl::Scope& scope) {
  if (e->kind != tl::ExprKind::index) return false;
  const tl::Symbol* s = scope.find(tl::base_name(e));
  return s && s->category == tl::Category::row && s->element == "real";
}

// Each comparison of reals, but for infinities, that is none of these.
void each_unasked(
    const tl::Program& program, const Asked& asked, bool (*is_of_kind)(const std::string& op),
    const std::function<void(const tl::ExprPtr&, const tl::Stmt&, const tl::Scope&)>& f) {
  tl::walk_scoped(program, [&](const tl::Stmt& s, const tl::Scope& outer) {
    tl::each_expr(s, outer, [&](const tl::ExprPtr& whole, const tl::Scope& scope) {
      tl::rewrite(whole, [&](const tl::ExprPtr& e) {
        if (e->kind != tl::ExprKind::binary || !is_of_kind(e->text)) return tl::ExprPtr();
        const tl::ExprPtr &a = e->args[0], &b = e->args[1];
        const bool reals = tl::type_of(a, scope).kind == tl::Type::real ||
                           tl::type_of(b, scope).kind == tl::Type::real;
        if (reals && !is_infinity(a) && !is_infinity(b) && !is_asked(a, b, asked)) f(e, s, scope);
        return tl::ExprPtr();
      });
    });
  });
}

}  // namespace

bool equalities_are_seen(const tl::Program& program, const spec::Form& form,
                         Diagnostics& diagnostics) {
  bool seen = true;
  each_unasked(program, asked_in(form, is_equality), is_equality,
               [&](const tl::ExprPtr& e, const tl::Stmt& s, const tl::Scope& scope) {
                 const tl::ExprPtr &a = e->args[0], &b = e->args[1];
                 if ((is_of_row(a, scope) && is_zero(b)) || (is_of_row(b, scope) && is_zero(a)))
                   return;
                 seen = false;
                 diagnostics
                     .error("check.equality", e->span.known() ? e->span : s.span,
                            fmt::format("`{}` asks whether two reals are equal, and the "
                                        "specification asks for no such thing",
                                        tl::print(e)))
                     .hint =
                     "no random input makes it true, so that no case shows what it does: leave it "
                     "out";
               });
  return seen;
}

std::string unasked_comparison(const tl::Program& program, const spec::Form& form) {
  std::string first;
  const Written written(program, form);
  const std::set<Sides> compared = sides_in(form);
  const auto is_other = [&](const tl::ExprPtr& e) {
    const std::string a = written.text(e->args[0]), b = written.text(e->args[1]);
    return !a.empty() && !b.empty() && !compared.count({a, b});
  };
  each_unasked(program, Asked{}, is_order,
               [&](const tl::ExprPtr& e, const tl::Stmt&, const tl::Scope&) {
                 if (first.empty() && is_other(e)) first = tl::print(e);
               });
  each_unasked(program, asked_in(form, is_order), is_order,
               [&](const tl::ExprPtr& e, const tl::Stmt&, const tl::Scope& scope) {
                 const tl::ExprPtr &a = e->args[0], &b = e->args[1];
                 if (is_zero(a) || is_zero(b) || is_of_row(a, scope) || is_of_row(b, scope)) return;
                 if (first.empty()) first = tl::print(e);
               });
  return first;
}

}  // namespace kw::check
