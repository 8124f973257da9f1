#include "operator/evaluate/plain_rows.h"

namespace kw::spec {

std::vector<double> plain_rows(const Operand& operand, const Problem& problem, const char* row,
                               int64_t b, int64_t h, int64_t rows, int64_t columns) {
  const Tensor& t = problem.tensors.at(operand.argument);
  Scope scope;
  scope.indices = {{"b", b}, {"h", h}, {row, 0}, {"d", 0}};
  const auto at = [&](int64_t r, int64_t d) {
    scope.indices[row] = r;
    scope.indices["d"] = d;
    std::vector<int64_t> index;
    for (const ExprPtr& e : operand.indices)
      index.push_back(static_cast<int64_t>(evaluate(e, scope)));
    return t.offset(index);
  };
  const int64_t first = at(0, 0), per_row = rows > 1 ? at(1, 0) - first : 0,
                per_column = columns > 1 ? at(0, 1) - first : 0;
  std::vector<double> out(rows * columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < columns; ++d)
      out[r * columns + d] = t.values[first + r * per_row + d * per_column];
  return out;
}

}  // namespace kw::spec
