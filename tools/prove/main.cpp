// kernelwright-prove: holds a generated kernel against the truth, on a GPU.
//
//   kernelwright-prove DIR [--seed N] [--cold | --warm] [--json] [--limit SECONDS]
//   kernelwright-prove --self-test FOLDER
//
// DIR holds kernel.cubin, launch.json and prove.json (see src/runtime/prove/prove_spec.h), or two
// such folders, forward/ and backward/, of which both are held against the truth. Nothing
// else is needed on the machine but the NVIDIA driver. A kernel may hang or break its context, so
// the GPU is used by a child process, which launches and reads back; the parent kills it when a
// case takes too long, and alone has the truth and decides (supervise.h).
//
// A kernel that has no finding holds only if this program, with this driver, on this GPU, has
// refuted every planted bug of a self-test (self_test.h); that is about thresholds, so it is not
// asked where every golden is words that must be the same. Exit codes: 0 holds, 1 refuted, 2 the
// input is at fault, 3 inconclusive (no GPU, no golden applied, no self-test), 70 our own fault.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "report.h"
#include "self_test.h"
#include "supervise.h"
#include "support/files.h"
#include "support/self_test_record.h"

namespace {

using namespace kw;
using namespace kw::runtime;
using Json = nlohmann::json;

struct Options {
  std::string folder, self_test;
  ProveOptions prove;
  bool json = false;
  double limit_seconds = 60;
};

// Which kernel the report is about, for whoever adds it to a certificate.
std::string cubin_sha256(const std::string& folder) {
  const SourcePtr cubin = read_source(folder + "/kernel.cubin");
  return cubin ? sha256(cubin->text) : "";
}

// Gathers what was judged and prints the table as it grows.
class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  void take_machine(const Json& machine) {
    machine_ = machine;
    print(fmt::format("{} on {} (driver {})\n{}", options_.folder,
                      machine_["gpu"].get<std::string>(), machine_["driver"].get<std::string>(),
                      prove::table_head()));
  }
  void take_case(const Json& facts) {
    cases_.push_back(facts);
    print(prove::table_line(facts));
  }

  Exit finish(const prove::Supervised& run, const ProveSpec& spec) {
    const size_t expected = spec.cases.size();
    Exit verdict = run.end == Exit::holds ? worst() : run.end;
    const size_t missing = expected - cases_.size();
    if (verdict != Exit::refuted && run.end == Exit::holds && missing) verdict = Exit::own_fault;
    for (const Json& d : *run.failed)
      fprintf(stderr, "error[%s]: %s\n", d["code"].get<std::string>().c_str(),
              d["message"].get<std::string>().c_str());
    if (missing && run.end == Exit::holds)
      print(fmt::format("{} of {} cases were not run\n", missing, expected));
    const std::string doubt =
        verdict == Exit::holds && !only_words(spec) ? prove::doubt_of(machine_) : "";
    if (!doubt.empty()) verdict = Exit::inconclusive;
    print(doubt + verdict_name(verdict) + "\n");
    json_ = {{"folder", options_.folder},
             {"cubin_sha256", cubin_sha256(options_.folder)},
             {"machine", machine_},
             {"prover", build_name()},
             {"verdict", verdict_name(verdict)},
             {"doubt", doubt},
             {"cases", cases_},
             {"not_run", missing},
             {"failed", *run.failed}};
    return verdict;
  }
  const Json& json() const { return json_; }

 private:
  // The table goes to standard output, or beside it when that is for JSON.
  void print(const std::string& text) const {
    fputs(text.c_str(), options_.json ? stderr : stdout);
    fflush(options_.json ? stderr : stdout);
  }
  static bool only_words(const ProveSpec& spec) {
    for (const ProveCase& asked : spec.cases) {
      if (asked.goldens.empty()) return false;
      for (const Golden& golden : asked.goldens)
        if (!golden.mask) return false;
    }
    return !spec.cases.empty();
  }

  Exit worst() const {
    for (const Exit exit : by_gravity)
      for (const Json& one : cases_)
        if (one["verdict"] == verdict_name(exit)) return exit;
    return Exit::holds;
  }

  const Options& options_;
  Json machine_, cases_ = Json::array(), json_;
};

// `json` gets the report, where there is a kernel to report on.
Exit prove_kernel(const Options& options, Json& json) {
  Diagnostics diagnostics;
  const std::optional<LaunchSpec> launch = prove::read_launch(options.folder, diagnostics);
  const std::optional<ProveSpec> spec =
      launch ? read_prove_spec(options.folder, *launch, diagnostics) : std::nullopt;
  if (!spec) {
    fputs(render(diagnostics).c_str(), stderr);
    return Exit::bad_input;
  }
  Report report(options);
  const prove::Supervised run =
      prove::supervise({options.folder, *launch, *spec, options.prove, options.limit_seconds},
                       {[&](const Json& machine) { report.take_machine(machine); },
                        [&](const Json& facts) { report.take_case(facts); }});
  const Exit verdict = report.finish(run, *spec);
  json = report.json();
  return verdict;
}

// A folder of one kernel, or of a function's and its gradients'.
int prove_folder(const Options& options) {
  namespace fs = std::filesystem;
  const fs::path folder = options.folder;
  Json json;
  Exit verdict = Exit::holds;
  if (fs::exists(folder / "launch.json") || !fs::exists(folder / "backward" / "launch.json")) {
    verdict = prove_kernel(options, json);
  } else {
    for (const char* half : {"forward", "backward"}) {
      Options one = options;
      one.folder = folder / half;
      verdict = worse(verdict, prove_kernel(one, json["halves"][half]));
    }
    const Json& last = json["halves"]["backward"];
    json["machine"] = last.is_object() ? last["machine"] : Json();
    json["verdict"] = verdict_name(verdict);
  }
  if (options.json && !json.is_null()) fmt::print("{}\n", json.dump(1));
  return static_cast<int>(verdict);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Holds a generated kernel against the truth, on a GPU.", "kernelwright-prove");
  Options options;
  uint64_t seed = 0;
  bool cold = false, warm = false;
  CLI::Option* folder = app.add_option(
      "DIR", options.folder, "folder with kernel.cubin, launch.json, prove.json, or of two such");
  CLI::Option* self_test =
      app.add_option("--self-test", options.self_test,
                     "run the planted bugs that `kernelwright self-test --write` left there");
  self_test->excludes(folder);
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
    if (!*folder && !*self_test) throw CLI::RequiredError("DIR or --self-test");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::bad_input);
  }
  options.prove.cold = !warm;
  if (*with_seed) options.prove.seed = seed;
  if (*self_test)
    return prove::run_self_test(options.self_test, options.limit_seconds, options.json);
  return prove_folder(options);
}
