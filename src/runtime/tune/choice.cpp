#include "runtime/tune/choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::runtime {
namespace {

// Fastest first; those without times keep their order behind them.
std::vector<CandidateTimes> ranked(const TuneTimes& times) {
  std::vector<CandidateTimes> all = times.candidates;
  std::stable_sort(all.begin(), all.end(), [](const CandidateTimes& a, const CandidateTimes& b) {
    if (!a.ok() || !b.ok()) return a.ok() && !b.ok();
    return a.median() < b.median();
  });
  return all;
}

const TuneCandidate* candidate_named(const std::vector<TuneCandidate>& candidates,
                                     const std::string& name) {
  for (const TuneCandidate& c : candidates)
    if (c.name == name) return &c;
  return nullptr;
}

}  // namespace

std::optional<TuneChoice> choose(const std::vector<TuneCandidate>& candidates,
                                 const TuneTimes& times) {
  const std::vector<CandidateTimes> all = ranked(times);
  if (all.empty() || !all[0].ok()) return std::nullopt;
  TuneChoice choice;
  choice.fastest = all[0].name;
  if (all.size() > 1 && all[1].ok()) {
    choice.runner_up = all[1].name;
    choice.runner_up_ratio = all[1].median() / all[0].median();
  }
  for (const CandidateTimes& c : all) {
    const TuneCandidate* which = candidate_named(candidates, c.name);
    if (!which || !which->present || !c.ok()) continue;
    choice.present = c.name;
    choice.present_ratio = c.median() / all[0].median();
    choice.keeps_present = !(all[0].median() < c.min());
  }
  return choice;
}

std::string table(const std::vector<TuneCandidate>& candidates, const TuneTimes& times) {
  const std::vector<CandidateTimes> all = ranked(times);
  std::string out = fmt::format("{:<9} {:>9} {:>17} {:>8} {:>6}  constants\n", "candidate", "ms",
                                "min..max", "TFLOP/s", "ratio");
  for (const CandidateTimes& c : all) {
    const TuneCandidate* which = candidate_named(candidates, c.name);
    const std::string name = c.name + (which && which->present ? " now" : "");
    if (c.ok())
      out += fmt::format("{:<9} {:>9.4f} {:>17} {:>8.1f} {:>6.3f}  {}\n", name, c.median(),
                         fmt::format("{:.4f}..{:.4f}", c.min(), c.max()),
                         times.flop / c.median() / 1e9, all[0].median() / c.median(),
                         which ? which->text : "");
    else
      out += fmt::format("{:<9} {}: {}  {}\n", name, c.verdict == "ok" ? "not timed" : c.verdict,
                         c.why, which ? which->text : "");
  }
  return out;
}

std::string sentence(const TuneChoice& choice) {
  std::string out = choice.fastest + " is fastest";
  if (!choice.present.empty() && choice.present != choice.fastest)
    out += fmt::format(", {:.3f}x the present {}", choice.present_ratio, choice.present);
  if (choice.present == choice.fastest) out += ", and the present one";
  if (!choice.runner_up.empty() && choice.runner_up != choice.present)
    out += fmt::format(", {:.3f}x the next, {}", choice.runner_up_ratio, choice.runner_up);
  if (choice.keeps_present && choice.present != choice.fastest)
    out += "; the difference is within the spread of the present one, which stays";
  return out;
}

}  // namespace kw::runtime
