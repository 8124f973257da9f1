#include "foreign/lifting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "propose/manual.h"
#include "propose/prompt.h"
#include "support/lines.h"
#include "tl/laws/laws.h"

namespace kw::foreign {
namespace {

using Json = nlohmann::json;

// The first finding, in words that name the part that it is about.
Complaint complaint_of(const Lift& lift, const Diagnostics& found) {
  for (const Diagnostic& d : found.all()) {
    if (d.severity != Severity::error) continue;
    std::string where;
    if (d.span.known()) {
      const int line = d.span.start().line;
      if (const Part* part = lift.part_of(line))
        where = fmt::format("line {} (part '{}'): ", line, part->name);
    }
    return {{d.code, where + d.message}, render(found)};
  }
  return {};
}

// The program so far, with the names of its parts beside their first lines.
std::string shown(const Lift& lift) {
  if (lift.parts.empty()) return "nothing yet";
  std::string out;
  int line = 0;
  for (const Part& p : lift.parts) {
    out += fmt::format(
        "part '{}' says: {}\n", p.name,
        p.regions.empty() ? "no region" : fmt::format("{}", fmt::join(p.regions, "; ")));
    for (const std::string& text : p.tl) out += fmt::format("{:>4}|{}\n", ++line, text);
  }
  for (const LeftOut& l : lift.left_out) out += fmt::format("left out: {}: {}\n", l.region, l.why);
  return out;
}

std::string shown_regions(const Lift& lift) {
  std::string out;
  for (const Region& r : lift.regions)
    out += fmt::format("{}: {}, run by {}\n", r.name, print(r.range), r.who);
  return out;
}

std::string shown_notes(const Lift& lift) {
  std::string out;
  for (const LineNote& n : lift.notes) out += fmt::format("{}:{}: {}\n", n.file, n.line, n.note);
  return out;
}

std::string shown_sources(const LiftTask& task) {
  std::string out;
  for (const Range& r : task.description.read) out += numbered(task.sources, r) + "\n";
  return out;
}

class Lifting {
 public:
  Lifting(const LiftTask& task, Lift& lift, Asker& asker, const std::function<void()>& save,
          Diagnostics& diagnostics)
      : task_(task), lift_(lift), asker_(asker), save_(save), diagnostics_(diagnostics) {}

  Lifted run() {
    if (lift_.notes.empty() && !notes()) return {};
    if (lift_.regions.empty() && !regions()) return {};
    Lifted out;
    const auto judged = judge(out);  // of what an earlier run left
    if (judged.refusal.code.empty() || parts(out)) {
      out.holds = true;
      lift_.verdict = "holds";
    }
    saved();
    return out;
  }

 private:
  void saved() {
    for (const std::string& who : asker_.who())
      if (std::find(lift_.who.begin(), lift_.who.end(), who) == lift_.who.end())
        lift_.who.push_back(who);
    save_();
  }

  // The slots' texts; {{feedback}} is the asker's.
  Question question(const char* stage, const std::string& text,
                    std::map<std::string, std::string> slots, Json schema) {
    slots["sources"] = shown_sources(task_);
    slots["feedback"] = "{{feedback}}";
    const auto system = propose::fill(task_.prompts.system,
                                      {{"statements", propose::statements_manual()},
                                       {"expressions", propose::expressions_manual()},
                                       {"laws", propose::laws_manual()}},
                                      diagnostics_);
    const auto user = propose::fill(text, slots, diagnostics_);
    return {stage, system.value_or(""), user.value_or(""), std::move(schema)};
  }

  bool notes() {
    const bool taken =
        asker_.ask([&] { return question("lift.notes", task_.prompts.notes, {}, notes_schema()); },
                   [&](const Json& answer) -> Complaint {
                     return {add_notes(lift_, answer, task_.description), ""};
                   });
    saved();
    return taken && !diagnostics_.has_errors();
  }

  bool regions() {
    const bool taken = asker_.ask(
        [&] {
          return question("lift.regions", task_.prompts.regions, {{"notes", shown_notes(lift_)}},
                          regions_schema());
        },
        [&](const Json& answer) -> Complaint {
          return {add_regions(lift_, answer, task_.description, task_.sources), ""};
        });
    saved();
    return taken && !diagnostics_.has_errors();
  }

  bool parts(Lifted& out) {
    return asker_.ask(
        [&] {
          return question("lift.parts", task_.prompts.parts,
                          {{"notes", shown_notes(lift_)},
                           {"regions", shown_regions(lift_)},
                           {"function", spec::print(task_.reference.form)},
                           {"program", shown(lift_)}},
                          parts_schema());
        },
        [&](const Json& answer) -> Complaint {
          if (const Refusal refusal = add_parts(lift_, answer); !refusal.code.empty())
            return {refusal, ""};
          lift_.verdict.clear();
          saved();
          return judge(out);
        });
  }

  // Laws, a quick check, then the whole one.
  Complaint judge(Lifted& out) {
    Complaint complaint;
    const auto program = program_of(lift_, complaint);
    if (!program) return complaint;
    for (const check::Effort effort : std::set{check::Effort::quick, task_.effort}) {
      out.report = check::check(*program, task_.reference, check::options_for(effort));
      if (out.report.verdict == check::Verdict::holds) continue;
      lift_.verdict = check::name(out.report.verdict);
      return {{fmt::format("check.{}", check::name(out.report.verdict)),
               "the program obeys the laws, and does not compute the function"},
              check::print(out.report)};
    }
    return {};
  }

  const LiftTask& task_;
  Lift& lift_;
  Asker& asker_;
  const std::function<void()>& save_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<tl::Program> program_of(const Lift& lift, Complaint& complaint) {
  if (lift.parts.empty()) {
    complaint = {{"lift.missing", "no part of the program is there yet"}, ""};
    return std::nullopt;
  }
  if (const auto missing = lift.missing(); !missing.empty()) {
    complaint = {{"lift.missing",
                  fmt::format("no part says these regions, and none is left out with a reason: {}",
                              fmt::join(missing, "; "))},
                 ""};
    return std::nullopt;
  }
  Diagnostics found;
  const std::string text = lift.program();
  std::optional<tl::Program> program = tl::parse(make_source("lift.tl", text), found);
  if (program) tl::verify(*program, found);
  if (!program || found.has_errors()) {
    complaint = complaint_of(lift, found);
    return std::nullopt;
  }
  const std::vector<std::string> have = lines_of(text), want = lines_of(tl::print(*program));
  for (size_t n = 0; n < std::max(have.size(), want.size()); ++n) {
    const std::string line = n < want.size() ? want[n] : "";
    if (n < have.size() && have[n] == line) continue;
    const Part* part = lift.part_of(static_cast<int>(n) + 1);
    complaint = {{"lift.canonical",
                  fmt::format("line {} (part '{}') is spelled `{}` in canonical text, without "
                              "comments and blank lines",
                              n + 1, part ? part->name : "", line)},
                 ""};
    return std::nullopt;
  }
  return program;
}

Lifted lift_on(const LiftTask& task, Lift& lift, Asker& asker, const std::function<void()>& save,
               Diagnostics& diagnostics) {
  return Lifting(task, lift, asker, save, diagnostics).run();
}

}  // namespace kw::foreign
