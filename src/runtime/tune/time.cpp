#include "runtime/tune/time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>

#include "num/compare.h"
#include "runtime/launch/strided.h"
#include "runtime/prove/guarded.h"
#include "runtime/prove/prove.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

struct Loaded {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Plan> plan;  // of the timed case
};

struct Memory {
  const Argument* argument;
  Strided layout;
  std::unique_ptr<Guarded> bytes;
  std::string reference;  // of an output: what the first candidate that was right gave
};

// The case that is timed: its tensors, which all candidates share.
class Bed {
 public:
  Bed(const Driver& driver, const LaunchSpec& launch, const ProveCase& timed)
      : driver_(driver), timed_(timed) {
    for (const Argument& a : launch.arguments)
      if (a.is_tensor())
        tensors_.push_back(
            {&a, Strided::of(a.dtype, shape_of(a, launch, timed.sizes), timed.rows_before_heads)});
  }

  bool allocate(Diagnostics& diagnostics) {
    for (Memory& t : tensors_) {
      t.bytes = Guarded::allocate(driver_, t.argument->name, t.layout.bytes(), diagnostics);
      if (!t.bytes || !t.bytes->poison(diagnostics)) return false;
      const auto draw = timed_.inputs.find(t.argument->name);
      if (!t.argument->written &&
          !t.bytes->fill(draw_bytes(draw->second, timed_.seed, t.layout), diagnostics))
        return false;
      addresses_.push_back(t.bytes->data());
    }
    return true;
  }

  std::unique_ptr<Plan> plan(const Kernel& kernel, Diagnostics& diagnostics) const {
    Tensors views;
    for (const Memory& t : tensors_)
      views[t.argument->name] = {t.bytes->data(), t.layout.dtype, t.layout.shape, t.layout.strides};
    return kernel.plan(views, timed_.scalars, diagnostics);
  }
  const std::vector<uint64_t>& addresses() const { return addresses_; }

  bool poison_outputs(Diagnostics& diagnostics) const {
    for (const Memory& t : tensors_)
      if (t.argument->written && !t.bytes->poison(diagnostics)) return false;
    return true;
  }

  // What differs from the first outputs that were read, in words; empty where nothing does. A
  // broken guard band is reported.
  std::string compare_outputs(Diagnostics& diagnostics) {
    for (Memory& t : tensors_) {
      if (!t.argument->written) continue;
      std::string now;
      if (!t.bytes->read(now, diagnostics)) return t.argument->name + ": cannot be read";
      if (t.reference.empty()) t.reference = now;
      const std::string difference = compare(t, now);
      if (!difference.empty()) return difference;
    }
    return {};
  }

 private:
  // Each of two right results is within the accepted error of the truth, twice half a unit in the
  // last place where the user's own function is no worse; so they lie twice that apart at most.
  static std::string compare(const Memory& t, const std::string& now) {
    const bool rows = t.layout.shape.size() == 4;
    const double limit = rows ? 2 * accepted_error(0, t.argument->dtype) : 2e-4;
    const int64_t columns = rows ? t.layout.shape.back() : 1, count = t.layout.count() / columns;
    const int64_t step = std::max<int64_t>(1, count / 8192);
    std::vector<double> a(columns), b(columns);
    for (int64_t r = 0; r < count; r += step) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = t.layout.position(r * columns + c);
        a[c] = element(now, t.argument->dtype, at);
        b[c] = element(t.reference, t.argument->dtype, at);
      }
      double off = 0;  // of a log-sum (maybe infinite), relative only above 1
      if (rows)
        off = row_error(a.data(), b.data(), columns);
      else if (a[0] != b[0])
        off = std::abs(a[0] - b[0]) / std::max(1.0, std::abs(b[0]));
      if (!(off <= limit))
        return fmt::format("{}: row {} differs from the first candidate's", t.argument->name, r);
    }
    return {};
  }

  const Driver& driver_;
  const ProveCase& timed_;
  std::vector<Memory> tensors_;
  std::vector<uint64_t> addresses_;
};

class Timer {
 public:
  Timer(std::shared_ptr<const Driver> driver, const std::string& folder,
        const TimingOptions& options, const SendEvent& send, Diagnostics& diagnostics)
      : driver_(std::move(driver)),
        folder_(folder),
        options_(options),
        send_(send),
        diagnostics_(diagnostics) {}

  bool run(const std::vector<std::string>& names) {
    for (const std::string& name : names) load(name);
    if (candidates_.empty() || !read_cases()) return true;
    const CurrentContext current(*driver_, candidates_[0].kernel->context());
    Bed bed(*driver_, candidates_[0].kernel->spec(), *timed_);
    if (!bed.allocate(diagnostics_)) return true;
    std::vector<Loaded*> right;
    for (Loaded& c : candidates_) {
      send_({{"begin", c.name}});
      const std::string why = fault_of(c, bed);
      send_({{"judged", c.name},
             {"verdict", lost_         ? "crashed"
                         : why.empty() ? "ok"
                                       : "wrong"},
             {"why", why}});
      if (lost_) return false;
      if (why.empty()) right.push_back(&c);
    }
    return rounds(right, bed);
  }

 private:
  void load(const std::string& name) {
    Diagnostics why;
    auto kernel = Kernel::load_folder(driver_, folder_ + "/candidates/" + name, 0, why);
    if (kernel)
      candidates_.push_back({name, std::move(kernel), nullptr});
    else
      send_({{"judged", name}, {"verdict", "wrong"}, {"why", why.all().at(0).message}});
  }

  // The cases are those of any candidate: they have the same arguments.
  bool read_cases() {
    cases_ = read_prove_spec(folder_, candidates_[0].kernel->spec(), diagnostics_);
    if (!cases_) return false;
    for (const ProveCase& c : cases_->cases)
      if (c.timed) timed_ = &c;
    if (!timed_)
      diagnostics_.error("tune.json", {}, folder_ + "/prove.json: no case is marked as timed");
    return timed_ != nullptr;
  }

  // In words what is wrong with a candidate; empty if nothing is.
  std::string fault_of(Loaded& c, Bed& bed) {
    for (const ProveCase& one : cases_->cases) {
      if (one.timed) continue;
      const CaseResult result = prove_case(*c.kernel, one, {});
      lost_ = result.context_lost;
      if (result.verdict == Exit::holds) continue;
      const Json& findings = (*result.facts)["findings"];
      return one.name + ": " +
             (findings.empty() ? std::string(verdict_name(result.verdict))
                               : findings[0]["message"].get<std::string>());
    }
    Diagnostics findings;
    c.plan = bed.plan(*c.kernel, findings);
    if (c.plan && bed.poison_outputs(findings) &&
        c.plan->enqueue(bed.addresses(), nullptr, findings)) {
      if (const CuResult status = driver_->context_synchronize()) {
        lost_ = true;
        return "the launch ended with " + driver_->describe(status);
      }
      const std::string difference = bed.compare_outputs(findings);
      if (!difference.empty() && findings.all().empty()) return difference;
    }
    return findings.all().empty() ? "" : findings.all()[0].message;
  }

  bool rounds(std::vector<Loaded*> turns, const Bed& bed) {
    const Random random(options_.seed, 0);
    uint64_t drawn = 0;
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t n = turns.size(); n > 1; --n)  // Fisher and Yates
        std::swap(turns[n - 1], turns[random.integer(drawn++, 0, static_cast<int64_t>(n) - 1)]);
      for (const Loaded* c : turns) {
        send_({{"begin", c->name}});
        const double ms = turn(*c->plan, bed.addresses());
        if (!(ms > 0)) {
          send_({{"judged", c->name}, {"verdict", "crashed"}, {"why", last_finding()}});
          return false;
        }
        send_({{"time", c->name}, {"ms", ms}});
      }
    }
    return true;
  }

  std::string last_finding() const {
    return diagnostics_.all().empty() ? "a launch failed" : diagnostics_.all().back().message;
  }

  // Milliseconds of a launch in this candidate's turn; 0 when one failed.
  double turn(const Plan& plan, const std::vector<uint64_t>& addresses) {
    const auto once = stretch(plan, addresses, 1, 0);
    if (!once) return 0;
    const int batch = std::max(1, static_cast<int>(options_.batch_ms / std::max(*once, 1e-3)));
    if (!stretch(plan, addresses, batch, options_.settle_ms)) return 0;
    return stretch(plan, addresses, batch, options_.stretch_ms).value_or(0);
  }

  // Launches in batches for at least so long; the mean time of one. The queue never runs dry, which
  // would cool the card, and never grows long.
  std::optional<double> stretch(const Plan& plan, const std::vector<uint64_t>& addresses, int batch,
                                double milliseconds) {
    Events events(*driver_);
    const CuEvent first = events.record();
    std::deque<CuEvent> pending;
    double elapsed = 0;
    for (int launches = batch;; launches += batch) {
      for (int n = 0; n < batch; ++n)
        if (!plan.enqueue(addresses, nullptr, diagnostics_)) return std::nullopt;
      pending.push_back(events.record());
      const bool last = elapsed >= milliseconds;
      if (pending.size() < 2 && !last) continue;
      const CuEvent waited = last ? pending.back() : pending.front();
      pending.pop_front();
      const auto now = since(first, waited);
      if (!now) return std::nullopt;
      elapsed = *now;
      if (last) return elapsed / launches;
    }
  }

  std::optional<double> since(CuEvent first, CuEvent last) {
    float ms = 0;
    if (!driver_->ok(driver_->event_synchronize(last), "waiting for launches", diagnostics_) ||
        !driver_->ok(driver_->event_elapsed(&ms, first, last), "reading their time", diagnostics_))
      return std::nullopt;
    return ms;
  }

  // Points in the queue, destroyed together.
  class Events {
   public:
    explicit Events(const Driver& driver) : driver_(driver) {}
    ~Events() {
      for (CuEvent event : all_) driver_.event_destroy(event);
    }
    CuEvent record() {
      CuEvent event = nullptr;
      driver_.event_create(&event, 0);
      driver_.event_record(event, nullptr);
      all_.push_back(event);
      return event;
    }

   private:
    const Driver& driver_;
    std::vector<CuEvent> all_;
  };

  const std::shared_ptr<const Driver> driver_;
  const std::string& folder_;
  const TimingOptions& options_;
  const SendEvent& send_;
  Diagnostics& diagnostics_;
  std::vector<Loaded> candidates_;
  std::optional<ProveSpec> cases_;
  const ProveCase* timed_ = nullptr;
  bool lost_ = false;
};

}  // namespace

bool time_candidates(const std::shared_ptr<const Driver>& driver, const std::string& folder,
                     const std::vector<std::string>& names, const TimingOptions& options,
                     const SendEvent& send, Diagnostics& diagnostics) {
  return Timer(driver, folder, options, send, diagnostics).run(names);
}

}  // namespace kw::runtime
