// What each event of an agent does, and what it takes.
#include <fmt/format.h>

#include <algorithm>

#include "timeline/simulation.h"
#include "tl/traits.h"

namespace kw::timeline {

using tl::Op;
using tl::Stmt;

namespace {

// Instructions beside the arithmetic, counted in the Hopper kernel's machine code: of a wait or an
// arrival, of one tensor core instruction with its descriptors, of 16 bytes of an asynchronous
// copy.
constexpr double kSyncIssues = 6, kProductIssues = 3, kCopyIssues = 4;

// After it nobody goes on before all is done: what follows needs it.
bool ends_job(const Stmt& s) {
  return s.op == Op::online_max || s.op == Op::any_exceeds || s.op == Op::any_differs ||
         s.op == Op::row_max;
}

// A copy through the threads' registers, which wait for it.
bool comes_at_once(const Event& e) {
  return tl::is(e.stmt->op, tl::Family::copy_in) && tl::traits(e.stmt->op).async == tl::Async::none;
}

}  // namespace

bool Simulation::step(int agent, const Event& e) {
  Agent& a = agents_[agent];
  switch (e.kind) {
    case Kind::mark:
      mark(agent);
      break;
    case Kind::wait:
      if (!wait(agent, e, e.use)) return false;
      break;
    case Kind::wait_free:
      if (!wait(agent, e, e.use - t_.rings[e.object].length)) return false;
      break;
    case Kind::arrive:
    case Kind::expect:
      arrive(slot_of(a, e.object, e.use), e.object, e.kind == Kind::expect ? 1 : e.count,
             e.kind == Kind::expect ? e.count : 0);
      break;
    case Kind::sync:
    case Kind::give:
      if (!meet(agent, e)) return false;
      break;
    case Kind::fill:
      fill(agent, e);
      break;
    case Kind::copy:
      a.copying = std::max(a.copying, read_l2(agent, e, false));
      a.pending += demand({kCopyIssues * bytes(e) / 2048, 0, 0, 0, 0}, gpu_);
      break;
    case Kind::commit:
      a.commits.push_back(a.copying);
      break;
    case Kind::cp_async_wait: {
      const int64_t complete = int64_t(a.commits.size()) - e.count;
      if (complete > 0 && !until(agent, e, a.commits[complete - 1])) return false;
      break;
    }
    case Kind::store:
      store(agent, e);
      break;
    case Kind::tma_store_wait_read:
      if (!until(agent, e, a.storing)) return false;
      break;
    case Kind::tma_store_wait:
      if (!until(agent, e, a.stored)) return false;
      break;
    case Kind::operand:
      ++a.operands;
      break;
    case Kind::issue:
      issue(agent, e, true);
      break;
    case Kind::wgmma_wait:
      if (!wgmma_wait(agent, e)) return false;
      break;
    case Kind::read:
    case Kind::write:
      if (comes_at_once(e) && !bring(agent, e)) return false;
      if (!tl::is(e.stmt->op, tl::Family::contract)) return move(agent, e);
      ++a.operands;
      break;
    case Kind::compute:
      if (t_.works[e.work].depth > 0 && !multiply(agent, e)) return false;
      if (t_.works[e.work].depth == 0) return compute(agent, e);
      break;
    case Kind::lap:
    case Kind::ready:
    case Kind::fence_async:
    case Kind::sent:
      break;
  }
  ++a.at;
  return true;
}

void Simulation::mark(int agent) {
  if (t_.actors[agents_[agent].actor].warp) marks_[agent].push_back(now_);
}

// ---- waiting
bool Simulation::wait(int agent, const Event& e, int64_t use) {
  Agent& a = agents_[agent];
  if (use < 0) return true;
  Slot& slot = slots_[slot_of(a, e.object, use)];
  if (slot.completed > use / t_.rings[e.object].length) {
    a.pending += demand({kSyncIssues, 0, 0, 0, 0}, gpu_);
    return true;
  }
  if (sleep(agent, e)) slot.waiting.push_back(agent);
  return false;
}

void Simulation::arrive(int at, int ring, int count, int parts) {
  Slot& slot = slots_[at];
  slot.arrived += count;
  slot.missing += parts;
  if (slot.arrived < t_.rings[ring].arrivals || slot.missing != 0) return;
  slot.arrived = 0;
  ++slot.completed;
  for (const int agent : slot.waiting) wake(agent, now_ + gpu_.barrier_latency);
  slot.waiting.clear();
}

// A named barrier, a turn, the cluster's meeting.
bool Simulation::meet(int agent, const Event& e) {
  Agent& a = agents_[agent];
  Meeting& m = meetings_[a.copy * t_.named.size() + e.object];
  if (a.turn < 0) {
    const int64_t generation = m.generation;
    m.arrived += t_.actors[a.actor].weight;
    if (m.arrived >= t_.named[e.object].warps) {
      m.arrived = 0;
      ++m.generation;
      for (const int other : m.waiting) wake(other, now_ + gpu_.barrier_latency);
      m.waiting.clear();
    }
    if (e.kind == Kind::give) return true;
    a.turn = generation;
  }
  if (m.generation > a.turn) {
    a.turn = -1;
    return true;
  }
  if (sleep(agent, e)) m.waiting.push_back(agent);
  return false;
}

bool Simulation::until(int agent, const Event& e, double time) {
  if (now_ >= time) return true;
  if (sleep(agent, e)) wake(agent, time);
  return false;
}

bool Simulation::wgmma_wait(int agent, const Event& e) {
  Agent& a = agents_[agent];
  if (a.done >= a.issued - e.count) return true;
  sleep(agent, e);
  return false;  // the end of each of its products wakes it
}

// ---- products
void Simulation::issue(int agent, const Event& e, bool async) {
  Agent& a = agents_[agent];
  const Tables::Work& work = t_.works[e.work];
  const ProductCost cost = product_cost(work, async, a.operands > 1, flop_per_cycle(async), gpu_);
  a.operands = 0;
  a.pending += demand({kProductIssues * work.depth / 16.0 * work.rows / 64, 0, 0, 0, 0}, gpu_);
  out_.product_flop += cost.flop;
  Processor& p = processors_[a.processor];
  p.products.push_back({agent, cost.cycles(), e.stmt});
  ++a.issued;
  if (p.products.size() == 1) start_product(p);
}

void Simulation::start_product(Processor& p) {
  if (p.products.empty()) return;
  p.product_begin = now_;
  p.product_end = now_ + p.products.front().cycles;
  p.busy += p.products.front().cycles;
}

// One that its warps wait for: mma.
bool Simulation::multiply(int agent, const Event& e) {
  Agent& a = agents_[agent];
  if (a.target < 0) {
    issue(agent, e, false);
    a.target = a.issued;
  }
  if (a.done < a.target) {
    sleep(agent, e);
    return false;
  }
  a.target = -1;
  return true;
}

// ---- arithmetic
// All statements up to the next synchronisation are one job: the compiler mixes their instructions.
bool Simulation::compute(int agent, const Event&) {
  Agent& a = agents_[agent];
  const Stream& stream = streams_[a.actor];
  Demand all;
  for (bool more = true; more && a.at < stream.size(); ++a.at) {
    const Event& e = stream[a.at];
    if (e.kind != Kind::compute || t_.works[e.work].depth > 0) break;
    const Demand one = demand(statement_cost(*e.stmt, t_.works[e.work], gpu_, t_.operands), gpu_);
    all += one;
    a.pieces.push_back({e.stmt, one.alone() + 1e-9});
    more = !ends_job(*e.stmt);
  }
  run_job(agent, all);
  return false;
}

void Simulation::run_job(int agent, const Demand& demand) {
  Agent& a = agents_[agent];
  Demand all = demand;
  all += a.pending;
  a.pending = {};
  a.since = now_;
  Pipes& pipes = processors_[a.processor].pipes;
  pipes.advance(now_);
  pipes.add(agent, all);
}

// Between registers and shared memory, 512 bytes an instruction; and by whole warpgroups to global
// memory.
bool Simulation::move(int agent, const Event& e) {
  Agent& a = agents_[agent];
  const double instructions = bytes(e) / 4 / 512;
  Cost cost{2 * instructions, 0, 0, 0, 30};
  if (e.stmt->op == Op::upcast) cost.alu = cost.issue = 6 * instructions;
  if (comes_at_once(e)) cost.issue = kCopyIssues * bytes(e) / 2048 * 2;  // in and on
  const bool stored = e.stmt->op == Op::store || e.stmt->op == Op::store_columns;
  if (stored) cost.alu = cost.issue = 6 * instructions;  // and rounds to 16 bits
  const bool out = tl::is(e.stmt->op, tl::Family::copy_out);
  if (out) store(agent, e);
  if (!tl::is(e.stmt->op, tl::Family::move) && !comes_at_once(e) && !out) {
    ++a.at;
    return true;  // a number from the queue
  }
  ++a.at;
  a.pieces.push_back({e.stmt, 1});
  run_job(agent, demand(cost, gpu_));
  return false;
}

// ---- copies
double Simulation::bytes(const Event& e) const {
  if (e.region < 0) return 0;
  const Tables::Use& use = t_.regions[e.region];
  const Tables::Shape& shape = t_.arrays[use.array];
  return double(use.region.count()) * 4 * shape.columns * shape.bytes;
}

// When the last byte leaves L2's share of this multiprocessor, and the latency after it. `again`:
// the same bytes for another CTA, read once.
double Simulation::read_l2(int agent, const Event& e, bool again) {
  Agent& a = agents_[agent];
  Processor& p = processors_[a.processor];
  if (!again) {
    p.reading = std::max(now_, p.reading) + bytes(e) / l2_share();
    a.reading = p.reading + gpu_.copy_latency;
    out_.copied_bytes += bytes(e);
  }
  return a.reading;
}

// A copy that its threads wait for: the tile is in their registers when it has come.
bool Simulation::bring(int agent, const Event& e) {
  Agent& a = agents_[agent];
  if (a.bringing < 0) a.bringing = read_l2(agent, e, false);
  if (!until(agent, e, a.bringing)) return false;
  if (a.waits) bar(a.track, BarKind::wait, a.since, now_, a.waits);
  a.waits = nullptr;  // the stores that follow are a job of the same event
  a.bringing = -1;
  return true;
}

void Simulation::fill(int agent, const Event& e) {
  const Agent& a = agents_[agent];
  const int cta = t_.strands[e.object].cta;
  // From another CTA it does not come by way of L2.
  const double read = e.stmt->op == Op::tma_send
                          ? now_ + gpu_.copy_latency
                          : read_l2(agent, e, e.stmt->op == Op::tma_load_multicast && cta > 0);
  Processor& to = processors_[o_.resident > 1 ? 0 : cta];
  const double written = bytes(e) / gpu_.shared_bytes_per_cycle;
  to.coming = std::max(to.coming + written, read);
  bar(copy_track_ + int(&to - processors_.data()), BarKind::copy, to.coming - written, to.coming,
      e.stmt);
  queue_.push({to.coming, order_++, -1, slot_of(a, e.bar, e.bar_use), e.bar});
}

void Simulation::store(int agent, const Event& e) {
  Agent& a = agents_[agent];
  Processor& p = processors_[a.processor];
  p.going = std::max(now_, p.going) + bytes(e) / l2_share();
  a.storing = p.going;
  a.stored = p.going + gpu_.copy_latency;
}

double Simulation::flop_per_cycle(bool async) {
  const auto rate = product_rate(gpu_, async, o_.dtype, diagnostics_);
  failed_ = !rate;
  return rate.value_or(1);
}

}  // namespace kw::timeline
