// Forms from text, for tests: expressions are written as TL, which reads like the spec's own print.
//
//   argument prefix i32[B]
//   score s * 0.125
//   keep j <= i or j < prefix[b]
//
// q, k and v are [b, h, i, d] with 32 query and 8 key heads, D 128, bf16; other lines that are
// understood: dtype, dims (of q, as indices), output (its dims), heads, head_dim (of q and k, and
// of v where it differs), queries, keys, epilogue, terms,
// products, finite_mask, normaliser (sum or none), sink.
#pragma once
#include <string>

#include "spec/form.h"
#include "transfer/transfer.h"

namespace kw::transfer {

// Throws std::runtime_error for a line that it does not understand.
spec::Form form_of(const std::string& text);

// A target with the rows beside its kernel's text, of which so many were in vain.
Target target_of(const std::string& name, int tried = 0);
Target sm_90a(int tried = 0);
// The kernel of tests/corpus/ for a target; for sm_75, which has none, that of tests/sm75/, which
// is made from a sketch.
tl::Program kernel_of(const std::string& target);

// An expression over the form's arguments, or over any names if there is none.
spec::ExprPtr expr_of(const std::string& text, const spec::Form* form = nullptr);

}  // namespace kw::transfer
