// kernelwright-prove: holds a generated kernel against the truth, on a GPU.
//
//   kernelwright-prove DIR [--seed N] [--cold | --warm] [--json] [--limit SECONDS]
//
// DIR holds kernel.cubin, launch.json and prove.json (see src/runtime/prove_spec.h). Nothing else
// is needed on the machine but the NVIDIA driver. A kernel may hang or break its context, so the
// GPU is used by a child process, which sends one line of JSON for each event; the parent kills it
// when a case takes too long. Exit codes: 0 holds, 1 refuted, 2 the input is at fault, 3
// inconclusive (no GPU, or no golden applied), 70 our own fault.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "report.h"
#include "runtime/prove.h"
#include "support/child.h"
#include "support/files.h"

namespace {

using namespace kw;
using namespace kw::runtime;
using Json = nlohmann::json;

struct Options {
  std::string folder;
  ProveOptions prove;
  bool json = false;
  double limit_seconds = 60;
};

// ---- the child: everything that touches the GPU

void send(int fd, const Json& event) {
  send_line(fd, event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json machine(const Driver& driver) {
  char name[256] = "";
  int version = 0;
  driver.device_name(name, sizeof name, 0);
  driver.driver_version(&version);
  return {{"gpu", name}, {"driver", fmt::format("{}.{}", version / 1000, version % 1000 / 10)}};
}

// Loads and proves; the exit status says what ended it early, 0 when all cases ran.
Exit work(const Options& options, const ProveSpec& spec, int fd) {
  Diagnostics diagnostics;
  const auto leave = [&](Exit exit) {
    send(fd, {{"failed", to_json(diagnostics)}});
    return exit;
  };
  const std::shared_ptr<const Driver> driver = Driver::open(diagnostics);
  if (!driver) return leave(Exit::inconclusive);
  send(fd, {{"machine", machine(*driver)}});
  const auto kernel = Kernel::load_folder(driver, options.folder, 0, diagnostics);
  if (!kernel) return leave(Exit::bad_input);
  for (const ProveCase& one : spec.cases) {
    send(fd, {{"begin", one.name}});
    const CaseResult result = prove_case(*kernel, one, options.prove);
    send(fd, {{"case", *result.facts}});
    if (result.context_lost) _exit(0);  // destructors would wait for a context that is gone
  }
  return Exit::holds;
}

// Which kernel the report is about, for whoever adds it to a certificate.
std::string cubin_sha256(const std::string& folder) {
  const SourcePtr cubin = read_source(folder + "/kernel.cubin");
  return cubin ? sha256(cubin->text) : "";
}

// ---- the parent

// Gathers the child's events into the report and prints the table as it grows.
class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  void take(const std::string& line) {
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_discarded()) return;
    if (event.contains("begin")) running_ = event["begin"];
    if (event.contains("failed")) failed_ = event["failed"];
    if (event.contains("machine")) {
      machine_ = event["machine"];
      print(fmt::format("{} on {} (driver {})\n{}", options_.folder,
                        machine_["gpu"].get<std::string>(), machine_["driver"].get<std::string>(),
                        prove::table_head()));
    }
    if (event.contains("case")) {
      running_.clear();
      add(event["case"]);
    }
  }
  // The case that was running did not end.
  void unfinished(const char* code, const std::string& message) {
    add({{"name", running_},
         {"verdict", "refuted"},
         {"goldens", Json::array()},
         {"findings", {{{"severity", "error"}, {"code", code}, {"message", message}}}}});
  }
  const std::string& running() const { return running_; }

  int finish(Exit child, size_t expected) {
    Exit verdict = child;
    if (child == Exit::holds) verdict = worst();
    const size_t missing = expected - cases_.size();
    if (verdict != Exit::refuted && child == Exit::holds && missing) verdict = Exit::own_fault;
    for (const Json& d : failed_)
      fprintf(stderr, "error[%s]: %s\n", d["code"].get<std::string>().c_str(),
              d["message"].get<std::string>().c_str());
    if (missing && child == Exit::holds)
      print(fmt::format("{} of {} cases were not run\n", missing, expected));
    print(fmt::format("{}\n", verdict_name(verdict)));
    if (options_.json)
      fmt::print("{}\n", Json{{"folder", options_.folder},
                              {"cubin_sha256", cubin_sha256(options_.folder)},
                              {"machine", machine_},
                              {"verdict", verdict_name(verdict)},
                              {"cases", cases_},
                              {"not_run", missing},
                              {"failed", failed_}}
                             .dump(1));
    return static_cast<int>(verdict);
  }

 private:
  void add(const Json& facts) {
    cases_.push_back(facts);
    print(prove::table_line(facts));
  }
  // The table goes to standard output, or beside it when that is for JSON.
  void print(const std::string& text) const {
    fputs(text.c_str(), options_.json ? stderr : stdout);
    fflush(options_.json ? stderr : stdout);
  }
  // Refuted before bad input before inconclusive before holds.
  Exit worst() const {
    for (const Exit exit : {Exit::refuted, Exit::bad_input, Exit::inconclusive})
      for (const Json& one : cases_)
        if (one["verdict"] == verdict_name(exit)) return exit;
    return Exit::holds;
  }

  const Options& options_;
  Json machine_, cases_ = Json::array(), failed_ = Json::array();
  std::string running_;
};

int supervise(const Options& options, const ProveSpec& spec) {
  Report report(options);
  const ChildEnd end =
      watch_child([&](int fd) { return static_cast<int>(work(options, spec, fd)); },
                  [&](const std::string& line) { report.take(line); }, options.limit_seconds);
  if (!end.started) return static_cast<int>(Exit::own_fault);
  if (end.silent && !report.running().empty()) {
    report.unfinished("prove.hang", fmt::format("did not end within {} s; the process was killed",
                                                options.limit_seconds));
    return report.finish(Exit::holds, spec.cases.size());
  }
  if (end.silent || end.signal) {
    fprintf(stderr, "error[prove.child]: the process that uses the GPU %s\n",
            end.signal ? strsignal(end.signal) : "did not open it in time");
    return report.finish(Exit::own_fault, spec.cases.size());
  }
  return report.finish(static_cast<Exit>(end.exit_code), spec.cases.size());
}

std::optional<ProveSpec> read_input(const Options& options, Diagnostics& diagnostics) {
  const SourcePtr launch_json = read_source(options.folder + "/launch.json");
  if (!launch_json) {
    diagnostics.error("launch.folder", {},
                      fmt::format("{}/launch.json: {}", options.folder, strerror(errno)));
    return std::nullopt;
  }
  const std::optional<LaunchSpec> launch = read_launch_spec(launch_json, diagnostics);
  if (!launch) return std::nullopt;
  return read_prove_spec(options.folder, *launch, diagnostics);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Holds a generated kernel against the truth, on a GPU.", "kernelwright-prove");
  Options options;
  uint64_t seed = 0;
  bool cold = false, warm = false;
  app.add_option("DIR", options.folder, "folder with kernel.cubin, launch.json and prove.json")
      ->required();
  CLI::Option* with_seed =
      app.add_option("--seed", seed, "draw other inputs: then goldens do not apply");
  CLI::Option* with_cold =
      app.add_flag("--cold", cold, "overwrite L2 before timed launches (default)");
  app.add_flag("--warm", warm, "leave L2 as the launch before left it")->excludes(with_cold);
  app.add_flag("--json", options.json, "a JSON object on standard output, the table beside it");
  app.add_option("--limit", options.limit_seconds, "seconds a case may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::bad_input);
  }
  options.prove.cold = !warm;
  if (*with_seed) options.prove.seed = seed;
  Diagnostics diagnostics;
  const std::optional<ProveSpec> spec = read_input(options, diagnostics);
  if (spec) return supervise(options, *spec);
  fputs(render(diagnostics).c_str(), stderr);
  return static_cast<int>(Exit::bad_input);
}
