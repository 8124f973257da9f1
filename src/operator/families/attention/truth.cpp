// The rows of attention as Truth: the evaluator's, and beside them the sums of each key's weights.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "operator/evaluate/exact.h"
#include "operator/families/attention/attention.h"

namespace kw::spec::attention {
namespace {

// Of a term in fp32, and of one whose score has this magnitude: an exponential takes the difference
// of two products with the scale, each off by half an ulp.
constexpr double kOfFloats = 0x1p-20, kOfScores = 0x1p-22;
constexpr double kMostOfScores = 1e6 * std::numbers::ln2;

class Rows : public Truth {
 public:
  Rows(const Form& form, const Problem& problem)
      : form_(form), evaluator_(form, problem), outputs_(outputs(form)) {
    held_.resize(outputs_.size());
    begin_head();
  }

  int64_t batches() const override { return evaluator_.batches(); }
  int64_t heads() const override { return evaluator_.heads(); }
  int64_t rows() const override { return evaluator_.queries(); }

  void begin_head() override {
    for (size_t n = 0; n < outputs_.size(); ++n)
      if (outputs_[n].rule == Rule::sum) {
        held_[n].want.assign(evaluator_.keys(), 0);
        held_[n].allowed.assign(evaluator_.keys(), 0);
      }
  }

  void row(int64_t b, int64_t h, int64_t i) override {
    Held& o = held_[0];
    o.want.resize(evaluator_.value_dim());
    const double lse = evaluator_.row(b, h, i, o.want.data());
    // Of such scores fp32 keeps no digit behind the point, and what exp2 makes of the rest is
    // chance.
    const bool beyond = std::isfinite(lse) && std::fabs(lse) > kMostOfScores;
    o.unspecified = beyond;
    o.rounding = evaluator_.output_deviation();
    for (size_t n = 1; n < outputs_.size(); ++n) {
      if (outputs_[n].unrounded) {
        held_[n].want = evaluator_.before_epilogue();
        held_[n].rounding = held_[0].rounding;
        held_[n].noise = rounding_of_weights(b, h);
        held_[n].unspecified = beyond;
        continue;
      }
      if (outputs_[n].rule == Rule::sum) {
        add_weights(held_[n]);
        continue;
      }
      held_[n].want = {lse};
      held_[n].rounding = evaluator_.lse_deviation() + (sums_rounded() ? half_ulp(form_.dtype) : 0);
      // Of a row without a key, where dropped scores were a finite number, lse says nothing.
      held_[n].unspecified = beyond || (lse == -HUGE_VAL && form_.terms[0].finite_mask);
    }
  }

  // A row without a key is unspecified by a softmax (NaN) or zero by other means; one whose
  // weights' sum is 0 likewise. Weights without a sum are never unspecified.
  bool open_in_pytorch(const double* golden, int64_t length) const override {
    const Normaliser normaliser = form_.terms[0].normaliser;
    if (evaluator_.lse() != -HUGE_VAL || normaliser == Normaliser::none) return false;
    const auto all = [&](const auto& is) { return std::all_of(golden, golden + length, is); };
    return all([](double x) { return std::isnan(x); }) ||
           (normaliser == Normaliser::softmax && all([](double x) { return x == 0; }));
  }

 private:
  // Of what is saved for gradients (rule normaliser).
  bool sums_rounded() const { return form_.saves && form_.terms[0].normaliser == Normaliser::sum; }

  // How far an output may be off whose weights are rounded to the values' type before they are
  // multiplied: each by half an ulp, but for the largest, which is 1. Twice that is allowed, and of
  // every term what fp32 takes. Where their sum is of rounded weights, too, what a weight is off by
  // changes the output by the difference of its value and the output.
  double rounding_of_weights(int64_t b, int64_t h) {
    if (evaluator_.weights_sum() == 0) return 0;
    const double ulp = 2 * half_ulp(form_.dtype),
                 floats = kOfFloats + kOfScores * std::fabs(evaluator_.lse());
    double square = 0;
    for (int64_t d = 0; d < evaluator_.value_dim(); ++d) {
      double off = 0;
      for (size_t j = 0; j < evaluator_.weights().size(); ++j) {
        const double weight = evaluator_.weights()[j],
                     value = evaluator_.value(0, b, h, int64_t(j), d),
                     less = sums_rounded() ? evaluator_.before_epilogue()[d] : 0;
        if (weight > 0)
          off += weight * (floats * std::fabs(value) +
                           (sums_rounded() || weight < 1 ? ulp : 0) * std::fabs(value - less));
      }
      square += off * off;
    }
    return std::sqrt(square) / evaluator_.weights_sum();
  }

  // A weight is off by what its row's log-sum may be off (Rule::log_sum), and half an ulp of 1 in
  // fp32 is lost where it is added.
  void add_weights(Held& sums) const {
    const double total = evaluator_.weights_sum();
    if (total == 0) return;
    const double lse = std::isfinite(evaluator_.lse()) ? evaluator_.lse() : 0;
    const double off =
        std::expm1(1e-4 + 1e-5 * std::fabs(lse) + kDeviations * evaluator_.lse_deviation());
    for (size_t j = 0; j < sums.want.size(); ++j) {
      const double weight = evaluator_.weights()[j] / total;
      sums.want[j] += weight;
      sums.allowed[j] += weight * off + std::ldexp(1.0, -24);
    }
  }

  const Form& form_;
  Evaluator evaluator_;
  std::vector<Output> outputs_;
};

}  // namespace

std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) {
  return std::make_unique<Rows>(form, problem);
}

ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra, int64_t b,
                int64_t h) {
  ExactRows rows = exact_rows(form, named, algebra, b, h);
  ExactHead out;
  for (const Output& o : outputs(form)) switch (o.rule) {
      case Rule::row:
        out.outputs.push_back({o.unrounded ? rows.before_epilogue : rows.output, {}});
        break;
      case Rule::log_sum:
        out.outputs.push_back({std::move(rows.lse), rows.uniform});
        break;
      case Rule::sum:
        out.outputs.push_back({std::move(rows.columns), {}});
        break;
      case Rule::row_sum:
        break;  // none of attention's
    }
  return out;
}

}  // namespace kw::spec::attention
