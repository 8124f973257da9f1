#include "driver/proof/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "driver/proof/user_order.h"

namespace kw::driver {
namespace {

constexpr int kRowsAtTheEnd = 16, kRowsAnywhere = 16, kStep = 8;
constexpr double kSharp = 8;
// Accepted of a row, in halves of a unit in the last place: a right kernel has 1.0 and 0.53 at
// most, the latter where many keys share a row. Rounding P moves a row by half a unit if one key
// has all of it, and by 1 / sqrt(n) of that where n share it equally: that is added.
constexpr double kRows = 2, kMean = 0.75;
constexpr int64_t kLargest = int64_t{1} << 26;
constexpr uint64_t kSeed = 4000;

int64_t constant_or(const spec::Size& size, int64_t free) {
  return size.name.empty() ? size.constant : free;
}

// Queries: as many as keys where a mask joins the two, else few.
int64_t queries_for(const spec::Form& form, int64_t keys) {
  const bool joined = form.terms.at(0).keep || form.M.name == form.N.name;
  return constant_or(form.M, joined ? keys : std::min<int64_t>(keys, 128));
}

struct Row {
  int64_t h, i;
  std::vector<double> weights;  // of the keys; their sum is 1
  double lse, accepted_lse, nothing;
  double length;  // of the weights: 1 / sqrt(n) where n keys share the row equally
};

class Prober {
 public:
  Prober(const spec::Capture& capture, const transfer::Result& transferred, int64_t keys,
         Diagnostics& diagnostics)
      : form_(capture.form), transferred_(transferred), keys_(constant_or(form_.N, keys)) {
    std::map<std::string, int64_t> sizes = capture.cases.front().sizes;
    spec::give(form_.B, 1, sizes);
    spec::give(form_.M, queries_for(form_, keys), sizes);
    spec::give(form_.N, keys_, sizes);
    draws_ = spec::draws_for(capture, sizes, kSeed + static_cast<uint64_t>(keys));
    problem_ = spec::make_problem(form_, sizes, draws_, diagnostics);
    tanh_ = spec::print(form_).find("tanh") != std::string::npos;
  }

  bool run(const std::function<bool(const Probe&)>& take) {
    if (!problem_) return false;
    const std::string& q = form_.terms[0].q.argument;
    for (auto& [name, tensor] : problem_->tensors) to_user_order(tensor, name, transferred_);
    const runtime::Contents normal{draws_.arguments.at(form_.terms[0].v.argument)};
    runtime::Contents around_one = normal;
    around_one.mean = 1;
    std::vector<Row> rows = weigh();
    bool goes_on = true;
    for (const int64_t from : windows()) goes_on = goes_on && take(identity(rows, from));
    goes_on = goes_on && take(averaged("mean", rows, around_one, 1, kMean, 1)) &&
              take(averaged("plain", rows, normal, 1, kRows, 0));
    if (!goes_on) return false;
    for (double& value : problem_->tensors.at(q).values) value *= kSharp;
    return take(averaged("sharp", weigh(), normal, kSharp, kRows, 0));
  }

 private:
  // The first key of each window: all of them where they are few.
  std::vector<int64_t> windows() const {
    const int64_t columns = form_.Dv.constant;
    std::vector<int64_t> from;
    if (keys_ <= 4 * columns) {
      for (int64_t j = 0; j < keys_; j += columns) from.push_back(j);
      return from;
    }
    const Random pick(draws_.seed, 98);
    from = {0, keys_ / 2 - columns / 2, pick.integer(0, 0, keys_ - columns), keys_ - columns};
    std::sort(from.begin(), from.end());
    return from;
  }

  std::vector<Row> weigh() {
    spec::Evaluator truth(form_, *problem_);
    const Random pick(draws_.seed, 97);
    std::vector<Row> rows;
    std::vector<double> unused(truth.value_dim());
    for (int n = 0; n < kRowsAtTheEnd + kRowsAnywhere; ++n) {
      const int64_t last = truth.queries() - 1;
      const int64_t i = n < kRowsAtTheEnd ? last - kStep * n : pick.integer(2 * n, 0, last);
      if (i < 0) continue;
      Row row{pick.integer(2 * n + 1, 0, truth.heads() - 1), i, {}, 0, 0, 0, 0};
      row.lse = truth.row(0, row.h, row.i, unused.data());
      row.weights = truth.weights();
      double sum = 0, largest = 0, moved = 0;
      for (const double w : row.weights) sum += w;
      for (int64_t j = 0; j < keys_ && sum > 0; ++j) {
        double& w = row.weights[j];
        w /= sum;
        largest = std::max(largest, w);
        // An approximate tanh is off by 2^-11 of itself (PTX ISA, tanh.approx.f32).
        if (tanh_ && w > 0) moved += w * std::abs(truth.score(0, 0, row.h, row.i, j));
      }
      row.length = std::sqrt(
          std::inner_product(row.weights.begin(), row.weights.end(), row.weights.begin(), 0.0));
      row.nothing = std::ldexp(largest, -14);
      row.accepted_lse = 1e-4 + std::ldexp(std::isfinite(row.lse) ? std::abs(row.lse) : 0, -21) +
                         std::ldexp(moved, -10);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Probe start(std::string name, const std::vector<Row>& rows, runtime::Contents values) const {
    Probe out{
        fmt::format("{} {} keys", name, keys_), {}, draws_, 1, values, false, {}, {}, {}, {}, {}};
    out.problem.sizes = problem_->sizes;
    out.problem.scalars = problem_->scalars;
    for (const auto& [name, tensor] : problem_->tensors) {
      Tensor& shape = out.problem.tensors[name];
      shape.dtype = tensor.dtype;
      shape.shape = tensor.shape;
    }
    for (const Row& row : rows) {
      for (const int64_t x : {int64_t{0}, row.h, row.i}) out.index.push_back(x);
      out.lse.push_back(row.lse);
      out.lse_accepted.push_back(row.accepted_lse);
    }
    return out;
  }

  Dtype type_of_values() const {
    const spec::Argument* v = form_.argument(form_.terms.at(0).v.argument);
    return v ? v->dtype : form_.dtype;
  }

  Probe identity(const std::vector<Row>& rows, int64_t from) const {
    // Weights of about 1 / N are subnormal in f16.
    const double value = form_.dtype != Dtype::f16         ? 1
                         : type_of_values() == Dtype::e4m3 ? 256  // e4m3 ends at 448
                                                           : 4096;
    runtime::Contents window;
    window.draw.kind = Draw::Kind::constant;
    window.draw.value = value;
    window.window = from;
    Probe out = start("identity", rows, window);
    out.name += fmt::format(", from {}", from);
    out.window = true;
    for (const Row& row : rows) {
      for (int64_t c = 0; c < form_.Dv.constant; ++c)
        out.output.push_back(from + c < keys_ ? value * row.weights[from + c] : 0);
      out.accepted.push_back(value * row.nothing);
    }
    return out;
  }

  Probe averaged(const std::string& name, const std::vector<Row>& rows, runtime::Contents values,
                 double query_scale, double accepted, double of_length) const {
    Probe out = start(name, rows, values);
    out.query_scale = query_scale;
    const int64_t columns = form_.Dv.constant, groups = form_.G.constant;
    const Tensor v =
        runtime::draw_tensor(values, draws_.seed, type_of_values(), {1, groups, keys_, columns});
    for (const Row& row : rows) {
      const double* first = v.values.data() + row.h / (form_.H.constant / groups) * keys_ * columns;
      std::vector<double> sum(columns, 0);
      for (int64_t j = 0; j < keys_; ++j)
        if (row.weights[j] != 0)
          for (int64_t c = 0; c < columns; ++c) sum[c] += row.weights[j] * first[j * columns + c];
      out.output.insert(out.output.end(), sum.begin(), sum.end());
      out.accepted.push_back((tanh_ ? 2 : 1) * (accepted + of_length * row.length) *
                             half_ulp(form_.dtype));
    }
    return out;
  }

  const spec::Form& form_;
  const transfer::Result& transferred_;
  const int64_t keys_;
  spec::Draws draws_;
  std::optional<spec::Problem> problem_;
  bool tanh_ = false;
};

}  // namespace

bool values_are_linear(const spec::Form& form) {
  const spec::Term& term = form.terms.at(0);
  for (const spec::Operand* o : spec::operands(term))
    if (o->row) return false;  // what is probed is not what is multiplied
  return !form.epilogue || form.epilogue->kind == spec::Kind::output;
}

bool can_probe(const spec::Form& form, int64_t keys) {
  const spec::Term& term = form.terms.at(0);
  const int64_t N = constant_or(form.N, keys), M = queries_for(form, keys);
  const int64_t elements = form.H.constant * M * (form.D.constant + form.Dv.constant) +
                           form.G.constant * N * (form.D.constant + form.Dv.constant);
  const bool shares = term.normaliser == spec::Normaliser::softmax && !term.sink;  // that sum to 1
  return form.terms.size() == 1 && term.more.empty() && values_are_linear(form) && shares &&
         !term.finite_mask && constant_or(form.B, 1) == 1 && term.q.argument != term.k.argument &&
         term.k.argument != term.v.argument && N >= form.Dv.constant && elements <= 2 * kLargest;
}

bool for_each_probe(const spec::Capture& capture, const transfer::Result& transferred, int64_t keys,
                    const std::function<bool(const Probe&)>& take, Diagnostics& diagnostics) {
  return Prober(capture, transferred, keys, diagnostics).run(take);
}

}  // namespace kw::driver
