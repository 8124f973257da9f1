// What statements touch in shared memory, and whom they wait for.
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"
#include "schedules/recorder.h"
#include "tl/traits.h"

namespace kw::exec::schedule {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

namespace {

const std::string& base_of(const ExprPtr& e) {
  const tl::Expr* at = e.get();
  while (at->kind == ExprKind::index) at = at->args[0].get();
  return at->text;
}

}  // namespace

// ---- events at a place
// Which counter of the agent an index moves with.
int8_t Pen::counter_of(const ExprPtr& index) const {
  if (!block_counter_.empty() && tl::mentions(index, block_counter_)) return 0;
  for (size_t n = 0; n < vars_.size(); ++n)
    if (tl::mentions(index, vars_[n])) return int8_t(n + 1);
  return -1;
}

Event& Pen::at_ring(Kind kind, const Stmt& s, int cta, const std::string& name, int64_t use) {
  Event& e = emit(kind, s);
  const auto at = w_.rings_.find({cta, name});
  if (at == w_.rings_.end()) blame("exec.name", s, fmt::format("{} is not a barrier", name));
  e.object = at == w_.rings_.end() ? 0 : int16_t(at->second);
  e.use = use;
  return e;
}

Event& Pen::at_barrier(Kind kind, const Stmt& s, tl::Hole hole, int cta) {
  const BarrierUse b = barrier_of(*m_, a_, s, hole);
  Event& e = at_ring(kind, s, cta, base_of(s.expr(hole)), b.use);
  e.counter = counter_of(s.expr(hole)->args.back());
  return e;
}

bool Pen::is_tile(const Stmt& s, tl::Hole hole) const {
  return a_.block->arrays.count(base_of(s.expr(hole))) > 0;
}

const Tables::Shape& Pen::shape(const Stmt& s, tl::Hole hole) {
  static const Tables::Shape none;
  const auto at = w_.arrays_.find(base_of(s.expr(hole)));
  if (at != w_.arrays_.end()) return t_.arrays[at->second];
  blame("exec.name", s, fmt::format("{} is not a tile in shared memory", base_of(s.expr(hole))));
  return none;
}

int Pen::strand_of(const Stmt& s, tl::Hole hole, int cta, int64_t& use) {
  const SharedUse at = shared_of(*m_, a_, s, hole);
  if (!at.slot) return 0;
  use = at.use;
  const SharedArray& array = a_.block->arrays.at(at.array);
  return w_.strands_.at({cta, at.array}) + int(at.index / array.ring);
}

Event& Pen::at_tile(Kind kind, const Stmt& s, tl::Hole hole, const Region& r, int cta) {
  Event& e = emit(kind, s);
  const std::string& name = base_of(s.expr(hole));
  if (!w_.arrays_.count(name)) return e;  // shape() has said so
  e.object = int16_t(strand_of(s, hole, cta < 0 ? a_.block->rank : cta, e.use));
  e.region = int16_t(t_.region(w_.arrays_.at(name), r));
  if (s.expr(hole)->kind == ExprKind::index) e.counter = counter_of(s.expr(hole)->args.back());
  return e;
}

// ---- regions, as the device's functions share tiles out
Region Pen::whole(const Stmt& s, tl::Hole hole) {
  const Tables::Shape& of = shape(s, hole);
  Region r;
  for (int n = 0; n < of.groups * of.panels; ++n) r.set(n);
  return r;
}

// Rows 16 w ... 16 w + 15 of every 64: how ldmatrix, stmatrix and products divide a tile.
Region Pen::rows_of_warp(const Stmt& s, tl::Hole hole, int columns) {
  const Tables::Shape& of = shape(s, hole);
  const int panels =
      columns ? std::min(of.panels, (columns + of.columns - 1) / of.columns) : of.panels;
  Region r;
  for (int g = 0; g < of.groups; ++g)
    for (int p = 0; p < panels; ++p)
      if (g % 16 / 4 == warp_) r.set(g * of.panels + p);
  return r;
}

// What a warp reads of its rows: of a tile that was stored transposed all warps have written them.
Region Pen::rows_read(const Stmt& s, tl::Hole hole) {
  return w_.transposed_.contains(base_of(s.expr(hole))) ? whole(s, hole) : rows_of_warp(s, hole);
}

// Columns j ... of a tile, as many panels as `columns` fill.
Region Pen::columns(const Stmt& s, tl::Hole hole, int columns) {
  const Tables::Shape& of = shape(s, hole);
  const int64_t first = integer_of(context(*m_, a_, s), s.column()) / of.columns;
  Region r;
  for (int g = 0; g < of.groups; ++g)
    for (int p = 0; p < of.panels; ++p)
      if (p >= first && p < first + (columns + of.columns - 1) / of.columns)
        r.set(g * of.panels + p);
  return r;
}

// Copies by all threads of `by` warpgroups: eight threads a row, so a warp has four rows of every
// 16 * by.
Region Pen::share(const Stmt& s, tl::Hole hole, int64_t by) {
  const Tables::Shape& of = shape(s, hole);
  const int mine = by == 1 ? warp_ : a_.warpgroup * 4 + warp_;
  Region r;
  for (int g = 0; g < of.groups; ++g)
    for (int p = 0; p < of.panels; ++p)
      if (g % (4 * by) == mine) r.set(g * of.panels + p);
  return r;
}

// Of one value a row a thread copies four, so a warp has 32 groups.
Region Pen::share_of_values(const Stmt& s, tl::Hole hole, int64_t by) {
  const int mine = by == 1 ? warp_ : a_.warpgroup * 4 + warp_;
  Region r;
  for (int g = 0; g < shape(s, hole).groups; ++g)
    if (g / 32 == mine) r.set(g);
  return r;
}

// A CTA's part of a tile that the cluster fetches together: panels, or rows where the panels
// cannot be shared out.
Region Pen::part(const Stmt& s, tl::Hole hole, int rank) {
  const Tables::Shape& of = shape(s, hole);
  const bool by_panels = of.panels % t_.ctas == 0;
  Region r;
  for (int g = 0; g < of.groups; ++g)
    for (int p = 0; p < of.panels; ++p)
      if ((by_panels ? p / (of.panels / t_.ctas) : g * 4 / (of.rows / t_.ctas)) == rank)
        r.set(g * of.panels + p);
  return r;
}

// ---- synchronisation
Next Pen::at(Kind kind, const Stmt& s) {
  if (s.has(tl::Hole::barrier))
    at_barrier(kind, s, tl::Hole::barrier, a_.block->rank);
  else
    emit(kind, s);
  return Next::on;
}

Next Pen::cp_async_wait(const Stmt& s) {
  emit(Kind::cp_async_wait, s).count = int32_t(integer_of(context(*m_, a_, s), s.pending()));
  return Next::on;
}

// One thread makes the barriers ready, then the CTA's threads meet.
Next Pen::init(const Stmt& s) {
  const auto first = std::find_if(t_.actors.begin(), t_.actors.end(),
                                  [&](const Actor& a) { return a.cta == a_.block->rank; });
  if (first - t_.actors.begin() == actor_)
    for (const tl::Item& item : s.barriers()) {
      const std::string& name = item.expr->text;
      const bool queue = a_.block->queues.count(name) > 0;
      at_ring(Kind::ready, s, a_.block->rank, queue ? name + ".full" : name, 0);
      if (queue) at_ring(Kind::ready, s, a_.block->rank, name + ".free", 0);
    }
  return meet(s, a_.block->rank, kMeetBlock);
}

Next Pen::turn(const Stmt& s, Kind kind, int64_t first, int warps) {
  return turn_at(s, kind, first + integer_of(context(*m_, a_, s), s.warpgroup()), warps);
}

// Its warps exchange what they have summed. No order depends on the sum.
Next Pen::sum_line(const Stmt& s) {
  reads(s, s.value());
  a_.scope()->names[s.names().front().name] = Value::real(0.0);
  return turn_at(s, Kind::sync, 8 + a_.warpgroup, 4);
}

Next Pen::turn_at(const Stmt& s, Kind kind, int64_t id, int warps) {
  const auto [at, fresh] = t_.named_at.try_emplace({a_.block->rank, id}, int(t_.named.size()));
  if (fresh)
    t_.named.push_back({id >= 8   ? fmt::format("the sync of warpgroup {}", id - 8)
                        : id >= 1 ? fmt::format("the turn of warpgroup {}", id - 1)
                                  : "the block's sync",
                        a_.block->rank, warps});
  Event& e = emit(kind, s);
  e.object = int16_t(at->second);
  return Next::on;
}

// All agents of a CTA, or of the cluster.
Next Pen::meet(const Stmt& s, int cta, int64_t id) {
  const bool cluster = id == kMeetCluster;
  const auto all = std::count_if(t_.actors.begin(), t_.actors.end(),
                                 [&](const Actor& a) { return cluster || a.cta == cta; });
  const auto [at, fresh] = t_.named_at.try_emplace({cta, id}, int(t_.named.size()));
  if (fresh)
    t_.named.push_back({cluster ? "the cluster's meeting" : "the block's sync", cta, int(all)});
  emit(Kind::sync, s).object = int16_t(at->second);
  return Next::on;
}

Next Pen::arrive(const Stmt& s) {
  const bool in_cluster = a_.block->barriers.count(base_of(s.barrier())) &&
                          a_.block->barriers[base_of(s.barrier())].in_cluster;
  if (!in_cluster) {
    at_barrier(Kind::arrive, s, tl::Hole::barrier, a_.block->rank).count = 1;
    return Next::on;
  }
  for (int cta = 0; cta < t_.ctas; ++cta) {
    Event& e = at_barrier(Kind::arrive, s, tl::Hole::barrier, cta);
    e.count = 1;
    e.bar = int16_t(cta);  // the first of one statement is 0
  }
  return Next::on;
}

// ---- the queue of blocks
void Pen::take_turns(const Stmt& s, int64_t u) {
  const std::string& queue = s.queue()->text;
  const int rank = a_.block->rank;
  if (!a_.block->queues.count(queue))
    return blame("exec.name", s, fmt::format("{} is not a queue", queue));
  Event& full = at_ring(Kind::wait, s, rank, queue + ".full", u);
  full.counter = 0;
  Region all;
  all.set(0);
  Event& value = emit(Kind::read, s);
  value.object = int16_t(w_.strands_.at({rank, queue}));
  value.region = int16_t(t_.region(w_.arrays_.at(queue), all));
  value.use = u;
  value.counter = 0;
  Event& free = at_ring(Kind::arrive, s, 0, queue + ".free", u);
  free.count = 1;
  free.counter = 0;
}

// CTA 0 offers a number for each block, and one past the end.
Next Pen::schedule_tiles(const Stmt& s) {
  const std::string& queue = s.queue()->text;
  if (!a_.block->queues.count(queue)) {
    blame("exec.name", s, fmt::format("{} is not a queue", queue));
    return Next::on;
  }
  if (a_.block->rank != 0) return Next::on;
  Region all;
  all.set(0);
  for (int64_t u = 0; u <= int64_t(sequence_.size()); ++u) {
    begin_block(s, u);
    at_ring(Kind::wait_free, s, 0, queue + ".free", u).counter = 0;
    for (int cta = 0; cta < t_.ctas; ++cta) {
      const bool remote = t_.ctas > 1;  // st.async: its bytes complete the use
      if (remote) {
        Event& e = at_ring(Kind::expect, s, cta, queue + ".full", u);
        e.count = 1;
        e.counter = 0;
      }
      Event& value = emit(remote ? Kind::fill : Kind::write, s);
      value.object = int16_t(w_.strands_.at({cta, queue}));
      value.region = int16_t(t_.region(w_.arrays_.at(queue), all));
      value.use = value.bar_use = u;
      value.counter = 0;
      value.bar = int16_t(w_.rings_.at({cta, queue + ".full"}));
      if (remote) continue;
      Event& e = at_ring(Kind::arrive, s, cta, queue + ".full", u);
      e.count = 1;
      e.counter = 0;
    }
  }
  return Next::on;
}

// ---- tiles
Next Pen::tma_store(const Stmt& s) {
  at_tile(Kind::store, s, tl::Hole::src, whole(s, tl::Hole::src));
  return Next::on;
}

// Shared memory to registers.
Next Pen::load(const Stmt& s) {
  at_tile(Kind::read, s, tl::Hole::src, rows_read(s, tl::Hole::src));
  writes(s, word_of(s, tl::Hole::dst));
  return Next::on;
}

// Every warp reads all of the vector: its columns are all the tile's.
Next Pen::fill_columns(const Stmt& s) {
  at_tile(Kind::read, s, tl::Hole::src, whole(s, tl::Hole::src));
  writes(s, word_of(s, tl::Hole::dst));
  return Next::on;
}

Next Pen::add_columns(const Stmt& s) {
  reads(s, word_of(s, tl::Hole::dst));
  return fill_columns(s);
}

// And back: of a tile as many columns as the accumulator has, from column j where the statement
// says one. Of a row vector every slot has one column. A warp's rows transposed are columns, a
// quarter of a panel: each warp has a place of its own, here as there, and who reads it reads all
// of the tile (store_transposed.C3).
Next Pen::store(const Stmt& s) {
  const std::string from = word_of(s, tl::Hole::src);
  reads(s, from);
  const int width = extents_[from].columns;
  if (s.has(tl::Hole::column))
    at_tile(Kind::write, s, tl::Hole::dst,
            rows_of_warp(s, tl::Hole::dst) & columns(s, tl::Hole::dst, width));
  else
    at_tile(Kind::write, s, tl::Hole::dst,
            rows_of_warp(s, tl::Hole::dst, s.op == Op::store ? width : 0));
  return Next::on;
}

Next Pen::tma_load(const Stmt& s) {
  const int rank = a_.block->rank;
  Event bar = at_barrier(Kind::expect, s, tl::Hole::barrier, rank);
  out_.back().count = 1;
  Event& e = at_tile(Kind::fill, s, tl::Hole::dst, whole(s, tl::Hole::dst));
  e.bar = bar.object;
  e.bar_use = bar.use;
  return Next::on;
}

Next Pen::multicast(const Stmt& s) {
  const int rank = a_.block->rank;
  const Event bar = at_barrier(Kind::expect, s, tl::Hole::barrier, rank);
  out_.back().count = t_.ctas;
  for (int cta = 0; cta < t_.ctas; ++cta) {
    Event& e = at_tile(Kind::fill, s, tl::Hole::dst, part(s, tl::Hole::dst, rank), cta);
    const auto there = w_.rings_.find({cta, base_of(s.barrier())});
    if (there != w_.rings_.end()) e.bar = int16_t(there->second);
    e.bar_use = bar.use;
  }
  return Next::on;
}

// To the other CTA of two, whose barrier tells of it.
Next Pen::send(const Stmt& s) {
  const int other = 1 - a_.block->rank;
  if (t_.ctas != 2) {
    blame("exec.cluster", s, fmt::format("{} is for 2 CTAs, a cluster has {}", cite(s), t_.ctas));
    return Next::on;
  }
  const Event bar = at_barrier(Kind::expect, s, tl::Hole::barrier, other);
  out_.back().count = 1;
  for (const Kind kind : {Kind::sent, Kind::fill}) {
    const bool from = kind == Kind::sent;
    const tl::Hole tile = from ? tl::Hole::src : tl::Hole::dst;
    Event& e = at_tile(kind, s, tile, whole(s, tile), from ? a_.block->rank : other);
    e.bar = bar.object;
    e.bar_use = bar.use;
  }
  return Next::on;
}

Next Pen::warpgroup_copy(const Stmt& s) {
  const bool in = tl::is(s.op, tl::Family::copy_in);
  const bool at_once = tl::traits(s.op).async == tl::Async::none;
  const int64_t by = integer_of(context(*m_, a_, s), s.by());
  if (by < 1 && !m_->faults.any())
    blame("exec.shape", s, fmt::format("{} is copied by {} warpgroups", cite(s), by));
  if (m_->faults.any()) return Next::on;
  const tl::Hole tile = in ? tl::Hole::dst : tl::Hole::src;
  const Region mine = s.op == Op::cp_async_rows ? share_of_values(s, tile, by) : share(s, tile, by);
  const Kind kind = !in ? Kind::read : at_once ? Kind::write : Kind::copy;
  if (mine.any()) at_tile(kind, s, tile, mine);
  return Next::on;
}

// Each thread reads what it has copied, and writes the same places.
Next Pen::upcast(const Stmt& s) {
  const int64_t by = integer_of(context(*m_, a_, s), s.by());
  if (by < 1 && !m_->faults.any())
    blame("exec.shape", s, fmt::format("{} is converted by {} warpgroups", cite(s), by));
  if (m_->faults.any()) return Next::on;
  if (const Region from = share(s, tl::Hole::src, by); from.any())
    at_tile(Kind::read, s, tl::Hole::src, from);
  if (const Region to = share(s, tl::Hole::dst, by); to.any())
    at_tile(Kind::write, s, tl::Hole::dst, to);
  return Next::on;
}

// The right side is all of the tile. Of the left side mma reads this warp's rows; wgmma belongs to
// all four warps, and nothing says which of them reads which rows.
Next Pen::product(const Stmt& s) {
  const bool async = tl::traits(s.op).async != tl::Async::none;
  const bool left_shared = is_tile(s, tl::Hole::a);
  const bool adds = tl::adds_product(s.op);
  const std::string c = base_of(s.acc()), left = base_of(s.a());
  const auto same = registers_.find(c);  // products that follow each other add to one accumulator
  if (!(adds && async && same != registers_.end() && same->second.in_flight)) {
    if (adds) reads(s, c);
    writes(s, c);
  }
  if (tl::traits(s.op).transposed) *registers_[c].scores = {registers_[c].scores->products + 1, &s};
  if (!left_shared) reads(s, left, true);
  const Kind kind = async ? Kind::operand : Kind::read;
  if (left_shared)
    at_tile(kind, s, tl::Hole::a, async ? whole(s, tl::Hole::a) : rows_read(s, tl::Hole::a));
  at_tile(kind, s, tl::Hole::b,
          s.has(tl::Hole::column) ? columns(s, tl::Hole::b, extents_[c].columns)
                                  : whole(s, tl::Hole::b));
  const Tables::Shape& shape_of_left = left_shared ? shape(s, tl::Hole::a) : Tables::Shape{};
  const int depth = !left_shared ? extents_[left].columns
                    : tl::traits(s.op).left_transposed
                        ? shape_of_left.rows
                        : shape_of_left.panels * shape_of_left.columns;
  if (!async) compute(s, c, depth);
  if (!async || m_->faults.any()) return Next::on;
  emit(Kind::issue, s);
  compute(s, c, depth);
  flights_.push_back({c, left_shared ? "" : left, &s});
  registers_[c].in_flight = &s;
  if (!left_shared) registers_[left].in_flight = &s;
  return Next::on;
}

}  // namespace kw::exec::schedule
