// What the form of a product means: fp64, one row at a time; and the same in the exact algebra.
#include <cmath>

#include "num/compare.h"
#include "operator/evaluate/exact_program.h"
#include "operator/evaluate/program.h"
#include "operator/families/gemm/gemm.h"

namespace kw::spec::gemm {

using exact::Algebra;
using exact::Element;

namespace {

class Rows : public Truth {
 public:
  Rows(const Form& form, const Problem& problem)
      : form_(form),
        left_(problem.tensors.at(form.product->a.argument)),
        right_(problem.tensors.at(form.product->b.argument)),
        l_(strides_of(form.product->a, left_)),
        r_(strides_of(form.product->b, right_)),
        B_(value_of(form.B, problem.sizes)),
        M_(value_of(form.M, problem.sizes)),
        K_(value_of(form.D, problem.sizes)),
        value_(form.product->value, problem),
        row_(value_of(form.N, problem.sizes)) {
    held_.resize(form.outputs.size());
  }

  int64_t batches() const override { return B_; }
  int64_t heads() const override { return form_.H.constant; }
  int64_t rows() const override { return M_; }

  void row(int64_t b, int64_t h, int64_t i) override {
    const double sum = evaluate(b, h, i);
    double squares = 0;
    for (const double x : row_) squares += x * x;
    const double norm =
        std::max(std::sqrt(squares), least_norm(form_.dtype, static_cast<int64_t>(row_.size())));
    for (size_t n = 0; n < held_.size(); ++n) {
      if (form_.outputs[n].rule == Rule::row)
        held_[n].want = row_;
      else
        held_[n].want = {sum}, held_[n].scale = norm;
    }
  }

 private:
  double evaluate(int64_t b, int64_t h, int64_t i) {
    const double* x = left_.values.data() + b * l_["b"] + h * l_["h"] + i * l_["i"];
    const double* y = right_.values.data() + b * r_["b"] + h * r_["h"];
    const int64_t x_d = l_["d"], y_d = r_["d"], y_j = r_["j"],
                  N = static_cast<int64_t>(row_.size());
    std::fill(row_.begin(), row_.end(), 0.0);
    for (int64_t d = 0; d < K_; ++d)
      for (int64_t j = 0; j < N; ++j) row_[j] += x[d * x_d] * y[d * y_d + j * y_j];
    double sum = 0;
    for (int64_t j = 0; j < N; ++j) {
      Program::Inputs in = Program::at(b, h, i, j);
      in[Program::score] = row_[j];
      row_[j] = value_.run(in);
      sum += row_[j];
    }
    return sum;
  }

  const Form& form_;
  const Tensor &left_, &right_;
  std::map<std::string, int64_t> l_, r_;
  int64_t B_, M_, K_;
  Program value_;
  std::vector<double> row_;
};

// [rows, columns] of an argument, for one batch entry and head.
std::vector<Element> elements_of(const Operand& operand, const Problem& named,
                                 const Algebra& algebra, int64_t b, int64_t h, const char* row,
                                 int64_t rows, const char* column, int64_t columns) {
  const Tensor& t = named.tensors.at(operand.argument);
  auto stride = strides_of(operand, t);
  const double* from = t.values.data() + b * stride["b"] + h * stride["h"];
  std::vector<Element> out;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out.push_back(
          algebra.draw(static_cast<uint64_t>(from[r * stride[row] + c * stride[column]])));
  return out;
}

}  // namespace

std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) {
  return std::make_unique<Rows>(form, problem);
}

ExactHead exact(const Form& form, const Problem& named, const Algebra& algebra, int64_t b,
                int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), N = value_of(form.N, named.sizes),
                K = value_of(form.D, named.sizes);
  const auto left = elements_of(form.product->a, named, algebra, b, h, "i", M, "d", K);
  const auto right = elements_of(form.product->b, named, algebra, b, h, "d", K, "j", N);
  std::vector<Element> matrix(M * N), sums(M);
  algebra.add_product(int(M), int(K), int(N), left.data(), right.data(), false, matrix.data());
  ExactProgram value(form.product->value, named, algebra);
  for (int64_t n = 0; n < M * N; ++n) {
    matrix[n] = value.run(Program::at(b, h, n / N, n % N), matrix[n]);
    sums[n / N] = algebra.add(sums[n / N], matrix[n]);
  }
  ExactHead out;
  for (const Output& o : form.outputs)
    out.outputs.push_back({o.rule == Rule::row ? matrix : sums, {}});
  return out;
}

}  // namespace kw::spec::gemm
