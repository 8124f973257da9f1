#include <fmt/format.h>

#include "driver/certificate/again.h"
#include "driver/certificate/verifier.h"
#include "driver/environment/tiles.h"
#include "driver/start/from_sketch.h"
#include "driver/start/port.h"
#include "lower/lower.h"
#include "support/files.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;

using Json = nlohmann::json;

// From a copy: what was hashed is what runs.
void Verifier::capture() {
  const Json& spec = was_["spec"];
  const std::string name = fs::path(spec["file"]["name"].get<std::string>()).filename();
  const fs::path file = scratch_.path() / "from" / name, out = scratch_.path() / "capture";
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (scratch_.path().empty() || failed || !tree_.texts.count("from/" + name) ||
      !write_file(file, text_of("from/" + name)))
    return tree_.texts.count("from/" + name)
               ? add("capture", Standing::not_rerun, "no temporary folder can be written")
               : add("capture", Standing::changed,
                     fmt::format("the specification is '{}', and there is no from/{}",
                                 spec["file"]["name"].get<std::string>(), name));
  Diagnostics d;
  capture_ = driver::capture(tools_,
                             {file.string(),
                              spec["function"],
                              spec["dtype"],
                              out,
                              {},
                              spec::training_of(spec.value("training", ""))},
                             d);
  if (!capture_) return failed_at("capture", d);
  graph_.text = read_source((out / "graph.json").string())->text;
  Json is(spec_facts(*capture_, graph_));
  is["file"]["name"] = spec["file"]["name"];  // it was read from another place
  const std::string differs = difference(spec, is);
  say_same("capture",
           differs.empty() ? other_graph(text_of("from/graph.json"), graph_.text) : differs);
}

bool Verifier::read_program() {
  Diagnostics d;
  program_ = tl::parse(source_of("kernel.tl"), d);
  if (program_ && tl::verify(*program_, d)) return true;
  failed_at("program", d);
  return false;
}

bool Verifier::by_hand() const { return was_["files"].contains(std::string("from/") + kByRules); }

// Of the corpus' text, or the sketch's, what this build has; nothing where it is the user's own, or
// where there is none of this name.
std::optional<std::string> Verifier::own_expert(Start start) const {
  const std::string& name = expert_->name;
  std::string why;
  if (start == Start::corpus && name.rfind("kernels/", 0) == 0 &&
      name.find("..") == std::string::npos)
    return read_plain_file(tools_.home.root / name, why);
  Diagnostics d;
  if (start == Start::sketch)
    if (const auto drawn = from_sketch(tools_, capture_->form, was_["target"], "", d))
      return drawn->text->text;
  return std::nullopt;
}

bool Verifier::read_expert() {
  const Json& was = was_["expert"];
  expert_ = make_source(was["name"], text_of("from/expert.cu"));
  const Start start = *start_named(was["from"]);  // by the schema it has one of the names
  std::string differs = difference(was, Json(expert_facts(*expert_, start)));
  const bool known = start == Start::corpus || (start == Start::sketch && capture_);
  if (differs.empty() && known) {
    const auto ours = own_expert(start);
    if (!ours || *ours != expert_->text)
      differs = fmt::format(
          "from/expert.cu is {:.12}..., and {} of this build {}", was["sha256"].get<std::string>(),
          expert_->name,
          ours ? fmt::format("is {:.12}...", sha256(*ours)) : std::string("is not there"));
  }
  say_same("expert", differs);
  Diagnostics d;
  lifted_expert_ = lift::lift(expert_, tools_.clang, d);
  if (lifted_expert_ && tl::verify(*lifted_expert_, d)) {
    Diagnostics why_not;
    const bool sketch = start == Start::sketch || start == Start::own_sketch;
    plain_ = !sketch || is_plain(*lifted_expert_, why_not);
    return true;
  }
  failed_at("transfer", d);
  return false;
}

void Verifier::transfer() {
  if (!capture_)
    return add("transfer", Standing::not_rerun, "the specification could not be captured");
  Diagnostics d;
  std::optional<tl::Program> by_rules;
  if (by_hand()) {
    by_rules = lift::lift(source_of(std::string("from/") + kByRules), tools_.clang, d);
    if (!by_rules || !tl::verify(*by_rules, d)) return failed_at("transfer", d);
  }
  const std::string proposer = was_["transfer"]["proposer"];
  std::string differs = other_attempts(proposer, tree_.texts);
  const auto shipped = find_tiles(tools_.home, "", d);
  if (!shipped) return failed_at("transfer", d);
  if (differs.empty())
    transferred_ =
        transferred_again({*lifted_expert_, plain_, *program_, proposer, was_["target"], *shipped},
                          by_rules, capture_->form, differs, d);
  if (!transferred_ && differs.empty()) return failed_at("transfer", d);
  if (transferred_) {
    differs = difference(was_["transfer"], Json(transfer_facts(*transferred_, by_hand())));
    if (by_rules && differs.empty()) {
      const auto written = lower::lower(*by_rules, expert_, tools_.clang, d);
      if (!written || written->text != text_of(std::string("from/") + kByRules))
        differs = "from/rules.cu was what the rules write into from/expert.cu, is another text";
    }
  } else
    differs = fmt::format("the proposer is \"{}\"; {}", proposer, differs);
  say_same("transfer", differs);
}

void Verifier::lens() {
  Diagnostics d;
  const auto lifted = lift::lift(source_of("kernel.cu"), tools_.clang, d);
  if (!lifted) return failed_at("lens", d);
  if (!tl::equal(*lifted, *program_))
    return add("lens", Standing::changed,
               "lifting kernel.cu gave kernel.tl, gives another program");
  if (by_hand()) {  // no rule gives its text: the patch is what stands for the change
    if (lower::line_changes(expert_->name, expert_->text, text_of("kernel.cu")).patch !=
        text_of("kernel.patch"))
      return add("lens", Standing::changed,
                 "kernel.patch was the change from from/expert.cu to kernel.cu, is another");
  } else {
    const auto lowered = lower::lower(*program_, expert_, tools_.clang, d);
    if (!lowered) return failed_at("lens", d);
    if (tl::print(*program_) != text_of("kernel.tl"))
      return add("lens", Standing::changed,
                 "kernel.tl was a program as it is printed, is another text");
    if (lowered->text != text_of("kernel.cu") || lowered->changes.patch != text_of("kernel.patch"))
      return add("lens", Standing::changed,
                 "kernel.tl written into from/expert.cu gave kernel.cu and kernel.patch, gives "
                 "another text");
  }
  compare("lens", was_checked("lens"), Json(lens_facts(count_statements(*program_), by_hand())));
}

}  // namespace kw::driver
