#include "driver/self_test/cpu_self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "check/check.h"
#include "check/hand_captures.h"
#include "support/edits.h"
#include "support/self_test_record.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

class Tester {
 public:
  Tester(const Home& home, Diagnostics& diagnostics)
      : wrong_(home.root / "tests" / "wrong"),
        corpus_(home.root / "tests" / "corpus"),
        diagnostics_(diagnostics) {}

  // The wrong programs of every folder, in the order of their names.
  std::vector<fs::path> wrong() const {
    std::vector<fs::path> files;
    std::error_code failed;
    for (const auto& file : fs::recursive_directory_iterator(wrong_, failed))
      if (file.path().extension() == ".edit" && file.path().parent_path() != wrong_ / "right")
        files.push_back(file.path());
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
    return files;
  }

  // A right program by its name, or one of the corpus's own.
  std::optional<std::string> right_text(const std::string& name) {
    static const std::map<std::string, std::string> texts = {
        {"full", "sm90_attention_fwd"},
        {"full_decode", "sm90_attention_decode"},
        {"full_bwd", "sm90_attention_bwd"},
        {"full_wide_bwd", "sm90_attention_bwd_wide"},
        {"full_mla_bwd", "sm90_attention_bwd_mla"},
        {"full_narrow_bwd", "sm90_attention_bwd_narrow"},
        {"full_sm80_bwd", "sm80_attention_bwd"}};
    if (const auto own = texts.find(name); own != texts.end()) {
      const fs::path file = corpus_ / (own->second + ".tl");
      if (const SourcePtr text = read_source(file.string())) return text->text;
      diagnostics_.error("self_test.programs", {}, "cannot read " + file.string());
      return std::nullopt;
    }
    return edited((wrong_ / "right" / (name + ".edit")).string());
  }

  std::optional<std::string> edited(const std::string& path) {
    const std::optional<Edit> edit = read_edit(path, diagnostics_);
    if (!edit) return std::nullopt;
    const auto text = right_text(base_of(*edit));
    return text ? apply_edit(*edit, *text, diagnostics_) : std::nullopt;
  }

  static std::string base_of(const Edit& edit) {
    return edit.head.count("base") ? edit.head.at("base") : "full";
  }

  // The check's verdict in words. The laws are asked last, so that what running finds is tested;
  // some wrong programs break only a law.
  std::string verdict(const std::string& name, const std::string& base, const std::string& text) {
    Diagnostics findings;
    const auto program = tl::parse(make_source(name + ".tl", text), findings);
    if (!program) return "unreadable";
    check::Options options = check::options_for(check::Effort::quick);
    options.effort = check::Effort::usual;  // its planted cases, of which a quick check has few
    options.laws = false;
    options.shrink = options.examine = false;
    options.cases = 12;  // the eight shapes of the hand captures, sharp ones and a steep one
    options.exact_cases = 1;
    options.self_check_step = 0;
    const check::Report report =
        check::check(*program, check::hand::capture_of(check::hand::form_of(base)), options);
    if (report.verdict == check::Verdict::holds && !tl::verify(*program, findings))
      return "invalid";
    return std::string(check::name(report.verdict));
  }

 private:
  const fs::path wrong_, corpus_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<CpuSelfTest> run_cpu_self_test(const Home& home, int step,
                                             const std::function<void(const std::string&)>& say,
                                             Diagnostics& diagnostics) {
  const auto begin = std::chrono::steady_clock::now();
  Tester tester(home, diagnostics);
  const std::vector<fs::path> wrong = tester.wrong();
  if (wrong.empty()) {
    diagnostics.error(
        "self_test.programs", {},
        fmt::format("there are no wrong programs in {}/tests/wrong", home.root.string()));
    return std::nullopt;
  }
  CpuSelfTest out;
  const auto note = [&](const std::string& name, const std::string& wanted,
                        const std::string& was) {
    out.surprises.push_back(fmt::format("{}: {}, and check says '{}'", name, wanted, was));
    say("FAILED  " + out.surprises.back());
  };
  for (const char* name :
       {"full", "causal", "prefix_lm", "saves", "prefix_lm_decode", "causal_bwd", "softcap_bwd"}) {
    const auto text = tester.right_text(name);
    if (!text) return std::nullopt;
    ++out.right;
    const std::string was = tester.verdict(name, name, *text);
    if (was != "holds") note(name, "is right", was);
  }
  for (size_t n = 0; n < wrong.size(); n += static_cast<size_t>(step)) {
    const auto edit = read_edit(wrong[n].string(), diagnostics);
    const auto text = edit ? tester.edited(wrong[n].string()) : std::nullopt;
    if (!text) return std::nullopt;
    ++out.wrong;
    const std::string was = tester.verdict(edit->name, Tester::base_of(*edit), *text);
    if (was != "refuted" && was != "invalid") note(edit->name, "is wrong", was);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

nlohmann::json to_json(const CpuSelfTest& result) {
  return {{"passed", result.surprises.empty()},
          {"wrong", result.wrong},
          {"right", result.right},
          {"surprises", result.surprises},
          {"seconds", result.seconds}};
}

std::string cpu_doubt() {
  const SelfTest result = self_test_result("cpu");
  if (result == SelfTest::passed) return "";
  return result == SelfTest::failed
             ? "the self-test of this build failed: nothing is certified"
             : "this build has not tested itself: `kernelwright self-test` does, once";
}

bool may_certify(Diagnostics& diagnostics) {
  if (self_test_result("cpu") != SelfTest::failed) return true;
  diagnostics
      .error("self_test.failed", {},
             fmt::format("the self-test of {} failed, so its verdicts mean nothing; {} has what "
                         "got through",
                         build_name(), self_test_file().string()))
      .hint = "`kernelwright self-test` runs it again";
  return false;
}

}  // namespace kw::driver
