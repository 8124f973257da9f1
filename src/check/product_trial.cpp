// One run of a program on one case of a product of matrices: values, and the exact reading.
//
// Each row of the matrix has the accepted error of any row of an output. A row's sum is held
// against the row that it sums, whose numbers may cancel: |sum - want| is at most the row's
// accepted error times its norm, which is what rounding the row before it is summed may change it
// by.
#include <fmt/format.h>

#include <cmath>

#include "check/trial.h"
#include "num/compare.h"
#include "spec/evaluate_product.h"
#include "spec/exact.h"

namespace kw::check {

using exact::Element;
using spec::Form;
using spec::Problem;

namespace {

constexpr char kMatrix[] = "o", kSums[] = "sums";

// An operand as the kernel has it: [B, H, rows, columns], with one batch where it has none.
Tensor operand_of(const spec::Operand& operand, const Problem& problem, const Form& form,
                  const char* row, int64_t rows, const char* column, int64_t columns) {
  const Tensor& from = problem.tensors.at(operand.argument);
  auto stride = spec::strides_of(operand, from);
  const int64_t B = stride.count("b") ? spec::value_of(form.B, problem.sizes) : 1,
                H = stride.count("h") ? form.H.constant : 1;
  Tensor to(from.dtype, {B, H, rows, columns});
  double* out = to.values.data();
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          *out++ =
              from.values[b * stride["b"] + h * stride["h"] + r * stride[row] + c * stride[column]];
  return to;
}

// The outputs that the specification has must be there, and no other.
bool gives(const Form& form, const exec::Outcome& run, Trial& trial) {
  for (const auto& [name, asked] :
       {std::pair(kMatrix, form.product->returns_matrix), {kSums, form.product->returns_sums}}) {
    if (asked == (run.outputs.count(name) != 0)) continue;
    trial.diagnostics.error(
        "check.binding", {},
        fmt::format(
            "the function {} {}, and the program {}", asked ? "gives" : "does not give",
            name == std::string(kMatrix) ? "the matrix" : "row sums",
            asked ? "has no output " + std::string(name) : "has the output " + std::string(name)));
    trial.valid = false;
    return false;
  }
  return true;
}

double typical_error(const Case& c, int64_t b, int64_t h, int64_t i) {
  if (c.exact) {
    const double e = c.golden->own_error.at({b, h, i});
    return std::isfinite(e) ? e : 0;
  }
  return median_own_error(*c.golden);
}

class Rows {
 public:
  Rows(const Form& form, const Problem& problem, const Case& c, const exec::Outcome& run,
       Trial& trial)
      : form_(form), truth_(form, problem), case_(c), run_(run), trial_(trial) {}

  std::optional<Counterexample> check() {
    want_.resize(truth_.columns());
    for (int64_t b = 0; b < truth_.batches(); ++b)
      for (int64_t h = 0; h < truth_.heads(); ++h)
        for (int64_t i = 0; i < truth_.rows(); ++i)
          if (auto e = row(b, h, i)) return e;
    return std::nullopt;
  }

 private:
  std::optional<Counterexample> row(int64_t b, int64_t h, int64_t i) {
    const double sum = truth_.row(b, h, i, want_.data());
    const int64_t at = (b * truth_.heads() + h) * truth_.rows() + i, N = truth_.columns();
    ++trial_.rows;
    const double least = least_norm(form_.dtype, N);
    if (form_.product->returns_matrix) {
      const double* got = &run_.outputs.at(kMatrix).values[at * N];
      const double allowed = accepted_error(typical_error(case_, b, h, i), form_.dtype),
                   error = row_error(got, want_.data(), N, least);
      if (!(error <= allowed)) return fails(kMatrix, b, h, i, got, want_.data(), N, error, allowed);
      trial_.worst = std::max(trial_.worst, error / allowed);
    }
    if (!form_.product->returns_sums) return std::nullopt;
    double squares = 0;
    for (const double x : want_) squares += x * x;
    const double got = run_.outputs.at(kSums).values[at],
                 norm = std::max(std::sqrt(squares), least),
                 allowed = accepted_error(0, form_.dtype), error = std::fabs(got - sum) / norm;
    if (!(error <= allowed)) return fails(kSums, b, h, i, &got, &sum, 1, error, allowed);
    trial_.worst = std::max(trial_.worst, error / allowed);
    return std::nullopt;
  }

  Counterexample fails(const char* output, int64_t b, int64_t h, int64_t i, const double* got,
                       const double* want, int64_t count, double error, double allowed) {
    Counterexample e = blame(case_, output, b, h, i);
    e.error = error;
    e.allowed = allowed;
    e.message = fmt::format("relative error {:.2g} of a row, {:.2g} accepted", error, allowed);
    show_worst(e, got, want, count);
    return e;
  }

  const Form& form_;
  spec::ProductEvaluator truth_;
  const Case& case_;
  const exec::Outcome& run_;
  Trial& trial_;
  std::vector<double> want_;
};

}  // namespace

std::map<std::string, Tensor> product_operands(const tl::Program& program, const Form& form,
                                               const Problem& problem) {
  const int64_t M = spec::value_of(form.M, problem.sizes),
                N = spec::value_of(form.N, problem.sizes),
                K = spec::value_of(form.D, problem.sizes);
  std::map<std::string, std::string> last;  // the letter of an argument's last dimension
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::arg_tensor && s.op != tl::Op::arg_tiled) return;
    for (const tl::Item& d : s.items("d")) last[d.name] = s.items("s").back().name;
  });
  const spec::Operand &a = form.product->a, &b = form.product->b;
  return {{"a", operand_of(a, problem, form, "i", M, "d", K)},
          {"b", last["a"] == last["b"] ? operand_of(b, problem, form, "j", N, "d", K)
                                       : operand_of(b, problem, form, "d", K, "j", N)}};
}

void judge_product(const Form& form, const Problem& problem, const Case& c,
                   const exec::Outcome& run, Trial& trial) {
  if (!gives(form, run, trial)) return;
  if (auto e = Rows(form, problem, c, run, trial).check())
    trial.failure = Failure{std::move(*e), std::nullopt};
}

void judge_exact_product(const Form& form, const Problem& named, const Case& c,
                         const exec::Outcome& run, const exact::Algebra& algebra,
                         const SameElement& same, Trial& trial) {
  if (!gives(form, run, trial)) return;
  const int64_t B = spec::value_of(form.B, named.sizes), H = form.H.constant,
                M = spec::value_of(form.M, named.sizes), N = spec::value_of(form.N, named.sizes);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h) {
      const spec::ExactProduct want = spec::exact_product(form, named, algebra, b, c.heads[h]);
      for (int64_t i = 0; i < M; ++i) {
        const int64_t row = (b * H + h) * M + i;
        ++trial.rows;
        for (int64_t j = 0; form.product->returns_matrix && j < N; ++j)
          if (!same(kMatrix, run.exact.at(kMatrix)[row * N + j], want.matrix[i * N + j], b, h, i,
                    j))
            return;
        if (form.product->returns_sums &&
            !same(kSums, run.exact.at(kSums)[row], want.sums[i], b, h, i, 0))
          return;
      }
    }
}

}  // namespace kw::check
