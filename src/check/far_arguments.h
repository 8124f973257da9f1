// Elements of further arguments that lie far from 0: gates, factors, sinks, biases, tables, slopes.
//
// Of drawn numbers of about 1, `e / (1 + e)^2` is the derivative of a sigmoid, and
// `exp2(s) * exp2(bias)` is `exp2(s + bias)`. With a gate of -100 the former is infinity by
// infinity, and with a bias of 100 the latter a number below fp32's by one beyond them. So a third
// of the elements lies near 100 or 90, a third is 30 or 0, and a third is as drawn: of one sign in
// one case, of the other in another.
//
// A program is not held to what the function itself cannot do: an argument's numbers are brought
// nearer, or left as drawn, until every expression of the form, computed in fp32 operation by
// operation, is finite at the case's heads and some of its rows and keys and agrees with fp64; and
// scores of a softmax stay below 1000, from where on fp32 has few bits left below 1.
#pragma once
#include "check/trial.h"

namespace kw::check {

// Whether the form has such arguments: tensors of reals that its expressions read beside what is
// multiplied, rows that change before a product, and gradients.
bool has_far_arguments(const spec::Form& form);

// Plants them, as the case asks (far_below, far_above); false where every one had to stay as drawn.
bool plant_far(const spec::Form& form, const Case& c, spec::Problem& problem);

// ---- shared with families/gemm_balanced.h
// Names of the arguments, in the form's order.
std::vector<std::string> further_arguments(const spec::Form& form);
// Of a tensor the element at these indices, or the nearest to them.
int64_t nearest_element(const Tensor& t, const std::vector<int64_t>& at);
// A scope in which expressions find a problem's sizes, scalars and tensors.
spec::Scope scope_of(const spec::Problem& problem);
// An expression in fp32: every operation is rounded.
double evaluate_in_fp32(const spec::ExprPtr& e, const spec::Scope& scope);

}  // namespace kw::check
