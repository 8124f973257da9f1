#include "runtime/prove/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/launch/strided.h"
#include "runtime/prove/guarded.h"
#include "runtime/prove/judge.h"
#include "runtime/prove/prove_words.h"
#include "support/entropy.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

struct TensorOnGpu {
  const Argument* argument = nullptr;
  Strided layout;
  std::unique_ptr<Guarded> memory;
  std::string bytes;  // of an input what was drawn; of an output what the first launch gave
};

// The launches of one case.
class Observer {
 public:
  Observer(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options, char* keep)
      : kernel_(kernel),
        driver_(kernel.driver()),
        asked_(asked),
        options_(options),
        keep_(keep),
        seed_(options.seed.value_or(asked.seed)),
        current_(driver_, kernel.context()) {}

  Observation run() {
    if (!seed_fits()) return seen(Exit::bad_input);
    if (!allocate() || !make_plan()) return seen(Exit::bad_input);
    for (int n = 0; n < asked_.launches; ++n)
      if (!launch_once(n)) return seen(Exit::refuted);
    if (asked_.timed && !findings_.has_errors() && !time()) return seen(Exit::refuted);
    return seen(Exit::holds);
  }

 private:
  Observation seen(Exit end) {
    Observation out{end,
                    lost_,
                    std::make_shared<Json>(to_json(findings_)),
                    std::make_shared<Json>(std::move(time_)),
                    {},
                    {}};
    for (TensorOnGpu& t : tensors_)
      if (t.argument->written && !t.bytes.empty()) out.memory.push_back(std::move(t.bytes));
    for (const std::string& bytes : out.memory) {
      out.outputs.push_back(bytes);
      if (!keep_) continue;
      memcpy(keep_, bytes.data(), bytes.size());
      keep_ += bytes.size();
    }
    return out;
  }
  void finding(const char* code, std::string message) {
    findings_.error(code, {}, std::move(message));
  }
  // What is given follows from what is drawn: of another seed it would be nonsense.
  bool seed_fits() {
    if (seed_ == asked_.seed) return true;
    for (const auto& [name, contents] : asked_.inputs)
      if (contents.given) {
        finding("prove.seed",
                fmt::format("{} is stored, as it follows from inputs of the seed {}, and "
                            "{} is asked for",
                            name, asked_.seed, seed_));
        return false;
      }
    return true;
  }
  bool allocate();
  bool make_plan();
  bool finish(bool enqueued);
  bool poison_outputs();
  bool launch_once(int n);
  bool read_output(TensorOnGpu& output, std::string& bytes);
  bool inputs_unchanged();
  bool time();
  bool timed_launch(const Guarded* flush, float& ms);
  bool check_timed(const std::vector<bool>& signs, int64_t groups);
  TensorOnGpu* signed_tensor();

  const Kernel& kernel_;
  const Driver& driver_;
  const ProveCase& asked_;
  const ProveOptions& options_;
  char* keep_;
  const uint64_t seed_;
  const CurrentContext current_;
  Diagnostics findings_;
  Json time_;
  std::vector<TensorOnGpu> tensors_;  // in launch.json's order
  std::unique_ptr<Plan> plan_;
  std::vector<uint64_t> addresses_;
  bool lost_ = false;
};

bool Observer::allocate() {
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

bool Observer::make_plan() {
  Tensors views;
  for (const TensorOnGpu& t : tensors_)
    views[t.argument->name] = {t.memory->data(), t.layout.dtype, t.layout.shape, t.layout.strides};
  plan_ = kernel_.plan(views, asked_.scalars, findings_);
  return plan_ != nullptr;
}

// Waits for what was enqueued; an error here is the kernel's.
bool Observer::finish(bool enqueued) {
  const CuResult status = enqueued ? driver_.context_synchronize() : 0;
  if (enqueued && status == 0) return true;
  lost_ = true;
  if (status != 0) finding("prove.fault", "the launch ended with " + driver_.describe(status));
  return false;
}

bool Observer::poison_outputs() {
  for (const TensorOnGpu& t : tensors_)
    if (t.argument->written && !t.memory->poison(findings_)) return false;
  return true;
}

// False when nothing more can be learnt from this case.
bool Observer::launch_once(int n) {
  if (!poison_outputs() || !finish(plan_->enqueue(addresses_, nullptr, findings_))) return false;
  for (TensorOnGpu& t : tensors_) {
    if (!t.argument->written) continue;
    std::string bytes;
    if (!read_output(t, bytes)) return false;
    if (n == 0)
      t.bytes = std::move(bytes);
    else if (bytes != t.bytes) {
      finding("prove.repeat",
              fmt::format("{}: launch {} on the same inputs gave other bits than launch 1",
                          t.argument->name, n + 1));
      return false;
    }
  }
  if ((n == 0 || n == asked_.launches - 1) && !inputs_unchanged()) return false;
  // The next launch would start from what this one left: it could hang, and so could other cases'.
  lost_ = !kernel_.workspaces_are_zero(findings_);
  return !lost_;
}

// A broken guard band is a finding, and the bytes are read all the same.
bool Observer::read_output(TensorOnGpu& output, std::string& bytes) {
  const size_t before = findings_.all().size();
  return output.memory->read(bytes, findings_) ||
         (findings_.all().size() > before && findings_.all().back().code == "prove.guard");
}

bool Observer::inputs_unchanged() {
  bool unchanged = true;
  for (const TensorOnGpu& t : tensors_) {
    if (t.argument->written) continue;
    std::string now;
    t.memory->read(now, findings_);
    if (now == t.bytes) continue;
    finding("prove.input", t.argument->name + ": the kernel changed its input");
    unchanged = false;
  }
  return unchanged;
}

// One launch between two events, after L2 was overwritten or, warm, after a launch that warmed it.
bool Observer::timed_launch(const Guarded* flush, float& ms) {
  CuEvent events[2] = {};
  for (CuEvent& event : events) driver_.event_create(&event, 0);
  bool enqueued = true;
  if (flush)
    driver_.fill_bytes(flush->data(), 0x5a, flush->bytes(), nullptr);
  else
    enqueued = plan_->enqueue(addresses_, nullptr, findings_);
  driver_.event_record(events[0], nullptr);
  enqueued = enqueued && plan_->enqueue(addresses_, nullptr, findings_);
  driver_.event_record(events[1], nullptr);
  const bool timed =
      finish(enqueued) && driver_.ok(driver_.event_elapsed(&ms, events[0], events[1]),
                                     "reading a launch's time", findings_);
  for (CuEvent event : events) driver_.event_destroy(event);
  return timed;
}

TensorOnGpu* Observer::signed_tensor() {
  for (TensorOnGpu& t : tensors_)
    if (t.argument->name == asked_.signed_input) return &t;
  return nullptr;
}

// What was timed is judged: the bits of the first launch, but for the signs that were changed.
bool Observer::check_timed(const std::vector<bool>& signs, int64_t groups) {
  for (TensorOnGpu& t : tensors_) {
    if (!t.argument->written) continue;
    std::string now;
    if (!read_output(t, now)) return false;
    const auto& changed = asked_.signed_outputs;
    const bool flips = std::find(changed.begin(), changed.end(), t.argument->name) != changed.end();
    const bool right =
        flips ? differs_in_signs_only({t.argument->name, t.layout, t.bytes}, now, signs, groups)
              : now == t.bytes;
    if (right) continue;
    const std::string source =
        !asked_.signed_input.empty() ? "the signs of " + asked_.signed_input : "its inputs";
    finding("prove.replay", t.argument->name +
                                (flips ? ": a timed launch does not follow "
                                       : ": a timed launch gave other bits than "
                                         "launch 1 gave for ") +
                                source);
    return false;
  }
  return true;
}

// Every timed launch has inputs that no launch before it had, in the same memory, and outputs full
// of canaries: what it does not compute itself shows. Which signs change is the system's entropy.
bool Observer::time() {
  constexpr int warm_up = 3, launches = 20;
  int device_l2 = 0;
  driver_.device_attribute(&device_l2, device_l2_bytes, 0);
  std::unique_ptr<Guarded> flush;
  if (options_.cold &&
      !(flush = Guarded::allocate(driver_, "the L2 flush", 4 * int64_t{device_l2}, findings_)))
    return false;
  TensorOnGpu* changing = signed_tensor();
  const int64_t groups = changing ? changing->layout.shape[1] : 1;
  std::vector<float> times;
  for (int n = 0; n < warm_up + launches; ++n) {
    std::vector<bool> signs(changing ? changing->layout.shape[0] * groups : 0);
    for (size_t k = 0; k < signs.size(); ++k) signs[k] = entropy() & 1;
    if (changing) {
      std::string bytes = changing->bytes;
      change_signs(bytes, changing->layout, signs);
      if (!changing->memory->fill(bytes, findings_)) return false;
    }
    float ms = 0;
    if (!poison_outputs() || !timed_launch(flush.get(), ms) || !check_timed(signs, groups))
      return false;
    if (n >= warm_up) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  int facts[5] = {};
  const int attributes[5] = {device_capability_major, device_capability_minor, device_clock_khz,
                             device_memory_clock_khz, device_memory_bus_bits};
  for (int k = 0; k < 5; ++k) driver_.device_attribute(&facts[k], attributes[k], 0);
  int processors = 0;
  driver_.device_attribute(&processors, device_multiprocessor_count, 0);
  const Peaks peaks = peaks_of(10 * facts[0] + facts[1], processors, facts[2], facts[3], facts[4]);
  time_ = {{"l2", options_.cold ? "cold" : "warm"},
           {"launches", launches},
           {"inputs_changed", changing != nullptr},
           {"median_ms", times[launches / 2]},
           {"min_ms", times.front()},
           {"peak_flops", peaks.flops},
           {"peak_bytes", peaks.bytes}};
  return true;
}

bool any_nan(const ProveCase& asked, const std::string& output) {
  for (const Golden& golden : asked.goldens)
    if (golden.output == output)
      for (const double value : golden.values.values)
        if (std::isnan(value)) return true;
  return false;
}

// The time of a launch is void when no GPU with these peaks can have done it: the operations, and
// the outputs, which a cold launch writes to DRAM.
void judge_time(const ProveCase& asked, int64_t written, bool cold, Json& time,
                Diagnostics& findings) {
  const double median = time["median_ms"].get<double>(), fastest = time["min_ms"].get<double>();
  if (asked.flop > 0) time["tflops"] = asked.flop / median / 1e9;
  const Peaks peaks{time["peak_flops"].get<double>(), time["peak_bytes"].get<double>()};
  const double floor = floor_ms(peaks, asked.flop, cold ? static_cast<double>(written) : 0);
  time["floor_ms"] = floor;
  if (fastest >= floor) return;
  findings.warning("prove.floor", {},
                   fmt::format("a launch took {:.4f} ms, and at this GPU's peak it takes {:.4f} ms "
                               "at least: the time is void",
                               fastest, floor));
  time["void"] = true;
}

}  // namespace

Observation observe_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options,
                         char* keep) {
  return Observer(kernel, asked, options, keep).run();
}

int64_t output_bytes(const LaunchSpec& launch, const ProveCase& asked) {
  int64_t sum = 0;
  for (const Argument& a : launch.arguments)
    if (a.is_tensor() && a.written)
      sum += Strided::of(a.dtype, shape_of(a, launch, asked.sizes), false).bytes();
  return sum;
}

CaseResult judge_case(const LaunchSpec& launch, const ProveCase& asked, const ProveOptions& options,
                      const Observation& seen) {
  Diagnostics findings;
  Json facts = {{"name", asked.name},
                {"seed", options.seed.value_or(asked.seed)},
                {"goldens", Json::array()}};
  const bool goldens_apply = !options.seed || *options.seed == asked.seed;
  std::vector<Output> outputs;
  for (const Argument& a : launch.arguments)
    if (a.is_tensor() && a.written && outputs.size() < seen.outputs.size())
      outputs.push_back(
          {a.name, Strided::of(a.dtype, shape_of(a, launch, asked.sizes), asked.rows_before_heads),
           seen.outputs[outputs.size()]});
  for (const Output& output : outputs)
    if (!holds_words(asked, output.name))
      scan_output(output, any_nan(asked, output.name), findings);
  if (goldens_apply)
    for (const Golden& golden : asked.goldens)
      for (const Output& output : outputs)
        if (golden.output == output.name)
          facts["goldens"].push_back(golden.mask ? compare_words(golden, output, findings)
                                                 : compare_golden(golden, output, findings));
  if (seen.time && !seen.time->is_null()) {
    facts["time"] = *seen.time;
    judge_time(asked, output_bytes(launch, asked), options.cold, facts["time"], findings);
  }
  const bool faultless = seen.findings->empty() && !findings.has_errors();
  const bool judged = goldens_apply && !asked.goldens.empty() && findings.all().empty();
  const Exit verdict = seen.end != Exit::holds ? seen.end
                       : !faultless            ? Exit::refuted
                       : judged                ? Exit::holds
                                               : Exit::inconclusive;
  facts["verdict"] = verdict_name(verdict);
  facts["findings"] = to_json(findings);
  for (const Json& finding : *seen.findings) facts["findings"].push_back(finding);
  return {verdict, seen.context_lost, std::make_shared<Json>(std::move(facts))};
}

CaseResult prove_case(const Kernel& kernel, const ProveCase& asked, const ProveOptions& options) {
  return judge_case(kernel.spec(), asked, options, observe_case(kernel, asked, options, nullptr));
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
