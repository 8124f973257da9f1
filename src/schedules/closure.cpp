#include "schedules/closure.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <variant>

#include "support/threads.h"

namespace kw::exec::schedule {

namespace {

using Fingerprint = std::array<uint64_t, 2>;
using Streams = std::vector<Stream>;
using Counts = std::vector<std::array<int64_t, 8>>;  // [actor][counter]

// What everybody does before the first block, in one, and after the last.
struct Script {
  Streams before, body, after;
  Counts advance;           // of the counters, by the body
  std::vector<char> stays;  // who has no blocks
};

bool same_but_later(const Event& a, const Event& b) {
  return a.kind == b.kind && a.counter == b.counter && a.object == b.object &&
         a.region == b.region && a.bar == b.bar && a.count == b.count && a.stmt == b.stmt;
}

// b is a with uses moved by one distance for each counter; adds the distances to `moved`.
bool is_moved(const Stream& a, const Stream& b, std::array<int64_t, 8>& moved) {
  if (a.size() != b.size()) return false;
  std::array<bool, 8> known{};
  for (size_t n = 0; n < a.size(); ++n) {
    if (!same_but_later(a[n], b[n])) return false;
    const int c = a[n].counter;
    const int64_t by = b[n].use - a[n].use;
    const bool counted = a[n].kind == Kind::fill || a[n].kind == Kind::sent;
    if (a[n].bar >= 0 && counted && b[n].bar_use - a[n].bar_use != by) return false;
    if (c < 0 ? by != 0 : known[c] && moved[c] != by) return false;
    if (c >= 0) {
      known[c] = true;
      moved[c] = by;
    }
  }
  return true;
}

// The events of `all` in their order, but for some of its reads.
bool lacks_only_reads(const Stream& some, const Stream& all) {
  size_t n = 0;
  for (const Event& e : all) {
    const bool same = n < some.size() && same_but_later(some[n], e) && some[n].use == e.use &&
                      some[n].bar_use == e.bar_use;
    if (same)
      ++n;
    else if (e.kind != Kind::read)
      return false;
  }
  return n == some.size();
}

// Splits a walk at its marks: before the first, between two, after the last.
std::vector<Stream> parts(const Stream& s) {
  std::vector<Stream> out(1);
  for (const Event& e : s) {
    if (e.kind == Kind::mark)
      out.emplace_back();
    else
      out.back().push_back(e);
  }
  return out;
}

class Closer {
 public:
  Closer(const Profiles& profiles, int most, int threads)
      : profiles_(profiles), most_(most), threads_(threads) {}

  Closure run() {
    if (!profiles_.walker->loops_over_blocks())
      whole();
    else if (read_scripts() && tables().divide())
      explore();
    if (out_.closed && profiles_.cut) {
      out_.closed = false;
      no("there are more kinds of blocks than were looked at");
    }
    if (repeats_) out_.repeated = *repeats_;
    return std::move(out_);
  }

 private:
  struct State {
    Clocks clocks;
    Counts counts;
    std::vector<int> path;
  };

  Tables& tables() { return profiles_.walker->tables(); }

  bool no(const std::string& why) {
    out_.why_not = why;
    return false;
  }

  // What a flag decides may add reads and nothing else: then the walk that takes every arm has the
  // events of all others, and more to race with.
  Walked every_arm(const std::vector<Block>& blocks) {
    Walked all = profiles_.walker->walk(blocks, {Arms::always, 0});
    for (const Arms arms : {Arms{Arms::never, 0}, Arms{Arms::mixed, 1}, Arms{Arms::mixed, 2}}) {
      const Walked some = profiles_.walker->walk(blocks, arms);
      for (size_t a = 0; a < all.streams.size() && !all.fault; ++a)
        if (some.fault || !lacks_only_reads(some.streams[a], all.streams[a]))
          no("a flag decides about more than what is read");
    }
    return all;
  }

  bool read_script(const Block& block, Script& script) {
    const Walked walked = every_arm({block, block});
    if (walked.fault) return no(walked.fault->message);
    if (!out_.why_not.empty()) return false;
    for (const Stream& s : walked.streams) {
      const auto split = parts(s);
      const size_t marks = split.size() - 1;
      script.before.push_back(split[0]);
      script.body.emplace_back();
      script.after.emplace_back();
      script.advance.emplace_back();
      script.stays.push_back(marks == 0);
      if (marks == 0) {  // an agent without blocks: who offers in the other CTAs of a cluster
        script.body.back() = script.after.back() = s;
        continue;
      }
      if (marks != 3) return no("an agent works on another number of blocks than the others");
      if (!is_moved(split[1], split[2], script.advance.back()))
        return no("what an agent does in a block depends on more than the block");
      script.body.back() = split[1];
      script.after.back() = split[3];
    }
    return true;
  }

  bool read_scripts() {
    for (const Block& block : profiles_.blocks) {
      scripts_.emplace_back();
      if (!read_script(block, scripts_.back())) return false;
    }
    if (profiles_.longest) {
      scripts_.emplace_back();
      if (!read_script(*profiles_.longest, scripts_.back())) return false;
    }
    find_lap_actor();
    return true;
  }

  Streams moved(const Streams& of, const Counts& by, bool after) const {
    Streams out = of;
    for (size_t a = 0; a < out.size(); ++a)
      for (Event& e : out[a]) {
        if (e.counter < 0) continue;
        // What comes after the last block was walked behind two of them.
        const int64_t walked = after ? 2 * scripts_[0].advance[a][e.counter] : 0;
        e.use += by[a][e.counter] - walked;
        e.bar_use += by[a][e.counter] - walked;
      }
    return out;
  }

  // Why a search ends: a finding, or what cannot be said.
  struct Stop {
    std::optional<Diagnostic> finding;
    std::string why_not;
  };

  // Runs one block of everybody.
  std::optional<Stop> advance(State& s, const Streams& streams, bool last) const {
    s.clocks.rewind();
    s.clocks.ending = last;
    s.clocks.run(streams);
    if (last) s.clocks.finish();
    if (!s.clocks.finding()) return std::nullopt;
    // Waiting for a later block is no deadlock.
    if (s.clocks.finding()->code == "schedule.deadlock" && !last)
      return Stop{std::nullopt, "agents cannot all stop between two blocks"};
    Stop stop{s.clocks.finding(), ""};
    std::string words;
    for (int p : s.path) words += (words.empty() ? "" : "; then ") + profiles_.blocks[p].words;
    stop.finding->notes.push_back({"found with the blocks " + words, {}});
    return stop;
  }

  void end(Stop stop) {
    out_.finding = std::move(stop.finding);
    out_.why_not = std::move(stop.why_not);
  }

  // How the turns of a loop over keys repeat in a long block.
  struct Turns {
    bool found = false;
    int seen = 0, period = 0;  // turns that look like no earlier one, and after how many they do
    std::set<const tl::Stmt*> repeated;  // the loops in which everybody was meanwhile
  };

  Turns find_period(const State& from) const {
    State s = from;
    s.clocks.rewind();
    return find_turns(std::move(s.clocks), moved(scripts_.back().body, s.counts, false));
  }

  Turns find_turns(Clocks clocks, const Streams& streams) const {
    clocks.lap_of = lap_of_;
    struct Lap {
      Fingerprint all;
      std::vector<size_t> at;  // where everybody stands
    };
    std::vector<Lap> laps;
    Turns out;
    while (!out.found || !laps_are_of(streams[lap_of_], laps.back().at[lap_of_], out.repeated)) {
      clocks.lapped = false;
      clocks.run(streams);
      if (clocks.finding() || !clocks.lapped) break;
      const Lap now{clocks.fingerprint(&streams), clocks.positions()};
      // The latest: two loops may do the same.
      const auto before = std::find_if(laps.rbegin(), laps.rend(),
                                       [&](const Lap& lap) { return lap.all == now.all; });
      if (before != laps.rend()) {
        if (!out.found) out.seen = int(laps.size());
        if (!out.found) out.period = int(before - laps.rbegin()) + 1;
        out.found = true;
        for (size_t a = 0; a < streams.size(); ++a)
          if (const tl::Stmt* loop = loop_between(streams[a], before->at[a], now.at[a]))
            out.repeated.insert(loop);
      }
      laps.push_back(now);
    }
    return out;
  }

  // What repeats whatever state a block begins in.
  bool add(const Turns& t) {
    out_.turns = std::max(out_.turns, t.seen);
    out_.period = std::max(out_.period, t.period);
    if (!repeats_) repeats_ = t.repeated;
    std::erase_if(*repeats_, [&](const tl::Stmt* loop) { return !t.repeated.count(loop); });
    return t.found;
  }

  // Whether all turns from here on are of these loops.
  static bool laps_are_of(const Stream& s, size_t from, const std::set<const tl::Stmt*>& loops) {
    return std::all_of(s.begin() + std::ptrdiff_t(from), s.end(),
                       [&](const Event& e) { return e.kind != Kind::lap || loops.count(e.stmt); });
  }

  // The loop in which an agent was at two places and at all between them, of which it has begun a
  // turn; null where there is none. A step's statements are the same ones in all loops that call
  // it.
  static const tl::Stmt* loop_between(const Stream& s, size_t from, size_t to) {
    const tl::Stmt *loop = nullptr, *at = nullptr;
    for (size_t n = 0; n < from; ++n)
      if (s[n].kind == Kind::lap) at = s[n].stmt;
    for (size_t n = from; n < to; ++n) {
      if (s[n].kind != Kind::lap) continue;
      if (s[n].stmt != at) return nullptr;
      loop = at;
    }
    return loop;
  }

  // A kernel whose block is a whole launch has no sequences, but long blocks.
  void whole() {
    out_.closed = true;
    if (!profiles_.longest) return;
    const Walked walked = every_arm({*profiles_.longest});
    if (walked.fault || !out_.why_not.empty() || !tables().divide()) return;
    find_lap_actor();
    if (!add(find_turns(Clocks(tables()), walked.streams)) || out_.turns > profiles_.tiles)
      out_.period = 0;
  }

  void find_lap_actor() {
    for (size_t n = 0; n < tables().actors.size(); ++n)
      if (tables().actors[n].warp) lap_of_ = lap_of_ < 0 ? int(n) : lap_of_;
  }

  // What may follow a state: after each kind of block what nobody has seen before, or why it ends
  // the search; and how a long block's turns repeat.
  struct Followed {
    std::vector<std::variant<std::monostate, Stop, State>> after;
    std::vector<Fingerprint> prints;
    Turns turns;
  };

  Followed follow(const State& s, const std::set<Fingerprint>& seen, bool periodic) const {
    Followed out;
    if (periodic) out.turns = find_period(s);
    out.prints.resize(profiles_.blocks.size());
    for (size_t p = 0; p < profiles_.blocks.size(); ++p) {
      State next = s;
      next.path.push_back(int(p));
      if (auto stop = advance(next, moved(scripts_[p].body, s.counts, false), false)) {
        out.after.emplace_back(std::move(*stop));
        return out;
      }
      for (size_t a = 0; a < next.counts.size(); ++a)
        for (size_t c = 0; c < 8; ++c) next.counts[a][c] += scripts_[p].advance[a][c];
      out.prints[p] = next.clocks.fingerprint(nullptr);
      out.after.emplace_back();
      if (!seen.count(out.prints[p])) out.after.back() = std::move(next);
    }
    return out;
  }

  // Breadth first. Some states at a time are followed by several threads, and what they find is
  // taken in the states' order, so that it does not depend on the threads.
  void explore() {
    State start{Clocks(tables()), Counts(tables().actors.size()), {}};
    for (auto& c : start.counts) c.fill(0);
    start.clocks.stays = scripts_[0].stays;
    if (auto stop = advance(start, scripts_[0].before, false)) return end(std::move(*stop));
    std::set<Fingerprint> seen{start.clocks.fingerprint(nullptr)};
    std::deque<State> queue{start};
    bool periodic = profiles_.longest.has_value();
    while (!queue.empty()) {
      std::vector<Followed> followed(std::min(queue.size(), kAtOnce));
      each_on_threads(threads_, followed.size(),
                      [&](size_t n) { followed[n] = follow(queue[n], seen, periodic); });
      queue.erase(queue.begin(), queue.begin() + std::ptrdiff_t(followed.size()));
      for (Followed& f : followed) {
        ++out_.states;
        if (periodic) periodic = add(f.turns);
        if (!take(f, seen, queue)) return;
      }
    }
    out_.closed = true;
    // The turns up to the repetition must all be among the blocks that were tried.
    if (!periodic || out_.turns > profiles_.tiles) out_.period = 0;
  }

  // Queues what is new; false where the search ends.
  bool take(Followed& f, std::set<Fingerprint>& seen, std::deque<State>& queue) {
    for (size_t p = 0; p < f.after.size(); ++p) {
      if (auto* stop = std::get_if<Stop>(&f.after[p])) return end(std::move(*stop)), false;
      auto* state = std::get_if<State>(&f.after[p]);
      if (!state || !seen.insert(f.prints[p]).second) continue;
      State last = *state;
      if (auto stop = advance(last, moved(scripts_[0].after, last.counts, true), true))
        return end(std::move(*stop)), false;
      if (int(seen.size()) > most_) return no(fmt::format("more than {} states", most_));
      queue.push_back(std::move(*state));
    }
    return true;
  }

  static constexpr size_t kAtOnce = 32;

  const Profiles& profiles_;
  const int most_, threads_;
  Closure out_;
  std::vector<Script> scripts_;  // of the profiles; then of the longest block
  int lap_of_ = -1;
  std::optional<std::set<const tl::Stmt*>> repeats_;  // loops, whatever state a block begins in
};

}  // namespace

Closure close_over_sequences(const Profiles& profiles, int most_states, int threads) {
  return Closer(profiles, most_states, threads).run();
}

}  // namespace kw::exec::schedule
