#include "transfer/families/attention/score.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;

Score whole(const ExprPtr& e) { return {spec::real(1), e, nullptr}; }

ExprPtr plus(const std::string& op, const ExprPtr& a, const ExprPtr& b) {
  if (!b) return a;
  if (!a) return op == "+" ? b : spec::unary("-", b);
  return binary(op, a, b);
}

Score of_sum(const ExprPtr& e) {
  const Score a = take_apart(e->args[0]), b = take_apart(e->args[1]);
  if (a.core && b.core && !spec::equal(a.core, b.core)) return whole(e);
  const auto factor = [](const Score& x) { return x.core ? x.factor : nullptr; };
  return {plus(e->name, factor(a), factor(b)), a.core ? a.core : b.core,
          plus(e->name, a.bias, b.bias)};
}

// (factor * core + bias) op x, op * or /
Score scaled(const Score& a, const std::string& op, const ExprPtr& x) {
  return {binary(op, a.factor, x), a.core, a.bias ? binary(op, a.bias, x) : nullptr};
}

}  // namespace

Score take_apart(const ExprPtr& e) {
  if (!spec::mentions(e, Kind::score)) return {nullptr, nullptr, e};
  if (e->kind == Kind::unary && e->name == "-") {
    const Score a = take_apart(e->args[0]);
    return {spec::unary("-", a.factor), a.core, a.bias ? spec::unary("-", a.bias) : nullptr};
  }
  if (e->kind != Kind::binary) return whole(e);
  if (e->name == "+" || e->name == "-") return of_sum(e);
  const bool left = spec::mentions(e->args[0], Kind::score);
  const bool right = spec::mentions(e->args[1], Kind::score);
  if (!(e->name == "*" && left != right) && !(e->name == "/" && !right)) return whole(e);
  const ExprPtr& x = e->args[left ? 1 : 0];
  const Score parts = take_apart(e->args[left ? 0 : 1]);
  // Of nearly opposite ones products with data leave less than their sum does.
  if (parts.bias && spec::mentions(x, Kind::read)) return whole(e);
  return scaled(parts, e->name, x);
}

}  // namespace kw::transfer
