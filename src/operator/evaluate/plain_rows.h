// The elements of an operand that is read as it is, of one batch entry and head.
#pragma once
#include <vector>

#include "operator/evaluate/evaluate.h"

namespace kw::spec {

// [rows, columns]; `row` is the index that numbers rows, "i" or "j". Of a named problem (exact.h)
// these are the elements' numbers.
std::vector<double> plain_rows(const Operand& operand, const Problem& problem, const char* row,
                               int64_t b, int64_t h, int64_t rows, int64_t columns);

}  // namespace kw::spec
