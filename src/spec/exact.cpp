#include "spec/exact.h"

#include "spec/exact_program.h"

namespace kw::spec {

using exact::Algebra;
using exact::Element;

Problem named(const Form& form, Problem problem) {
  double next = 1;
  for (const Argument& a : form.arguments) {
    if (!is_float(a.dtype)) continue;
    if (a.is_tensor)
      for (double& v : problem.tensors.at(a.name).values) v = next++;
    else
      problem.scalars.at(a.name) = next++;
  }
  return problem;
}

std::optional<std::string> not_exact(const Form& form) {
  for (const Term& t : form.terms)
    for (const ExprPtr& e : {t.score, t.keep})
      if (e && !ExactProgram::supports(e))
        return "an integer is computed from a real in " + print(e);
  if (form.epilogue && !ExactProgram::supports(form.epilogue))
    return "an integer is computed from a real in " + print(form.epilogue);
  return std::nullopt;
}

namespace {

// An operand's rows for one batch and head: [rows, D].
std::vector<Element> rows_of(const Operand& operand, const Problem& named, const Algebra& algebra,
                             const char* row, int64_t b, int64_t h, int64_t rows, int64_t D) {
  const Tensor& t = named.tensors.at(operand.argument);
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
  const int64_t first = at(0, 0);
  const int64_t per_row = rows > 1 ? at(1, 0) - first : 0, per_d = D > 1 ? at(0, 1) - first : 0;
  std::vector<Element> out;
  out.reserve(rows * D);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < D; ++d)
      out.push_back(algebra.draw(static_cast<uint64_t>(t.values[first + r * per_row + d * per_d])));
  return out;
}

Program::Inputs indices(int64_t b, int64_t h, int64_t i, int64_t j) {
  Program::Inputs in{};
  in[Program::b] = static_cast<double>(b);
  in[Program::h] = static_cast<double>(h);
  in[Program::i] = static_cast<double>(i);
  in[Program::j] = static_cast<double>(j);
  return in;
}

// One term of one head: its weights, unnormalised, row by row.
class Head {
 public:
  Head(const Form& form, const Term& term, const Problem& named, const Algebra& algebra, int64_t b,
       int64_t h)
      : term_(term),
        algebra_(algebra),
        b_(b),
        h_(h),
        M_(value_of(form.M, named.sizes)),
        N_(value_of(form.N, named.sizes)),
        Dv_(form.Dv.constant),
        score_(term.score, named, algebra) {
    if (term.keep) keep_.emplace(term.keep, named, algebra);
    const int64_t D = form.D.constant;
    const auto q = rows_of(term.q, named, algebra, "i", b, h, M_, D);
    const auto k = rows_of(term.k, named, algebra, "j", b, h, N_, D);
    v_ = rows_of(term.v, named, algebra, "j", b, h, N_, Dv_);
    weights_.resize(M_ * N_);
    algebra.add_product(int(M_), int(D), int(N_), q.data(), k.data(), true, weights_.data());
  }

  void add_to(ExactRows& rows) {
    std::vector<Element> scales;
    for (int64_t i = 0; i < M_; ++i) scales.push_back(weigh(i, rows));
    std::vector<Element> sums(M_ * Dv_);
    algebra_.add_product(int(M_), int(N_), int(Dv_), weights_.data(), v_.data(), false,
                         sums.data());
    for (int64_t n = 0; n < M_ * Dv_; ++n)
      rows.output[n] = algebra_.add(rows.output[n], algebra_.mul(sums[n], scales[n / Dv_]));
  }

 private:
  // Turns the row's products into weights; what their sums with v are multiplied by.
  Element weigh(int64_t i, ExactRows& rows) {
    Element sum;
    bool any = false;
    for (int64_t j = 0; j < N_; ++j) {
      Element& w = weights_[i * N_ + j];
      const Program::Inputs in = indices(b_, h_, i, j);
      const Algebra::Truth kept = keep_ ? keep_->holds(in) : Algebra::Truth{true, 0};
      w = kept.holds ? algebra_.exp(score_.run(in, w)) : Element();
      for (uint8_t& bits : w.opaque) bits |= kept.opaque;
      any |= kept.holds;
      sum = algebra_.add(sum, w);
    }
    if (any) {
      rows.lse[i] = algebra_.log(sum);
      return algebra_.reciprocal(sum);
    }
    rows.uniform[i] = term_.finite_mask;
    if (!term_.finite_mask) return Element();
    for (int64_t j = 0; j < N_; ++j) weights_[i * N_ + j] = algebra_.integer(1);
    return algebra_.reciprocal(algebra_.integer(N_));
  }

  const Term& term_;
  const Algebra& algebra_;
  const int64_t b_, h_, M_, N_, Dv_;
  ExactProgram score_;
  std::optional<ExactProgram> keep_;
  std::vector<Element> v_, weights_;
};

}  // namespace

ExactRows exact_rows(const Form& form, const Problem& named, const Algebra& algebra, int64_t b,
                     int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), Dv = form.Dv.constant;
  ExactRows rows{std::vector<Element>(M * Dv), std::vector<Element>(M, algebra.minus_infinity()),
                 std::vector<bool>(M)};
  for (const Term& term : form.terms) Head(form, term, named, algebra, b, h).add_to(rows);
  if (!form.epilogue || form.epilogue->kind == spec::Kind::output) return rows;
  ExactProgram epilogue(form.epilogue, named, algebra);
  for (int64_t n = 0; n < M * Dv; ++n) {
    Program::Inputs in = indices(b, h, n / Dv, 0);
    in[Program::d] = static_cast<double>(n % Dv);
    rows.output[n] = epilogue.run(in, rows.output[n]);
  }
  return rows;
}

}  // namespace kw::spec
