// Barriers, and reaching a place in shared memory.
#include "exec/shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "exec/machine.h"

namespace kw::exec {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Stmt;

void Barriers::settle(int64_t at) {
  BarrierSlot& slot = slots[at];
  const bool came = std::all_of(slot.copies.begin(), slot.copies.end(), [](const SharedSlot* copy) {
    return copy->parts == copy->parts_due;
  });
  if (slot.arrived != arrivals || !came) return;
  for (SharedSlot* copy : slot.copies) {
    copy->arriving = false;
    if (copy->sent_from) --copy->sent_from->stores;
    copy->sent_from = nullptr;
  }
  slot.copies.clear();
  slot.arrived = 0;
  ++slot.completed;
}

namespace {

// A name and its indices: q_s[me][u] is ("q_s", {me, u}).
std::pair<std::string, std::vector<ExprPtr>> unfold(const ExprPtr& e) {
  if (e->kind != ExprKind::index) return {e->text, {}};
  auto [name, at] = unfold(e->args[0]);
  at.insert(at.end(), e->args.begin() + 1, e->args.end());
  return {name, at};
}

}  // namespace

SharedUse shared_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole) {
  const auto [name, at] = unfold(s.expr(hole));
  const auto it = a.block->arrays.find(name);
  if (it == a.block->arrays.end()) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a tile in shared memory", name));
    return {};
  }
  SharedArray& array = it->second;
  const size_t needs = size_t(array.is_array) + size_t(array.is_ring);
  if (at.size() != needs) {
    m.faults.raise(
        "exec.shape", &s,
        fmt::format("{} has {} indices and is declared with {}", name, at.size(), needs));
    return {};
  }
  const Context c = context(m, a, s);
  const int64_t member = array.is_array ? integer_of(c, at.front()) : 0;
  const int64_t use = array.is_ring ? integer_of(c, at.back()) : 0;
  if (member < 0 || member >= array.members || use < 0) {
    m.faults.raise("exec.bounds", &s,
                   fmt::format("{}: member {} of {}, use {}", name, member, array.members, use));
    return {};
  }
  const size_t index = member * array.ring + use % array.ring;
  return {&array.slots[index], use, array.is_ring, name, index};
}

SharedSlot* readable_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole) {
  const SharedUse at = shared_of(m, a, s, hole);
  if (!at.slot) return nullptr;
  SharedSlot& slot = *at.slot;
  const std::string name = tl::print(s.expr(hole));
  auto fault = [&](const char* code, const std::string& message) {
    Diagnostic& d = m.faults.raise(code, &s, message);
    if (slot.writer) d.notes.push_back({"last filled by " + cite(*slot.writer), slot.writer->span});
    return nullptr;
  };
  if (slot.filled_by && at.ring && slot.use != at.use)
    return fault("exec.stale",
                 fmt::format("{} is use {} and the slot holds use {}", name, at.use, slot.use));
  if (slot.filled_by) {
    const auto seen = a.waited.find({slot.filled_by, slot.barrier_slot});
    if (slot.arriving || seen == a.waited.end() || seen->second < slot.phase)
      return fault("exec.not_arrived", fmt::format("{} is read before a wait for use {} of {}",
                                                   name, slot.use, slot.filled_by->name));
  }
  if (slot.synced != slot.copiers)
    return fault("exec.not_arrived",
                 fmt::format("{} is read before every warpgroup that copies it has waited for its "
                             "part and come to a sync",
                             name));
  if (!slot.filled_by && slot.stored_by >= 0 && slot.stored_by != a.index) {
    bool arrived = false, published = false;
    for (const Handover& h : slot.handed_over) {
      const auto seen = a.waited.find({h.barriers, h.slot});
      if (seen == a.waited.end() || seen->second < h.phase) continue;
      arrived = true;
      published |= h.published;
    }
    if (!arrived)
      return fault("exec.not_arrived",
                   fmt::format("{} is read before a wait for the warpgroup that stores it", name));
    if (!published)
      return fault("exec.not_published",
                   fmt::format("{} is read and was not published before it was handed over", name));
  }
  if (!slot.tile.defined)
    return fault("exec.uninitialised",
                 fmt::format("{} is read and nothing has filled it yet", name));
  return &slot;
}

BarrierUse barrier_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole) {
  const auto [name, at] = unfold(s.expr(hole));
  const auto it = a.block->barriers.find(name);
  if (it == a.block->barriers.end() || at.size() != 1) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not one use of a barrier", name));
    return {};
  }
  Barriers& b = it->second;
  const int64_t use = integer_of(context(m, a, s), at[0]);
  if (!b.initialised || use < 0) {
    m.faults.raise(b.initialised ? "exec.bounds" : "exec.uninitialised", &s,
                   b.initialised ? fmt::format("{}[{}] has a negative index", name, use)
                                 : fmt::format("{} is used and no init names it", name));
    return {};
  }
  return {&b, use % b.ring, use / b.ring, use};
}

std::string state_of(const BarrierUse& b) {
  const BarrierSlot& slot = b.barriers->slots[b.slot];
  std::string text = fmt::format(
      "use {} of {} needs phase {} of slot {}, which has {} of {} arrivals in phase "
      "{}",
      b.use, b.barriers->name, b.phase, b.slot, slot.arrived, b.barriers->arrivals, slot.completed);
  for (const SharedSlot* copy : slot.copies)
    if (copy->parts != copy->parts_due)
      text += fmt::format(" and {} of the {} parts of a tile", std::popcount(copy->parts),
                          std::popcount(copy->parts_due));
  return text;
}

bool passed(Machine& m, Agent& a, const Stmt& s, const BarrierUse& b) {
  b.barriers->settle(b.slot);
  const int64_t completed = b.barriers->slots[b.slot].completed;
  if (completed > b.phase + 1)
    m.faults.raise("exec.phase", &s,
                   fmt::format("{} waits for phase {} of a barrier that has completed {}: its one "
                               "bit of phase tells nothing",
                               cite(s), b.phase, completed));
  if (completed <= b.phase) return false;
  a.waited[{b.barriers, b.slot}] = b.phase;
  return true;
}

bool is_free(Machine& m, Agent& a, const Stmt& s, const BarrierUse& b) {
  (void)a;
  b.barriers->settle(b.slot);
  const int64_t completed = b.barriers->slots[b.slot].completed;
  if (completed > b.phase)
    m.faults.raise("exec.phase", &s,
                   fmt::format("{} waits for the use before {} to be released, and {} already is",
                               cite(s), b.use, b.use));
  return completed >= b.phase;
}

void arrive_at(Machine& m, Agent& a, const Stmt& s, const BarrierUse& b, int arrivals) {
  b.barriers->settle(b.slot);
  BarrierSlot& slot = b.barriers->slots[b.slot];
  if (slot.completed != b.phase || slot.arrived + arrivals > b.barriers->arrivals) {
    m.faults.raise("exec.phase", &s,
                   fmt::format("{} arrives {} times for {}", cite(s), arrivals, state_of(b)));
    return;
  }
  slot.arrived += arrivals;
  a.pause = true;
}

}  // namespace kw::exec
