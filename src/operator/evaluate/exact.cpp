#include "operator/evaluate/exact.h"

#include "operator/evaluate/exact_program.h"
#include "operator/evaluate/plain_rows.h"
#include "operator/evaluate/row_map.h"

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

namespace {

// An operand's rows for one batch and head: [rows, D].
std::vector<Element> rows_of(const Operand& operand, const Problem& named, const Algebra& algebra,
                             const char* row, int64_t b, int64_t h, int64_t rows, int64_t D) {
  if (const std::optional<RowMap> map = rows_as_read(operand)) {
    int64_t own = h;  // the operand's own head
    for (const ExprPtr& e : operand.indices)
      if (e->kind == Kind::binary) own = h / e->args[1]->integer;
    return exact_mapped_rows(*map, named, algebra,
                             row == std::string_view("i") ? Program::i : Program::j, b, own, rows,
                             D);
  }
  std::vector<Element> out;
  out.reserve(rows * D);
  for (const double number : plain_rows(operand, named, row, b, h, rows, D))
    out.push_back(algebra.draw(static_cast<uint64_t>(number)));
  return out;
}

// A row's scores where they are kept, 0 elsewhere; whether any is. `weight` makes a weight of one.
template <class Weight>
bool keep_weights(ExactScores& s, int64_t i, int64_t N, const Weight& weight) {
  bool any = false;
  for (int64_t j = 0; j < N; ++j) {
    Element& w = s.score[i * N + j];
    const Algebra::Truth kept = s.keep[i * N + j];
    w = kept.holds ? weight(w) : Element();
    for (uint8_t& bits : w.opaque) bits |= kept.opaque;
    any |= kept.holds;
  }
  return any;
}

Element sum_of(const Algebra& algebra, const ExactScores& s, int64_t i, int64_t N) {
  Element sum;
  for (int64_t j = 0; j < N; ++j) sum = algebra.add(sum, s.score[i * N + j]);
  return sum;
}

// Turns a row's scores into weights, unnormalised; what their sums with v are multiplied by.
Element weigh(const Algebra& algebra, ExactScores& s, int64_t i, int64_t N, const Term& term,
              const Element* sink, ExactRows& rows) {
  if (term.normaliser != Normaliser::softmax) {
    keep_weights(s, i, N, [](const Element& x) { return x; });
    if (term.normaliser == Normaliser::none) return algebra.integer(1);
    const Element sum = sum_of(algebra, s, i, N);
    const Algebra::Truth nothing = algebra.equal(sum, Element());
    if (!nothing.holds) rows.lse[i] = algebra.log(sum);
    return nothing.holds ? Element() : algebra.reciprocal(sum);
  }
  const bool any = keep_weights(s, i, N, [&](const Element& x) { return algebra.exp(x); });
  if (any || sink) {
    Element sum = sum_of(algebra, s, i, N);
    if (sink) sum = algebra.add(sum, algebra.exp(*sink));
    rows.lse[i] = algebra.log(sum);
    return algebra.reciprocal(sum);
  }
  rows.uniform[i] = term.finite_mask;
  if (!term.finite_mask) return Element();
  for (int64_t j = 0; j < N; ++j) s.score[i * N + j] = algebra.integer(1);
  return algebra.reciprocal(algebra.integer(N));
}

}  // namespace

ExactScores exact_scores(const Form& form, const Term& term, const Problem& named,
                         const Algebra& algebra, int64_t b, int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), N = value_of(form.N, named.sizes),
                D = form.D.constant;
  ExactScores out{std::vector<Element>(M * N),
                  std::vector<Element>(M * N),
                  std::vector<Algebra::Truth>(M * N),
                  rows_of(term.q, named, algebra, "i", b, h, M, D),
                  rows_of(term.k, named, algebra, "j", b, h, N, D),
                  rows_of(term.v, named, algebra, "j", b, h, N, form.Dv.constant)};
  algebra.add_product(int(M), int(D), int(N), out.query.data(), out.key.data(), true,
                      out.product.data());
  std::vector<std::vector<Element>> more;
  for (const FurtherProduct& m : term.more) {
    const auto left = rows_of(m.q, named, algebra, "i", b, h, M, m.D);
    const auto right = rows_of(m.k, named, algebra, "j", b, h, N, m.D);
    algebra.add_product(int(M), int(m.D), int(N), left.data(), right.data(), true,
                        more.emplace_back(M * N).data());
  }
  ExactProgram score(term.score, named, algebra);
  score.more.resize(more.size());
  std::optional<ExactProgram> keep;
  if (term.keep) keep.emplace(term.keep, named, algebra);
  for (int64_t n = 0; n < M * N; ++n) {
    const Program::Inputs in = Program::at(b, h, n / N, n % N);
    out.keep[n] = keep ? keep->holds(in) : Algebra::Truth{true, 0};
    for (size_t p = 0; p < more.size(); ++p) score.more[p] = more[p][n];
    out.score[n] = score.run(in, out.product[n]);
  }
  return out;
}

ExactRows exact_rows(const Form& form, const Problem& named, const Algebra& algebra, int64_t b,
                     int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), N = value_of(form.N, named.sizes),
                Dv = form.Dv.constant;
  const bool sums_columns = form.returns("column_sums");
  ExactRows rows{std::vector<Element>(M * Dv), std::vector<Element>(M, algebra.minus_infinity()),
                 std::vector<bool>(M), std::vector<Element>(N)};
  for (const Term& term : form.terms) {
    ExactScores s = exact_scores(form, term, named, algebra, b, h);
    std::vector<Element> factors, sums(M * Dv);
    std::optional<ExactProgram> sink, factor;
    if (term.sink) sink.emplace(term.sink, named, algebra);
    if (term.factor) factor.emplace(term.factor, named, algebra);
    for (int64_t i = 0; i < M; ++i) {
      const Element logit = sink ? sink->run(Program::at(b, h, i, 0), {}) : Element();
      factors.push_back(weigh(algebra, s, i, N, term, sink ? &logit : nullptr, rows));
      if (factor)
        factors.back() = algebra.mul(factors.back(), factor->run(Program::at(b, h, i, 0), {}));
    }
    algebra.add_product(int(M), int(N), int(Dv), s.score.data(), s.value.data(), false,
                        sums.data());
    for (int64_t n = 0; sums_columns && n < M * N; ++n)
      rows.columns[n % N] =
          algebra.add(rows.columns[n % N], algebra.mul(s.score[n], factors[n / N]));
    for (int64_t n = 0; n < M * Dv; ++n)
      rows.output[n] = algebra.add(rows.output[n], algebra.mul(sums[n], factors[n / Dv]));
  }
  rows.before_epilogue = rows.output;
  if (!form.epilogue || form.epilogue->kind == spec::Kind::output) return rows;
  ExactProgram epilogue(form.epilogue, named, algebra);
  for (int64_t n = 0; n < M * Dv; ++n) {
    Program::Inputs in = Program::at(b, h, n / Dv, 0);
    in[Program::d] = static_cast<double>(n % Dv);
    rows.output[n] = epilogue.run(in, rows.output[n]);
  }
  return rows;
}

}  // namespace kw::spec
