#include "operator/expr/derivative.h"

#include <numbers>

#include "operator/expr/places.h"

namespace kw::spec {
namespace {

bool is_zero(const ExprPtr& e) { return is_number(e) && e->value == 0; }

// What does not change makes no change, whatever it is multiplied by.
ExprPtr times(const ExprPtr& a, const ExprPtr& b) {
  return is_zero(a) ? a : is_zero(b) ? b : binary("*", a, b);
}
ExprPtr over(const ExprPtr& a, const ExprPtr& b) { return is_zero(a) ? a : binary("/", a, b); }
ExprPtr less(const ExprPtr& a, const ExprPtr& b) { return binary("<", a, b); }

class Derivative {
 public:
  Derivative(const ExprPtr& x, ExprPtr& operation) : x_(x), operation_(operation) {}

  // Null after an operator without a derivative.
  ExprPtr of(const ExprPtr& e) {
    if (equal(e, x_)) return real(1);
    if (!mentions(e, x_->kind, x_->name) || e->type != Type::real) return real(0);
    ExprPtr out;
    if (e->kind == Kind::unary) out = unary_of(e);
    if (e->kind == Kind::binary) out = binary_of(e);
    if (e->kind == Kind::where) out = where_of(*e);
    if (!out && !operation_) operation_ = e;
    return out;
  }

 private:
  // f'(u), for e = f(u).
  static ExprPtr outer(const ExprPtr& e) {
    const std::string& f = e->name;
    const ExprPtr& u = e->args[0];
    if (f == "-") return real(-1);
    if (f == "float") return real(1);
    if (f == "exp") return e;
    if (f == "exp2") return times(e, real(std::numbers::ln2));
    if (f == "log") return binary("/", real(1), u);
    if (f == "log2") return binary("/", real(std::numbers::log2e), u);
    if (f == "sqrt") return binary("/", real(0.5), e);
    if (f == "rsqrt") return times(real(-0.5), binary("/", e, u));
    if (f == "reciprocal") return unary("-", times(e, e));
    if (f == "tanh") return binary("-", real(1), times(e, e));
    if (f == "sigmoid") return times(e, binary("-", real(1), e));
    if (f == "relu") return where(less(real(0), u), real(1), real(0));
    if (f == "abs")
      return where(less(real(0), u), real(1), where(less(u, real(0)), real(-1), real(0)));
    if (f == "sin") return unary("cos", u);
    if (f == "cos") return unary("-", unary("sin", u));
    if (f == "erf")
      return times(real(2 * std::numbers::inv_sqrtpi), unary("exp", unary("-", times(u, u))));
    if (f == "floor" || f == "ceil" || f == "sign") return real(0);
    return nullptr;
  }

  ExprPtr unary_of(const ExprPtr& e) {
    const ExprPtr f = outer(e), u = of(e->args[0]);
    return f && u ? times(f, u) : nullptr;
  }

  ExprPtr binary_of(const ExprPtr& e) {
    const std::string& op = e->name;
    const ExprPtr &a = e->args[0], &b = e->args[1];
    const ExprPtr da = of(a), db = of(b);
    if (!da || !db) return nullptr;
    if (op == "+" || op == "-") return binary(op, da, db);
    if (op == "*" && equal(a, b)) return times(real(2), times(da, b));
    if (op == "*") return binary("+", times(da, b), times(a, db));
    if (op == "/")
      return is_zero(db) ? over(da, b) : binary("-", over(da, b), over(times(e, db), b));
    if (op == "**" && !mentions(b, x_->kind, x_->name))
      return times(times(b, binary("**", a, binary("-", b, real(1)))), da);
    if (op == "min" || op == "max") {
      const auto takes = [&](const ExprPtr& x, const ExprPtr& other) {
        return op == "min" ? less(x, other) : less(other, x);
      };
      const ExprPtr half = times(real(0.5), binary("+", da, db));
      return where(takes(a, b), da, where(takes(b, a), db, half));
    }
    return nullptr;
  }

  // A condition has no derivative: it chooses.
  ExprPtr where_of(const Expr& e) {
    const ExprPtr a = of(e.args[1]), b = of(e.args[2]);
    return a && b ? where(e.args[0], a, b) : nullptr;
  }

  const ExprPtr& x_;
  ExprPtr& operation_;
};

}  // namespace

std::optional<ExprPtr> derivative(const ExprPtr& e, const ExprPtr& x, ExprPtr& operation) {
  operation = nullptr;
  const ExprPtr out = Derivative(x, operation).of(e);
  if (!out) return std::nullopt;
  return out;
}

std::optional<ExprPtr> derivative_by(const ExprPtr& e, const ExprPtr& part, ExprPtr& operation) {
  static const ExprPtr kVariable =
      leaf(Kind::argument, Type::real, "(the part)");  // no user's name
  const auto slope = derivative(replace(e, part, kVariable), kVariable, operation);
  if (operation) operation = replace(operation, kVariable, part);
  if (!slope) return std::nullopt;
  return replace((*slope)->type == Type::real ? *slope : unary("float", *slope), kVariable, part);
}

}  // namespace kw::spec
