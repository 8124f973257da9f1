// The arithmetic of TL, defined once for scalars and for whole rows of a map.
#pragma once
#include <optional>
#include <string_view>

#include "exec/value.h"

namespace kw::exec {

enum class Fn {
  add,
  sub,
  mul,
  divide,
  floor_div,
  floor_mod,
  ceil_div,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  min,
  max,
  equal,
  differ,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  negate,
  logical_not,
  abs,
  exp2,
  log2,
  tanh,
  reciprocal,
  rsqrt,
  to_real,
  to_drawn,  // to_real, where the exact reading draws what integers become (check/made_small.h)
  to_bf16,
  fma,
  where,
};

// The function behind an operator or a vocabulary name with this many operands.
std::optional<Fn> function_named(std::string_view name, size_t operands);

bool is_comparison(Fn fn);

// The type of fn's result; none when the operands do not suit (exec.type).
Type result_type(Fn fn, const Type* operands);

// out[k] = fn(a[k], b[k], c[k]). Reals are rounded to fp32 once; integers are exact in fp64.
// Divisors must not be zero where the type is integer: the caller checks.
void apply(Fn fn, Type result, int n, const double* a, const double* b, const double* c,
           double* out);

// How many query heads to work on together: the vocabulary's heads_at_once.
int64_t heads_at_once(int64_t bytes, int64_t blocks, int64_t group, int64_t heads);

}  // namespace kw::exec
