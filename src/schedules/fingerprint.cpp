// All that the future of a state depends on, as a number: relative to the counters, and of clocks
// only which live accesses they know.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "schedules/clocks.h"

namespace kw::exec::schedule {

namespace {

class Hash {
 public:
  void operator()(uint64_t x) {
    a_ = (a_ ^ x) * 0x9E3779B97F4A7C15ull;
    a_ ^= a_ >> 29;
    b_ = (b_ + x) * 0xC2B2AE3D27D4EB4Full;
    b_ ^= b_ >> 31;
  }
  std::array<uint64_t, 2> value() const { return {a_, b_}; }

 private:
  uint64_t a_ = 0x243F6A8885A308D3ull, b_ = 0x13198A2E03707344ull;
};

// What every clock knows of every actor and slot, one row for each of these: a fingerprint asks for
// most of them many times over.
class Knowledge {
 public:
  explicit Knowledge(const std::vector<const Clock*>& holders)
      : words_((holders.size() + 63) / 64), times_(holders[0]->size() * words_ * 64) {
    for (size_t h = 0; h < holders.size(); ++h)
      for (size_t who = 0; who < holders[h]->size(); ++who)
        times_[who * words_ * 64 + h] = (*holders[h])[who];
  }

  // Adds which of them know of this access.
  void add(Hash& hash, int who, Time at) const {
    const Time* row = &times_[size_t(who) * words_ * 64];
    for (size_t w = 0; w < words_; ++w, row += 64) hash(not_before(row, at));
  }

 private:
  // A bit for each of 64 times. Whole bytes first: compilers make vectors of that.
  static uint64_t not_before(const Time* times, Time at) {
    std::array<uint8_t, 64> flags;
    for (int h = 0; h < 64; ++h) flags[h] = times[h] >= at;
    uint64_t bits = 0;
    for (int byte = 0; byte < 8; ++byte) {
      uint64_t eight;
      std::memcpy(&eight, &flags[8 * byte], 8);
      bits = bits << 8 | eight * 0x0102040810204080ull >> 56;
    }
    return bits;
  }

  size_t words_;
  std::vector<Time> times_;  // [who][holder]
};

}  // namespace

// With `streams`: inside a block, where each agent stands counts, too.
std::array<uint64_t, 2> Clocks::fingerprint(const std::vector<Stream>* streams) const {
  Hash hash;
  const size_t actors = t_->actors.size();
  std::vector<const Clock*> holders;
  for (const Clock& c : clocks_) holders.push_back(&c);
  for (const BarrierState& b : barriers_) {
    holders.push_back(&b.coming);
    holders.push_back(&b.done);
  }
  for (const NamedState& n : named_) {
    holders.push_back(&n.coming);
    holders.push_back(&n.done);
  }
  const Knowledge known(holders);
  const auto knowledge = [&](int who, Time at) { known.add(hash, who, at); };
  // Where somebody last was in each ring and strand, and where the others are from there.
  std::vector<int64_t> front(t_->rings.size(), -1), edge(t_->strands.size(), -1);
  for (size_t a = 0; a < actors; ++a) {
    for (size_t r = 0; r < front.size(); ++r)
      if (front[r] < 0) front[r] = last_use_[a][r];
    for (size_t s = 0; s < edge.size(); ++s)
      if (edge[s] < 0) edge[s] = last_touch_[a][s];
  }
  for (size_t a = 0; a < actors; ++a) {
    for (size_t r = 0; r < front.size(); ++r)
      hash(last_use_[a][r] < 0 ? ~0ull : uint64_t(front[r] - last_use_[a][r]));
    for (size_t s = 0; s < edge.size(); ++s) {
      // Who skips what others use is further behind at each turn. What it does next is told by its
      // stream, and where that is from the others' place, below.
      const int64_t behind = edge[s] - last_touch_[a][s], far = 2 * t_->strands[s].length + 2;
      const bool skips = streams && (behind > far || behind < -far);
      hash(last_touch_[a][s] < 0 || skips ? ~0ull : uint64_t(behind));
    }
  }
  for (size_t r = 0; r < front.size(); ++r) {
    const Ring& ring = t_->rings[r];
    hash(uint64_t((front[r] + ring.length) % ring.length));
    for (int slot = 0; slot < ring.length; ++slot) {
      const BarrierState& b = barriers_[ring.first + slot];
      hash(uint64_t(front[r] - (b.completed * ring.length + slot)));
      hash(uint64_t(b.arrived) << 32 | uint32_t(b.missing));
      hash(b.ready >= 0);
      if (b.ready >= 0) knowledge(b.ready, b.ready_at);
      // Which generations each clock knows, from the latest back: C1 asks for all, C2 for all but
      // one.
      for (const Clock* c : holders)
        hash(uint64_t(std::min<int64_t>(b.completed - (*c)[actors + ring.first + slot], 2)));
      for (const auto& waited : b.waits) {
        hash(uint64_t(waited.who));
        knowledge(waited.who, waited.at);
      }
      for (const auto* list : {&b.came, &b.came_before})
        for (const auto& [who, when] : *list) {
          hash(uint64_t(who));
          knowledge(who, when);
        }
    }
  }
  for (size_t s = 0; s < t_->strands.size(); ++s) {
    const Strand& strand = t_->strands[s];
    hash(uint64_t((edge[s] + strand.length) % strand.length));
    for (int at = strand.first; at < strand.first + strand.cells * strand.length; ++at) {
      const Cell& cell = cells_[at];
      hash(uint64_t(cell.write.who + 1) << 4 | cell.write.async << 1 | (cell.write.open > 0));
      if (cell.write.who >= 0) {
        hash(uint64_t(edge[s] - cell.write.use));
        knowledge(cell.write.who, cell.write.at);
        hash(cell.write.fenced > 0);
        if (cell.write.fenced) knowledge(cell.write.who, cell.write.fenced);
      }
      std::vector<const Touch*> reads;
      for (const Touch& r : cell.reads) reads.push_back(&r);
      std::sort(reads.begin(), reads.end(), [](const Touch* a, const Touch* b) {
        return std::pair(a->actor, a->who) < std::pair(b->actor, b->who);
      });
      for (const Touch* r : reads) {
        hash(uint64_t(r->actor) << 9 | uint64_t(r->who != r->actor) << 8 | uint64_t(r->open));
        if (!r->open) knowledge(r->who, r->at);
      }
    }
  }
  for (size_t n = 0; n < named_.size(); ++n) {
    hash(uint64_t(named_[n].arrived));
    for (size_t a = 0; a < actors; ++a)  // who knows that its last generation is complete
      hash(std::equal(named_[n].done.begin(), named_[n].done.begin() + actors, clocks_[a].begin(),
                      [](Time x, Time y) { return x <= y; }));
  }
  for (size_t a = 0; a < actors; ++a) {
    const ActorState& me = actors_[a];
    hash(uint64_t(me.waiting < 0 ? 0 : 1) << 8 | me.unfinished);
    for (const auto* list : {&me.products, &me.stores, &me.commits}) {
      hash(list->size());
      for (const Begun& b : *list)
        for (const auto& [first, cells] : b.places) hash(uint64_t(first) ^ cells);
    }
    for (const auto* b : {&me.gathering, &me.copying})
      for (const auto& [first, cells] : b->places) hash(uint64_t(first) ^ cells);
    for (int at : me.unfenced) hash(uint64_t(at));
    hash(me.reached != nullptr);
    if (me.reached) knowledge(int(a), me.reached_at);
    if (!streams) continue;
    const Stream& stream = (*streams)[a];
    if (me.at >= stream.size()) {
      hash(~0ull);
      continue;
    }
    const Event& next = stream[me.at];
    hash(reinterpret_cast<uintptr_t>(next.stmt) ^ uint64_t(next.kind));
    hash(uint64_t(next.object) << 20 ^ uint64_t(next.bar) << 8 ^ uint64_t(next.region));
    // Where it is in the rings and strands that it next comes to, from the others' place.
    std::set<int> rings, strands;
    for (size_t n = me.at; n < stream.size() && stream[n].kind != Kind::lap; ++n) {
      const Event& e = stream[n];
      const bool of_ring = e.kind == Kind::wait || e.kind == Kind::wait_free ||
                           e.kind == Kind::arrive || e.kind == Kind::expect;
      const bool of_strand = e.kind == Kind::fill || e.kind == Kind::read ||
                             e.kind == Kind::write || e.kind == Kind::operand ||
                             e.kind == Kind::copy || e.kind == Kind::store;
      if (e.counter <= 0 || !(of_ring || of_strand)) continue;
      auto& seen = of_ring ? rings : strands;
      const auto& places = of_ring ? front : edge;
      if (size_t(e.object) < places.size() && seen.insert(e.object).second)
        hash(uint64_t(places[e.object] - e.use));
    }
  }
  return hash.value();
}

}  // namespace kw::exec::schedule
