// Which index is the batch, the head, the query; and what the sizes are called.
#pragma once
#include "operator/recognise/recognise.h"

namespace kw::spec {

struct Roles {
  Operand q, k, v;
  std::vector<FurtherProduct> more;
  std::map<std::string, std::string> index_names;  // "x2" -> "i"
  std::map<std::string, std::string> size_names;   // "s25" -> "M"
  std::map<std::string, ExprPtr> extents;          // of b, h, i, j, d, under their new names

  ExprPtr rename(const ExprPtr& e) const;
};

// Fills the sizes, the output's dimensions and the arguments' dimensions of the form.
std::optional<Roles> assign_roles(Elements& elements, const Parts& parts,
                                  const std::vector<std::string>& output, Form& form,
                                  Diagnostics& diagnostics);

// The second output must be the logsumexp of the same scores, one for each row, or the sums of
// their softmax over the rows (second.cpp).
bool second_output(Elements& elements, const Graph& graph, const Parts& parts, const Roles& roles,
                   const std::vector<std::string>& output, Form& form, Diagnostics& diagnostics);

}  // namespace kw::spec
