// Synchronisation: mbarriers, named barriers, products, the stores of the copy engine.
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Item;
using tl::Stmt;

// Every agent runs it; the first of its CTA makes the barriers ready.
Next exec_init(Machine& m, Agent& a, const Stmt& s) {
  a.met = false;
  for (const Item& item : s.barriers()) {
    const std::string& name = item.expr->text;
    if (const auto b = a.block->barriers.find(name); b != a.block->barriers.end())
      b->second.initialised = true;
    else if (const auto q = a.block->queues.find(name); q != a.block->queues.end())
      q->second.full.initialised = q->second.free.initialised = true;
    else
      m.faults.raise("exec.name", &s, fmt::format("{} is not a barrier or a queue", name));
  }
  return Next::on;
}

Next exec_wait(Machine& m, Agent& a, const Stmt& s) {
  const BarrierUse b = barrier_of(m, a, s, tl::Hole::barrier);
  if (!b.barriers || passed(m, a, s, b) || m.faults.any()) return Next::on;
  return block_on(a, s, b.barriers->name, state_of(b));
}

Next exec_wait_free(Machine& m, Agent& a, const Stmt& s) {
  const BarrierUse b = barrier_of(m, a, s, tl::Hole::barrier);
  if (!b.barriers || is_free(m, a, s, b) || m.faults.any()) return Next::on;
  return block_on(a, s, b.barriers->name, state_of(b));
}

Next exec_arrive(Machine& m, Agent& a, const Stmt& s) {
  const BarrierUse b = barrier_of(m, a, s, tl::Hole::barrier);
  if (!b.barriers) return Next::on;
  if (!b.barriers->in_cluster) {
    std::erase_if(a.stored, [&](const SharedSlot* slot) {
      return slot->filled_by || slot->stored_by != a.index;
    });
    for (SharedSlot* slot : a.stored)
      slot->handed_over.push_back({b.barriers, b.slot, b.phase, slot->published});
    arrive_at(m, a, s, b, a.warps());
    return Next::on;
  }
  if (a.thread >= 0 || a.guarded())
    m.faults.raise(
        "exec.sync", &s,
        fmt::format("{} is run by one thread: it would arrive in one CTA alone", cite(s)));
  for (ThreadBlock* cta : a.block->cluster)
    if (const BarrierUse there = barrier_in(m, a, s, *cta, b); there.barriers && !m.faults.any())
      arrive_at(m, a, s, there, a.warps());
  return Next::on;
}

// ---- named barriers
namespace {

void arrive_named(NamedBarrier& b, const Stmt& s, int threads) {
  b.arrived += 128;
  b.last = &s;
  if (b.arrived < threads) return;
  b.arrived = 0;
  ++b.generation;
}

}  // namespace

Next sync_named(Machine& m, Agent& a, const Stmt& s, int64_t id, int threads) {
  NamedBarrier& b = a.block->named[id];
  if (!a.turn) {
    if (a.thread >= 0 || a.guarded()) {
      m.faults.raise("exec.sync", &s,
                     fmt::format("{} is run by one thread and needs all of its "
                                 "warpgroup",
                                 cite(s)));
      return Next::on;
    }
    a.turn = b.generation;
    arrive_named(b, s, threads);
  }
  if (b.generation == *a.turn)
    return block_on(
        a, s, "",
        fmt::format("{} of {} threads have come to named barrier {}", b.arrived, threads, id));
  a.turn.reset();
  return Next::on;
}

Next exec_sync_warpgroup(Machine& m, Agent& a, const Stmt& s) {
  const int64_t w = integer_of(context(m, a, s), s.warpgroup());
  if (!m.faults.any() && !a.turn) publish_at_sync(a);
  return m.faults.any() ? Next::on : sync_named(m, a, s, 8 + w, 128);
}

Next exec_order_wait(Machine& m, Agent& a, const Stmt& s) {
  const int64_t w = integer_of(context(m, a, s), s.warpgroup());
  return m.faults.any() ? Next::on : sync_named(m, a, s, 1 + w, 256);
}

Next exec_order_arrive(Machine& m, Agent& a, const Stmt& s) {
  const int64_t w = integer_of(context(m, a, s), s.warpgroup());
  if (a.thread >= 0 || a.guarded())
    m.faults.raise("exec.sync", &s, fmt::format("{} is run by one thread", cite(s)));
  if (!m.faults.any()) arrive_named(a.block->named[1 + w], s, 256);
  a.pause = true;
  return Next::on;
}

// ---- asynchronous products and stores

// All but the latest n products are done; those of the named accumulator may be touched again.
namespace {
// What they read may be written again.
void complete_all_but(Agent& a, int64_t pending) {
  int64_t later = std::count_if(a.products.begin(), a.products.end(),
                                [](const Product& p) { return !p.complete; });
  for (Product& p : a.products)
    if (!p.complete && later-- > pending) {
      p.complete = true;
      for (SharedSlot* slot : p.reads) --slot->products;
    }
}
}  // namespace

// Accumulators stay in flight until a wgmma_wait names them.
Next exec_wgmma_wait_group(Machine& m, Agent& a, const Stmt& s) {
  complete_all_but(a, integer_of(context(m, a, s), s.pending()));
  for (Product& p : a.products)
    if (p.complete && p.operand) {
      --p.operand->in_flight;
      p.operand = nullptr;
    }
  return Next::on;
}

Next exec_wgmma_wait(Machine& m, Agent& a, const Stmt& s) {
  const int64_t pending = integer_of(context(m, a, s), s.pending());
  const std::string name = word_of(s, tl::Hole::acc);
  Binding* b = a.scope()->find(name);
  const auto* tile = b ? std::get_if<std::shared_ptr<Tile>>(b) : nullptr;
  if (!tile) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not an accumulator", name));
    return Next::on;
  }
  complete_all_but(a, pending);
  for (Product& p : a.products) {
    if (p.accumulator != *tile) continue;
    if (!p.complete) {
      m.faults
          .raise("exec.in_flight", &s,
                 fmt::format("{} names {}, and {} is among the latest {}", cite(s), name,
                             cite(*p.stmt), pending))
          .notes.push_back({"the product was issued here", p.stmt->span});
      return Next::on;
    }
    --p.accumulator->in_flight;
    if (p.operand) --p.operand->in_flight;
  }
  std::erase_if(a.products, [&](const Product& p) { return p.accumulator == *tile; });
  return Next::on;
}

// Orders shared stores before the copy engine's reads.
Next exec_fence_async(Machine&, Agent& a, const Stmt&) {
  for (SharedSlot* slot : a.stored) slot->published = true;
  return Next::on;
}

Next exec_tma_store_wait_read(Machine&, Agent& a, const Stmt&) {
  for (SharedSlot* slot : a.stores_reading) --slot->stores;
  a.stores_reading.clear();
  return Next::on;
}

Next exec_tma_store_wait(Machine& m, Agent& a, const Stmt& s) {
  exec_tma_store_wait_read(m, a, s);
  a.stores.clear();
  return Next::on;
}

}  // namespace kw::exec
