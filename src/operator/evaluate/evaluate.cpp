#include "operator/evaluate/evaluate.h"

#include <algorithm>
#include <cmath>

#include "operator/evaluate/program.h"
#include "operator/evaluate/row_map.h"

namespace kw::spec {
namespace {

using Four = double __attribute__((vector_size(32), aligned(8)));

// Four partial sums, so that the additions overlap.
template <class Summand>
double sum_of(int64_t count, Summand summand) {
  double sum[4] = {};
  int64_t d = 0;
  for (; d + 4 <= count; d += 4)
    for (int lane = 0; lane < 4; ++lane) sum[lane] += summand(d + lane);
  for (; d < count; ++d) sum[0] += summand(d);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Of rows whose elements lie side by side, as most do: the same sums, four at a time.
__attribute__((target_clones("avx2", "default"))) double dot_of_rows(const double* x,
                                                                     const double* y,
                                                                     int64_t count) {
  Four sum = {};
  int64_t d = 0;
  for (; d + 4 <= count; d += 4)
    sum += *reinterpret_cast<const Four*>(x + d) * *reinterpret_cast<const Four*>(y + d);
  for (; d < count; ++d) sum[0] += x[d] * y[d];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double dot(const double* x, int64_t dx, const double* y, int64_t dy, int64_t count) {
  if (dx == 1 && dy == 1) return dot_of_rows(x, y, count);
  return sum_of(count, [&](int64_t d) { return x[d * dx] * y[d * dy]; });
}

// out[d] += p * x[d], of such rows likewise.
__attribute__((target_clones("avx2", "default"))) void add_row(double* out, double p,
                                                               const double* x, int64_t count) {
  int64_t d = 0;
  for (; d + 4 <= count; d += 4)
    *reinterpret_cast<Four*>(out + d) += p * *reinterpret_cast<const Four*>(x + d);
  for (; d < count; ++d) out[d] += p * x[d];
}

void add_multiple(double* out, double p, const double* x, int64_t dx, int64_t count) {
  if (dx == 1) return add_row(out, p, x, count);
  for (int64_t d = 0; d < count; ++d) out[d] += p * x[d * dx];
}

// Squared.
double distance(const double* x, int64_t dx, const double* y, int64_t count) {
  return sum_of(count, [&](int64_t d) {
    const double apart = x[d * dx] - y[d];
    return apart * apart;
  });
}

}  // namespace

Evaluator::Evaluator(const Form& form, const Problem& problem)
    : form_(form),
      problem_(problem),
      B_(value_of(form.B, problem.sizes)),
      H_(form.H.constant),
      M_(value_of(form.M, problem.sizes)),
      N_(value_of(form.N, problem.sizes)),
      D_(form.D.constant),
      Dv_(form.Dv.constant) {
  for (const Term& t : form.terms) {
    TermState state;
    state.products = {{access(t.q, "i", M_, D_), access(t.k, "j", N_, D_), D_}};
    for (const FurtherProduct& m : t.more)
      state.products.push_back({access(m.q, "i", M_, m.D), access(m.k, "j", N_, m.D), m.D});
    state.v = access(t.v, "j", N_, Dv_);
    state.score = std::make_unique<Program>(t.score, problem);
    if (t.keep) state.keep = std::make_unique<Program>(t.keep, problem);
    if (t.sink) state.sink = std::make_unique<Program>(t.sink, problem);
    if (t.factor) state.factor = std::make_unique<Program>(t.factor, problem);
    state.normaliser = t.normaliser;
    state.finite_mask = t.finite_mask;
    terms_.push_back(std::move(state));
  }
  if (form.epilogue) epilogue_ = std::make_unique<Program>(form.epilogue, problem);
  weights_.resize(std::max<int64_t>(N_, 0));
  kept_.resize(weights_.size());
}

Evaluator::~Evaluator() = default;

const double* Evaluator::Access::at(int64_t b, int64_t h) const {
  if (mapped) return mapped->at(b, h / h_divisor);
  return data + b * b_stride + h / h_divisor * h_stride;
}

Evaluator::Access Evaluator::access(const Operand& operand, const char* row, int64_t rows,
                                    int64_t columns) const {
  const Tensor& t = problem_.tensors.at(operand.argument);
  Access out;
  out.data = t.values.data();
  int64_t stride = t.count();
  for (size_t n = 0; n < operand.indices.size(); ++n) {
    stride = t.shape[n] ? stride / t.shape[n] : 0;
    const ExprPtr& e = operand.indices[n];
    if (e->kind == Kind::binary && e->name == "//") {
      out.h_stride = stride;
      out.h_divisor = e->args[1]->integer;
    } else if (e->kind == Kind::index) {
      (e->name == "b"   ? out.b_stride
       : e->name == "h" ? out.h_stride
       : e->name == row ? out.row_stride
                        : out.d_stride) = stride;
    }
  }
  out.changed = operand.row.has_value();
  const std::optional<RowMap> map = rows_as_read(operand);
  if (!map) return out;
  const Program::Slot slot = row == std::string_view("i") ? Program::i : Program::j;
  out.mapped = std::make_shared<MappedRows>(*map, problem_, slot, rows, columns);
  out.row_stride = columns;
  out.d_stride = 1;
  return out;
}

bool Evaluator::TermState::changed() const {
  return std::any_of(products.begin(), products.end(),
                     [](const ProductState& p) { return p.changed(); });
}

double Evaluator::product(int term, int64_t b, int64_t h, int64_t i, int64_t j, size_t number) {
  const ProductState& p = terms_[term].products[number];
  return dot(p.q.at(b, h) + i * p.q.row_stride, p.q.d_stride, p.k.at(b, h) + j * p.k.row_stride,
             p.k.d_stride, p.D);
}

// An element's rounding is below half an ulp, evenly, of which 0.41 is the deviation for numbers of
// any size; there are two elements in each term, 0.41 times the root of two, and terms are
// independent.
double Evaluator::product_deviation(int term, int64_t b, int64_t h, int64_t i, int64_t j,
                                    size_t number) {
  constexpr double kOfTwoElements = 0.58;
  const ProductState& p = terms_[term].products[number];
  if (!p.changed()) return 0;
  const double *x = p.q.at(b, h) + i * p.q.row_stride, *y = p.k.at(b, h) + j * p.k.row_stride;
  const double squares = sum_of(p.D, [&](int64_t d) {
    const double one = x[d * p.q.d_stride] * y[d * p.k.d_stride];
    return one * one;
  });
  return kOfTwoElements * half_ulp(form_.dtype) * std::sqrt(squares);
}

double Evaluator::value(int term, int64_t b, int64_t h, int64_t j, int64_t d) {
  const Access& v = terms_[term].v;
  return v.at(b, h)[j * v.row_stride + d * v.d_stride];
}

double Evaluator::score(int term, int64_t b, int64_t h, int64_t i, int64_t j) {
  Program::Inputs in = Program::at(b, h, i, j);
  fill_products(term, b, h, i, j, &in[Program::score]);
  return terms_[term].score->run(in);
}

void Evaluator::fill_products(int term, int64_t b, int64_t h, int64_t i, int64_t j, double* out) {
  for (size_t n = 0; n < terms_[term].products.size(); ++n) out[n] = product(term, b, h, i, j, n);
}

// What the deviations of the products make of the row's kept scores: those of several products add
// up, at most.
void Evaluator::note_deviations(int term, int64_t b, int64_t h, int64_t i) {
  deviations_.clear();
  lse_deviation_ = output_deviation_ = 0;
  if (!terms_[term].changed()) return;
  deviations_.assign(N_, 0);
  for (int64_t j = 0; j < N_; ++j) {
    if (kept_[j] == 0) continue;
    Program::Inputs exact = Program::at(b, h, i, j);
    for (size_t n = 0; n < terms_[term].products.size(); ++n)
      exact[Program::score + n] = products_[n][j];
    const double score = terms_[term].score->run(exact);
    for (size_t n = 0; n < terms_[term].products.size(); ++n) {
      Program::Inputs off = exact;
      off[Program::score + n] += product_deviation(term, b, h, i, j, n);
      deviations_[j] += std::fabs(terms_[term].score->run(off) - score);
    }
    lse_deviation_ = std::max(lse_deviation_, deviations_[j]);
  }
}

// A change of score j by x changes a softmax's output by p[j] x (v[j] - output), a sum of weights
// by x v[j]; changes are independent.
double Evaluator::deviation_of_output(int t, int64_t b, int64_t h, double total,
                                      const double* output) {
  if (deviations_.empty()) return 0;
  const Normaliser normaliser = terms_[t].normaliser;
  const Access& v = terms_[t].v;
  const double* values = v.at(b, h);
  const std::vector<double> from =
      normaliser == Normaliser::none ? std::vector<double>(Dv_) : std::vector(output, output + Dv_);
  double squares = 0;
  for (int64_t j = 0; j < N_; ++j) {
    const double weight = normaliser == Normaliser::softmax ? weights_[j] : 1;
    const double change = deviations_[j] * weight / total;
    if (change == 0) continue;
    squares += change * change * distance(values + j * v.row_stride, v.d_stride, from.data(), Dv_);
  }
  const double norm = dot(output, 1, output, 1, Dv_);
  return norm > 0 ? std::sqrt(squares / norm) : 0;
}

bool Evaluator::keep(int term, int64_t b, int64_t h, int64_t i, int64_t j) {
  TermState& t = terms_[term];
  return !t.keep || t.keep->run(Program::at(b, h, i, j)) != 0;
}

void Evaluator::keep(int term, int64_t b, int64_t h, int64_t i, int64_t first, int64_t count,
                     double* out) {
  TermState& t = terms_[term];
  if (t.keep)
    t.keep->run(Program::at(b, h, i, first), {Program::j, first, count}, out);
  else
    std::fill_n(out, count, 1.0);
}

void Evaluator::fill_scores(int term, int64_t b, int64_t h, int64_t i, double dropped) {
  TermState& t = terms_[term];
  keep(term, b, h, i, 0, N_, kept_.data());
  Program::Line line{Program::j, 0, N_};
  products_.resize(std::max(products_.size(), t.products.size()));
  for (size_t n = 0; n < t.products.size(); ++n) {
    products_[n].assign(N_, 0);
    for (int64_t j = 0; j < N_; ++j)
      if (kept_[j] != 0) products_[n][j] = product(term, b, h, i, j, n);
    line.of[Program::score + n] = products_[n].data();
  }
  t.score->run(Program::at(b, h, i, 0), line, weights_.data());
  for (int64_t j = 0; j < N_; ++j)
    if (kept_[j] == 0) weights_[j] = dropped;
}

// exp(score - the row's maximum), and of the sink likewise.
Evaluator::Total Evaluator::exponentials(int t, int64_t b, int64_t h, int64_t i) {
  double highest = -HUGE_VAL;
  fill_scores(t, b, h, i, -HUGE_VAL);
  // A NaN becomes the maximum and stays it, and with it the row.
  const auto raise = [&](double x) {
    if (!std::isnan(highest) && !(x <= highest)) highest = x;
  };
  for (int64_t j = 0; j < N_; ++j) raise(weights_[j]);
  const bool none_kept = highest == -HUGE_VAL;
  const double sink = terms_[t].sink ? terms_[t].sink->run(Program::at(b, h, i, 0)) : -HUGE_VAL;
  raise(sink);
  Total total;
  for (int64_t j = 0; j < N_; ++j) {
    if (none_kept)
      weights_[j] = terms_[t].finite_mask ? 1 : 0;
    else
      weights_[j] = std::exp(weights_[j] - highest);
    total.sum += weights_[j];
  }
  if (highest == -HUGE_VAL) return total;
  if (terms_[t].sink) total.sum += std::exp(sink - highest);
  total.lse = highest + std::log(total.sum);
  return total;
}

// The scores themselves.
Evaluator::Total Evaluator::plain_weights(int t, int64_t b, int64_t h, int64_t i) {
  Total total;
  fill_scores(t, b, h, i, 0);
  for (int64_t j = 0; j < N_; ++j) total.sum += weights_[j];
  if (terms_[t].normaliser == Normaliser::none)
    total.sum = 1;
  else if (total.sum > 0)
    total.lse = std::log(total.sum);
  return total;
}

double Evaluator::row(int64_t b, int64_t h, int64_t i, double* output) {
  std::fill(output, output + Dv_, 0.0);
  double lse = -HUGE_VAL;
  for (size_t term = 0; term < terms_.size(); ++term) {
    const int t = static_cast<int>(term);
    const bool softmax = terms_[t].normaliser == Normaliser::softmax;
    const Total total = softmax ? exponentials(t, b, h, i) : plain_weights(t, b, h, i);
    lse = lse_ = total.lse;
    weights_sum_ = total.sum;
    note_deviations(t, b, h, i);
    const Access& v = terms_[t].v;
    const double* values = v.at(b, h);
    const Program::Inputs row = Program::at(b, h, i, 0);
    const double factor = terms_[t].factor ? terms_[t].factor->run(row) : 1;
    for (int64_t j = 0; j < N_; ++j) {
      if (weights_[j] == 0 || total.sum == 0) continue;
      const double p = factor * weights_[j] / total.sum;
      add_multiple(output, p, values + j * v.row_stride, v.d_stride, Dv_);
    }
    if (total.sum != 0) output_deviation_ = deviation_of_output(t, b, h, total.sum, output);
  }
  before_epilogue_.assign(output, output + Dv_);
  if (!epilogue_ || form_.epilogue->kind == Kind::output) return lse;
  Program::Inputs in = Program::at(b, h, i, 0);
  for (int64_t d = 0; d < Dv_; ++d) {
    in[Program::d] = static_cast<double>(d);
    in[Program::output] = output[d];
    output[d] = epilogue_->run(in);
  }
  return lse;
}

Evaluated evaluate(const Form& form, const Problem& problem) {
  Evaluator evaluator(form, problem);
  const int64_t B = evaluator.batches(), H = evaluator.heads(), M = evaluator.queries(),
                N = evaluator.keys(), Dv = evaluator.value_dim();
  Evaluated out{Tensor(Dtype::f64, {B, H, M, Dv}), Tensor(Dtype::f64, {B, H, M}),
                Tensor(Dtype::f64, {B, H, N})};
  for (int64_t row = 0; row < B * H * M; ++row) {
    out.lse.values[row] =
        evaluator.row(row / (H * M), row / M % H, row % M, &out.output.values[row * Dv]);
    for (int64_t j = 0; j < N && evaluator.weights_sum() > 0; ++j)
      out.columns.values[row / M * N + j] += evaluator.weights()[j] / evaluator.weights_sum();
  }
  return out;
}

}  // namespace kw::spec
