// A verdict as one screen of text, and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "check/check.h"

namespace kw::check {

namespace {

std::string sizes_of(const Counterexample& e) {
  std::string text;
  for (const auto& [name, value] : e.sizes) text += fmt::format("{} {}, ", name, value);
  return fmt::format("{}{} query / {} key heads", text, e.heads, e.key_heads);
}

std::string values_of(const Counterexample& e) {
  std::string text;
  for (size_t k = 0; k < e.got.size(); ++k)
    text +=
        fmt::format("  {:>8} got {:<14.6g} want {:.6g}\n",
                    e.got.size() > 1 || e.output == "o" ? fmt::format("[{}]", e.columns[k]) : "",
                    e.got[k], e.want[k]);
  return text;
}

std::string print(const Counterexample& e) {
  std::string text = fmt::format("  at {}\n", sizes_of(e));
  if (e.i >= 0) text += fmt::format("  {}, b {}, h {}, i {}: ", e.output, e.b, e.h, e.i);
  text += e.i >= 0 ? e.message + "\n" + values_of(e) : "";
  if (e.statement.empty()) return text;
  text += fmt::format("  first statement that differs (line {}", e.line);
  if (e.span.known()) text += ", " + e.span.place();
  return text + fmt::format("):\n    {}\n  {}\n", e.statement, e.difference);
}

}  // namespace

std::string print(const Report& r) {
  std::string text = fmt::format("{}: {} case{}, {} rows, {} key blocks, {:.1f} s", name(r.verdict),
                                 r.cases, r.cases == 1 ? "" : "s", r.rows, r.key_blocks, r.seconds);
  if (r.verdict == Verdict::holds) text += fmt::format("; worst row {:.2f}x of accepted", r.worst);
  text += "\n";
  if (r.schedules) text += "  " + exec::print(*r.schedules) + "\n";
  if (r.counterexample && !r.counterexample->sizes.empty()) text += print(*r.counterexample);
  return text + render(r.diagnostics);
}

nlohmann::json to_json(const Report& r) {
  nlohmann::json json = {
      {"verdict", name(r.verdict)},           {"cases", r.cases}, {"rows", r.rows},
      {"key_blocks", r.key_blocks},           {"worst", r.worst}, {"seconds", r.seconds},
      {"diagnostics", to_json(r.diagnostics)}};
  if (r.schedules) json["schedules"] = exec::to_json(*r.schedules);
  if (!r.counterexample) return json;
  const Counterexample& e = *r.counterexample;
  json["counterexample"] = {{"sizes", e.sizes},
                            {"heads", e.heads},
                            {"key_heads", e.key_heads},
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
