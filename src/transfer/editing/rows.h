// Passes over rows: what the rows of operands become before their product, and their gradients
// behind it.
//
//   for b, h, r in each_row(q_rows, w):
//       sum row_total over j < D = q[b, h, r, j] * q[b, h, r, j]
//       let norm = rsqrt(row_total * 0.0078125 + 1e-06)
//       write_row q_rows[b, h, r] over j < D = q[b, h, r, j] * norm * weight[j]
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/form.h"
#include "transfer/editing/arguments.h"
#include "transfer/editing/editing.h"

namespace kw::transfer {

// A row map in the kernel's names, whose arguments are added; the operand's own elements as the
// kernel's argument has them, argument[b, h, row, column], whatever the user's order. `row` is the
// index that numbers rows, "i" or "j"; what else is read at these four, and is no argument, is in
// `others`, with the kernel's names. Nothing after a refusal.
std::optional<spec::RowMap> named_rows(Arguments& arguments, const spec::RowMap& map,
                                       const spec::Operand& operand, const std::string& argument,
                                       const char* row,
                                       const std::map<std::string, std::string>& others = {});

// The tensor is read element by element by a pass before the kernel, which loads `rows` in its
// place.
bool load_rows(Editing& edit, const std::string& argument, Dtype type, const std::string& rows);
// The tensor is written element by element by a pass behind the kernel, which stores `rows` in its
// place, as does a pass that rounds sums.
bool store_rows(Editing& edit, const std::string& argument, const std::string& rows);

// The loops of one pass. Their locals are b, h and r, or others where the module has these names.
class RowLoops {
 public:
  RowLoops(Editing& edit, std::string warp);
  // Text of the loop that writes the rows of the tensor `to`, of so many columns; nothing after a
  // refusal.
  std::optional<std::string> loop(const std::string& to, const std::string& columns,
                                  const spec::RowMap& map, const char* row);
  // Text of a pass of these loops over as many rows as `batch` times the most of `counts`.
  std::string pass(const std::string& name, const std::string& batch,
                   const std::vector<std::string>& counts,
                   const std::vector<std::string>& loops) const;

 private:
  spec::ExprPtr with_norms(const spec::ExprPtr& e, const struct Spelling& how, std::string& out);

  Editing& edit_;
  const std::string warp_;
  std::map<std::string, std::string> locals_;
  std::vector<std::pair<spec::ExprPtr, std::string>> norms_;  // of one loop
};

}  // namespace kw::transfer
