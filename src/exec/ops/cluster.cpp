// Clusters: CTAs that run together and reach into each other's shared memory.
//
// A tile that a cluster fetches together is filled part by part, and each part goes to every CTA as
// soon as its sender asks for it: a slot that is not yet free there is found in use, one that is
// still read there is found changed under its reader. All senders must mean the same tile.
//
// Nobody may reach into a CTA that has not begun or has ended. One schedule cannot show
// that by itself, so meetings are counted: sync_cluster comes after init and before the first
// reach, and again after the last one.
#include <fmt/format.h>

#include <algorithm>

#include "exec/copies.h"

namespace kw::exec {

using tl::Stmt;

bool may_reach(Machine& m, Agent& a, const Stmt& s, const ThreadBlock& block) {
  if (&block == a.block) return true;
  a.reached = &s;
  if (a.met) return true;
  m.faults
      .raise("exec.uninitialised", &s,
             fmt::format("{} reaches into CTA {}, which may not have initialised its "
                         "barriers yet",
                         cite(s), block.index))
      .hint = "sync_cluster after init";
  return false;
}

BarrierUse barrier_in(Machine& m, Agent& a, const Stmt& s, ThreadBlock& block,
                      const BarrierUse& b) {
  BarrierUse there = b;
  there.barriers = may_reach(m, a, s, block) ? &block.barriers[b.barriers->name] : nullptr;
  return there;
}

bool ctas_agree(Machine& m, const Stmt& s) {
  const int64_t k = integer_of({m, nullptr, &s}, s.ctas());
  if (k == m.ctas) return true;
  m.faults.raise("exec.cluster", &s,
                 fmt::format("{} is for {} CTAs, a cluster has {}", cite(s), k, m.ctas));
  return false;
}

// The launch makes the clusters; the number of this one's CTA.
Next exec_cluster(Machine&, Agent& a, const Stmt& s) {
  a.scope()->names[s.rank()] = Value::integer(a.block->rank);
  return Next::on;
}

Next exec_sync_cluster(Machine& m, Agent& a, const Stmt& s) {
  NamedBarrier& b = a.block->cluster[0]->together;
  const auto expected = std::count_if(m.agents.begin(), m.agents.end(), [&](const Agent& other) {
    return other.block->cluster[0] == a.block->cluster[0];
  });
  if (!a.turn) {
    a.turn = b.generation;
    b.last = &s;
    if (++b.arrived == expected) {
      b.arrived = 0;
      ++b.generation;
    }
  }
  if (b.generation == *a.turn)
    return block_on(a, s, "",
                    fmt::format("{} of the cluster's {} threads and warpgroups have come",
                                b.arrived, expected));
  a.turn.reset();
  a.met = true;
  a.reached = nullptr;
  return Next::on;
}

namespace {

bool same_place(const Place& a, const Place& b) {
  return a.tensor == b.tensor && a.outer == b.outer && a.first == b.first;
}

// Makes `there` ready for a part; the sender of another may have done so. A sender that is at
// another use than the receiver does not get that far: its own barrier is in another phase.
bool open_slot(Machine& m, const Stmt& s, SharedSlot& there, const Place& rows, uint32_t part,
               int block) {
  const bool open = there.parts != there.parts_due;
  if (open && !(there.parts & part)) {
    if (same_place(there.tile.of_rows, rows)) return true;
    m.faults.raise("exec.multicast", &s,
                   fmt::format("{} sends its part of {}[{}, {}, {}] into CTA {}, where "
                               "another part of the same use is of {}[{}, {}, {}]",
                               cite(s), rows.tensor, rows.outer[0], rows.outer[1], rows.first,
                               block, there.tile.of_rows.tensor, there.tile.of_rows.outer[0],
                               there.tile.of_rows.outer[1], there.tile.of_rows.first));
    return false;
  }
  if (!may_fill(m, s, there)) return false;
  there.parts = 0;
  there.parts_due = (1u << m.ctas) - 1;
  there.arriving = true;
  there.writer = &s;
  there.tile.of_rows = rows;
  return true;
}

}  // namespace

Next exec_tma_load_multicast(Machine& m, Agent& a, const Stmt& s) {
  const TileCopy copy = tile_copy_of(m, a, s);
  if (!copy.to.slot || !ctas_agree(m, s)) return Next::on;
  const Tile fetched = fetch(copy);
  const size_t size = size_t(fetched.rows) * fetched.columns / m.ctas;
  const uint32_t part = 1u << a.block->rank;
  for (ThreadBlock* cta : a.block->cluster) {
    SharedSlot& there = cta->arrays[copy.to.array].slots[copy.to.index];
    if (!may_reach(m, a, s, *cta) || !open_slot(m, s, there, fetched.of_rows, part, cta->index))
      return Next::on;
    // Which elements are whose does not matter here: all senders fetch the same tile.
    const auto bring = [&](const auto& from, auto& to) {
      std::copy_n(from.begin() + a.block->rank * size, size, to.begin() + a.block->rank * size);
    };
    m.algebra ? bring(fetched.e, there.tile.e) : bring(fetched.x, there.tile.x);
    there.tile.of_columns = fetched.of_columns;
    there.tile.defined = true;
    there.parts |= part;
  }
  announce(m, a, s, copy);
  return Next::on;
}

// A tile to the same place in the other CTA of a cluster of two. What is sent is read until it has
// arrived there, of which only the other CTA can tell.
Next exec_tma_send(Machine& m, Agent& a, const Stmt& s) {
  if (m.ctas != 2) {
    m.faults.raise("exec.cluster", &s,
                   fmt::format("{} is for 2 CTAs, a cluster has {}", cite(s), m.ctas));
    return Next::on;
  }
  SharedSlot* from = leaving(m, a, s);
  TileCopy copy;
  copy.to = shared_of(m, a, s, tl::Hole::dst);
  copy.full = barrier_of(m, a, s, tl::Hole::barrier);
  if (!from || !copy.to.slot || !copy.full.barriers) return Next::on;
  const Tile& tile = copy.to.slot->tile;
  if (tile.rows != from->tile.rows || tile.columns != from->tile.columns ||
      tile.dtype != from->tile.dtype) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: {} x {} {} and {} x {} {} differ", cite(s), from->tile.rows,
                               from->tile.columns, name(from->tile.dtype), tile.rows, tile.columns,
                               name(tile.dtype)));
    return Next::on;
  }
  ThreadBlock& other = *a.block->cluster[1 - a.block->rank];
  copy.full = barrier_in(m, a, s, other, copy.full);
  copy.to.slot = &other.arrays[copy.to.array].slots[copy.to.index];
  if (!copy.full.barriers || !may_fill(m, s, *copy.to.slot)) return Next::on;
  SharedSlot& there = *copy.to.slot;
  there.tile = from->tile;
  there.parts = there.parts_due = 0;
  there.sent_from = from;
  ++from->stores;
  from->reader = &s;
  announce(m, a, s, copy);
  return Next::on;
}

}  // namespace kw::exec
