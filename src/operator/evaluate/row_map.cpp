#include "operator/evaluate/row_map.h"

#include "operator/evaluate/exact_program.h"

namespace kw::spec {

static_assert(Program::kSlots - Program::totals == int(kMostSums));

MappedRows::MappedRows(const RowMap& map, const Problem& problem, Program::Slot row, int64_t rows,
                       int64_t columns)
    : element_(map.element, problem), row_(row), rows_(rows), columns_(columns) {
  for (const ExprPtr& sum : map.sums) sums_.emplace_back(sum, problem);
}

const double* MappedRows::at(int64_t b, int64_t h) {
  std::vector<double>& out = known_[{b, h}];
  if (out.empty()) compute(b, h, out);
  return out.data();
}

void MappedRows::compute(int64_t b, int64_t h, std::vector<double>& out) {
  out.resize(rows_ * columns_);
  for (int64_t r = 0; r < rows_; ++r) row(b, h, r, &out[r * columns_]);
}

void MappedRows::row(int64_t b, int64_t h, int64_t r, double* out) {
  Program::Inputs in = Program::at(b, h, 0, 0);
  in[row_] = double(r);
  const Program::Line line{Program::d, 0, columns_};
  for (size_t s = 0; s < sums_.size(); ++s) {
    sums_[s].run(in, line, out);
    double total = 0;
    for (int64_t d = 0; d < columns_; ++d) total += out[d];
    in[Program::totals + s] = total;
  }
  element_.run(in, line, out);
}

std::vector<exact::Element> exact_mapped_rows(const RowMap& map, const Problem& named,
                                              const exact::Algebra& algebra, Program::Slot row,
                                              int64_t b, int64_t h, int64_t rows, int64_t columns,
                                              const std::vector<exact::Element>* computed) {
  std::vector<ExactProgram> sums;
  const auto of_rows = ExactProgram::Of::rows;
  for (const ExprPtr& sum : map.sums)
    sums.emplace_back(sum, named, algebra, of_rows).computed = computed;
  ExactProgram element(map.element, named, algebra, of_rows);
  element.computed = computed;
  std::vector<exact::Element> out;
  out.reserve(rows * columns);
  for (int64_t r = 0; r < rows; ++r) {
    Program::Inputs in = Program::at(b, h, 0, 0);
    in[row] = double(r);
    std::vector<exact::Element> totals;
    for (ExactProgram& sum : sums) {
      exact::Element total;
      sum.totals = totals;
      for (int64_t d = 0; d < columns; ++d) {
        in[Program::d] = double(d);
        total = algebra.add(total, sum.run(in, {}));
      }
      totals.push_back(total);
    }
    element.totals = totals;
    for (int64_t d = 0; d < columns; ++d) {
      in[Program::d] = double(d);
      out.push_back(element.run(in, {}));
    }
  }
  return out;
}

}  // namespace kw::spec
