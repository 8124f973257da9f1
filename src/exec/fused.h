// Sums that a compiler makes fused multiply-adds of.
//
// NVRTC contracts a * b + c, which rounds once where the text rounds twice, and of a * b - c * d it
// takes one product as it is and rounds the other: where the two are equal what is left is no 0 but
// the error of one rounding, which a program may multiply by 10^7. Which product it takes is its
// own affair, so cases alternate (Launch::fused). Seen is what stands in one expression; not a
// product that one statement gives to a sum in another. Within comparisons the text says
// kw::rounded_sum, which is never fused.
#pragma once
#include <optional>

#include "exec/machine.h"

namespace kw::exec {

// e as a * b + rest, each with its sign.
struct FusedSum {
  tl::ExprPtr a, b, rest;
  bool negative_product = false, negative_rest = false;
};

// The sum that e is made of here; nothing where it is none, or is not fused.
std::optional<FusedSum> fused_sum(const Context& c, const tl::Expr& e);

}  // namespace kw::exec
