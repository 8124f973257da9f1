#include "driver/make/failure.h"

#include <fmt/format.h>

#include "driver/start/port.h"
#include "operator/capture/capture.h"
#include "report/failed.h"
#include "report/page.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

constexpr char kProgram[] = "program.tl", kCaptured[] = "captured";

fs::path failed_beside(const fs::path& target, check::Verdict verdict) {
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

// The number of the statement that begins on a line.
int statement_on(const tl::Program& program, int line) {
  int n = 0, found = -1;
  tl::walk(program.body, [&](const tl::Stmt& s) {
    if (found < 0 && s.span.start().line == line) found = n;
    ++n;
  });
  return found;
}

// The line on which the n-th statement of a program begins in the text that it was read from;
// 0 where there is none.
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

// The statement in the text that was checked, and in the CUDA text where there is one.
void locate(const Refusal& r, report::Failed& page) {
  const Span span = blamed(r.report);
  if (!r.making) {
    if (span.known()) page.tl = {span.source->name, span.source->text, span.start().line};
    return;
  }
  page.tl = {kProgram, tl::print(r.program), 0};
  page.cuda = {"kernel.cu (not written)", r.making->lowered.text, 0};
  Diagnostics unused;
  const auto canonical = tl::parse(make_source(kProgram, page.tl.text), unused);
  if (!canonical) return;
  const int line = r.report.counterexample ? r.report.counterexample->line : 0;
  const int n = line > 0 ? statement_on(*canonical, line) : statement_at(r.program, span);
  page.tl.line = line_of_statement(*canonical, n);
  page.cuda.line = line_of_statement(r.making->lowered.lifted, n);
}

// Whose turn it is, by who wrote the program.
report::Advice whose_turn(const Refusal& r) {
  const std::string place = blamed(r.report).place();
  if (!r.making)
    return {fmt::format("Mend the line that is marked below ({}), and check again.", place), ""};
  const MakeOptions& options = r.making->options;
  if (options.earlier)
    return {fmt::format("Edits by hand in {} are part of this kernel. Mend the line that is marked "
                        "below there, and rebase again.",
                        options.earlier->edited->name),
            ""};
  if (!options.kernel.empty())
    return {fmt::format("See whether {0} is right without a change, with a PLAIN.py of plain "
                        "attention that has its heads, as examples/full.py.",
                        options.kernel),
            fmt::format("kernelwright lift {} --out own.tl\nkernelwright check own.tl --spec "
                        "PLAIN.py",
                        options.kernel)};
  return {
      "Nobody but kernelwright's rules wrote this change, so the fault is kernelwright's. "
      "Please report it, with this folder.",
      ""};
}

std::vector<report::Advice> advice(const Refusal& r) {
  std::vector<report::Advice> out;
  if (r.report.verdict == check::Verdict::refuted)
    out.push_back(whose_turn(r));
  else
    out.push_back(
        {"Nothing was found to be wrong, and nothing shows that it is right: do not use it "
         "as if it held.",
         ""});
  const std::string effort = r.report.effort == check::Effort::usual
                                 ? ""
                                 : fmt::format(" --check {}", check::name(r.report.effort));
  if (r.making)
    out.push_back({"Check the program again, in the folder of this page, edited if you like:",
                   fmt::format("kernelwright check {} --spec {}{}", kProgram, kCaptured, effort)});
  return out;
}

void describe_making(const Making& m, report::Failed& page) {
  page.target = m.options.target;
  page.expert = m.options.kernel.empty() ? m.expert->name : name_in_patch(m.options.kernel);
  page.diff = report::read_patch(m.lowered.changes.patch, m.expert->text, m.lowered.text);
  page.old_tl = report::statements_by_line(m.source);
  page.new_tl = report::statements_by_line(m.lowered.lifted);
}

report::Failed facts(const Refusal& r) {
  report::Failed page;
  page.check = check::to_json(r.report);
  page.name = r.capture.form.name;
  page.user_file = fs::path(r.capture.source->name).filename().string();
  page.user_text = r.capture.source->text;
  page.form = r.capture.form;
  nlohmann::ordered_json launch;
  if (r.making) launch["constants"] = r.making->plan.constants;
  const SourcePtr text = read_source((r.captured / "graph.json").string());
  const auto graph = nlohmann::json::parse(text ? text->text : "", nullptr, false);
  if (graph.is_object())
    page.masks = report::draw_masks(*page.form, graph.value("examples", nlohmann::json::object()),
                                    report::tile_of(r.program, launch));
  else
    page.masks.absent = "the captured graph cannot be read";
  page.advice = advice(r);
  if (r.making) describe_making(*r.making, page);
  locate(r, page);
  return page;
}

}  // namespace

std::optional<fs::path> write_refusal(const Refusal& r, const fs::path& target,
                                      Diagnostics& diagnostics) {
  remove_refusals(target);
  const fs::path folder = failed_beside(target, r.report.verdict);
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
  const report::Failed page = facts(r);
  StagedFolder staged(folder);
  if (write_file(staged.path() / report::kPage, report::failed_page(page)) &&
      write_file(staged.path() / kProgram, page.tl.text)) {
    fs::copy(r.captured, staged.path() / kCaptured, fs::copy_options::recursive, failed);
    if (!failed && staged.commit()) return folder;
  }
  diagnostics.error("driver.write", {}, fmt::format("cannot write into '{}'", folder.string()));
  return std::nullopt;
}

bool write_refusal_page(const Refusal& r, const fs::path& file, Diagnostics& diagnostics) {
  if (write_file(file, report::failed_page(facts(r)))) return true;
  diagnostics.error("driver.write", {}, fmt::format("cannot write '{}'", file.string()));
  return false;
}

void remove_refusals(const fs::path& target) {
  std::error_code failed;
  for (const check::Verdict v : {check::Verdict::refuted, check::Verdict::inconclusive})
    if (const fs::path folder = failed_beside(target, v); is_ours(folder))
      fs::remove_all(folder, failed);
}

}  // namespace kw::driver
