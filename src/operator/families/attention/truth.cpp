// The rows of attention as Truth: the evaluator's, and beside them the sums of each key's weights.
#include <algorithm>
#include <cmath>

#include "operator/evaluate/exact.h"
#include "operator/families/attention/attention.h"

namespace kw::spec::attention {
namespace {

class Rows : public Truth {
 public:
  Rows(const Form& form, const Problem& problem)
      : form_(form), evaluator_(form, problem), outputs_(outputs(form)) {
    held_.resize(outputs_.size());
    begin_head(true);
  }

  int64_t batches() const override { return evaluator_.batches(); }
  int64_t heads() const override { return evaluator_.heads(); }
  int64_t rows() const override { return evaluator_.queries(); }

  void begin_head(bool) override {
    for (size_t n = 0; n < outputs_.size(); ++n)
      if (outputs_[n].rule == Rule::column_sum) {
        held_[n].want.assign(evaluator_.keys(), 0);
        held_[n].allowed.assign(evaluator_.keys(), 0);
      }
  }

  void row(int64_t b, int64_t h, int64_t i) override {
    Held& o = held_[0];
    o.want.resize(evaluator_.value_dim());
    const double lse = evaluator_.row(b, h, i, o.want.data());
    o.rounding = evaluator_.output_deviation();
    for (size_t n = 1; n < outputs_.size(); ++n) {
      if (outputs_[n].rule == Rule::column_sum) {
        add_weights(held_[n]);
        continue;
      }
      held_[n].want = {lse};
      held_[n].rounding = evaluator_.lse_deviation();
      // Of a row without a key, where dropped scores were a finite number, lse says nothing.
      held_[n].unspecified = lse == -HUGE_VAL && form_.terms[0].finite_mask;
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
        out.outputs.push_back({std::move(rows.output), {}});
        break;
      case Rule::log_sum:
        out.outputs.push_back({std::move(rows.lse), rows.uniform});
        break;
      case Rule::column_sum:
        out.outputs.push_back({std::move(rows.columns), {}});
        break;
      case Rule::row_sum:
        break;  // none of attention's
    }
  return out;
}

}  // namespace kw::spec::attention
