#include "transfer/editing/spell.h"

#include <fmt/format.h>

#include <cmath>

#include "transfer/masks/coordinates.h"

namespace kw::transfer {
namespace {

using spec::Kind;
using spec::Type;
using tl::ExprPtr;

bool is_positive_number(const spec::ExprPtr& e) { return e->kind == Kind::number && e->value > 0; }

// Operators that TL has of integers alone.
bool is_of_integers(const spec::Expr& e) {
  return e.name == "//" || e.name == "%" || e.name == "<<" || e.name == ">>" || e.name == "&" ||
         e.name == "|" || e.name == "^";
}

const char* const kSupported =
    "supported are + - * / // % << >> & | ^ min max abs comparisons and or not where, and of "
    "reals exp "
    "exp2 log log2 tanh sigmoid relu sqrt rsqrt reciprocal; a model may be asked for more";

class Speller {
 public:
  Speller(const Spelling& how, Diagnostics& diagnostics) : how_(how), diagnostics_(diagnostics) {}

  ExprPtr expr(const spec::ExprPtr& e);
  bool failed() const { return failed_; }

 private:
  const Spelling& how_;
  Diagnostics& diagnostics_;
  bool failed_ = false;

  // Integers computed as reals, because they mention coordinates that are.
  bool as_real(const spec::ExprPtr& e) const {
    return how_.real_coordinates && e->type == Type::integer && has_coordinate(e);
  }
  ExprPtr number(const spec::Expr& e);
  ExprPtr unary(const spec::Expr& e);
  ExprPtr binary(const spec::Expr& e);
  ExprPtr power(const spec::Expr& e);
  ExprPtr real(const spec::ExprPtr& e);
  ExprPtr refuse(const spec::Expr& e, const std::string& what,
                 const std::string& hint = kSupported);
};

ExprPtr Speller::refuse(const spec::Expr& e, const std::string& what, const std::string& hint) {
  failed_ = true;
  diagnostics_.error("transfer.expression", e.span, what).hint = hint;
  return tl::integer(0);
}

ExprPtr Speller::number(const spec::Expr& e) {
  if (e.type == Type::boolean) return tl::name(e.integer ? "true" : "false");
  if (e.type == Type::integer) return tl::integer(e.integer);
  if (e.value != 0 && !std::isnormal(static_cast<float>(e.value)))
    return refuse(e, fmt::format("the number {:.6g} is none of fp32's normal numbers", e.value),
                  "kernels have 0 and those of 1.18e-38 to 3.40e+38");
  return tl::real(e.value);
}

// A real value of e: integers are converted, and those that mention real coordinates are reals.
ExprPtr Speller::real(const spec::ExprPtr& e) {
  if (e->type == Type::real) return expr(e);
  if (e->kind == Kind::number) return tl::real(e->value);
  if (!how_.real_coordinates || !has_coordinate(e)) return tl::call("f32", {expr(e)});
  return expr(e);
}

ExprPtr Speller::unary(const spec::Expr& e) {
  const spec::ExprPtr& a = e.args[0];
  const auto call = [](const char* f, ExprPtr x) { return tl::call(f, {std::move(x)}); };
  const auto times = [](ExprPtr x, const char* constant) {
    return tl::binary("*", std::move(x), tl::name(constant));
  };
  if (e.name == "not") return tl::unary("not", expr(a));
  if (e.name == "-") return tl::unary("-", expr(a));
  if (e.name == "float") return real(a);
  if (e.name == "abs") {
    const ExprPtr x = expr(a);
    if (a->type == Type::integer && !as_real(a)) return call("abs", x);
    return tl::call("max", {x, tl::unary("-", x)});
  }
  if (a->type != Type::real) return refuse(e, fmt::format("{} of an integer", e.name));
  const ExprPtr x = expr(a);
  if (e.name == "tanh" || e.name == "exp2" || e.name == "log2" || e.name == "rsqrt" ||
      e.name == "reciprocal")
    return call(e.name.c_str(), x);
  if (e.name == "sqrt") return call("reciprocal", call("rsqrt", x));  // 0 of 0 too
  if (e.name == "exp") return call("exp2", times(x, "log2e"));
  if (e.name == "log") return times(call("log2", x), "ln2");
  if (e.name == "relu") return tl::call("max", {x, tl::real(0)});
  if (e.name == "sigmoid") {
    const ExprPtr power = call("exp2", times(tl::unary("-", x), "log2e"));
    return call("reciprocal", tl::binary("+", tl::real(1), power));
  }
  if (e.name == "int" || e.name == "floor" || e.name == "ceil") {
    return refuse(e, fmt::format("{} of a real whose value depends on how it was rounded", e.name),
                  "compute the integers beforehand and pass them as a table of ints: table[i - j]");
  }
  return refuse(e, fmt::format("TL has no {}", e.name));
}

// A constant to the power of x, or a root.
ExprPtr Speller::power(const spec::Expr& e) {
  const spec::ExprPtr &base = e.args[0], &x = e.args[1];
  if (x->kind == Kind::number && x->value == 0.5)
    return tl::call("reciprocal", {tl::call("rsqrt", {real(base)})});
  if (x->kind == Kind::number && x->value == -0.5) return tl::call("rsqrt", {real(base)});
  if (!is_positive_number(base)) return refuse(e, "a power whose base is not a positive constant");
  if (base->value == 2) return tl::call("exp2", {real(x)});
  return tl::call("exp2", {tl::binary("*", real(x), tl::real(std::log2(base->value)))});
}

ExprPtr Speller::binary(const spec::Expr& e) {
  const spec::ExprPtr &a = e.args[0], &b = e.args[1];
  if (e.name == "**") return power(e);
  if (is_of_integers(e) && (e.type != Type::integer || as_real(a) || as_real(b)))
    return refuse(e, fmt::format("{} of reals", e.name));
  const bool reals = a->type == Type::real || b->type == Type::real || as_real(a) || as_real(b);
  const ExprPtr x = reals ? real(a) : expr(a), y = reals ? real(b) : expr(b);
  if (e.name == "min" || e.name == "max") return tl::call(e.name, {x, y});
  return tl::binary(e.name, x, y);
}

ExprPtr Speller::expr(const spec::ExprPtr& e) {
  switch (e->kind) {
    case Kind::number:
      return number(*e);
    case Kind::infinity:
      return tl::unary("-", tl::name("-inf"));
    case Kind::index: {
      const auto known = how_.indices.find(e->name);
      if (known != how_.indices.end()) return known->second;
      return refuse(*e, fmt::format("the index {} has no value here", e->name));
    }
    case Kind::size:
    case Kind::argument:
      return tl::name(e->name);
    case Kind::score:
      return how_.score ? how_.score : refuse(*e, "the score has no value here");
    case Kind::output:
      return how_.output ? how_.output : refuse(*e, "the output has no value here");
    case Kind::total: {
      const size_t n = std::stoul(e->name);
      return n < how_.totals.size() ? how_.totals[n] : refuse(*e, "a sum has no value here");
    }
    case Kind::read: {
      std::vector<ExprPtr> at;
      for (const spec::ExprPtr& index : e->args) at.push_back(expr(index));
      return tl::index(tl::name(e->name), std::move(at));
    }
    case Kind::unary:
      if (e->name == "-" && e->args[0]->kind == Kind::infinity) return tl::name("-inf");
      return unary(*e);
    case Kind::binary:
      return binary(*e);
    case Kind::where: {
      const spec::ExprPtr &a = e->args[1], &b = e->args[2];
      const bool reals = e->type == Type::real || as_real(a) || as_real(b);
      return tl::where(expr(e->args[0]), reals ? real(a) : expr(a), reals ? real(b) : expr(b));
    }
  }
  return nullptr;
}

}  // namespace

std::optional<ExprPtr> spell(const spec::ExprPtr& e, const Spelling& how,
                             Diagnostics& diagnostics) {
  Speller speller(how, diagnostics);
  ExprPtr out = speller.expr(e);
  if (speller.failed()) return std::nullopt;
  return out;
}

bool needs_integer_coordinates(const spec::ExprPtr& e) {
  const bool of_integers = e->kind == Kind::binary && is_of_integers(*e);
  const bool reads = e->kind == Kind::read;
  if ((of_integers || reads) && has_coordinate(e)) return true;
  for (const spec::ExprPtr& a : e->args)
    if (needs_integer_coordinates(a)) return true;
  return false;
}

}  // namespace kw::transfer
