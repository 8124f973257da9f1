#include "schedules/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "schedules/clocks.h"
#include "schedules/closure.h"
#include "schedules/explore.h"
#include "schedules/instances.h"

namespace kw::exec {

using namespace schedule;

namespace {

// Sequences that found every planted bug of a trial: short blocks, because a long one hides a wait
// that is missing behind others, and long ones after short ones, so that every ring turns over.
std::vector<std::vector<size_t>> sequences(size_t profiles, bool loops) {
  const size_t last = profiles - 1, middle = profiles > 3 ? 3 : last, second = profiles > 1 ? 1 : 0;
  std::vector<std::vector<size_t>> all;
  if (!loops) {
    for (size_t n = 0; n < profiles; ++n) all.push_back({n});
    return all;
  }
  return {{0}, {0, 0, middle}, {second, 0, 0, 0}, {last, second, 0, middle, last}};
}

std::vector<std::vector<size_t>> small_sequences(bool loops) {
  if (!loops) return {{0}, {1}, {2}};
  return {{0}, {0, 0}, {1, 0}, {0, 0, 2}};
}

class Check {
 public:
  Check(const tl::Program& program, const ScheduleOptions& options, ScheduleReport& report)
      : program_(program), options_(options), report_(report) {}

  void run() {
    profiles_ = find_profiles(program_, options_.params, options_.tiles);
    if (profiles_.fault) return found(*profiles_.fault);
    if (profiles_.blocks.empty()) {
      report_.unable = "no launch of the program could be made up";
      return;
    }
    report_.profiles = int(profiles_.blocks.size());
    report_.agents = int(tables().actors.size());
    for (const auto& sequence :
         sequences(profiles_.blocks.size(), profiles_.walker->loops_over_blocks()))
      for (const Arms arms : {Arms{Arms::mixed, 1}, Arms{Arms::never, 0}, Arms{Arms::always, 0}}) {
        instance(sequence, arms);
        if (!report_.holds()) return;
      }
    if (options_.close) close();
    if (report_.holds() && options_.explore) explore_all();
    if (report_.holds() && program_.find(tl::Op::schedule_tiles)) explore_counter();
  }

 private:
  Tables& tables() { return profiles_.walker->tables(); }

  // Small instances, each warpgroup as one agent and, where that fits, as two. Its warps then take
  // the same arms, all of them.
  void explore_all() {
    for (const int agents : {1, 2})
      for (const auto& sequence : small_sequences(profiles_.walker->loops_over_blocks())) {
        std::vector<Block> blocks;
        for (size_t n : sequence)
          blocks.push_back(profiles_.blocks[std::min(n, profiles_.blocks.size() - 1)]);
        const Walked walked = profiles_.walker->walk(blocks, {Arms::always, 0});
        const auto small = merge_warps(tables(), walked.streams, agents);
        if (walked.fault || !small) continue;
        const Explored e = schedule::explore(small->tables, small->streams,
                                             options_.most_explored - report_.explored);
        report_.explored += e.states;
        report_.cut |= e.cut;
        if (e.finding) found(*e.finding);
        if (e.finding || e.cut) return;
      }
  }

  void explore_counter() {
    for (int clusters = 1; clusters <= 4; ++clusters)
      for (int blocks = 1; blocks <= 7; ++blocks) {
        const QueueExplored q = explore_queue(clusters, blocks);
        report_.queue_states += q.states;
        if (!q.right) report_.unable = "the counter of the queue hands out blocks wrongly";
      }
  }

  void close() {
    const Closure c = close_over_sequences(profiles_, options_.most_states, options_.threads);
    report_.closed = c.closed;
    report_.states = c.states;
    report_.period = c.period;
    report_.bounded = c.closed && profiles_.longest_is_known;
    report_.not_closed = c.why_not;
    report_.repeated = c.repeated;
    report_.turns = profiles_.turns;
    if (c.finding) found(*c.finding);
  }

  void found(Diagnostic d) { report_.findings.push_back(std::move(d)); }

  void instance(const std::vector<size_t>& sequence, Arms arms) {
    std::vector<Block> blocks;
    for (size_t n : sequence) blocks.push_back(profiles_.blocks[n]);
    const Walked walked = profiles_.walker->walk(blocks, arms);
    if (walked.fault) return found(*walked.fault);
    if (!tables().divide()) {
      report_.unable = "a tile is divided into more than 64 parts";
      return;
    }
    std::string words;
    for (const Block& b : blocks) words += (words.empty() ? "" : "; then ") + b.words;
    if (arms.which == Arms::mixed) report_.instances.push_back(words);
    for (const Stream& s : walked.streams) report_.events += int64_t(s.size());
    Clocks clocks(tables());
    clocks.run(walked.streams);
    clocks.finish();
    if (!clocks.finding()) return;
    found(*clocks.finding());
    report_.findings.back().notes.push_back({"found with the blocks " + words, {}});
  }

  const tl::Program& program_;
  const ScheduleOptions& options_;
  ScheduleReport& report_;
  Profiles profiles_;
};

}  // namespace

ScheduleReport check_schedules(const tl::Program& program, const ScheduleOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ScheduleReport report;
  Check(program, options, report).run();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

ScheduleAgreement compare_checkers(const tl::Program& program,
                                   const std::map<std::string, int64_t>& params,
                                   const std::vector<size_t>& sequence, int agents, int64_t most) {
  ScheduleAgreement out;
  Profiles profiles = find_profiles(program, params, 4);
  if (profiles.fault || profiles.blocks.empty()) {
    out.walk = profiles.fault ? profiles.fault->code : "no launch";
    return out;
  }
  std::vector<Block> blocks;
  for (size_t n : sequence)
    blocks.push_back(profiles.blocks[std::min(n, profiles.blocks.size() - 1)]);
  const Walked walked = profiles.walker->walk(blocks, {Arms::always, 0});
  if (walked.fault) {
    out.walk = walked.fault->code;
    return out;
  }
  const auto small = merge_warps(profiles.walker->tables(), walked.streams, agents);
  if (!small) {
    out.walk = "warps differ";
    return out;
  }
  Clocks clocks(small->tables);
  clocks.run(small->streams);
  clocks.finish();
  if (clocks.finding()) out.clocks = clocks.finding()->code;
  const Explored e = schedule::explore(small->tables, small->streams, most);
  if (e.finding) out.explored = e.finding->code;
  out.states = e.states;
  out.cut = e.cut && !e.finding;
  return out;
}

uint64_t schedule_signature(const tl::Program& program) {
  const Profiles profiles = find_profiles(program, {}, 4);
  if (profiles.fault || profiles.blocks.empty()) return 0;
  uint64_t all = 1;
  for (const Block& block : profiles.blocks)
    all = all * 31 + signature(profiles.walker->walk({block}, {Arms::never, 0}));
  for (const auto* arms : {"never", "always"}) {
    const Arms a{std::string(arms) == "never" ? Arms::never : Arms::always, 0};
    all = all * 31 + signature(profiles.walker->walk({profiles.blocks.back()}, a));
  }
  return all;
}

std::string print(const ScheduleReport& r) {
  if (!r.unable.empty()) return "schedules: " + r.unable;
  std::string text =
      fmt::format("schedules: {} agents, {} kinds of blocks, {} instances, {} events", r.agents,
                  r.profiles, r.instances.size(), r.events);
  if (r.closed && r.states) text += fmt::format("; all sequences of blocks ({} states)", r.states);
  if (!r.closed && !r.not_closed.empty()) text += fmt::format("; only these: {}", r.not_closed);
  if (!r.longer.empty())
    text += fmt::format("; nothing says what more turns of {} do", r.longer);
  else if (r.period)
    text += fmt::format(", any number of key blocks (period {})", r.period);
  else if (r.bounded)
    text += ", any number of keys (no block visits more key blocks)";
  if (r.explored) text += fmt::format("; {} states explored{}", r.explored, r.cut ? ", cut" : "");
  return text + fmt::format(", {:.1f} s", r.seconds);
}

nlohmann::json to_json(const ScheduleReport& r) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Diagnostic& d : r.findings) findings.push_back(kw::to_json(d));
  return {{"holds", r.holds()},
          {"unable", r.unable},
          {"findings", findings},
          {"agents", r.agents},
          {"instances", r.instances},
          {"events", r.events},
          {"kinds_of_blocks", r.profiles},
          {"all_sequences_of_blocks", r.closed},
          {"states", r.states},
          {"not_closed", r.not_closed},
          {"any_number_of_key_blocks", r.any_length()},
          {"period", r.period},
          {"explored_states", r.explored},
          {"exploration_cut", r.cut},
          {"queue_states", r.queue_states},
          {"seconds", r.seconds}};
}

}  // namespace kw::exec
