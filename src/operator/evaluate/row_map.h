// The rows of an operand as its product sees them: changed by the form's RowMap, one row at a time.
//
// In fp64 and in the exact algebra alike: the sums first, in their order, each over all columns of
// the row; then every column's element.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "num/exact.h"
#include "operator/evaluate/evaluate.h"
#include "operator/evaluate/program.h"

namespace kw::spec {

// All rows of one batch entry and head of the operand, computed when they are first asked for.
class MappedRows {
 public:
  // `row` is the index that numbers rows, Program::i or Program::j.
  MappedRows(const RowMap& map, const Problem& problem, Program::Slot row, int64_t rows,
             int64_t columns);

  // [rows, columns]
  const double* at(int64_t b, int64_t h);
  // One row of these, which is not kept: what a map reads may change between two calls.
  void row(int64_t b, int64_t h, int64_t r, double* out);

 private:
  void compute(int64_t b, int64_t h, std::vector<double>& out);

  std::vector<Program> sums_;
  Program element_;
  const Program::Slot row_;
  const int64_t rows_, columns_;
  std::map<std::pair<int64_t, int64_t>, std::vector<double>> known_;
};

// The same in the exact algebra; `computed` as ExactProgram has it.
std::vector<exact::Element> exact_mapped_rows(
    const RowMap& map, const Problem& named, const exact::Algebra& algebra, Program::Slot row,
    int64_t b, int64_t h, int64_t rows, int64_t columns,
    const std::vector<exact::Element>* computed = nullptr);

}  // namespace kw::spec
