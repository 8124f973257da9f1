#include "driver/failure.h"

#include <fmt/format.h>

#include "driver/port.h"
#include "report/failed.h"
#include "report/page.h"
#include "spec/capture.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

constexpr char kProgram[] = "program.tl";

fs::path beside(const fs::path& target, check::Verdict verdict) {
  return target.string() + "." + std::string(check::name(verdict));
}

// Whether an earlier make wrote it.
bool is_ours(const fs::path& folder) {
  std::error_code failed;
  return fs::exists(folder / kProgram, failed) && fs::exists(folder / report::kPage, failed);
}

// The number of a statement in the order of the text; -1 where nothing has this place.
int statement_at(const tl::Program& program, const Span& span) {
  int n = 0, found = -1;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    const bool same = span.known() && s.span.source == span.source && s.span.begin == span.begin &&
                      s.span.end == span.end;
    if (found < 0 && same) found = n;
    ++n;
  });
  return found;
}

// The line on which the n-th statement of a program begins in the text that it was read from.
int line_of_statement(const tl::Program& program, int wanted) {
  int n = 0, line = 0;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (n++ == wanted && s.span.known()) line = s.span.start().line;
  });
  return line;
}

// Where the check says that it goes wrong: the statement that differs first, or the one that a
// fault or a race names.
Span blamed(const check::Report& report) {
  if (report.counterexample && report.counterexample->span.known())
    return report.counterexample->span;
  for (const Diagnostic& d : report.diagnostics.all())
    if (d.span.known()) return d.span;
  return {};
}

void locate(const Refusal& r, report::Failed& page) {
  page.tl = {kProgram, tl::print(r.program), 0};
  page.cuda = {"kernel.cu (not written)", r.lowered.text, 0};
  Diagnostics unused;
  const auto canonical = tl::parse(make_source(kProgram, page.tl.text), unused);
  if (!canonical) return;
  int n = statement_at(r.program, blamed(r.report));
  if (r.report.counterexample && r.report.counterexample->line > 0) {
    int at = 0;
    tl::walk(canonical->body, [&](const tl::Stmt& s) {
      if (s.span.start().line == r.report.counterexample->line) n = at;
      ++at;
    });
  }
  if (n < 0) return;
  page.tl.line = line_of_statement(*canonical, n);
  page.cuda.line = line_of_statement(r.lowered.lifted, n);
}

// What `check` must be told besides, to do what make did.
std::string options_again(const MakeOptions& options) {
  std::string out;
  if (!options.function.empty()) out += " --function " + options.function;
  if (!options.dtype.empty()) out += " --dtype " + options.dtype;
  if (options.effort != check::Effort::usual)
    out += fmt::format(" --check {}", check::name(options.effort));
  return out;
}

std::vector<report::Advice> advice(const Refusal& r, const fs::path& folder) {
  std::vector<report::Advice> out;
  const bool refuted = r.report.verdict == check::Verdict::refuted;
  if (!refuted)
    out.push_back(
        {"Nothing was found to be wrong, and nothing shows that it is right. The reason "
         "stands on the left; a check with more effort may decide.",
         r.options.effort == check::Effort::full ? "" : "kernelwright make ... --check full"});
  if (refuted && r.options.earlier)
    out.push_back({fmt::format("Edits by hand in {} are part of this kernel. Mend the line below "
                               "there, and rebase again.",
                               r.options.earlier->edited->name),
                   ""});
  else if (refuted && !r.options.kernel.empty())
    out.push_back({fmt::format("See whether {} is right without a change: PLAIN.py is plain "
                               "attention with its heads, as examples/full.py.",
                               r.options.kernel),
                   fmt::format("kernelwright lift {} --out own.tl\nkernelwright check own.tl "
                               "--spec PLAIN.py",
                               r.options.kernel)});
  else if (refuted)
    out.push_back(
        {"Nobody but kernelwright's rules wrote this change, so the fault is "
         "kernelwright's. Please report it, with this folder and your file.",
         ""});
  out.push_back({"Check the program again, after an edit of its text if you like:",
                 fmt::format("kernelwright check {} --spec {}{}", (folder / kProgram).string(),
                             r.options.spec, options_again(r.options))});
  return out;
}

report::Failed facts(const Refusal& r, const fs::path& folder) {
  report::Failed page;
  page.check = check::to_json(r.report);
  page.name = r.capture.form.name;
  page.target = r.options.target;
  page.expert = r.options.kernel.empty() ? r.expert->name : name_in_patch(r.options.kernel);
  page.user_file = fs::path(r.capture.source->name).filename().string();
  page.user_text = r.capture.source->text;
  page.form = r.capture.form;
  nlohmann::ordered_json launch = {{"constants", r.plan.constants}};
  const auto graph = nlohmann::json::parse(r.graph.text, nullptr, false);
  if (graph.is_object())
    page.masks = report::draw_masks(*page.form, graph.value("examples", nlohmann::json::object()),
                                    report::tile_of(r.program, launch));
  else
    page.masks.absent = "the captured graph cannot be read";
  page.diff = report::read_patch(r.lowered.changes.patch, r.expert->text, r.lowered.text);
  page.old_tl = report::statements_by_line(r.source);
  page.new_tl = report::statements_by_line(r.lowered.lifted);
  page.advice = advice(r, folder);
  locate(r, page);
  return page;
}

}  // namespace

std::optional<fs::path> write_refusal(const Refusal& r, const fs::path& target,
                                      Diagnostics& diagnostics) {
  remove_refusals(target);
  const fs::path folder = beside(target, r.report.verdict);
  std::error_code failed;
  if (fs::exists(folder, failed)) {
    diagnostics
        .error("driver.out", {},
               fmt::format("'{}' exists, and is not of an earlier make: the page about this "
                           "verdict is not written",
                           folder.string()))
        .hint = "name another folder with --out";
    return std::nullopt;
  }
  const report::Failed page = facts(r, folder);
  StagedFolder staged(folder);
  if (write_file(staged.path() / report::kPage, report::failed_page(page)) &&
      write_file(staged.path() / kProgram, page.tl.text) && staged.commit())
    return folder;
  diagnostics.error("driver.write", {}, fmt::format("cannot write into '{}'", folder.string()));
  return std::nullopt;
}

void remove_refusals(const fs::path& target) {
  std::error_code failed;
  for (const check::Verdict v : {check::Verdict::refuted, check::Verdict::inconclusive})
    if (const fs::path folder = beside(target, v); is_ours(folder)) fs::remove_all(folder, failed);
}

}  // namespace kw::driver
