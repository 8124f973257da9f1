// The adjoint of a row map: from the gradient of what a row becomes to the gradient of the row.
//
//   y[d] = element(x, sums, d)            dx[c] = sum over d of dy[d] * (d y[d] / d x[c])
//
// A row map reads x at columns of its own choice (a rotation's other half, a neighbour) and through
// sums over the row (a norm). The first is turned round column by column: which d read column c, as
// a few distances d - c, each for a set of columns that a condition tells. The second goes back
// through the sums, the last of them first: what each changes the row by is a sum too. The outcome
// is a row map again.
#pragma once
#include <optional>
#include <string>

#include "operator/form.h"

namespace kw::spec {

// Of an operand with a row map whose rows have this many columns and are numbered by `row` ("i" or
// "j"). Its gradient, read as gradient[b, h, row, d], is that of what the rows become. Nothing
// where no rule turns it round; `why` says so.
std::optional<RowMap> adjoint(const Operand& operand, const char* row, int64_t columns,
                              const std::string& gradient, std::string& why);

}  // namespace kw::spec
