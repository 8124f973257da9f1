#include "exec/fused.h"

namespace kw::exec {
namespace {

// a * b or -(a * b), in any number of signs.
std::optional<FusedSum> product(tl::ExprPtr e) {
  FusedSum out;
  for (; e->kind == tl::ExprKind::unary && e->text == "-"; e = e->args[0])
    out.negative_product = !out.negative_product;
  if (e->kind != tl::ExprKind::binary || e->text != "*") return std::nullopt;
  out.a = e->args[0];
  out.b = e->args[1];
  return out;
}

}  // namespace

std::optional<FusedSum> fused_sum(const Context& c, const tl::Expr& e) {
  if (c.m.launch.fused == Fused::none || c.m.algebra || c.wide || c.compared) return std::nullopt;
  if (e.kind != tl::ExprKind::binary || (e.text != "+" && e.text != "-")) return std::nullopt;
  const bool minus = e.text == "-";
  std::optional<FusedSum> left = product(e.args[0]), right = product(e.args[1]);
  if (left) {
    left->rest = e.args[1];
    left->negative_rest = minus;
  }
  if (right) {
    right->rest = e.args[0];
    right->negative_product ^= minus;
  }
  return (left && c.m.launch.fused == Fused::left) || !right ? left : right;
}

}  // namespace kw::exec
