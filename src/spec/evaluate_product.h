// What the form of a product means: fp64, one row at a time; and the same in the exact algebra.
#pragma once
#include <memory>
#include <vector>

#include "num/exact.h"
#include "spec/evaluate.h"

namespace kw::spec {

class Program;

// Refers to the form and the problem: both must outlive it. Not for several threads at once.
class ProductEvaluator {
 public:
  ProductEvaluator(const Form& form, const Problem& problem);
  ~ProductEvaluator();
  ProductEvaluator(const ProductEvaluator&) = delete;

  int64_t batches() const { return B_; }
  int64_t heads() const { return H_; }
  int64_t rows() const { return M_; }
  int64_t columns() const { return N_; }

  // One row of the matrix, columns() numbers; returns their sum.
  double row(int64_t b, int64_t h, int64_t i, double* output);

 private:
  const Form& form_;
  const Problem& problem_;
  int64_t B_, H_, M_, N_, K_;
  std::unique_ptr<Program> value_;
};

// All rows of one batch entry and head: [M, N], and their sums [M].
struct ExactProduct {
  std::vector<exact::Element> matrix, sums;
};
ExactProduct exact_product(const Form& form, const Problem& named, const exact::Algebra& algebra,
                           int64_t b, int64_t h);

// Where elements of an argument that is read at plain indices lie: how far neighbours in each index
// are apart, by the index's name.
std::map<std::string, int64_t> strides_of(const Operand& operand, const Tensor& argument);

}  // namespace kw::spec
