// Sums of terms: what each of several parts of an expression is multiplied by.
#include <algorithm>

#include "operator/recognise/recognise.h"

namespace kw::spec {
namespace {

using Factors = std::vector<ExprPtr>;  // one for each atom; null: 0

bool holds_any(const ExprPtr& e, const std::vector<ExprPtr>& atoms) {
  const auto is = [&](const ExprPtr& atom) { return equal(e, atom); };
  return std::any_of(atoms.begin(), atoms.end(), is) ||
         std::any_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return holds_any(a, atoms); });
}

std::optional<Factors> factors(const ExprPtr& e, const std::vector<ExprPtr>& atoms) {
  Factors out(atoms.size());
  for (size_t n = 0; n < atoms.size(); ++n)
    if (equal(e, atoms[n])) {
      out[n] = real(1);
      return out;
    }
  const auto scaled = [&](const ExprPtr& of, const auto& scale) -> std::optional<Factors> {
    std::optional<Factors> inner = factors(of, atoms);
    if (inner)
      for (ExprPtr& f : *inner)
        if (f) f = scale(f);
    return inner;
  };
  if (e->kind == Kind::unary && e->name == "-")
    return scaled(e->args[0], [](const ExprPtr& f) { return unary("-", f); });
  if (e->kind != Kind::binary) return std::nullopt;
  const ExprPtr &a = e->args[0], &b = e->args[1];
  if (e->name == "+" || e->name == "-") {
    const std::optional<Factors> left = factors(a, atoms), right = factors(b, atoms);
    if (!left || !right) return std::nullopt;
    for (size_t n = 0; n < atoms.size(); ++n) {
      const ExprPtr &x = (*left)[n], &y = (*right)[n];
      out[n] = x && y ? binary(e->name, x, y) : x ? x : y && e->name == "-" ? unary("-", y) : y;
    }
    return out;
  }
  const bool in_a = holds_any(a, atoms), in_b = holds_any(b, atoms);
  if (e->name == "*" && in_a != in_b)
    return scaled(in_a ? a : b, [&](const ExprPtr& f) { return binary("*", f, in_a ? b : a); });
  if (e->name == "/" && in_a && !in_b)
    return scaled(a, [&](const ExprPtr& f) { return binary("/", f, b); });
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<ExprPtr>> coefficients(const ExprPtr& e,
                                                 const std::vector<ExprPtr>& atoms) {
  std::optional<Factors> out = factors(e, atoms);
  if (out && std::find(out->begin(), out->end(), nullptr) != out->end()) return std::nullopt;
  return out;
}

}  // namespace kw::spec
