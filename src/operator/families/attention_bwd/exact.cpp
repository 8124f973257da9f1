// The gradients in the exact algebra, a head at a time.
#include "operator/evaluate/exact.h"

#include <cmath>

#include "operator/evaluate/exact_program.h"
#include "operator/evaluate/plain_rows.h"
#include "operator/evaluate/row_map.h"
#include "operator/families/attention_bwd/attention_bwd.h"

namespace kw::spec::attention_bwd {

using exact::Algebra;
using exact::Element;

namespace {

// The transpose of [rows, columns].
std::vector<Element> turned(const std::vector<Element>& a, int64_t rows, int64_t columns) {
  std::vector<Element> out(a.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = a[r * columns + c];
  return out;
}

// The rows of one head, from gradients of what they become to their own.
void turn_rows(const Form& form, const Problem& named, const Algebra& algebra, size_t operand,
               int64_t b, int64_t h, std::vector<Element>& rows) {
  const auto of = operands(form.terms[0]);
  const int64_t columns = operand == 2 ? form.Dv.constant : form.D.constant,
                count = int64_t(rows.size()) / columns, head = own_head(*of[operand], h);
  Problem with = named;
  Tensor& t = with.tensors[Gradients::kOfRows[operand]];
  t = Tensor(Dtype::f32, {b + 1, head + 1, count, columns});
  for (int64_t n = 0; n < int64_t(rows.size()); ++n)
    t.values[(b * (head + 1) + head) * int64_t(rows.size()) + n] = double(-1 - n);
  rows = exact_mapped_rows(*form.gradients->rows[operand], with, algebra,
                           operand ? Program::j : Program::i, b, head, count, columns, &rows);
}

}  // namespace

ExactHead exact(const Form& form, const Problem& named, const Algebra& algebra, int64_t b,
                int64_t h) {
  const int64_t M = value_of(form.M, named.sizes), N = value_of(form.N, named.sizes),
                D = form.D.constant, Dv = form.Dv.constant;
  const ExactScores s = exact_scores(form, form.terms[0], named, algebra, b, h);
  const auto rows = [&](const char* name) {
    std::vector<Element> out;
    for (const double number : plain_rows(of_output(form, name), named, "i", b, h, M, Dv))
      out.push_back(algebra.draw(static_cast<uint64_t>(number)));
    return out;
  };
  const bool softmax = has_softmax(form), saved = takes_saved(form);
  const std::vector<Element> given = rows(Gradients::kOfOutput);
  std::vector<Element> d_o = given, dp(M * N), p(M * N), dz(M * N), ds(M * N), deltas(M),
                       log_sums(M), inverses(M), o;
  if (saved) o = rows(Gradients::kOutput);
  const auto at_output = [&](int64_t n) {
    Program::Inputs in = Program::at(b, h, n / Dv, 0);
    in[Program::d] = double(n % Dv);
    return in;
  };
  if (const ExprPtr& by = form.gradients->of_epilogue) {
    ExactProgram of_epilogue(by, named, algebra);
    for (int64_t n = 0; n < M * Dv; ++n)
      d_o[n] = algebra.stored(
          algebra.mul(given[n], of_epilogue.run(at_output(n), saved ? o[n] : Element())));
  }
  algebra.add_product(int(M), int(Dv), int(N), d_o.data(), s.value.data(), true, dp.data());
  ExactProgram slope(form.gradients->slope, named, algebra);
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t d = 0; d < Dv && saved; ++d)
      deltas[i] = algebra.add(deltas[i], algebra.mul(d_o[i * Dv + d], o[i * Dv + d]));
    if (const double of = of_log_sum(form, named, b, h, i))
      deltas[i] = algebra.sub(deltas[i], algebra.draw(static_cast<uint64_t>(of)));
    if (saved) {
      const double lse = named.tensors.at(Gradients::kLogSum).at({b, h, i});
      log_sums[i] = algebra.draw(static_cast<uint64_t>(lse));
      inverses[i] = algebra.exp(algebra.sub(Element(), log_sums[i]));
    }
    for (int64_t n = i * N; n < (i + 1) * N; ++n) {
      if (s.keep[n].holds)
        p[n] = softmax ? algebra.exp(algebra.sub(s.score[n], log_sums[i]))
               : saved ? algebra.mul(s.score[n], inverses[i])
                       : s.score[n];
      if (s.keep[n].holds && saved) dp[n] = algebra.sub(dp[n], deltas[i]);
      if (s.keep[n].holds)
        dz[n] = softmax ? algebra.mul(p[n], dp[n])
                : saved ? algebra.mul(dp[n], inverses[i])
                        : dp[n];
      for (Element* x : {&p[n], &dz[n]})
        for (uint8_t& bits : x->opaque) bits |= s.keep[n].opaque;
      ds[n] = algebra.mul(dz[n], slope.run(Program::at(b, h, i, n % N), s.product[n]));
    }
  }
  ExactHead out;
  out.outputs.resize(3);
  const auto product = [&](size_t n, const std::vector<Element>& left,
                           const std::vector<Element>& right, int64_t rows, int64_t depth,
                           int64_t columns) {
    out.outputs[n].elements.resize(rows * columns);
    algebra.add_product(int(rows), int(depth), int(columns), left.data(), right.data(), false,
                        out.outputs[n].elements.data());
  };
  product(0, ds, s.key, M, N, D);
  product(1, turned(ds, M, N), s.query, N, M, D);
  product(2, turned(p, M, N), d_o, N, M, Dv);
  for (size_t n = 0; n < Gradients::kOperands; ++n)
    if (form.gradients->rows[n]) turn_rows(form, named, algebra, n, b, h, out.outputs[n].elements);
  for (const Gradients::Learned& l : form.gradients->learned) {
    const Output& output = form.outputs[out.outputs.size()];
    const bool pairs = output.has('i'), of_keys = output.has('j');
    ExactProgram factor(l.slope, named, algebra);
    Program element(l.element ? l.element : integer(0), named);
    std::vector<Element> share(pairs       ? M * N
                               : of_keys   ? N
                               : l.element ? value_of(output.own, named.sizes)
                                           : 1);
    if (l.of == Gradients::Of::epilogue) {
      for (int64_t n = 0; n < M * Dv; ++n)
        share[0] = algebra.add(share[0], algebra.mul(given[n], factor.run(at_output(n), o[n])));
    }
    if (l.of == Gradients::Of::sink) {
      ExactProgram sink(form.terms[0].sink, named, algebra);
      for (int64_t i = 0; i < M; ++i) {
        const auto at = Program::at(b, h, i, 0);
        const Element p = algebra.exp(algebra.sub(sink.run(at, {}), log_sums[i]));
        share[0] =
            algebra.sub(share[0], algebra.mul(algebra.mul(p, deltas[i]), factor.run(at, {})));
      }
    }
    for (int64_t n = 0; n < M * N && l.of == Gradients::Of::score; ++n) {
      const Program::Inputs at = Program::at(b, h, n / N, n % N);
      const int64_t to = pairs ? n : of_keys ? n % N : int64_t(element.run(at));
      if (to < 0 || to >= int64_t(share.size())) continue;
      share[to] = algebra.add(share[to], algebra.mul(dz[n], factor.run(at, s.product[n])));
    }
    out.outputs.push_back({std::move(share), {}});
  }
  return out;
}

}  // namespace kw::spec::attention_bwd
