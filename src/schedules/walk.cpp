// Walking one agent: control, and who there is.
#include "schedules/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"
#include "schedules/recorder.h"
#include "tl/traits.h"

namespace kw::exec::schedule {

using tl::Op;
using tl::Stmt;

namespace {

constexpr size_t kEndless = 400'000;  // events of one agent

}  // namespace

// ---- who there is
Walker::Walker(const tl::Program& program, const Block& first) : program_(program) {
  Machine& m = *first.sized->machine;
  const Stmt& kernel = *m.kernel;
  if (kernel.op == Op::plan) {
    m.faults.raise("exec.sketch", &kernel, "a plan has no agents: schedule it first");
    fault_ = m.faults.first();
    return;
  }
  for (const Stmt& s : kernel.body)
    if (s.op == Op::cluster)
      m.ctas = int(std::clamp<int64_t>(integer_of({m, nullptr, &s}, s.ctas()), 1, 8));
  tables_.ctas = m.ctas;
  tl::walk(kernel.body,
           [&](const Stmt& s) { loops_ |= tl::is(s.op, tl::Family::tiles) && tl::is_loop(s.op); });
  tl::walk(kernel.body, [&](const Stmt& s) {
    if (s.op == Op::store_transposed) transposed_.insert(tl::base_name(s.dst()));
  });
  for (const auto& block : make_blocks(m)) add_strands(*block);
  add_actors(m);
  if (m.faults.any()) fault_ = m.faults.first();
}

std::vector<std::unique_ptr<ThreadBlock>> Walker::make_blocks(Machine& m) {
  std::vector<std::unique_ptr<ThreadBlock>> blocks;
  std::vector<ThreadBlock*> cluster;
  m.ctas = tables_.ctas;
  for (int rank = 0; rank < tables_.ctas; ++rank) {
    blocks.push_back(std::make_unique<ThreadBlock>());
    blocks.back()->index = blocks.back()->rank = rank;
    cluster.push_back(blocks.back().get());
  }
  for (ThreadBlock* block : cluster) {
    block->cluster = cluster;
    declare_shared_memory(m, *block);
    for (auto& [name, b] : block->barriers) b.initialised = true;  // the events say when
  }
  return blocks;
}

void Walker::add_strands(const ThreadBlock& block) {
  auto add_ring = [&](const std::string& name, const Barriers& b) {
    rings_[{block.rank, name}] = int(tables_.rings.size());
    tables_.rings.push_back({name, block.rank, int(b.ring), int(b.arrivals), tables_.slots});
    tables_.slots += int(b.ring);
  };
  auto add_array = [&](const std::string& name, Tables::Shape shape, int64_t members, int64_t ring,
                       bool tagged) {
    const auto [at, fresh] = arrays_.try_emplace(name, int(tables_.arrays.size()));
    if (fresh) tables_.arrays.push_back(shape);
    strands_[{block.rank, name}] = int(tables_.strands.size());
    for (int64_t n = 0; n < members; ++n)
      tables_.strands.push_back({members > 1 ? fmt::format("{}[{}]", name, n) : name, block.rank,
                                 int(ring), at->second, tagged});
  };
  for (const auto& [name, b] : block.barriers) add_ring(name, b);
  for (const auto& [name, q] : block.queues) {
    add_ring(name + ".full", q.full);
    add_ring(name + ".free", q.free);
    add_array(name, {}, 1, q.full.ring, true);
  }
  for (const auto& [name, array] : block.arrays) {
    const Tile& tile = array.slots[0].tile;
    const int panel = tile.columns == 1 ? 1 : tile.columns % 64 == 0 ? 64 : 32;  // 1: a row ring
    add_array(name, {tile.rows / 4, tile.columns / panel, tile.rows, panel, int(bytes(tile.dtype))},
              array.members, array.ring, array.is_ring);
  }
}

void Walker::add_actors(Machine& m) {
  const Stmt& kernel = *m.kernel;
  const int64_t warpgroups = integer_of({m, nullptr, &kernel}, kernel.threads()) / 128;
  for (int cta = 0; cta < tables_.ctas; ++cta)
    for (int w = 0; w < warpgroups; ++w) {
      std::vector<int> threads;
      for (const Stmt& s : kernel.body)
        if (s.op == Op::warpgroup && integer_of({m, nullptr, &s}, s.number()) == w)
          for (const Stmt& t : s.body)
            if (t.op == Op::thread) threads.push_back(std::stoi(word_of(t, tl::Hole::number)));
      const std::string where = tables_.ctas > 1 ? fmt::format(" of CTA {}", cta) : "";
      for (int t : threads)
        tables_.actors.push_back(
            {fmt::format("warpgroup {}, thread {}{}", w, t, where), cta, w, t, false});
      for (int warp = 0; threads.empty() && warp < 4; ++warp)
        tables_.actors.push_back(
            {fmt::format("warpgroup {}, warp {}{}", w, warp, where), cta, w, warp, true});
    }
}

Walked Walker::walk(const std::vector<Block>& sequence, Arms arms, bool one_warp) {
  Walked walked;
  Machine& base = *sequence[0].sized->machine;
  auto blocks = make_blocks(base);
  for (const auto& block : blocks) block->index = int(sequence[0].w) * tables_.ctas + block->rank;
  for (size_t n = 0; n < tables_.actors.size() && !walked.fault; ++n) {
    walked.streams.emplace_back();
    const Actor& actor = tables_.actors[n];
    if (one_warp && actor.warp && actor.unit > 0) continue;
    Pen pen(*this, int(n), *blocks[actor.cta], sequence, arms);
    walked.streams.back() = pen.run();
    for (const Block& b : sequence) {
      if (b.sized->machine->faults.any()) walked.fault = b.sized->machine->faults.first();
      b.sized->machine->faults = {};
    }
  }
  return walked;
}

// ---- one agent
Pen::Pen(Walker& walker, int actor, ThreadBlock& block, const std::vector<Block>& sequence,
         Arms arms)
    : w_(walker),
      t_(walker.tables_),
      sequence_(sequence),
      arms_(arms),
      random_(arms.seed * 1000 + actor),
      m_(sequence[0].sized->machine.get()),
      actor_(actor) {
  const Actor& who = t_.actors[actor];
  a_.index = actor;
  a_.warpgroup = who.warpgroup;
  a_.thread = who.warp ? -1 : who.unit;
  a_.block = &block;
  warp_ = who.unit;
  m_->faults.agent = who.name;
  const ScopePtr scope = std::make_shared<Scope>(nullptr);
  if (m_->kernel->op == Op::warpgroups_kernel)
    scope->names[m_->kernel->me()] = Value::integer(who.warpgroup);
  enter(a_, m_->kernel->body, scope);
}

Stream Pen::run() {
  while (!a_.done() && !m_->faults.any()) {
    step();
    if (out_.size() > kEndless)
      m_->faults.raise("exec.endless", nullptr,
                       fmt::format("{} events of one agent, and no end", out_.size()));
  }
  if (!flights_.empty() && !m_->faults.any())
    blame("schedule.exit", *flights_[0].stmt,
          fmt::format("{} is in flight when the kernel ends", cite(*flights_[0].stmt)));
  return std::move(out_);
}

void Pen::step() {
  Frame& frame = a_.frames.back();
  if (frame.at == frame.body->size()) {
    a_.frames.pop_back();
    return;
  }
  const size_t depth = a_.frames.size() - 1;
  const Next next = record((*frame.body)[frame.at]);
  if (next != Next::again) ++a_.frames[depth].at;
}

Event& Pen::emit(Kind kind, const Stmt& s) {
  Event e{kind};
  e.stmt = &s;
  e.one_thread = a_.guarded() || a_.thread >= 0;
  out_.push_back(e);
  return out_.back();
}

// ---- control
// Before the second turn: all that are left at once, and the counter with them.
void Pen::shorten(const Stmt& s) {
  const auto at = a_.loops.find(&s);
  if (at == a_.loops.end()) return;
  const int64_t left = at->second.n - integer_of(context(*m_, a_, s), s.end());
  out_.back().count = int32_t(left + 1);
  at->second.n -= left;
  Binding* counter = s.op == Op::range_down ? nullptr : a_.scope()->find(s.counter());
  if (Value* value = counter ? std::get_if<Value>(counter) : nullptr) value->x += double(left);
}

Next Pen::var(const Stmt& s) {
  for (const tl::Item& d : s.names())
    if (std::find(vars_.begin(), vars_.end(), d.name) == vars_.end()) vars_.push_back(d.name);
  return execute(*m_, a_, s);
}

Next Pen::range_down_counted(const Stmt& s) {
  emit(Kind::lap, s).count = 0;
  if (w_.brief) shorten(s);
  return execute(*m_, a_, s);
}

Next Pen::thread(const Stmt& s) {
  const int64_t warp = integer_of(context(*m_, a_, s), s.number());
  if (warp != warp_) return Next::on;
  enter(a_, s.body, std::make_shared<Scope>(a_.scope()));
  a_.frames.back().guard = true;
  return Next::entered;
}

// The u-th block's number; past the last, numbers past the end of the last launch.
int64_t Pen::begin_block(const Stmt& s, int64_t u) {
  emit(Kind::mark, s);
  const int64_t last = int64_t(sequence_.size()) - 1;
  Machine* next = sequence_[std::min(u, last)].sized->machine.get();
  if (!m_->faults.any()) {
    next->faults.agent = t_.actors[actor_].name;
    m_ = next;
  }
  return u <= last ? sequence_[u].w : sequence_[last].sized->end + u - last - 1;
}

Next Pen::loop_over_blocks(const Stmt& s) {
  Loop& loop = a_.loops[&s];
  const int64_t u = loop.body_done ? ++loop.use : 0;
  block_counter_ = s.use();
  const int64_t w = begin_block(s, u);
  if (s.op != Op::static_tiles) take_turns(s, u);
  const bool more = w < integer_of(context(*m_, a_, s), s.count());
  if (m_->faults.any()) return Next::on;
  if (!more || u > int64_t(sequence_.size()) + 1) {
    a_.loops.erase(&s);
    return Next::on;
  }
  const ScopePtr scope = std::make_shared<Scope>(a_.scope());
  scope->names[s.use()] = Value::integer(u);
  scope->names[s.index()] = Value::integer(w);
  loop.body_done = true;
  enter(a_, s.body, scope);
  return Next::again;
}

}  // namespace kw::exec::schedule
