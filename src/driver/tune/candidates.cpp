#include "driver/tune/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>

#include "support/threads.h"
#include "tl/laws/laws.h"
#include "transfer/families/attention/facts.h"

namespace kw::driver {
namespace {

// One combination as a row of the user's would be.
transfer::Tiles row_of(const spec::Form& form, const std::string& target,
                       const Setting& constants) {
  transfer::Tiles row;
  row.targets = {target};
  row.dim = form.D.constant;
  row.value_dim = form.Dv.constant;
  row.constants = constants;
  row.place = "a candidate";
  row.users = true;
  return row;
}

std::optional<Candidate> candidate(const tl::Program& source, const spec::Form& form,
                                   const std::string& target, const Setting& constants,
                                   Diagnostics& diagnostics) {
  auto changed =
      transfer::transfer(source, form, {target, {row_of(form, target, constants)}}, diagnostics);
  if (!changed || !tl::verify(changed->program, diagnostics)) return std::nullopt;
  auto plan = lower::plan_launch(changed->program, target, diagnostics);
  if (!plan) return std::nullopt;
  for (const transfer::Condition& c : changed->conditions) plan->requirements.push_back(c.holds);
  return Candidate{constants, std::move(*changed), std::move(*plan)};
}

// The first entry of `first` that the laws allow beside `constants`.
std::optional<Candidate> candidate_with_first(const tl::Program& source, const spec::Form& form,
                                              const std::string& target, const Space& space,
                                              const Setting& constants, Diagnostics& why) {
  for (const Setting& more : combinations(space.first)) {
    Setting all = constants;
    all.insert(all.end(), more.begin(), more.end());
    why = {};
    if (auto found = candidate(source, form, target, all, why)) return found;
  }
  return std::nullopt;
}

bool has(const Setting& constants, const std::string& toggle) {
  return std::find(constants.begin(), constants.end(), transfer::Constant{toggle, true}) !=
         constants.end();
}

std::string code_of(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.severity == Severity::error) return d.code;
  return "internal.refused";
}

// Those that differ in less than the model sees follow their best sibling only after a while: the
// model would spend every place on variants of one tile.
void order(std::vector<Candidate>& all, const std::string& row_tile, const std::string& key_tile) {
  constexpr double kSibling = 0.015;
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  std::map<std::vector<int64_t>, int> siblings;
  for (Candidate& c : all) {
    const auto& constants = c.plan.constants;
    const int before = siblings[{constants.at(row_tile), constants.at(key_tile), c.plan.cluster}]++;
    c.cost *= 1 + kSibling * before;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
}

}  // namespace

Candidates lawful_candidates(const tl::Program& source, const spec::Form& form,
                             const std::string& target, const Space& space) {
  Candidates out;
  const auto facts = transfer::find_facts(source, out.example);
  if (!facts) return out;
  const std::string row_tile = tl::print(facts->row_tile), key_tile = tl::print(facts->key_tile);
  for (const Setting& constants : combinations(space.axes)) {
    ++out.all;
    Diagnostics why;
    auto found = candidate_with_first(source, form, target, space, constants, why);
    if (!found) {
      ++out.refused[code_of(why)];
      if (out.example.all().empty()) out.example = why;
      continue;
    }
    found->cost = modelled_cycles(*found, row_tile, key_tile);
    out.lawful.push_back(std::move(*found));
  }
  order(out.lawful, row_tile, key_tile);
  return out;
}

double modelled_cycles(const Candidate& candidate, const std::string& row_tile,
                       const std::string& key_tile) {
  const auto of = [&](const std::string& name, double otherwise) {
    const auto found = candidate.plan.constants.find(name);
    return found == candidate.plan.constants.end() ? otherwise : static_cast<double>(found->second);
  };
  const double rows = of(row_tile, 64), keys = of(key_tile, 64), cluster = candidate.plan.cluster;
  const double dim = of("D", 128), value_dim = of("V", dim);
  // Groups of 64 rows that a multiprocessor works on; a warpgroup has one, or as many as ROWS says.
  const double groups = std::max(1.0, rows / cluster / 64 * candidate.plan.resident);
  const double of_a_warpgroup = of("ROWS", 64) / 64;
  // 2048 multiply-adds a cycle; 16 exponentials, and about ten other instructions for each score.
  const double products = (dim + value_dim) / 32, softmax = 9, instructions = 5.5;
  const double block = 300 / keys;  // barriers, waits, the rescale of the output
  // The groups hide each other's waits; in one group the two parts overlap for the most part.
  const double alone = std::max(products, softmax) + 0.3 * std::min(products, softmax) + block;
  // Without wgmma every warp reads all keys and values from shared memory for its own rows.
  const bool wgmma = candidate.plan.constants.count("ROWS") == 0;
  const double operands = wgmma ? 0 : (dim + value_dim) / 32 / of_a_warpgroup;
  const double busy = std::max({products, instructions, operands, alone / groups});
  // Energy: keys and values from L2 (32 bytes a cycle), operands from shared memory.
  const bool query_in_registers = has(candidate.constants, "Q_IN_REGISTERS");
  const double l2 = (dim + value_dim) / 16 / cluster / groups,
               shared = query_in_registers ? 0 : dim / keys;
  double cycles = busy + 0.15 * l2 + 0.15 * (shared + operands) + 0.1 * block;
  // Masked scores at the ends of a row's keys, as a share of them: beside the diagonal, of 8192,
  // the half of 16k; at both ends of a window or what is sparse, of 1024.
  if (candidate.transferred.keys == transfer::Keys::by_row) cycles *= 1 + (rows + keys) / 2 / 8192;
  if (candidate.transferred.keys == transfer::Keys::window ||
      candidate.transferred.keys == transfer::Keys::sparse)
    cycles *= 1 + (rows + keys) / 1024;
  // Registers of a thread: the output, the scores, for wgmma these again as an operand, Q if it is
  // there, and what else a warpgroup holds; fitted to what spills at D 64 to 256.
  const double accumulators = of_a_warpgroup * (value_dim + keys) / 2;
  const double others = wgmma ? keys / 4 + (query_in_registers ? dim / 4 : 0) + 28 : 60;
  const double threads = static_cast<double>(candidate.plan.threads * candidate.plan.resident);
  const double limit = of("WARPGROUP_REGISTERS", std::min(255.0, 65536 / std::max(1.0, threads)));
  constexpr double kProbablySpills = 10;
  return accumulators + others > limit + 2 ? cycles * kProbablySpills : cycles;
}

Kept first_good(size_t count, size_t keep, int jobs,
                const std::function<Outcome(size_t)>& compile) {
  std::vector<std::optional<Outcome>> outcomes(count);
  std::set<std::string> different;
  std::mutex mutex;
  size_t next = 0;
  const auto work = [&] {
    while (true) {
      size_t mine = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == count || different.size() >= keep) return;
        mine = next++;
      }
      Outcome outcome = compile(mine);
      const std::lock_guard lock(mutex);
      if (outcome.code.empty()) different.insert(outcome.fingerprint);
      outcomes[mine] = std::move(outcome);
    }
  };
  on_threads(jobs, work);
  // In order, so that whoever was faster makes no difference.
  Kept kept;
  different.clear();
  for (size_t n = 0; n < count && outcomes[n]; ++n) {
    if (kept.indices.size() == keep) break;
    ++kept.compiled;
    if (!outcomes[n]->code.empty()) {
      ++kept.refused[outcomes[n]->code];
      kept.messages.emplace(outcomes[n]->code, outcomes[n]->message);
    } else if (!different.insert(outcomes[n]->fingerprint).second)
      ++kept.refused["same"];
    else
      kept.indices.push_back(n);
  }
  return kept;
}

std::string told(const Candidates& candidates) {
  std::string out = fmt::format("{} candidates", candidates.all);
  std::vector<std::pair<int, std::string>> most;
  for (const auto& [code, times] : candidates.refused) most.push_back({-times, code});
  std::sort(most.begin(), most.end());
  const char* separator = ": ";
  for (const auto& [times, code] : most) {
    out += fmt::format("{}{} break {}", separator, -times, code);
    separator = ", ";
  }
  return out + fmt::format("; {} left", candidates.lawful.size());
}

}  // namespace kw::driver
