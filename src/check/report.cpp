// A verdict as one screen of text, and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "check/trial.h"
#include "check/unseen.h"

namespace kw::check {

namespace {

std::string sizes_of(const Counterexample& e) {
  std::string text;
  for (const auto& [name, value] : e.sizes) text += fmt::format("{} {}, ", name, value);
  return fmt::format("{}{} query / {} key heads", text, e.heads, e.key_heads);
}

// Of an output without rows.
bool of_head(const Counterexample& e) { return e.i < 0 && !e.columns.empty(); }

std::string values_of(const Counterexample& e) {
  std::string text;
  const bool several = e.got.size() > 1 || of_head(e);
  for (size_t k = 0; k < e.got.size(); ++k)
    text += fmt::format("  {:>8} got {:<14.6g} want {:.6g}\n",
                        several || e.output == "o" ? fmt::format("[{}]", e.columns[k]) : "",
                        e.got[k], e.want[k]);
  return text;
}

std::string print(const Counterexample& e) {
  std::string text = fmt::format("  at {}\n", sizes_of(e));
  const std::string row = of_head(e) ? "" : fmt::format(", i {}", e.i);
  if (e.i >= 0 || of_head(e))
    text +=
        fmt::format("  {}, b {}, h {}{}: {}\n{}", e.output, e.b, e.h, row, e.message, values_of(e));
  if (e.statement.empty()) return text;
  text += fmt::format("  first statement that differs (line {}", e.line);
  if (e.span.known()) text += ", " + e.span.place();
  return text + fmt::format("):\n    {}\n  {}\n", e.statement, e.difference);
}

// What the exact reading found, in a line.
std::string print(const ExactReport& e) {
  if (!e.not_run.empty()) return fmt::format("  exact: not run: {}\n", e.not_run);
  if (!e.ran) return "  exact: not run\n";
  std::string text = fmt::format("  exact: {} case{}, {} runs, {} rows, {:.1f} s", e.cases,
                                 e.cases == 1 ? "" : "s", e.runs, e.rows, e.seconds);
  if (e.runs) text += fmt::format("; a difference missed with probability {}", print_bound(e));
  if (!e.opaque.empty()) text += fmt::format("; opaque: {}", e.opaque);
  if (e.general) text += "; the same of integers in general position";
  if (!e.made_small.empty())
    text += fmt::format("; the same with {} made small in both", fmt::join(e.made_small, ", "));
  return text + "\n";
}

}  // namespace

std::string print_bound(const ExactReport& e) {
  return fmt::format("below 2^{:.0f}", std::ceil(std::log2(e.error_bound)));
}

Scope scope(const Report& r) {
  if (!r.schedules) return Scope::one_order;
  if (!r.schedules->closed || !r.schedules->any_length()) return Scope::explored;
  return not_proved(r).empty() ? Scope::every_launch : Scope::sizes_that_ran;
}

std::string not_proved(const Report& r) {
  if (!r.indices) return "its integers were not looked at";
  if (!r.indices->not_run.empty()) return r.indices->not_run;
  if (const proofs::Obligation* o = r.indices->first(proofs::Answer::unknown))
    return "open: " + o->what;
  if (!r.indices->complete()) return "an obligation is refuted";
  if (!r.exact.ran)
    return r.exact.not_run.empty() ? "the exact reading did not run" : r.exact.not_run;
  if (!r.exact.apart.empty())
    return fmt::format("with {} the program is another formula", r.exact.apart);
  if (!r.never_run.empty()) return fmt::format("no case runs {}", r.never_run);
  if (!r.unreached.empty())
    return fmt::format("no case has more rows and keys than {}", fmt::join(r.unreached, ", "));
  if (!r.unasked.empty())
    return fmt::format("the program asks `{}` of reals, and the function does not", r.unasked);
  if (r.unseen && !r.unseen->undecided.empty())
    return fmt::format("no case sees {}", r.unseen->undecided.front());
  return "";
}

std::string_view name(Scope s) {
  switch (s) {
    case Scope::every_launch:
      return "every launch";
    case Scope::sizes_that_ran:
      return "the sizes and data that ran";
    case Scope::explored:
      return "the launches explored";
    case Scope::one_order:
      return "one order of the agents";
  }
  return "";
}

namespace {

// Why a claim is of less than every launch, the proofs' part first.
std::string reason(const Report& r) {
  if (scope(r) != Scope::sizes_that_ran && scope(r) != Scope::explored) return "";
  if (const std::string open = not_proved(r); !open.empty()) return open;
  const exec::ScheduleReport& s = *r.schedules;
  if (!s.closed) return s.not_closed.empty() ? "the schedules were not closed" : s.not_closed;
  return s.longer.empty() ? "a long block was not seen to repeat itself"
                          : fmt::format("nothing says what more turns of {} do", s.longer);
}

}  // namespace

std::string headline(const Report& r) {
  std::string text(name(r.verdict));
  if (r.verdict == Verdict::holds) {
    if (scope(r) != Scope::every_launch)
      text += fmt::format(" for {}", name(scope(r)));
    else if (r.indices && (r.indices->small_reals || r.indices->small_data))
      text +=
          fmt::format(" for integers of the data within 2^{}", r.indices->small_reals ? 24 : 29);
    if (const std::string why = reason(r); !why.empty()) text += fmt::format(" ({})", why);
  }
  if (r.effort != Effort::usual) text += fmt::format(" ({} check)", name(r.effort));
  return text;
}

std::string print(const Report& r) {
  std::string text = fmt::format("{}, {:.1f} s\n", headline(r), r.seconds);
  if (r.values)
    text += fmt::format("  values: {} case{}, {} rows, {} key blocks", r.cases,
                        r.cases == 1 ? "" : "s", r.rows, r.key_blocks);
  if (r.values && r.verdict == Verdict::holds)
    text += fmt::format("; worst row {:.2f}x of accepted", r.worst);
  text += r.values ? "\n" : "  values: not run\n";
  if (!r.unreached.empty())
    text += fmt::format("  no case has more rows and keys than {}, with which it is written\n",
                        fmt::join(r.unreached, ", "));
  if (!r.integers.empty() && r.verdict == Verdict::holds && scope(r) != Scope::every_launch)
    text += fmt::format("  integers of the data, in the cases that ran: {}\n",
                        fmt::join(r.integers, ", "));
  if (r.unseen) text += "  " + print(*r.unseen) + "\n";
  if (r.indices) text += "  " + proofs::print(*r.indices) + "\n";
  if (r.indices && r.indices->rounding) text += "  " + proofs::print(*r.indices->rounding) + "\n";
  text += print(r.exact);
  text += r.schedules ? "  " + exec::print(*r.schedules) + "\n" : "  schedules: not run\n";
  if (r.counterexample && !r.counterexample->sizes.empty()) text += print(*r.counterexample);
  return text + render(r.diagnostics);
}

nlohmann::json to_json(const ExactReport& e) {
  return {{"ran", e.ran},       {"not_run", e.not_run}, {"cases", e.cases},
          {"runs", e.runs},     {"rows", e.rows},       {"error_bound", e.error_bound},
          {"opaque", e.opaque}, {"general", e.general}, {"made_small", e.made_small},
          {"apart", e.apart},   {"seconds", e.seconds}};
}

nlohmann::json to_json(const proofs::Report& r) {
  nlohmann::json all = nlohmann::json::array();
  for (const proofs::Obligation& o : r.obligations)
    all.push_back({{"what", o.what},
                   {"answer", o.answer == proofs::Answer::proved    ? "proved"
                              : o.answer == proofs::Answer::refuted ? "refuted"
                                                                    : "open"},
                   {"why", o.why},
                   {"counterexample", o.message}});
  nlohmann::json limits = nlohmann::json::array();
  for (const proofs::Limit& l : r.limits) limits.push_back(proofs::print(l));
  nlohmann::json rounding;  // at some numbers of keys; null where nothing is known of it
  if (r.rounding)
    for (const int64_t keys : proofs::kTold) rounding[std::to_string(keys)] = r.rounding->at(keys);
  return {{"not_run", r.not_run},
          {"solver", r.solver},
          {"obligations", all},
          {"limits", limits},
          {"rounding", rounding}};
}

nlohmann::json to_json(const Report& r) {
  nlohmann::json json = {{"verdict", name(r.verdict)}, {"holds_for", name(scope(r))},
                         {"effort", name(r.effort)},   {"values", r.values},
                         {"cases", r.cases},           {"rows", r.rows},
                         {"key_blocks", r.key_blocks}, {"unreached", r.unreached},
                         {"worst", r.worst},           {"exact", to_json(r.exact)},
                         {"seconds", r.seconds},       {"diagnostics", to_json(r.diagnostics)}};
  if (r.indices) json["indices"] = to_json(*r.indices);
  if (r.schedules) json["schedules"] = exec::to_json(*r.schedules);
  if (!r.counterexample) return json;
  const Counterexample& e = *r.counterexample;
  json["counterexample"] = {{"sizes", e.sizes},
                            {"heads", e.heads},
                            {"key_heads", e.key_heads},
                            {"reading", e.exact ? "exact" : "values"},
                            {"output", e.output},
                            {"b", e.b},
                            {"h", e.h},
                            {"i", e.i},
                            {"columns", e.columns},
                            {"got", e.got},
                            {"want", e.want},
                            {"error", e.error},
                            {"allowed", e.allowed},
                            {"message", e.message},
                            {"statement", e.statement},
                            {"line", e.line},
                            {"place", e.span.place()},
                            {"difference", e.difference}};
  return json;
}

}  // namespace kw::check
