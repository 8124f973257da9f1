// Clusters: thread blocks that run together and reach into each other's shared memory.
//
// A tile that a cluster fetches together is filled part by part, and each part goes to every thread
// block as soon as its sender asks for it: a slot that is not yet free there is found in use, one
// that is still read there is found changed under its reader. All senders must mean the same tile.
#include <fmt/format.h>

#include <algorithm>

#include "exec/copies.h"

namespace kw::exec {

using tl::Stmt;

BarrierUse barrier_in(Machine& m, const Stmt& s, ThreadBlock& block, const BarrierUse& b) {
  BarrierUse there = b;
  there.barriers = &block.barriers[b.barriers->name];
  const bool running = std::any_of(m.agents.begin(), m.agents.end(),
                                   [&](const Agent& a) { return a.block == &block && !a.done(); });
  if (there.barriers->initialised && running) return there;
  m.faults
      .raise(running ? "exec.uninitialised" : "exec.exited", &s,
             fmt::format("{} reaches into thread block {}, which {}", cite(s), block.index,
                         running ? "has not initialised its barriers" : "has ended"))
      .hint = "sync_cluster";
  there.barriers = nullptr;
  return there;
}

// The launch makes the clusters; the number of this one's thread block.
Next exec_cluster(Machine&, Agent& a, const Stmt& s) {
  a.scope()->names[s.word("c")] = Value::integer(a.block->rank);
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
    return block_on(
        a, s, "",
        fmt::format("{} of the cluster's {} threads and workers have come", b.arrived, expected));
  a.turn.reset();
  return Next::on;
}

namespace {

bool same_place(const Place& a, const Place& b) {
  return a.tensor == b.tensor && a.batch == b.batch && a.head == b.head && a.first == b.first;
}

// Makes `there` ready for the use that `mine` is about to fill, unless another sender has.
bool open_slot(Machine& m, const Stmt& s, const SharedUse& mine, SharedSlot& there,
               const Place& rows, int block) {
  if (there.multicast == mine.use) {
    if (same_place(there.tile.of_rows, rows)) return true;
    m.faults.raise("exec.multicast", &s,
                   fmt::format("{} sends its part of {}[{}, {}, {}] into thread block {}, where "
                               "another part of the same use is of {}[{}, {}, {}]",
                               cite(s), rows.tensor, rows.batch, rows.head, rows.first, block,
                               there.tile.of_rows.tensor, there.tile.of_rows.batch,
                               there.tile.of_rows.head, there.tile.of_rows.first));
    return false;
  }
  if (!may_fill(m, s, there)) return false;
  there.multicast = mine.use;
  there.parts = 0;
  there.parts_due = m.ctas;
  there.arriving = true;
  there.writer = &s;
  there.tile.of_rows = rows;
  return true;
}

}  // namespace

Next exec_multicast_async(Machine& m, Agent& a, const Stmt& s) {
  const TileCopy copy = tile_copy_of(m, a, s);
  if (!copy.to.slot) return Next::on;
  const Tile fetched = fetch(copy);
  const size_t part = fetched.x.size() / m.ctas;
  for (ThreadBlock* cta : a.block->cluster) {
    if (!barrier_in(m, s, *cta, copy.full).barriers) return Next::on;
    SharedSlot& there = cta->arrays[copy.to.array].slots[copy.to.index];
    if (!open_slot(m, s, copy.to, there, fetched.of_rows, cta->index)) return Next::on;
    // Which elements are whose does not matter here: all senders fetch the same tile.
    std::copy_n(fetched.x.begin() + a.block->rank * part, part,
                there.tile.x.begin() + a.block->rank * part);
    there.tile.of_columns = fetched.of_columns;
    there.tile.defined = true;
    ++there.parts;
  }
  announce(m, a, s, copy);
  return Next::on;
}

}  // namespace kw::exec
