// Both halves are made in a folder of the system's, by make itself. Only where both hold does
// anything appear where the user asked for it, so nothing half-made is left behind.
//
// The gradients come first: of a function that has a forward kernel they may be refused, and a user
// should not wait for the other one to hear it.
#include <fmt/format.h>

#include "driver/certificate/certify.h"
#include "driver/make/failure.h"
#include "driver/make/out_folder.h"
#include "driver/training/training.h"
#include "report/page.h"
#include "report/training.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

class TrainingMaker {
 public:
  TrainingMaker(const MakeOptions& options, const MakeOne& make_one, const Say& say,
                Diagnostics& diagnostics)
      : options_(options), make_one_(make_one), say_(say), diagnostics_(diagnostics) {}

  Made run() {
    const bool done = is_a_file() && make_half("backward") && make_half("forward") && write() &&
                      (!options_.gpu || prove());
    if (!done && made_.exit == Exit::own_fault) made_.exit = exit_for(diagnostics_);
    return std::move(made_);
  }

 private:
  bool is_a_file() {
    if (!fs::is_directory(options_.spec)) return true;
    diagnostics_
        .error("driver.training", {},
               fmt::format("'{}' is what capture wrote, of one kernel, and --backward makes two",
                           options_.spec))
        .hint =
        "name the Python file; or leave --backward away, which makes the one kernel that "
        "was captured";
    return false;
  }

  bool make_half(const std::string& half) {
    MakeOptions one = options_;
    one.training = spec::training_of(half);
    one.deterministic = options_.deterministic && half == "backward";
    one.gpu = false;
    one.staged = scratch_.path() / half;
    say_(half,
         half == "backward" ? "the kernel of the gradients"
                            : "the kernel of the output, and of what its gradients take",
         0);
    Diagnostics found;
    const Say say = [&](const std::string& stage, const std::string& text, double seconds) {
      if (stage != "wrote") say_(stage, text, seconds);
    };
    Made made = make_one_(one, say, found);
    for (Diagnostic d : found.all()) {
      if (d.severity == Severity::error)
        d.message = fmt::format("the {} kernel: {}", half, d.message);
      diagnostics_.add(std::move(d));
    }
    if (made.exit == Exit::holds) return true;
    made_ = std::move(made);
    made_.folder.clear();
    if (!made_.explanation.empty())
      made_.explanation = fmt::format("the {} kernel: {}", half, made_.explanation);
    return false;
  }

  bool cannot_write(const fs::path& what) {
    diagnostics_.error("driver.write", {}, fmt::format("cannot write into {}", what.string()));
    return false;
  }

  bool write() {
    StageClock clock;
    const auto home = find_home(diagnostics_);
    if (!home) return false;
    std::error_code failed;
    const auto claims = write_training(*home, scratch_.path(), diagnostics_);
    if (!claims) return false;
    const fs::path target =
        out_folder(options_.out, fs::path("out") / (*claims)["spec"]["name"].get<std::string>());
    StagedFolder folder(target);
    fs::copy(scratch_.path(), folder.path(), fs::copy_options::recursive, failed);
    if (failed || !folder.commit()) return cannot_write(target);
    remove_refusals(target);
    made_.folder = target.string();
    made_.exit = Exit::holds;
    for (const char* half : kHalves) say_(half, half_line(*claims, half), 0);
    say_("memory", memory_line(*claims), 0);
    say_("wrote",
         target.string() +
             "/{forward/, backward/, launch.h, certificate.json, report.html}; each half has "
             "kernel.cu, kernel.tl, kernel.patch, kernel.cubin",
         clock.lap());
    return true;
  }

  bool prove() {
    std::string said;
    made_.exit = prove_here(made_.folder, 1200, said, diagnostics_);
    say_("prove", said, 0);
    return true;
  }

  const MakeOptions& options_;
  const MakeOne& make_one_;
  const Say& say_;
  Diagnostics& diagnostics_;
  Made made_;
  TemporaryFolder scratch_;
};

std::string text_of(const fs::path& file) {
  const SourcePtr source = read_source(file.string());
  return source ? source->text : "";
}

}  // namespace

Made make_training(const MakeOptions& options, const MakeOne& make_one, const Say& say,
                   Diagnostics& diagnostics) {
  return TrainingMaker(options, make_one, say, diagnostics).run();
}

std::string draw_training(const Both& both, const Claims& certificate,
                          const std::string& user_text) {
  report::TrainingFacts facts{certificate,
                              {"forward", both.forward.claims, both.forward.form},
                              {"backward", both.backward.claims, both.backward.form},
                              user_text};
  facts.certificate.erase("root");
  facts.certificate["files"].erase(report::kPage);
  return report::training_page(facts);
}

std::optional<Claims> write_training(const Home& home, const fs::path& folder,
                                     Diagnostics& diagnostics) {
  const auto schema = certificate_schema(home, diagnostics);
  if (!schema) return std::nullopt;
  std::optional<Half> halves[2];
  for (size_t n = 0; n < kHalves.size(); ++n) {
    const fs::path at = folder / kHalves[n];
    const SourcePtr text = read_source((at / "certificate.json").string());
    const auto claims = text ? read_certificate(text, *schema, diagnostics) : std::nullopt;
    if (!text)
      diagnostics.error("training.half", {},
                        fmt::format("there is no {}", (at / "certificate.json").string()));
    if (claims)
      halves[n] = read_half(
          kHalves[n], *claims, [&](const std::string& file) { return text_of(at / file); },
          diagnostics);
    if (!halves[n]) return std::nullopt;
  }
  const auto both = join(std::move(*halves[0]), std::move(*halves[1]), diagnostics);
  if (!both) return std::nullopt;
  std::error_code failed;
  fs::remove(folder / report::kPage, failed);
  bool written = write_file(folder / "launch.h", header_of(*both));
  Claims claims = training_certificate(*both, folder);
  const std::string file = fs::path(claims["spec"]["file"]["name"].get<std::string>()).filename();
  const std::string page =
      draw_training(*both, claims, text_of(folder / "forward" / "from" / file));
  name_file(claims, report::kPage, page);
  written = written && write_file(folder / report::kPage, page) &&
            write_file(folder / "certificate.json", claims.dump(1) + "\n");
  if (written) return claims;
  diagnostics.error("driver.write", {}, fmt::format("cannot write into {}", folder.string()));
  return std::nullopt;
}

}  // namespace kw::driver
