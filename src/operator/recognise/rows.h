// One side of a product: an argument's row, and what it becomes first (form.h, RowMap).
#pragma once
#include "operator/graph/normalise.h"

namespace kw::spec {

struct OperandRow {
  ExprPtr read;               // of the argument, at the column itself
  std::optional<RowMap> map;  // before its indices have their names
};

// `column` is the index over the head dimension, `node` the product that is blamed. Refuses
// spec.operand.
std::optional<OperandRow> read_operand(Elements& elements, const ExprPtr& side,
                                       const std::string& column, int node,
                                       Diagnostics& diagnostics);

}  // namespace kw::spec
