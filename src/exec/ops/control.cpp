// Who does it, and in which order: warpgroups, threads, loops, the queue of blocks, steps.
#include <fmt/format.h>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Item;
using tl::Stmt;

// ---- who does it
Next exec_warpgroup(Machine& m, Agent& a, const Stmt& s) {
  if (integer_of(context(m, a, s), s.number()) != a.warpgroup) return Next::on;
  enter(a, s.body, std::make_shared<Scope>(a.scope()));
  return Next::entered;
}

Next exec_warpgroups(Machine& m, Agent& a, const Stmt& s) {
  const int64_t me = a.warpgroup - integer_of(context(m, a, s), s.first());
  if (me < 0) return Next::on;
  const ScopePtr scope = std::make_shared<Scope>(a.scope());
  scope->names[s.me()] = Value::integer(me);
  enter(a, s.body, scope);
  return Next::entered;
}

Next exec_registers_up(Machine&, Agent&, const Stmt&) { return Next::on; }

Next exec_thread(Machine& m, Agent& a, const Stmt& s) {
  const int64_t warp = integer_of(context(m, a, s), s.number());
  if (a.thread >= 0 && a.thread != warp) return Next::on;
  enter(a, s.body, std::make_shared<Scope>(a.scope()));
  a.frames.back().guard = a.thread < 0;
  return Next::entered;
}

// ---- loops
namespace {

// Starts the body with the loop's names, or ends the loop.
Next iterate(Agent& a, const Stmt& s, bool more, std::map<std::string, int64_t> names) {
  if (!more) {
    a.loops.erase(&s);
    return Next::on;
  }
  const ScopePtr scope = std::make_shared<Scope>(a.scope());
  for (const auto& [name, value] : names) scope->names[name] = Value::integer(value);
  a.loops[&s].body_done = true;
  enter(a, s.body, scope);
  return Next::again;
}

// The counter that a loop or `count` advances.
void advance_counter(Machine& m, Agent& a, const Stmt& s, const std::string& name) {
  Binding* b = a.scope()->find(name);
  Value* v = b ? std::get_if<Value>(b) : nullptr;
  if (!v || v->type != Type::integer) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a counter", name));
    return;
  }
  v->x += 1;
}

Next down_loop(Machine& m, Agent& a, const Stmt& s, bool counts) {
  const Context c = context(m, a, s);
  const bool fresh = !a.loops.count(&s);
  Loop& loop = a.loops[&s];
  if (fresh) {
    loop.n = integer_of(c, s.begin());
  } else {
    --loop.n;
    if (counts) advance_counter(m, a, s, s.counter());
  }
  return iterate(a, s, loop.n >= integer_of(c, s.end()) && !m.faults.any(), {{s.index(), loop.n}});
}

}  // namespace

Next exec_range_down_counted(Machine& m, Agent& a, const Stmt& s) {
  return down_loop(m, a, s, true);
}
Next exec_range_down_rolled(Machine& m, Agent& a, const Stmt& s) {
  return down_loop(m, a, s, true);
}
Next exec_range_down(Machine& m, Agent& a, const Stmt& s) { return down_loop(m, a, s, false); }

Next exec_range(Machine& m, Agent& a, const Stmt& s) {
  Loop& loop = a.loops[&s];
  if (loop.body_done) ++loop.n;
  const bool more = loop.n < integer_of(context(m, a, s), s.end()) && !m.faults.any();
  return iterate(a, s, more, {{s.index(), loop.n}});
}

Next exec_blocks(Machine& m, Agent& a, const Stmt& s) {
  Loop& loop = a.loops[&s];
  if (loop.body_done) ++loop.n;
  const bool more = loop.n < integer_of(context(m, a, s), s.extent()) && !m.faults.any();
  return iterate(a, s, more, {{s.index(), loop.n}});
}

// for b, h, m in grid(B, H, rows): the last index runs fastest.
Next exec_grid(Machine& m, Agent& a, const Stmt& s) {
  Loop& loop = a.loops[&s];
  if (loop.body_done) ++loop.n;
  const auto &names = s.names(), &extents = s.extents();
  if (names.size() != extents.size()) {
    m.faults.raise("exec.type", &s,
                   fmt::format("{} names for {} extents", names.size(), extents.size()));
    return Next::on;
  }
  std::map<std::string, int64_t> values;
  int64_t rest = loop.n;
  for (size_t d = names.size(); d-- > 0;) {
    const int64_t extent = integer_of(context(m, a, s), extents[d].expr);
    if (extent < 1) return iterate(a, s, false, {});
    values[names[d].name] = rest % extent;
    rest /= extent;
  }
  return iterate(a, s, rest == 0 && !m.faults.any(), values);
}

// ---- the queue of blocks
namespace {

BlockQueue* queue_of(Machine& m, Agent& a, const Stmt& s) {
  const auto it = a.block->queues.find(s.queue()->text);
  if (it == a.block->queues.end() || !it->second.full.initialised) {
    m.faults.raise(it == a.block->queues.end() ? "exec.name" : "exec.uninitialised", &s,
                   fmt::format("{} is not a queue that an init names", s.queue()->text));
    return nullptr;
  }
  return &it->second;
}

BarrierUse use_of(Barriers& b, int64_t use) { return {&b, use % b.ring, use / b.ring, use}; }

// The number that ends the loops was offered: the last cluster leaves zeros.
void leave_queue(Machine& m, std::vector<int64_t>& words) {
  const bool last = words[1] == m.launch.grid - 1;
  words[1] = last ? 0 : words[1] + 1;
  if (last) words[0] = 0;
}

Next take_loop(Machine& m, Agent& a, const Stmt& s, int arrivals) {
  BlockQueue* queue = queue_of(m, a, s);
  if (!queue) return Next::on;
  const int64_t use = a.loops[&s].body_done ? a.loops[&s].use + 1 : 0;
  const BarrierUse full = use_of(queue->full, use);
  if (!passed(m, a, s, full))
    return m.faults.any() ? Next::on : block_on(a, s, queue->full.name, state_of(full));
  const int64_t w = queue->values[full.slot];
  if (!may_reach(m, a, s, *a.block->cluster[0])) return Next::on;
  arrive_at(m, a, s, use_of(a.block->cluster[0]->queues[s.queue()->text].free, use), arrivals);
  a.loops[&s].use = use;
  const bool more = w < integer_of(context(m, a, s), s.count()) && !m.faults.any();
  return iterate(a, s, more, {{s.use(), use}, {s.index(), w}});
}

}  // namespace

Next exec_static_tiles(Machine& m, Agent& a, const Stmt& s) {
  if (!ctas_agree(m, s)) return Next::on;
  Loop& loop = a.loops[&s];
  if (loop.body_done) ++loop.use;
  const int64_t w = a.block->index / m.ctas + loop.use * m.launch.grid;
  const bool more = w < integer_of(context(m, a, s), s.count()) && !m.faults.any();
  return iterate(a, s, more, {{s.use(), loop.use}, {s.index(), w}});
}

// One run of it offers one number; CTA 0 offers for its cluster.
Next exec_schedule_tiles(Machine& m, Agent& a, const Stmt& s) {
  BlockQueue* queue = queue_of(m, a, s);
  const auto words = m.workspaces.find(s.workspace()->text);
  if (!queue || words == m.workspaces.end() || words->second.size() < 2) {
    m.faults.raise("exec.name", &s, "a queue draws from a workspace of two words");
    return Next::on;
  }
  if (a.block->rank != 0) return Next::on;
  Loop& loop = a.loops[&s];
  const BarrierUse free = use_of(queue->free, loop.use);
  if (!is_free(m, a, s, free))
    return m.faults.any() ? Next::on : block_on(a, s, queue->free.name, state_of(free));
  const int64_t w = loop.use == 0 ? a.block->index / m.ctas : words->second[0]++ + m.launch.grid;
  for (ThreadBlock* cta : a.block->cluster) {
    if (!may_reach(m, a, s, *cta)) return Next::on;
    BlockQueue& theirs = cta->queues[s.queue()->text];
    theirs.values[free.slot] = w;
    arrive_at(m, a, s, use_of(theirs.full, loop.use), 1);
  }
  ++loop.use;
  if (w < integer_of(context(m, a, s), s.count()) && !m.faults.any()) return Next::again;
  leave_queue(m, words->second);
  a.loops.erase(&s);
  return Next::on;
}

Next exec_dynamic_tiles(Machine& m, Agent& a, const Stmt& s) { return take_loop(m, a, s, 1); }
Next exec_dynamic_tiles_warp(Machine& m, Agent& a, const Stmt& s) {
  return take_loop(m, a, s, a.warps());
}

// ---- branches and steps
Next exec_if_(Machine& m, Agent& a, const Stmt& s) {
  if (!condition_of(context(m, a, s), s.condition())) return Next::on;
  enter(a, s.body, std::make_shared<Scope>(a.scope()));
  return Next::entered;
}

Next exec_step(Machine&, Agent& a, const Stmt& s) {
  a.scope()->names[s.name()] = StepClosure{&s, a.scope()};
  return Next::on;
}

Next exec_call(Machine& m, Agent& a, const Stmt& s) {
  Binding* b = a.scope()->find(s.name());
  StepClosure* closure = b ? std::get_if<StepClosure>(b) : nullptr;
  const ScopePtr outer = closure ? closure->scope.lock() : nullptr;
  if (!outer || closure->step->params().size() != s.arguments().size()) {
    m.faults.raise("exec.name", &s,
                   outer ? fmt::format("{} takes {} values and is given {}", s.name(),
                                       closure->step->params().size(), s.arguments().size())
                         : fmt::format("{} is not a step", s.name()));
    return Next::on;
  }
  const Stmt& step = *closure->step;
  const ScopePtr scope = std::make_shared<Scope>(outer);
  for (size_t k = 0; k < s.arguments().size(); ++k)
    scope->names[step.params()[k].name] =
        argument_of(context(m, a, s), step.params()[k], s.arguments()[k].expr);
  enter(a, step.body, scope);
  return Next::entered;
}

Next exec_return_(Machine& m, Agent&, const Stmt& s) {
  m.faults.raise("exec.name", &s, "return stands outside a function");
  return Next::on;
}

Next exec_count(Machine& m, Agent& a, const Stmt& s) {
  advance_counter(m, a, s, s.counter());
  return Next::on;
}

}  // namespace kw::exec
