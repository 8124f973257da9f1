// From index expressions to the attention form.
//
// The output's element is an expression of one sum over keys; that sum's body is a weight times an
// element of v; the weight is a softmax over the same keys, a share of their sum, or a function of
// one score; the score holds one sum over the head dimension, of q times k. Each step is looked for
// by what it means: which index is the query, the key, the head is decided by what depends on what,
// never by position.
#pragma once
#include "operator/graph/normalise.h"

namespace kw::spec {

// The form of the first family of families.def that the function is of. Refuses with the operator
// and the line in the user's file: what the families do (recognise_attention, and each family's
// recognise.h).
std::optional<Form> recognise(Graph graph, Diagnostics& diagnostics);

// Refuses spec.not_attention, spec.softmax_axis, spec.operator, spec.operand, spec.heads,
// spec.head_dim, spec.several_terms, spec.several_products.
std::optional<Form> recognise_attention(const Graph& graph, Diagnostics& diagnostics);

// The operator of a function's gradients from the function's own form. Refuses spec.gradient, with
// the user's line, where it is not known how.
std::optional<Form> gradients_of(const Form& forward, Diagnostics& diagnostics);

// The form of what a graph was captured for: the function, that with what its gradients take saved,
// or its gradients. Refuses what recognise() and gradients_of() refuse.
std::optional<Form> form_of(Graph graph, Diagnostics& diagnostics);

// ---- the steps, in the order in which recognise_attention() takes them

// One product of the scores.
struct ProductParts {
  int product = -1;                    // the node
  ExprPtr q, k;                        // reads of arguments
  std::optional<RowMap> q_row, k_row;  // what their rows become first
  ExprPtr dim;                         // the extent that is summed over
};

// The parts of one attention term before its indices have their names. Its own product is that
// whose keys have the heads of v.
struct Parts : ProductParts {
  std::vector<ProductParts> more;  // the scores' other products
  int contraction = -1;            // the node: P v
  int softmax = -1;                // the softmax or sum that normalises; P v if nothing does
  Normaliser normaliser = Normaliser::softmax;
  ExprPtr epilogue;             // over Kind::output and the output's indices
  size_t terms = 1;             // how many there are
  ExprPtr factor;               // of this one, where there are several
  ExprPtr v;                    // a read of an argument
  std::optional<RowMap> v_row;  // what its rows become first
  ExprPtr normalised;           // what is normalised, with the product as a read
  ExprPtr scores;               // the same over Kind::score
  ExprPtr sink;                 // of a softmax: one logit more, or null
  ExprPtr key;                  // a fresh index, "j"
};
// Of several terms the one that is asked for, from 0.
std::optional<Parts> find_parts(Elements& elements, const Indices& output, size_t term,
                                Diagnostics& diagnostics);

// The factors f with e = f[0] atoms[0] + f[1] atoms[1] + ..., which hold none of the atoms; nothing
// where e is no such sum.
std::optional<std::vector<ExprPtr>> coefficients(const ExprPtr& e,
                                                 const std::vector<ExprPtr>& atoms);

// The score map and what it keeps: `where(c, a, -inf)`, `a + where(c, 0, -inf)` and the like are
// taken apart.
struct Score {
  ExprPtr value, keep;        // keep may be a constant
  bool finite = false;        // some dropped entry was a large finite number,
  double number = -HUGE_VAL;  // the largest of them
  bool added = false;         // and it was added, so the score still counts in a row without a key
};
Score split_score(const ExprPtr& e);
// The same for weights: what is dropped is 0, or a function that is 0 of a dropped score.
Score split_weight(const ExprPtr& e);

// Facts about indices that hold in every launch: 0 <= index < its extent.
ExprPtr simplify_bounds(const ExprPtr& e, const std::map<std::string, ExprPtr>& extents);

}  // namespace kw::spec
