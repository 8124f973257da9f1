// kernelwright-tune-time: times a kernel's candidates beside each other, on a GPU.
//
//   kernelwright-tune-time DIR [--out FILE] [--rounds N] [--limit SECONDS]
//
// DIR is what `kernelwright tune` wrote (runtime/tune/spec.h). Nothing else is needed on the
// machine but the NVIDIA driver. Writes DIR/times.json, or FILE, and prints the table. A candidate
// may hang or break its context, so the GPU is used by a child process (runtime/tune/time.h); one
// that does is left out, and a new child times the others from the start. Exit codes: 0 timed, 1 no
// candidate is right, 2 the input is at fault, 3 no GPU, 70 our own fault.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "runtime/tune/choice.h"
#include "runtime/tune/time.h"
#include "support/child.h"
#include "support/files.h"

namespace {

using namespace kw;
using namespace kw::runtime;
using Json = nlohmann::json;

struct Options {
  std::string folder, out;
  TimingOptions timing;
  double limit_seconds = 60;
};

constexpr int kContextLost = 75;  // exit status of a child that another one should follow

// ---- the child: everything that touches the GPU

int work(const Options& options, const std::vector<std::string>& names, int fd) {
  const SendEvent send = [fd](const Json& event) {
    send_line(fd, event.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  Diagnostics diagnostics;
  Exit exit = Exit::inconclusive;
  if (const auto driver = Driver::open(diagnostics)) {
    char name[256] = "";
    int version = 0;
    driver->device_name(name, sizeof name, 0);
    driver->driver_version(&version);
    send({{"gpu", name}, {"driver", fmt::format("{}.{}", version / 1000, version % 1000 / 10)}});
    if (!time_candidates(driver, options.folder, names, options.timing, send, diagnostics))
      _exit(kContextLost);  // destructors would wait for a context that is gone
    exit = diagnostics.has_errors() ? Exit::bad_input : Exit::holds;
  }
  if (diagnostics.has_errors()) send({{"failed", render(diagnostics)}});
  return static_cast<int>(exit);
}

// ---- the parent

class Supervisor {
 public:
  Supervisor(const Options& options, const std::vector<TuneCandidate>& candidates)
      : options_(options) {
    for (const TuneCandidate& c : candidates) times_.candidates.push_back({c.name, "", "", {}});
  }

  // Children until one ends by itself: each that does not leaves one candidate fewer.
  Exit run() {
    while (true) {
      std::vector<std::string> names;
      for (CandidateTimes& c : times_.candidates) {
        if (!c.verdict.empty() && c.verdict != "ok") continue;
        c.ms.clear();
        names.push_back(c.name);
      }
      if (names.empty()) return Exit::refuted;
      running_.clear();
      const ChildEnd end =
          watch_child([&](int fd) { return work(options_, names, fd); },
                      [&](const std::string& line) { take(line); }, options_.limit_seconds);
      if (!end.started) return Exit::own_fault;
      if (!end.silent && !end.signal && end.exit_code != kContextLost)
        return static_cast<Exit>(end.exit_code);
      CandidateTimes* c = find(running_);
      if (!c) {
        fprintf(stderr, "error[tune.child]: the process that uses the GPU %s\n",
                end.signal ? strsignal(end.signal) : "did not open it in time");
        return Exit::own_fault;
      }
      if (c->verdict.empty() || c->verdict == "ok") {
        c->verdict = "crashed";
        c->why = end.silent   ? fmt::format("silent for {} s", options_.limit_seconds)
                 : end.signal ? strsignal(end.signal)
                              : "the context was lost";
      }
      fmt::print(stderr, "candidate {} crashed: {}; the others start again\n", c->name, c->why);
    }
  }

  TuneTimes times() const { return times_; }

 private:
  CandidateTimes* find(const std::string& name) {
    for (CandidateTimes& c : times_.candidates)
      if (c.name == name) return &c;
    return nullptr;
  }

  void take(const std::string& line) {
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_discarded()) return;
    if (event.contains("failed")) fputs(event["failed"].get<std::string>().c_str(), stderr);
    if (event.contains("gpu")) {
      times_.gpu = event["gpu"];
      times_.driver = event["driver"];
    }
    if (event.contains("begin")) running_ = event["begin"];
    if (event.contains("judged")) {
      CandidateTimes& c = *find(event["judged"]);
      c.verdict = event["verdict"];
      c.why = event["why"];
    }
    if (event.contains("time")) find(event["time"])->ms.push_back(event["ms"]);
  }

  const Options& options_;
  TuneTimes times_;
  std::string running_;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = "";
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// The case that is timed, for the table; everything else of it is the child's to read.
bool read_shape(const Options& options, TuneTimes& times, Diagnostics& diagnostics) {
  const SourcePtr source = read_source(options.folder + "/prove.json");
  const Json json = source ? Json::parse(source->text, nullptr, false) : Json();
  if (json.is_object() && json.contains("cases"))
    for (const Json& one : json["cases"])
      if (one.is_object() && one.value("timed", false)) {
        times.shape = one.value("name", "");
        times.flop = one.value("flop", 0.0);
      }
  if (!times.shape.empty()) return true;
  diagnostics.error("tune.json", {}, options.folder + "/prove.json: no case is marked as timed");
  return false;
}

int run(const Options& options) {
  Diagnostics diagnostics;
  TuneTimes shape;
  const auto candidates = read_tune_candidates(options.folder, diagnostics);
  if (!candidates || !read_shape(options, shape, diagnostics)) {
    fputs(render(diagnostics).c_str(), stderr);
    return static_cast<int>(Exit::bad_input);
  }
  Supervisor supervisor(options, *candidates);
  const Exit exit = supervisor.run();
  if (exit != Exit::holds && exit != Exit::refuted) return static_cast<int>(exit);
  TuneTimes times = supervisor.times();
  times.date = today();
  times.shape = shape.shape;
  times.flop = shape.flop;
  fmt::print("{} on {} (driver {}), {} rounds\n{}", times.shape, times.gpu, times.driver,
             options.timing.rounds, table(*candidates, times));
  const auto choice = choose(*candidates, times);
  if (choice) fmt::print("{}\n", sentence(*choice));
  const std::string out = options.out.empty() ? options.folder + "/times.json" : options.out;
  if (!write_file(out, to_json(times).dump(1) + "\n")) {
    fmt::print(stderr, "error[tune.write]: cannot write '{}': {}\n", out, strerror(errno));
    return static_cast<int>(Exit::bad_input);
  }
  return static_cast<int>(choice ? Exit::holds : Exit::refuted);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times a kernel's candidates beside each other, on a GPU.",
               "kernelwright-tune-time");
  Options options;
  app.add_option("DIR", options.folder, "folder that kernelwright tune wrote")->required();
  app.add_option("--out", options.out, "file to write; default DIR/times.json");
  app.add_option("--rounds", options.timing.rounds, "turns of each candidate")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--limit", options.limit_seconds, "seconds a candidate may be silent")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::bad_input);
  }
  return run(options);
}
