// Forms from text, for tests: expressions are written as TL, which reads like the spec's own print.
//
//   argument prefix i32[B]
//   score s * 0.125
//   keep j <= i or j < prefix[b]
//
// q, k and v are [b, h, i, d] with 32 query and 8 key heads, D 128, bf16; other lines that are
// understood: dtype, dims (of q, as indices), output (its dims), heads, head_dim (of q and k, and
// of v where it differs), queries, keys, epilogue, terms,
// products, finite_mask, normaliser (sum or none), sink, alone (as many key heads as query heads).
//
// After a line "norm x" or "norm x + residual" it is an RMS normalisation of [b, i, d], 128
// columns, of which the function returns every output; then are understood: argument, columns, eps,
// dtype, weight_dtype, and returns (y alone).
//
// A line "gradients", the last, makes it the gradients of what the lines before it say.
//
// A line "product" makes it a product of a[b, h, i, d] and b[b, h, d, j], of four heads and any K.
// Then there are: a_dims, b_dims (indices), b_contiguous (which of them is, in memory), batches (B
// and H), value, also_sums, only_sums.
#pragma once
#include <string>

#include "operator/form.h"
#include "transfer/transfer.h"

namespace kw::transfer {

// Throws std::runtime_error for a line that it does not understand.
spec::Form form_of(const std::string& text);

// A target with the rows beside its kernel's text, of which so many were in vain; none where there
// is no such file.
Target target_of(const std::string& name, int tried = 0, const std::string& tiles = "tiles.json");
Target sm_90a(int tried = 0);
// The kernel of tests/corpus/ for a target; for sm_75, which has none, that of tests/sm75/, which
// is made from a sketch. Of products: "gemm".
tl::Program kernel_of(const std::string& target, const std::string& family = "attention_fwd");

// What the rules of the form's family begin with: the corpus's program for a target, and its tiles.
struct Start {
  tl::Program kernel;
  Target target;
};
// Takes a first line "WORD NAME" off a form's text, as cases of tests/transfer begin: "target sm_80".
inline std::string take_line(std::string& form, const std::string& word,
                             const std::string& otherwise) {
  if (form.rfind(word, 0) != 0) return otherwise;
  const size_t end = form.find('\n');
  const std::string name = form.substr(word.size(), end - word.size());
  form.erase(0, end + 1);
  return name;
}

// Or another text of the corpus, by its name.
Start start_of(const spec::Form& form, const std::string& target, const std::string& name = "");

// An expression over the form's arguments, or over any names if there is none.
spec::ExprPtr expr_of(const std::string& text, const spec::Form* form = nullptr);

}  // namespace kw::transfer
