#include "spec/evaluate_product.h"

#include "spec/exact_program.h"
#include "spec/program.h"

namespace kw::spec {

using exact::Algebra;
using exact::Element;

std::map<std::string, int64_t> strides_of(const Operand& operand, const Tensor& argument) {
  std::map<std::string, int64_t> out;
  int64_t stride = 1;
  for (size_t n = operand.indices.size(); n-- > 0;) {
    if (operand.indices[n]->kind == Kind::index) out[operand.indices[n]->name] = stride;
    stride *= argument.shape[n];
  }
  return out;
}

ProductEvaluator::ProductEvaluator(const Form& form, const Problem& problem)
    : form_(form),
      problem_(problem),
      B_(value_of(form.B, problem.sizes)),
      H_(form.H.constant),
      M_(value_of(form.M, problem.sizes)),
      N_(value_of(form.N, problem.sizes)),
      K_(value_of(form.D, problem.sizes)),
      value_(std::make_unique<Program>(form.product->value, problem)) {}

ProductEvaluator::~ProductEvaluator() = default;

double ProductEvaluator::row(int64_t b, int64_t h, int64_t i, double* output) {
  const Tensor& left = problem_.tensors.at(form_.product->a.argument);
  const Tensor& right = problem_.tensors.at(form_.product->b.argument);
  auto l = strides_of(form_.product->a, left), r = strides_of(form_.product->b, right);
  const double* x = left.values.data() + b * l["b"] + h * l["h"] + i * l["i"];
  const double* y = right.values.data() + b * r["b"] + h * r["h"];
  const int64_t x_d = l["d"], y_d = r["d"], y_j = r["j"];
  for (int64_t j = 0; j < N_; ++j) output[j] = 0;
  for (int64_t d = 0; d < K_; ++d)
    for (int64_t j = 0; j < N_; ++j) output[j] += x[d * x_d] * y[d * y_d + j * y_j];
  double sum = 0;
  for (int64_t j = 0; j < N_; ++j) {
    Program::Inputs in = Program::at(b, h, i, j);
    in[Program::score] = output[j];
    output[j] = value_->run(in);
    sum += output[j];
  }
  return sum;
}

namespace {

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

ExactProduct exact_product(const Form& form, const Problem& named, const Algebra& algebra,
                           int64_t b, int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), N = value_of(form.N, named.sizes),
                K = value_of(form.D, named.sizes);
  const auto left = elements_of(form.product->a, named, algebra, b, h, "i", M, "d", K);
  const auto right = elements_of(form.product->b, named, algebra, b, h, "d", K, "j", N);
  ExactProduct out{std::vector<Element>(M * N), std::vector<Element>(M)};
  algebra.add_product(int(M), int(K), int(N), left.data(), right.data(), false, out.matrix.data());
  ExactProgram value(form.product->value, named, algebra);
  for (int64_t n = 0; n < M * N; ++n) {
    out.matrix[n] = value.run(Program::at(b, h, n / N, n % N), out.matrix[n]);
    out.sums[n / N] = algebra.add(out.sums[n / N], out.matrix[n]);
  }
  return out;
}

}  // namespace kw::spec
