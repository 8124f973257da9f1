// Copies by whole warpgroups, and the syncs that make them visible to each other.
//
// Each warpgroup that copies a tile brings a part of it. Its part has come when it has waited for
// the commit, and the others may look when it has then come to a sync; so a tile can be read when
// all its copiers have. A tile that is copied anew has none of this: whoever still reads it is
// told.
#include <fmt/format.h>

#include <algorithm>

#include "exec/copies.h"

namespace kw::exec {

using tl::Stmt;

namespace {

// This warpgroup's part of a tile, as cp_async and copy_in bring it; null after a fault. The first
// of the copiers opens the slot; those that follow must mean the same.
SharedSlot* bring_part(Machine& m, Agent& a, const Stmt& s) {
  const bool values = s.op == tl::Op::cp_async_rows;
  const TileCopy copy =
      values ? rows_copy_of(m, a, s) : warpgroup_copy_of(m, a, s, tl::Hole::dst, false);
  if (!copy.to.slot) return nullptr;
  SharedSlot& slot = *copy.to.slot;
  const int64_t by = integer_of(context(m, a, s), s.by());
  const uint32_t mine = 1u << (by == 1 ? 0 : a.warpgroup);
  const bool opens = slot.copied == slot.copiers || (slot.opened & mine);
  if (opens) {
    if (!may_fill(m, s, slot)) return nullptr;
    slot.copiers = by == 1 ? 1 : (1u << by) - 1;
    slot.copied = slot.synced = slot.opened = 0;
    slot.tile = values ? fetch_rows(copy) : fetch(copy);
    if (values) slot.tile.of_rows = copy.place;
    slot.writer = &s;
    slot.filled_by = nullptr;
    slot.stored_by = -1;
    slot.use = copy.to.use;
  } else if (slot.tile.of_rows.tensor != copy.place.tensor ||
             slot.tile.of_rows.outer != copy.place.outer ||
             slot.tile.of_rows.first != copy.place.first ||
             slot.tile.of_columns.first != copy.column) {
    m.faults.raise("exec.multicast", &s,
                   fmt::format("{} brings rows from {} of a tile of which another warpgroup brings "
                               "those from {}",
                               cite(s), copy.place.first, slot.tile.of_rows.first));
    return nullptr;
  }
  slot.opened |= mine;
  return &slot;
}

// The warpgroup's part is there; who else reads it needs a sync.
void part_has_come(Agent& a, SharedSlot& slot) {
  slot.copied |= slot.copiers == 1 ? 1u : 1u << a.warpgroup;
  a.unsynced.push_back(&slot);
}

Next begin_copy(Machine& m, Agent& a, const Stmt& s) {
  if (SharedSlot* slot = bring_part(m, a, s)) a.copies.push_back(slot);
  return Next::on;
}

Next copy_at_once(Machine& m, Agent& a, const Stmt& s) {
  if (SharedSlot* slot = bring_part(m, a, s)) part_has_come(a, *slot);
  return Next::on;
}

Next copy_back(Machine& m, Agent& a, const Stmt& s) {
  const TileCopy copy = warpgroup_copy_of(m, a, s, tl::Hole::src, true);
  if (!copy.to.slot || !readable_of(m, a, s, tl::Hole::src)) return Next::on;
  write_rows(m, a, s, copy, integer_of(context(m, a, s), s.by()));
  return Next::on;
}

}  // namespace

Next exec_cp_async(Machine& m, Agent& a, const Stmt& s) { return begin_copy(m, a, s); }
Next exec_cp_async_tile(Machine& m, Agent& a, const Stmt& s) { return begin_copy(m, a, s); }
Next exec_cp_async_rows(Machine& m, Agent& a, const Stmt& s) { return begin_copy(m, a, s); }
Next exec_copy_out(Machine& m, Agent& a, const Stmt& s) { return copy_back(m, a, s); }
Next exec_copy_tile_out(Machine& m, Agent& a, const Stmt& s) { return copy_back(m, a, s); }

Next exec_copy_in(Machine& m, Agent& a, const Stmt& s) { return copy_at_once(m, a, s); }
Next exec_copy_tile_in(Machine& m, Agent& a, const Stmt& s) { return copy_at_once(m, a, s); }

// A warpgroup reads what it has brought itself, after its own wait: nobody else need have come.
Next exec_upcast(Machine& m, Agent& a, const Stmt& s) {
  const SharedUse from = shared_of(m, a, s, tl::Hole::src), to = shared_of(m, a, s, tl::Hole::dst);
  if (!from.slot || !to.slot) return Next::on;
  const int64_t by = integer_of(context(m, a, s), s.by());
  SharedSlot &raw = *from.slot, &slot = *to.slot;
  const uint32_t all = by == 1 ? 1 : (1u << by) - 1, mine = by == 1 ? 1 : 1u << a.warpgroup;
  if (raw.copiers != all || !(raw.copied & mine) || raw.use != from.use) {
    m.faults.raise("exec.not_arrived", &s,
                   fmt::format("{} reads a part of {} that this warpgroup has not brought, or not "
                               "waited for",
                               cite(s), tl::print(s.src())));
    return Next::on;
  }
  if (raw.tile.rows != slot.tile.rows || raw.tile.columns != slot.tile.columns) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: {} x {} and {} x {} differ", cite(s), raw.tile.rows,
                               raw.tile.columns, slot.tile.rows, slot.tile.columns));
    return Next::on;
  }
  if (slot.copied == slot.copiers || (slot.opened & mine)) {
    if (!may_fill(m, s, slot)) return Next::on;
    slot.copiers = all;
    slot.copied = slot.synced = slot.opened = 0;
    slot.tile.of_rows = raw.tile.of_rows;
    slot.tile.of_columns = raw.tile.of_columns;
    slot.tile.e = raw.tile.e;
    for (size_t n = 0; n < raw.tile.x.size(); ++n)  // exact: e4m3 is within both 16-bit types
      slot.tile.x[n] = static_cast<float>(round_to(slot.tile.dtype, raw.tile.x[n]));
    slot.tile.defined = true;
    slot.writer = &s;
    slot.filled_by = nullptr;
    slot.stored_by = -1;
    slot.use = to.use;
  }
  slot.opened |= mine;
  part_has_come(a, slot);
  return Next::on;
}

Next exec_cp_async_commit(Machine&, Agent& a, const Stmt&) {
  a.commits.push_back(std::move(a.copies));
  a.copies.clear();
  return Next::on;
}

Next exec_cp_async_wait(Machine& m, Agent& a, const Stmt& s) {
  const size_t pending = integer_of(context(m, a, s), s.pending());
  while (a.commits.size() > pending) {
    for (SharedSlot* slot : a.commits.front()) part_has_come(a, *slot);
    a.commits.erase(a.commits.begin());
  }
  return Next::on;
}

// What this warpgroup has brought or stored, the others may see after they have come here, too.
void publish_at_sync(Agent& a) {
  for (SharedSlot* slot : a.unsynced) slot->synced |= slot->copiers == 1 ? 1u : 1u << a.warpgroup;
  a.unsynced.clear();
}

Next exec_sync_block(Machine& m, Agent& a, const Stmt& s) {
  publish_at_sync(a);
  const auto all = std::count_if(m.agents.begin(), m.agents.end(),
                                 [&](const Agent& other) { return other.block == a.block; });
  return sync_named(m, a, s, 0, static_cast<int>(all) * 128);
}

}  // namespace kw::exec
