#include "runtime/prove.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "num/compare.h"
#include "runtime/guarded.h"
#include "runtime/prove_words.h"
#include "runtime/strided.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

struct TensorOnGpu {
  const Argument* argument = nullptr;
  Strided layout;
  std::unique_ptr<Guarded> memory;
  std::string bytes;  // of an input what was drawn; of an output what the first launch gave
};

// One case from its allocation to its verdict.
class Prover {
 public:
  Prover(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options)
      : kernel_(kernel),
        driver_(kernel.driver()),
        asked_(asked),
        options_(options),
        seed_(options.seed.value_or(asked.seed)),
        current_(driver_, kernel.context()) {}

  CaseResult run() {
    facts_ = {{"name", asked_.name}, {"seed", seed_}, {"goldens", Json::array()}};
    if (!allocate() || !make_plan()) return result(Exit::bad_input);
    for (const bool first : {true, false})
      if (!launch_once(first)) return result(Exit::refuted);
    check_inputs();
    const bool judged = compare_goldens();
    if (asked_.timed && !findings_.has_errors() && !time()) return result(Exit::refuted);
    return result(findings_.has_errors() ? Exit::refuted
                  : judged               ? Exit::holds
                                         : Exit::inconclusive);
  }

 private:
  CaseResult result(Exit verdict) {
    facts_["verdict"] = verdict_name(verdict);
    facts_["findings"] = to_json(findings_);
    return {verdict, lost_, std::make_shared<Json>(std::move(facts_))};
  }
  void finding(const char* code, std::string message) {
    findings_.error(code, {}, std::move(message));
  }
  bool allocate();
  bool make_plan();
  bool finish(bool enqueued);
  bool poison_outputs();
  bool launch_once(bool first);
  bool read_output(TensorOnGpu& output, bool first);
  void scan(const TensorOnGpu& output);
  void check_inputs();
  bool compare_goldens();
  Json compare(const Golden& golden, const TensorOnGpu& output);
  double row_or_element_error(const Golden& golden, const TensorOnGpu& output, int64_t row);
  bool golden_has_nan(const std::string& output) const;
  bool time();
  std::optional<std::vector<float>> timed_launches(int count);

  const Kernel& kernel_;
  const Driver& driver_;
  const ProveCase& asked_;
  const ProveOptions& options_;
  const uint64_t seed_;
  const CurrentContext current_;
  Diagnostics findings_;
  Json facts_;
  std::vector<TensorOnGpu> tensors_;  // in launch.json's order
  std::unique_ptr<Plan> plan_;
  std::vector<uint64_t> addresses_;
  bool lost_ = false;
};

bool Prover::allocate() {
  for (const Argument& a : kernel_.spec().arguments) {
    if (!a.is_tensor()) continue;
    TensorOnGpu t{&a};
    t.layout =
        Strided::of(a.dtype, shape_of(a, kernel_.spec(), asked_.sizes), asked_.rows_before_heads);
    t.memory = Guarded::allocate(driver_, a.name, t.layout.bytes(), findings_);
    if (!t.memory || !t.memory->poison(findings_)) return false;
    if (!a.written) {
      t.bytes = draw_bytes(asked_.inputs.find(a.name)->second, seed_, t.layout);
      if (!t.memory->fill(t.bytes, findings_)) return false;
    }
    addresses_.push_back(t.memory->data());
    tensors_.push_back(std::move(t));
  }
  return true;
}

bool Prover::make_plan() {
  Tensors views;
  for (const TensorOnGpu& t : tensors_)
    views[t.argument->name] = {t.memory->data(), t.layout.dtype, t.layout.shape, t.layout.strides};
  plan_ = kernel_.plan(views, asked_.scalars, findings_);
  return plan_ != nullptr;
}

// Waits for what was enqueued; an error here is the kernel's.
bool Prover::finish(bool enqueued) {
  const CuResult status = enqueued ? driver_.context_synchronize() : 0;
  if (enqueued && status == 0) return true;
  lost_ = true;
  if (status != 0) finding("prove.fault", "the launch ended with " + driver_.describe(status));
  return false;
}

bool Prover::poison_outputs() {
  for (const TensorOnGpu& t : tensors_)
    if (t.argument->written && !t.memory->poison(findings_)) return false;
  return true;
}

// False when nothing more can be learnt from this case.
bool Prover::launch_once(bool first) {
  if (!poison_outputs() || !finish(plan_->enqueue(addresses_, nullptr, findings_))) return false;
  for (TensorOnGpu& t : tensors_)
    if (t.argument->written && !read_output(t, first)) return false;
  // The next launch would start from what this one left: it could hang, and so could other cases'.
  lost_ = !kernel_.workspaces_are_zero(findings_);
  return !lost_;
}

bool Prover::read_output(TensorOnGpu& output, bool first) {
  std::string bytes;
  const size_t before = findings_.all().size();
  if (!output.memory->read(bytes, findings_) && findings_.all().size() > before &&
      findings_.all().back().code != "prove.guard")
    return false;
  if (first) {
    output.bytes = std::move(bytes);
    scan(output);
  } else if (bytes != output.bytes) {
    finding("prove.repeat", output.argument->name + ": a second launch gave other bits");
  }
  return true;
}

// Row-major index as "[1, 0, 77, 3]".
std::string index_text(const Strided& layout, int64_t n) {
  std::vector<int64_t> index(layout.shape.size());
  for (size_t d = index.size(); d-- > 0; n /= layout.shape[d]) index[d] = n % layout.shape[d];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// Looks for elements that were never written and for NaNs. Types of one byte have no value to
// spare for a canary.
void Prover::scan(const TensorOnGpu& output) {
  const int64_t size = static_cast<int64_t>(bytes(output.layout.dtype));
  if (size == 1 || holds_words(asked_, output.argument->name)) return;
  const std::string canary = canaries(size);
  int64_t unwritten = 0, nans = 0, first_unwritten = -1, first_nan = -1;
  for (int64_t n = 0; n < output.layout.count(); ++n) {
    const int64_t at = output.layout.position(n);
    if (memcmp(output.bytes.data() + at * size, canary.data(), size) == 0) {
      if (unwritten++ == 0) first_unwritten = n;
    } else if (std::isnan(element(output.bytes, output.layout.dtype, at))) {
      if (nans++ == 0) first_nan = n;
    }
  }
  const std::string& name = output.argument->name;
  if (unwritten)
    finding("prove.unwritten",
            fmt::format("{}: {} of {} elements were not written, the first at {}", name, unwritten,
                        output.layout.count(), index_text(output.layout, first_unwritten)));
  if (nans && !golden_has_nan(name))
    finding("prove.nan", fmt::format("{}: {} of {} elements are NaN, the first at {}", name, nans,
                                     output.layout.count(), index_text(output.layout, first_nan)));
}

bool Prover::golden_has_nan(const std::string& output) const {
  for (const Golden& golden : asked_.goldens)
    if (golden.output == output)
      for (const double value : golden.values.values)
        if (std::isnan(value)) return true;
  return false;
}

void Prover::check_inputs() {
  for (const TensorOnGpu& t : tensors_) {
    if (t.argument->written) continue;
    std::string now;
    t.memory->read(now, findings_);
    if (now != t.bytes) finding("prove.input", t.argument->name + ": the kernel changed its input");
  }
}

// False when there was nothing to compare with.
bool Prover::compare_goldens() {
  if (options_.seed && *options_.seed != asked_.seed) return false;
  for (const Golden& golden : asked_.goldens)
    for (const TensorOnGpu& t : tensors_)
      if (t.argument->name == golden.output)
        facts_["goldens"].push_back(
            golden.mask ? compare_words(golden, t.bytes, t.layout, findings_) : compare(golden, t));
  return !asked_.goldens.empty();
}

// Relative L2 of a row, or the absolute error of an element; infinity where the classes (finite,
// infinite, NaN) differ.
double Prover::row_or_element_error(const Golden& golden, const TensorOnGpu& output, int64_t row) {
  const Strided& layout = output.layout;
  const int64_t dims = golden.rows.shape[1];
  const int64_t columns =
      dims < static_cast<int64_t>(layout.shape.size()) ? layout.shape.back() : 1;
  int64_t at = 0;
  for (int64_t d = 0; d < dims; ++d)
    at += static_cast<int64_t>(golden.rows.values[row * dims + d]) * layout.strides[d];
  const double* truth = golden.values.values.data() + row * columns;
  std::vector<double> got;
  for (int64_t c = 0; c < columns; ++c)
    got.push_back(element(output.bytes, layout.dtype, at + c * layout.strides.back()));
  if (golden.values.shape.size() == 2) return row_error(got.data(), truth, columns);
  if (std::isfinite(*truth) && std::isfinite(got[0])) return std::abs(got[0] - *truth);
  const bool same = got[0] == *truth || (std::isnan(got[0]) && std::isnan(*truth));
  return same ? 0 : std::numeric_limits<double>::infinity();
}

Json Prover::compare(const Golden& golden, const TensorOnGpu& output) {
  const int64_t rows = golden.rows.shape[0], dims = golden.rows.shape[1];
  int64_t worst = -1, outside = 0;
  double worst_ratio = -1, worst_error = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double error = row_or_element_error(golden, output, r);
    const double accepted = golden.accepted.values[r];
    const bool within = error <= accepted;  // false for a NaN on either side
    outside += !within;
    double ratio = error == 0 ? 0 : error / accepted;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio > worst_ratio) {
      worst = r;
      worst_ratio = ratio;
      worst_error = error;
    }
  }
  std::vector<int64_t> index;
  for (int64_t d = 0; worst >= 0 && d < dims; ++d)
    index.push_back(static_cast<int64_t>(golden.rows.values[worst * dims + d]));
  if (outside)
    finding("prove.error",
            fmt::format(
                "{}: {} of {} sampled {} are further from the truth than accepted; the worst "
                "at [{}]: error {:.3g}, accepted {:.3g}",
                golden.output, outside, rows, golden.values.shape.size() == 2 ? "rows" : "elements",
                fmt::join(index, ", "), worst_error, golden.accepted.values[worst]));
  // JSON has no infinity: nlohmann writes null for one.
  return {{"output", golden.output},
          {"rows", rows},
          {"worst_ratio", worst_ratio},
          {"worst_error", worst_error},
          {"accepted", worst >= 0 ? golden.accepted.values[worst] : 0.0},
          {"worst_index", index}};
}

// Milliseconds of each launch, from events around it.
std::optional<std::vector<float>> Prover::timed_launches(int count) {
  int device_l2 = 0;
  driver_.device_attribute(&device_l2, device_l2_bytes, 0);
  const int64_t flush_bytes = 4 * int64_t{device_l2};
  std::unique_ptr<Guarded> flush;
  if (options_.cold &&
      !(flush = Guarded::allocate(driver_, "the L2 flush", flush_bytes, findings_)))
    return std::nullopt;
  std::vector<CuEvent> events(2 * count);
  for (CuEvent& event : events) driver_.event_create(&event, 0);
  bool enqueued = true;
  for (int i = 0; i < count && enqueued; ++i) {
    if (flush)
      driver_.fill_bytes(flush->data(), static_cast<unsigned char>(i), flush_bytes, nullptr);
    driver_.event_record(events[2 * i], nullptr);
    enqueued = plan_->enqueue(addresses_, nullptr, findings_);
    driver_.event_record(events[2 * i + 1], nullptr);
  }
  std::vector<float> times(count);
  const bool finished = finish(enqueued);
  for (int i = 0; i < count && finished; ++i)
    if (!driver_.ok(driver_.event_elapsed(&times[i], events[2 * i], events[2 * i + 1]),
                    "reading a launch's time", findings_))
      return std::nullopt;
  for (CuEvent event : events) driver_.event_destroy(event);
  if (!finished) return std::nullopt;
  return times;
}

bool Prover::time() {
  constexpr int warm_up = 3, launches = 20;
  if (!poison_outputs() || !timed_launches(warm_up)) return false;
  std::optional<std::vector<float>> times = timed_launches(launches);
  if (!times) return false;
  // What was timed is what was judged: the same bits.
  for (TensorOnGpu& t : tensors_)
    if (t.argument->written && !read_output(t, false)) return false;
  std::sort(times->begin(), times->end());
  const double median = (*times)[launches / 2];
  facts_["time"] = {{"l2", options_.cold ? "cold" : "warm"},
                    {"launches", launches},
                    {"median_ms", median},
                    {"min_ms", times->front()}};
  if (asked_.flop > 0) facts_["time"]["tflops"] = asked_.flop / median / 1e9;
  return true;
}

}  // namespace

CaseResult prove_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options) {
  return Prover(kernel, asked, options).run();
}

const char* verdict_name(Exit verdict) {
  switch (verdict) {
    case Exit::holds:
      return "holds";
    case Exit::refuted:
      return "refuted";
    case Exit::bad_input:
      return "bad_input";
    case Exit::inconclusive:
      return "inconclusive";
    case Exit::own_fault:
      return "own_fault";
  }
  return "own_fault";
}

}  // namespace kw::runtime
