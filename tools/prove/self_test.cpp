#include "self_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "supervise.h"
#include "support/self_test_record.h"

namespace kw::prove {
namespace {

using namespace kw::runtime;
using Json = nlohmann::json;

std::string kind_of(const Json& machine) {
  return fmt::format("gpu, driver {}, {}", machine["driver"].get<std::string>(),
                     machine["gpu"].get<std::string>());
}

int64_t keys_of(const ProveCase& one) {
  const auto keys = one.sizes.find("N");
  const auto* value = keys == one.sizes.end() ? nullptr : std::get_if<int64_t>(&keys->second);
  return value ? *value : 0;
}

// What the cases said of one kernel, by the number of keys.
struct Outcome {
  std::map<int64_t, std::set<std::string>> caught_by;  // codes of the findings
  std::set<int64_t> run;
  std::vector<std::string> refuted_cases;
  double worst = 0;  // error over accepted error, of all goldens
  bool lost = false;

  void add(int64_t keys, const Json& facts) {
    run.insert(keys);
    for (const Json& golden : facts["goldens"])
      worst = std::max(
          worst, golden["worst_ratio"].is_null() ? INFINITY : golden["worst_ratio"].get<double>());
    if (facts["verdict"] == "holds") return;
    refuted_cases.push_back(facts["name"].get<std::string>());
    for (const Json& finding : facts["findings"])
      caught_by[keys].insert(finding["code"].get<std::string>());
  }
};

class SelfTester {
 public:
  SelfTester(const std::string& folder, double limit, bool json)
      : folder_(folder), limit_(limit), json_(json) {}

  int run() {
    Diagnostics diagnostics;
    const Json list = read_list(diagnostics);
    for (const Json& kernel : list)
      if (diagnostics.all().empty() && !run_kernel(kernel, diagnostics)) break;
    if (!diagnostics.all().empty()) {
      fputs(render(diagnostics).c_str(), stderr);
      return static_cast<int>(no_gpu_ ? Exit::inconclusive : Exit::bad_input);
    }
    return finish();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Json read_list(Diagnostics& diagnostics) {
    const SourcePtr file = read_source(folder_ + "/self_test.json");
    const Json all = file ? Json::parse(file->text, nullptr, false) : Json();
    Json kernels = all.is_object() ? all.value("kernels", Json::array()) : Json::array();
    int right = 0, wrong = 0;
    for (const Json& kernel : kernels) (kernel.value("expect", "") == "holds" ? right : wrong)++;
    // Without both, a self-test would pass that can't tell one from the other.
    if (!right || !wrong)
      diagnostics
          .error("self_test.folder", {},
                 fmt::format("{}/self_test.json names {} right kernels and {} wrong ones; one of "
                             "each is the least",
                             folder_, right, wrong))
          .hint = "write the folder with `kernelwright self-test --write FOLDER`";
    return kernels;
  }

  // False when the self-test can't go on; it is then reported.
  bool run_kernel(const Json& kernel, Diagnostics& diagnostics) {
    const std::string name = kernel.at("name").get<std::string>();
    const std::string where = folder_ + "/kernels/" + name;
    const std::optional<LaunchSpec> launch = read_launch(where, diagnostics);
    if (!launch) return false;
    const std::optional<ProveSpec> spec = read_prove_spec(folder_, *launch, diagnostics);
    if (!spec) return false;
    Outcome outcome;
    size_t n = 0;
    const Supervised run =
        supervise({where, *launch, *spec, {}, limit_},
                  {[&](const Json& machine) { machine_ = machine; },
                   [&](const Json& facts) { outcome.add(keys_of(spec->cases.at(n++)), facts); }});
    outcome.lost = run.lost;
    if (run.end != Exit::holds) {
      no_gpu_ = run.end == Exit::inconclusive;
      for (const Json& d : *run.failed)
        diagnostics.error(d["code"].get<std::string>(), {},
                          name + ": " + d["message"].get<std::string>());
      return false;
    }
    std::set<int64_t> lengths;
    for (const ProveCase& one : spec->cases) lengths.insert(keys_of(one));
    conclude(kernel, lengths, outcome);
    return true;
  }

  void conclude(const Json& kernel, const std::set<int64_t>& lengths, const Outcome& outcome) {
    const bool holds = kernel.at("expect") == "holds";
    const int64_t from = kernel.value("from", int64_t{0});
    std::vector<std::string> text;
    std::vector<int64_t> missed;
    for (const int64_t keys : lengths) {
      if (holds || keys < from) continue;
      const auto caught = outcome.caught_by.find(keys);
      // A kernel that hung or broke its context is refuted, whatever was not run after that.
      if (caught == outcome.caught_by.end()) {
        if (!outcome.lost || outcome.run.count(keys)) missed.push_back(keys);
      } else {
        text.push_back(fmt::format("{}: {}", keys, fmt::join(caught->second, " ")));
      }
    }
    if (!holds && text.empty() && missed.empty()) missed.push_back(from);
    const bool good =
        holds ? outcome.refuted_cases.empty() && outcome.run == lengths : missed.empty();
    failed_ += !good;
    std::string says = holds ? fmt::format("worst {:.2f} of what is accepted", outcome.worst)
                             : fmt::format("{}", fmt::join(text, "; "));
    if (!good)
      says = holds ? fmt::format("is right, and was refuted by {}",
                                 fmt::join(outcome.refuted_cases, ", "))
                   : fmt::format("is wrong, and passed at {} keys", fmt::join(missed, ", "));
    kernels_.push_back({{"name", kernel.at("name")},
                        {"as_expected", good},
                        {"worst_ratio", outcome.worst},
                        {"says", says}});
    print(fmt::format("{:7} {:24} {}\n", good ? "ok" : "FAILED",
                      kernel.at("name").get<std::string>(), says));
  }

  int finish() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const Json facts = {{"passed", failed_ == 0},
                        {"machine", machine_},
                        {"kernels", kernels_},
                        {"seconds", seconds}};
    const bool kept = keep_self_test(kind_of(machine_), facts);
    print(fmt::format("self-test of {} on {}: {} of {} kernels as expected, {:.1f} s{}\n",
                      build_name(), kind_of(machine_), kernels_.size() - failed_, kernels_.size(),
                      seconds, failed_ ? "; FAILED: nothing is certified here" : ""));
    if (!kept)
      fprintf(stderr, "error[self_test.record]: cannot write %s: %s\n", self_test_file().c_str(),
              strerror(errno));
    if (json_) fmt::print("{}\n", facts.dump(1));
    if (!kept) return static_cast<int>(Exit::own_fault);
    return static_cast<int>(failed_ ? Exit::refuted : Exit::holds);
  }

  void print(const std::string& text) const {
    fputs(text.c_str(), json_ ? stderr : stdout);
    fflush(json_ ? stderr : stdout);
  }

  const std::string& folder_;
  const double limit_;
  const bool json_;
  const Clock::time_point begin_ = Clock::now();
  Json machine_ = {{"gpu", ""}, {"driver", ""}}, kernels_ = Json::array();
  size_t failed_ = 0;
  bool no_gpu_ = false;
};

}  // namespace

int run_self_test(const std::string& folder, double limit_seconds, bool json) {
  return SelfTester(folder, limit_seconds, json).run();
}

std::string doubt_of(const Json& machine) {
  const SelfTest result = self_test_result(kind_of(machine));
  if (result == SelfTest::passed) return "";
  return fmt::format(
      "self-test {} for {} on {}: no finding here says little\n"
      "  help: `kernelwright self-test --write FOLDER`, where there is a compiler; then here "
      "`kernelwright-prove --self-test FOLDER`\n",
      result == SelfTest::failed ? "failed" : "not run", build_name(), kind_of(machine));
}

std::optional<LaunchSpec> read_launch(const std::string& folder, Diagnostics& diagnostics) {
  const SourcePtr text = read_source(folder + "/launch.json");
  if (text) return read_launch_spec(text, diagnostics);
  diagnostics.error("launch.folder", {},
                    fmt::format("{}/launch.json: {}", folder, strerror(errno)));
  return std::nullopt;
}

}  // namespace kw::prove
