// The gradients in fp64, a row of queries at a time.
#include <algorithm>
#include <cmath>
#include <random>

#include "num/compare.h"
#include "num/dtype.h"
#include "operator/evaluate/plain_rows.h"
#include "operator/evaluate/program.h"
#include "operator/evaluate/row_map.h"
#include "operator/expr/derivative.h"
#include "operator/families/attention_bwd/attention_bwd.h"

namespace kw::spec::attention_bwd {

Operand of_output(const Form& form, const char* name) {
  Operand out{name, {}, {}};
  const std::vector<std::string> saved = {"b", "h", "i", "d"};
  for (const std::string& index :
       name == std::string_view(Gradients::kOutput) ? saved : form.gradients->dims)
    out.indices.push_back(leaf(Kind::index, Type::integer, index));
  return out;
}

double of_log_sum(const Form& form, const Problem& problem, int64_t b, int64_t h, int64_t i) {
  const std::vector<std::string>& dims = form.gradients->log_sum_dims;
  if (dims.empty()) return 0;
  std::vector<int64_t> at;
  for (const std::string& index : dims) at.push_back(index == "b" ? b : index == "h" ? h : i);
  return problem.tensors.at(Gradients::kOfLogSum).at(at);
}

// The operand's own head, of a query head.
int64_t own_head(const Operand& operand, int64_t h) {
  const ExprPtr head = head_of(operand);
  if (!head) return 0;
  return head->kind == Kind::binary ? h / head->args[1]->integer : h;
}

namespace {

double dot(const double* a, const double* b, int64_t count) {
  double out = 0;
  for (int64_t d = 0; d < count; ++d) out += a[d] * b[d];
  return out;
}

double square(const double* a, int64_t count) { return dot(a, a, count); }
double norm(const double* a, int64_t count) { return std::sqrt(square(a, count)); }

// Of a product do . v in fp32, in relation to the norms of its sides.
constexpr double kOff = 0x1p-20;

// Gradients of scores, and weights, are rounded to the operands' type, each by itself: what that
// makes of a row is the root of the sum of squares, of which this many are reached once in 10^6
// rows. It is what any kernel of these types errs by, and counts where terms cancel: beyond half an
// ulp of the row, which is accepted anyway.
constexpr double kRoundings = 5;
constexpr double kOfHalfUlp = 0.58;  // the deviation of a rounding that is even within half an ulp

void add(double* to, double x, const double* from, int64_t count) {
  for (int64_t d = 0; d < count; ++d) to[d] += x * from[d];
}

// The gradients of what an operand's rows become, turned round to those of the rows.
class TurnedRows {
 public:
  TurnedRows(const Form& form, const Problem& problem, size_t operand, int64_t rows,
             int64_t columns)
      : of_(*operands(form.terms[0])[operand]),
        name_(Gradients::kOfRows[operand]),
        with_(with_room(form, problem, name_, operand, rows, columns)),
        map_(*form.gradients->rows[operand], with_, operand ? Program::j : Program::i, rows,
             columns),
        rows_(rows),
        columns_(columns) {}

  // Of the row in place. `noise` is an error of it in L2, of no direction: it becomes one of the
  // gradient.
  void turn(int64_t b, int64_t h, int64_t r, double* row, double& noise) {
    h = own_head(of_, h);
    std::vector<double> in(row, row + columns_);
    std::mt19937 signs(1);
    double squares = 0;
    for (int n = 0; n < kProbes; ++n) {
      for (int64_t d = 0; d < columns_; ++d) row[d] = signs() & 1 ? 1 : -1;
      apply(b, h, r, row);
      squares += square(row, columns_);
    }
    noise *= std::sqrt(squares / double(kProbes * columns_));
    std::copy(in.begin(), in.end(), row);
    apply(b, h, r, row);
  }

 private:
  static constexpr int kProbes = 4;  // by which the map's mean gain is told

  static Problem with_room(const Form& form, const Problem& problem, const char* name,
                           size_t operand, int64_t rows, int64_t columns) {
    Problem out = problem;
    const int64_t heads = operand ? form.G.constant : form.H.constant;
    out.tensors[name] = Tensor(Dtype::f32, {value_of(form.B, problem.sizes), heads, rows, columns});
    return out;
  }

  void apply(int64_t b, int64_t h, int64_t r, double* row) {
    Tensor& t = with_.tensors.at(name_);
    std::copy_n(row, columns_, &t.values[((b * t.shape[1] + h) * rows_ + r) * columns_]);
    map_.row(b, h, r, row);
  }

  const Operand& of_;
  const char* name_;
  Problem with_;
  MappedRows map_;
  const int64_t rows_, columns_;
};

// What e would be if no terms of its sums cancelled: fp32 errs by kOff of that.
ExprPtr magnitude(const ExprPtr& e) {
  const auto of = [&](size_t n) { return magnitude(e->args[n]); };
  if (e->type == Type::real && e->kind == Kind::binary) {
    if (e->name == "+" || e->name == "-") return binary("+", of(0), of(1));
    if (e->name == "*") return binary("*", of(0), of(1));
    if (e->name == "min" || e->name == "max") return binary("max", of(0), of(1));
  }
  if (e->kind == Kind::unary && e->name == "-") return of(0);
  if (e->kind == Kind::where) return where(e->args[0], of(1), of(2));
  return unary("abs", e);
}

class Rows : public Truth {
 public:
  Rows(const Form& form, const Problem& problem)
      : form_(form),
        problem_(problem),
        forward_(form, problem),
        slope_(form.gradients->slope, problem),
        magnitude_(magnitude(form.gradients->slope), problem),
        sink_(form.terms[0].sink ? form.terms[0].sink : real(0), problem),
        of_epilogue_(form.gradients->of_epilogue ? form.gradients->of_epilogue : real(1), problem),
        M_(forward_.queries()),
        N_(forward_.keys()),
        D_(form.D.constant),
        Dv_(form.Dv.constant),
        o_(Dv_) {
    held_.resize(form.outputs.size());
    held_[0].want.resize(D_);
    held_[1].length = D_;
    held_[2].length = Dv_;
    for (const Gradients::Learned& l : form.gradients->learned) {
      const Output& output = form.outputs[kOperands + learned_.size()];
      const Dtype type = output.unrounded ? Dtype::f32 : form.dtype;
      Held& held = held_[kOperands + learned_.size()];
      held.length = 1;
      held.rounding = accepted_error(0, type);
      learned_.push_back({l,
                          Program(l.slope, problem),
                          Program(by_product(l.slope), problem),
                          Program(l.of == Of::epilogue ? by_output(l.slope) : real(0), problem),
                          Program(l.element ? l.element : integer(0), problem),
                          output.has('i')   ? M_ * N_
                          : output.has('j') ? N_
                          : output.has('x') ? value_of(output.own, problem.sizes)
                                            : 1,
                          output.has('i'),
                          held.rounding * least_norm(type, 1),
                          {},
                          {}});
    }
    const auto of = operands(form.terms[0]);
    for (size_t n = 0; n < kOperands; ++n) {
      const int64_t rows = n ? N_ : M_, columns = n == 2 ? Dv_ : D_;
      if (of[n]->row)
        mapped_[n].emplace(*of[n]->row, problem, n ? Program::j : Program::i, rows, columns);
      if (form.gradients->rows[n]) turned_[n].emplace(form, problem, n, rows, columns);
    }
    begin_head();
  }

  int64_t batches() const override { return forward_.batches(); }
  int64_t heads() const override { return forward_.heads(); }
  int64_t rows() const override { return M_; }

  void begin_head() override {
    b_ = h_ = -1;
    held_[1].want.assign(N_ * D_, 0);
    held_[1].noises.assign(N_, 0);
    held_[2].want.assign(N_ * Dv_, 0);
    held_[2].noises.assign(N_, 0);
    dk_squares_.assign(N_, 0);
    dv_squares_.assign(N_, 0);
    most_.assign(N_, 0);
    for (size_t n = 0; n < learned_.size(); ++n) {
      held_[kOperands + n].want.assign(learned_[n].length, 0);
      held_[kOperands + n].allowed.assign(learned_[n].length, 0);
      learned_[n].variance.assign(learned_[n].length, 0);
      learned_[n].floats.assign(learned_[n].length, 0);
    }
  }

  void row(int64_t b, int64_t h, int64_t i) override {
    read(b, h);
    forward_.row(b, h, i, o_.data());
    o_ = forward_.before_epilogue();
    pass_epilogue(b, h, i);
    const double *d_o = d_row_.data(), *q = &q_[i * D_];
    const bool softmax = has_softmax(form_);
    const double delta =
        takes_saved(form_) ? dot(d_o, o_.data(), Dv_) - of_log_sum(form_, problem_, b, h, i) : 0;
    std::vector<double>& dq = held_[0].want;
    std::fill(dq.begin(), dq.end(), 0);
    held_[0].noise = 0;
    double squares = 0, most = 0;
    const double of_q = square(q, D_), of_d_o = square(d_o, Dv_);
    of_row_.assign(N_, {});
    line_of_products(b, h, i);
    along(slope_, b, h, i, slopes_);
    along(magnitude_, b, h, i, magnitudes_);
    for (int64_t j = 0; j < N_ && forward_.weights_sum() > 0; ++j) {
      const double p = forward_.weights()[j] / forward_.weights_sum();
      if (counts_[j] == 0) continue;
      const double slope = slopes_[j], *v = &v_[j * Dv_], dp = dot(d_o, v, Dv_);
      // What a score's gradient is of a weight's: without a sum, 1.
      const double by = softmax ? p : 1 / forward_.weights_sum();
      const double floats = kOff * by * std::sqrt(of_d_o) * norm(v, Dv_);
      of_row_[j] = {p, dp, by * (dp - delta), floats, products_[j]};
      const double ds = of_row_[j].dz * slope,
                   off =
                       floats * std::fabs(slope) + kOff * std::fabs(of_row_[j].dz) * magnitudes_[j];
      const double of_k = square(&k_[j * D_], D_), terms = of_rows(i, j, slope);
      held_[0].noise += off * std::sqrt(of_k);
      held_[1].noises[j] += off * std::sqrt(of_q);
      most = std::max(most, terms);
      most_[j] = std::max(most_[j], terms);
      const double rounded = by * slope * by * slope * of_rounded_row(v);
      const double of_ds = rounded_square(ds), of_p = rounded_square(p);
      squares += of_ds * of_k * terms + rounded * of_k;
      dk_squares_[j] += of_ds * of_q * terms + rounded * of_q;
      dv_squares_[j] += of_p * of_d_o * (terms + (form_.gradients->of_epilogue ? 1 : 0));
      add(dq.data(), ds, &k_[j * D_], D_);
      add(&held_[1].want[j * D_], ds, q, D_);
      add(&held_[2].want[j * Dv_], p, d_o, Dv_);
    }
    held_[0].noise += beyond_half_ulp(squares, most, dq.data(), D_);
    turn(0, b, h, i, dq.data(), D_, held_[0].noise);
    for (int64_t j = 0; j < N_ && i == M_ - 1; ++j) {
      double *dk = &held_[1].want[j * D_], *dv = &held_[2].want[j * Dv_];
      held_[1].noises[j] += beyond_half_ulp(dk_squares_[j], most_[j], dk, D_);
      held_[2].noises[j] += beyond_half_ulp(dv_squares_[j], most_[j], dv, Dv_);
      turn(1, b, h, j, dk, D_, held_[1].noises[j]);
      turn(2, b, h, j, dv, Dv_, held_[2].noises[j]);
    }
    if (!learned_.empty()) learn(b, h, i, delta);
  }

  // Of a row without a key PyTorch's gradient is NaN, and with it those of all keys.
  bool open_in_pytorch(const double* golden, int64_t length) const override {
    return std::any_of(golden, golden + length, [](double x) { return std::isnan(x); });
  }

 private:
  // What roundings of the terms make of a row, whose squares these are, beyond what is accepted.
  // Where rows were rounded that make the terms, all may be off by the same (of equal rows): each
  // by so many squares at most.
  double beyond_half_ulp(double squares, double most, const double* row, int64_t length) const {
    const double same = most > 1 ? std::sqrt(most) * norm(row, length) : 0;
    const double off = kRoundings * kOfHalfUlp * (std::sqrt(squares) + same);
    return half_ulp(form_.dtype) * std::max(0.0, off - norm(row, length));
  }

  // The square of what a number errs by when it is rounded to the operands' type, in halves of an
  // ulp: below the type's normal numbers (fp16's 2^-14) as much as the least of those.
  double rounded_square(double x) const {
    const double y = x == 0 ? 0 : std::max(std::fabs(x), least_norm(form_.dtype, 1));
    return y * y;
  }

  // How many times the square of its own rounding a term errs by, where rows were rounded that make
  // it: those of its product, 0.41 of half an ulp for numbers of any size, and its score's.
  double of_rows(int64_t i, int64_t j, double slope) const {
    if (!mapped_[0] && !mapped_[1] && !mapped_[2]) return 1;
    const double off = of_rounded_product(i, j);
    return 1.5 + slope * slope * off * off;
  }

  // What a product is off by where rows were rounded that make it, in halves of an ulp.
  double of_rounded_product(int64_t i, int64_t j) const {
    if (!mapped_[0] && !mapped_[1] && !mapped_[2]) return 0;
    const double *x = &q_[i * D_], *y = &k_[j * D_];
    double squares = 0;
    for (int64_t d = 0; d < D_; ++d) squares += x[d] * y[d] * x[d] * y[d];
    return std::sqrt(squares);
  }

  // A row of gradients of what an operand's rows become is rounded before it is turned round.
  void turn(size_t n, int64_t b, int64_t h, int64_t r, double* row, int64_t length, double& noise) {
    if (!turned_[n]) return;
    double off = noise + half_ulp(form_.dtype) * norm(row, length);
    turned_[n]->turn(b, h, r, row, off);
    noise = off;
  }

  struct Learning;
  using Of = Gradients::Of;
  static constexpr size_t kOperands = Gradients::kOperands;

  // The gradient of what the epilogue takes.
  void pass_epilogue(int64_t b, int64_t h, int64_t i) {
    d_row_.assign(&d_o_[i * Dv_], &d_o_[i * Dv_] + Dv_);
    if (!form_.gradients->of_epilogue) return;
    Program::Inputs in = Program::at(b, h, i, 0);
    for (int64_t d = 0; d < Dv_; ++d) {
      in[Program::d] = double(d), in[Program::output] = o_[d];
      d_row_[d] *= of_epilogue_.run(in);
    }
  }

  // It is rounded to the operands' type before it meets a row of values, and the same rounded row
  // is taken off with delta, so many times: the square of what that makes of the product, in halves
  // of an ulp.
  double of_rounded_row(const double* v, double deltas = 1) const {
    if (!form_.gradients->of_epilogue) return 0;
    double square = 0;
    for (int64_t d = 0; d < Dv_; ++d) {
      const double term = d_row_[d] * (v[d] - (takes_saved(form_) ? deltas * o_[d] : 0));
      square += term * term;
    }
    return square;
  }

  // Of the row that the forward pass has just made: which keys count, and their products.
  void line_of_products(int64_t b, int64_t h, int64_t i) {
    counts_.resize(N_);
    products_.resize(N_);
    if (has_softmax(form_))
      counts_ = forward_.weights();
    else
      forward_.keep(0, b, h, i, 0, N_, counts_.data());
    for (int64_t j = 0; j < N_; ++j)
      products_[j] = counts_[j] != 0 ? forward_.product(0, b, h, i, j) : 0;
  }

  void along(Program& program, int64_t b, int64_t h, int64_t i, std::vector<double>& out) {
    Program::Line line{Program::j, 0, N_};
    line.of[Program::score] = products_.data();
    out.resize(N_);
    program.run(Program::at(b, h, i, 0), line, out.data());
  }

  static ExprPtr by_output(const ExprPtr& e) {
    ExprPtr operation;
    return derivative(e, leaf(Kind::output, Type::real, "o"), operation).value_or(real(0));
  }
  static ExprPtr by_product(const ExprPtr& e) {
    ExprPtr operation;
    return derivative(e, score_leaf(0), operation).value_or(real(0));
  }

  // What a row adds to the gradients of what is learned, and what a kernel may be off by: o is made
  // of weights that are rounded to 16 bits, each by itself, so delta is off, by the same for the
  // whole row; so is a row of the output's gradient that an epilogue changes; a gradient of a score
  // may be rounded like a weight; and fp32.
  void learn(int64_t b, int64_t h, int64_t i, double delta) {
    const double ulp = half_ulp(form_.dtype), total = forward_.weights_sum();
    if (total == 0) return;
    double square = 0;
    const std::vector<double> nothing(Dv_, 0);
    for (const OfScore& s : of_row_) square += s.p * s.dp * s.p * s.dp;
    const double off = takes_saved(form_) ? ulp * std::sqrt(square) : 0;
    for (size_t n = 0; n < learned_.size(); ++n) {
      Learning& l = learned_[n];
      Held& held = held_[kOperands + n];
      const auto adds = [&](int64_t at, double x, double deviation, double floats) {
        held.want[at] += x;
        l.variance[at] += deviation * deviation;
        l.floats[at] += floats;
      };
      if (l.what.of == Of::epilogue) {
        learn_of_epilogue(b, h, i, l, adds);
      } else if (l.what.of == Of::sink) {
        const double p = std::exp(sink_.run(Program::at(b, h, i, 0)) - forward_.lse()),
                     slope = l.slope.run(Program::at(b, h, i, 0));
        adds(0, -p * delta * slope, p * off * slope, kOff * std::fabs(p * delta * slope));
        adds(0, 0, p * slope * ulp * std::sqrt(of_rounded_row(nothing.data())), 0);
      } else {
        learn_of_score(b, h, i, l, off, adds);
      }
      for (int64_t at = l.first(i, N_); at < l.first(i, N_) + l.of_row(N_); ++at)
        held.allowed[at] = kDeviations * std::sqrt(l.variance[at]) + l.floats[at] + l.least;
    }
  }

  // Each score's gradient times what it changes by with the element that it reads. Of those that
  // read one element, all are off by the same delta.
  template <class Adds>
  void learn_of_score(int64_t b, int64_t h, int64_t i, Learning& l, double off, const Adds& adds) {
    const double ulp = half_ulp(form_.dtype), total = forward_.weights_sum();
    const bool rounds = form_.gradients->of_epilogue != nullptr;
    const int64_t first = l.first(i, N_), count = l.of_row(N_);
    std::vector<double> shared(count, 0), rows(rounds ? count * Dv_ : 0, 0);
    along(l.slope, b, h, i, slopes_);
    along(l.by_product, b, h, i, magnitudes_);
    along(l.element, b, h, i, elements_);
    for (int64_t j = 0; j < N_; ++j) {
      const OfScore& s = of_row_[j];
      if (s.p == 0) continue;
      const double slope = slopes_[j], x = s.dz * slope,
                   by = slope * (has_softmax(form_) ? s.p : 1 / total);
      const int64_t at = l.what.element ? int64_t(elements_[j]) : count > 1 ? j : 0;
      if (at < 0 || at >= count) continue;
      // Of pairs, it is rounded to the operands' type, of which fp16 has no small numbers.
      const double rounded = l.pairs ? slope * std::sqrt(rounded_square(s.dz)) : x;
      adds(first + at, x, ulp * rounded, s.floats * std::fabs(slope));
      if (const double of_product = s.dz * magnitudes_[j]; of_product != 0)
        adds(first + at, 0, ulp * of_product * of_rounded_product(i, j),
             kOff * std::fabs(of_product) * norm(&q_[i * D_], D_) * norm(&k_[j * D_], D_));
      shared[at] += by;
      if (rounds) add(&rows[at * Dv_], by, &v_[j * Dv_], Dv_);
    }
    for (int64_t at = 0; at < count; ++at) {
      if (shared[at] == 0) continue;
      adds(first + at, 0, shared[at] * off, 0);
      if (rounds)
        adds(first + at, 0, ulp * std::sqrt(of_rounded_row(&rows[at * Dv_], shared[at])), 0);
    }
  }

  // The output's gradient times what the epilogue changes by with the element. The row that the
  // epilogue takes is off as delta is.
  template <class Adds>
  void learn_of_epilogue(int64_t b, int64_t h, int64_t i, Learning& l, const Adds& adds) {
    Program::Inputs in = Program::at(b, h, i, 0);
    double x = 0, magnitude = 0, squares = 0;
    std::vector<double> by(Dv_);
    for (int64_t d = 0; d < Dv_; ++d) {
      in[Program::d] = double(d), in[Program::output] = o_[d];
      const double given = d_o_[i * Dv_ + d], term = given * l.slope.run(in);
      x += term, magnitude += std::fabs(term);
      by[d] = given * l.by_output.run(in);
    }
    for (int64_t j = 0; j < N_; ++j) {
      const double off = of_row_[j].p * dot(by.data(), &v_[j * Dv_], Dv_);
      squares += off * off;
    }
    adds(0, x, half_ulp(form_.dtype) * std::sqrt(squares), kOff * magnitude);
  }

  void read(int64_t b, int64_t h) {
    if (b == b_ && h == h_) return;
    b_ = b, h_ = h;
    const Term& t = form_.terms[0];
    const auto rows = [&](size_t n, const Operand& o, const char* row, int64_t count,
                          int64_t columns) {
      if (!mapped_[n]) return plain_rows(o, problem_, row, b, h, count, columns);
      const double* x = mapped_[n]->at(b, own_head(o, h));
      return std::vector<double>(x, x + count * columns);
    };
    q_ = rows(0, t.q, "i", M_, D_);
    k_ = rows(1, t.k, "j", N_, D_);
    v_ = rows(2, t.v, "j", N_, Dv_);
    d_o_ = plain_rows(of_output(form_, Gradients::kOfOutput), problem_, "i", b, h, M_, Dv_);
  }

  const Form& form_;
  const Problem& problem_;
  Evaluator forward_;
  Program slope_, magnitude_, sink_, of_epilogue_;
  std::vector<double> counts_, products_, slopes_, magnitudes_, elements_;  // of a row
  const int64_t M_, N_, D_, Dv_;
  int64_t b_ = -1, h_ = -1;                      // of which head these are
  std::vector<double> q_, k_, v_, d_o_;          // [rows, columns]
  std::vector<double> o_;                        // of one row, what the epilogue takes
  std::vector<double> d_row_;                    // and its gradient
  std::vector<double> dk_squares_, dv_squares_;  // of the terms of each key's rows
  std::vector<double> most_;                     // of_rows, of each key
  struct OfScore {
    double p = 0, dp = 0, dz = 0, floats = 0;  // its weight, its gradient, the score's, and fp32's
    double product = 0;                        // q . k
  };
  std::vector<OfScore> of_row_;
  struct Learning {
    const Gradients::Learned& what;
    Program slope, by_product, by_output, element;
    int64_t length;  // elements of a head's share
    bool pairs;      // one for each query and key
    double least;    // of smaller numbers fp32, or the element's type, has no digits
    std::vector<double> variance, floats;
    // Which of them a row adds to.
    int64_t first(int64_t i, int64_t keys) const { return pairs ? i * keys : 0; }
    int64_t of_row(int64_t keys) const { return pairs ? keys : length; }
  };
  std::vector<Learning> learned_;
  std::optional<MappedRows> mapped_[Gradients::kOperands];  // what rows become before their product
  std::optional<TurnedRows> turned_[Gradients::kOperands];  // and their gradients behind it
};

}  // namespace

std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) {
  return std::make_unique<Rows>(form, problem);
}

void save_forward(const Form& form, Problem& problem) {
  const int64_t B = value_of(form.B, problem.sizes), H = form.H.constant,
                M = value_of(form.M, problem.sizes), Dv = form.Dv.constant;
  if (!takes_saved(form)) return;
  Tensor o(Dtype::f32, {B, H, M, Dv}), lse(Dtype::f32, {B, H, M});
  Evaluator forward(form, problem);
  for (int64_t n = 0; n < B * H * M; ++n) {
    double* row = &o.values[n * Dv];
    lse.values[n] = round_to(Dtype::f32, forward.row(n / (H * M), n / M % H, n % M, row));
    for (int64_t d = 0; d < Dv; ++d) row[d] = round_to(Dtype::f32, forward.before_epilogue()[d]);
  }
  problem.tensors[Gradients::kOutput] = std::move(o);
  problem.tensors[Gradients::kLogSum] = std::move(lse);
}

}  // namespace kw::spec::attention_bwd
