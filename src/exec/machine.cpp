// Scheduling: agents take turns in one fixed order, each until it must wait.
//
// After an arrival an agent lets the others run first: whoever was waiting for it uses the freed
// slot at once, so a release that comes too early meets its consequence on this schedule and is not
// hidden by luck. For the same reason one CTA of a cluster runs ahead of the others as far as the
// program lets it: the first one, in every other cluster the last. When a whole round moves nobody,
// every agent waits for another: a deadlock, reported with everybody's place and the statements
// that could have arrived.
#include "exec/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tl/scope/functions.h"
#include "tl/traits.h"

namespace kw::exec {

using tl::Op;
using tl::Stmt;

namespace {

// A run that executes more statements than this does not end: of a few CTAs, and for each.
constexpr int64_t kEndless = 3'000'000, kEndlessCta = 10'000;

class AgentView : public View {
 public:
  AgentView(Machine& m, Agent& a, const Stmt& s) : m_(m), a_(a), s_(s) {}

  const Tile* tile(const std::string& name) const override {
    return get<std::shared_ptr<Tile>>(name);
  }
  const Row* row(const std::string& name) const override { return get<std::shared_ptr<Row>>(name); }
  double value(const tl::ExprPtr& e) const override {
    const Value v = look(e);
    return v.type == Type::none ? std::nan("") : v.x;
  }
  exact::Element element(const tl::ExprPtr& e) const override { return look(e).e; }
  int agent() const override { return a_.index; }

 private:
  // Looking must not disturb: what cannot be evaluated is no fault of the program.
  Value look(const tl::ExprPtr& e) const {
    const Faults before = m_.faults;
    Value v = evaluate(context(m_, a_, s_), e);
    if (m_.faults.any() && !before.any()) v.type = Type::none;
    m_.faults = before;
    return v;
  }
  template <class Pointer>
  typename Pointer::element_type* get(const std::string& name) const {
    Binding* b = a_.scope()->find(name);
    Pointer* p = b ? std::get_if<Pointer>(b) : nullptr;
    return p ? p->get() : nullptr;
  }
  Machine& m_;
  Agent& a_;
  const Stmt& s_;
};

}  // namespace

std::string Agent::name() const {
  std::string name = fmt::format("warpgroup {}", warpgroup);
  if (thread >= 0) name += fmt::format(", thread {}", thread);
  return block->index == 0 ? name : name + fmt::format(" of CTA {}", block->index);
}

bool Agent::guarded() const {
  return std::any_of(frames.begin(), frames.end(), [](const Frame& f) { return f.guard; });
}

void enter(Agent& a, const std::vector<Stmt>& body, ScopePtr scope) {
  a.frames.push_back({&body, std::move(scope)});
}

Next outside(Machine& m, const Stmt& s, const char* pass) {
  m.faults.raise("exec.name", &s, fmt::format("{} stands outside {}", cite(s), pass));
  return Next::on;
}

void note_written(Machine& m, const Stmt& s, uint8_t& written) {
  if (written++)
    m.faults.raise("exec.written_twice", &s,
                   fmt::format("{} writes an element that was written before", cite(s)));
}

Next block_on(Agent& a, const Stmt& s, const std::string& barrier, const std::string& state) {
  a.wait = {&s, barrier, state};
  return Next::blocked;
}

Machine::Machine(const tl::Program& program, const Launch& launch, Observer* observer)
    : program(program), launch(launch), observer(observer), algebra(launch.algebra) {}

// The agents of the kernel's warpgroups: those of a `warpgroup` that holds threads are its threads.
void Machine::add_agents(ThreadBlock& block) {
  auto add = [&](int warpgroup, int thread) {
    Agent a;
    a.index = static_cast<int>(agents.size());
    a.warpgroup = warpgroup;
    a.thread = thread;
    a.block = &block;
    enter(a, kernel->body, std::make_shared<Scope>(nullptr));
    agents.push_back(std::move(a));
    ++block.cluster[0]->running;
  };
  if (kernel->op == Op::plan) return add(0, -1);
  const Context c{*this, nullptr, kernel};
  const int64_t warpgroups = integer_of(c, kernel->threads()) / 128;
  if (kernel->op == Op::warpgroups_kernel) {
    for (int64_t w = 0; w < warpgroups; ++w) {
      add(w, -1);
      agents.back().frames.back().scope->names[kernel->me()] = Value::integer(w);
    }
    return;
  }
  for (int64_t w = 0; w < warpgroups; ++w) {
    std::vector<int> threads;
    for (const Stmt& s : kernel->body)
      if (s.op == Op::warpgroup && integer_of({*this, nullptr, &s}, s.number()) == w)
        for (const Stmt& t : s.body)
          if (t.op == Op::thread) threads.push_back(std::stoi(word_of(t, tl::Hole::number)));
    for (int t : threads) add(w, t);
    if (threads.empty()) add(w, -1);
  }
}

// The CTAs from number `first` on, as many as a cluster has.
void Machine::add_cluster(int first) {
  std::vector<ThreadBlock*> cluster;
  for (int rank = 0; rank < ctas; ++rank) {
    blocks.push_back(std::make_unique<ThreadBlock>());
    cluster.push_back(blocks.back().get());
    cluster.back()->index = first + rank;
    cluster.back()->rank = rank;
  }
  for (ThreadBlock* block : cluster) block->cluster = cluster;
  const bool last_ahead = first / ctas % 2 == 1;
  for (int n = 0; n < ctas && !faults.any(); ++n)
    add_agents(*cluster[last_ahead ? ctas - 1 - n : n]);
}

// A kernel that asks for its number, block_index or cluster_index, has one CTA or cluster for each.
int64_t Machine::clusters() {
  tl::ExprPtr count;
  tl::walk(kernel->body, [&](const Stmt& s) {
    tl::each_expression(s, [&](const tl::ExprPtr& whole) {
      tl::rewrite(whole, [&](const tl::ExprPtr& e) -> tl::ExprPtr {
        if (e->kind == tl::ExprKind::call && tl::numbers_blocks(e->text)) count = e->args.at(0);
        return nullptr;
      });
    });
  });
  return count ? integer_of({*this, nullptr, kernel}, count) : launch.grid;
}

bool Machine::start() {
  if (!declare(*this)) return false;
  for (const Stmt& s : kernel->body)
    if (s.op == Op::cluster) {
      const int64_t k = integer_of({*this, nullptr, &s}, s.ctas());
      if (k < 1 || k > 8)
        faults.raise("exec.cluster", &s, fmt::format("{} is for {} CTAs: not 1 to 8", cite(s), k));
      ctas = static_cast<int>(std::clamp<int64_t>(k, 1, 8));
    }
  const int64_t grid = clusters();
  for (int n = 0; n < grid && !faults.any(); ++n) add_cluster(n * ctas);
  return !faults.any();
}

// One statement of an agent, or the end of a block.
void Machine::step(Agent& a) {
  Frame& frame = a.frames.back();
  if (frame.at == frame.body->size()) {
    a.frames.pop_back();
    return;
  }
  const size_t depth = a.frames.size() - 1;
  const Stmt& s = (*frame.body)[frame.at];
  if (observer) observer->before(s, AgentView(*this, a, s));
  const Next next = execute(*this, a, s);
  if (next == Next::blocked) return;
  a.wait = {};
  ++outcome.statements;
  outcome.ran.insert(&s);
  if (next != Next::again) ++a.frames[depth].at;
  if (observer && next == Next::on && !faults.any()) observer->after(s, AgentView(*this, a, s));
}

// A cluster has shared memory from its first statement to its last: of a grid of thousands of CTAs
// few run at a time.
void Machine::begin(ThreadBlock& block) {
  if (block.cluster[0]->begun) return;
  block.cluster[0]->begun = true;
  for (ThreadBlock* one : block.cluster) declare_shared_memory(*this, *one);
}

// Of an agent that is done. What is still under way into a slot, or out of one, stays, for
// check_end.
void Machine::end(ThreadBlock& block) {
  if (--block.cluster[0]->running > 0) return;
  for (ThreadBlock* one : block.cluster)
    std::erase_if(one->arrays, [](const auto& array) {
      const std::vector<SharedSlot>& slots = array.second.slots;
      return std::none_of(slots.begin(), slots.end(),
                          [](auto& slot) { return slot.arriving || slot.stores; });
    });
}

// Runs an agent until it waits, pauses or ends; true if it did anything.
bool Machine::turn(Agent& a) {
  begin(*a.block);
  bool moved = false;
  a.pause = false;
  faults.agent = a.name();
  while (!a.done() && !a.pause && !faults.any()) {
    step(a);
    if (a.wait.stmt) break;
    moved = true;
    if (outcome.statements > kEndless + kEndlessCta * int64_t(blocks.size()))
      faults.raise("exec.endless", nullptr,
                   fmt::format("the run is at its {}th statement and has not ended",
                               outcome.statements - 1));
  }
  return moved;
}

void Machine::run() {
  if (start()) {
    bool all_done = false;
    while (!all_done && !faults.any()) {
      const ThreadBlock* ahead = nullptr;  // the first to move of the cluster at hand
      bool moved = false;
      all_done = true;
      for (Agent& a : agents) {
        if (ahead && ahead->cluster[0] != a.block->cluster[0]) ahead = nullptr;
        const bool behind = ahead && ahead != a.block;
        if (!a.done() && !behind && turn(a)) {
          moved = true;
          ahead = a.block;
          if (a.done()) end(*a.block);
        }
        all_done &= a.done();
        if (faults.any()) break;
      }
      if (!moved && !all_done && !faults.any()) report_deadlock();
    }
    if (!faults.any()) run_after(*this);
    if (!faults.any()) run_behind(*this);
    if (!faults.any()) check_end();
  }
  if (faults.any()) outcome.faults.push_back(faults.first());
  for (auto& [name, global] : tensors) {
    if (!global.writes) continue;
    outcome.outputs.emplace(name, std::move(global.data));
    if (algebra) outcome.exact.emplace(name, std::move(global.exact));
  }
}

void Machine::report_deadlock() {
  // Who only waits for the others to end is not to blame, unless all do.
  auto first = std::find_if(agents.begin(), agents.end(), [](auto& a) {
    return !a.done() && a.wait.stmt->op != Op::sync_cluster;
  });
  if (first == agents.end())
    first = std::find_if(agents.begin(), agents.end(), [](auto& a) { return !a.done(); });
  faults.agent = first->name();
  Diagnostic& d = faults.raise(
      "exec.deadlock", first->wait.stmt,
      fmt::format("{} can never complete: {}", cite(*first->wait.stmt), first->wait.state));
  for (const Agent& a : agents)
    if (!a.done() && &a != &*first)
      d.notes.push_back(
          {fmt::format("{} waits at {}: {}", a.name(), cite(*a.wait.stmt), a.wait.state),
           a.wait.stmt->span});
  int named = 0;
  tl::walk(program.body, [&](const Stmt& s) {
    const bool arrives =
        s.op == Op::arrive || (tl::is(s.op, tl::Family::copy_in) && s.has(tl::Hole::barrier));
    if (!arrives || ++named > 50 || !tl::mentions(s.barrier(), first->wait.barrier)) return;
    d.notes.push_back({fmt::format("this could have arrived: {}", cite(s)), s.span});
  });
}

// What must be true when everybody has finished.
void Machine::check_end() {
  for (const Agent& a : agents) {
    faults.agent = a.name();
    for (const Product& p : a.products)
      faults.raise("exec.in_flight", p.stmt,
                   fmt::format("{} is in flight when the kernel ends", cite(*p.stmt)));
    if (!a.stores.empty())
      faults
          .raise("exec.in_flight", a.stores.back()->reader,
                 fmt::format("{} may still read shared memory when the kernel ends",
                             cite(*a.stores.back()->reader)))
          .hint = "end with tma_store_wait by the thread that stored";
    if (a.reached)
      faults
          .raise("exec.exited", a.reached,
                 fmt::format("{} reaches into another CTA, which may have ended", cite(*a.reached)))
          .hint = "end with sync_cluster";
  }
  faults.agent.clear();
  for (auto& block : blocks)
    for (auto& [name, array] : block->arrays)
      for (const SharedSlot& slot : array.slots)
        if (slot.arriving)
          faults.raise(
              "exec.in_flight", slot.writer,
              fmt::format("{} is still in flight into {} at kernel exit; no wait covers it",
                          cite(*slot.writer), name));
  for (const auto& [name, words] : workspaces)
    for (int64_t word : words)
      if (word != 0)
        faults.raise(
            "exec.queue", nullptr,
            fmt::format("workspace {} holds {} when the kernel ends; the next launch needs "
                        "zeros",
                        name, word));
  for (const auto& [name, g] : tensors) {
    const auto missing = std::find(g.written.begin(), g.written.end(), 0);
    if (!g.writes || missing == g.written.end()) continue;
    int64_t at = missing - g.written.begin();
    std::vector<int64_t> index(g.data.shape.size());
    for (size_t d = index.size(); d-- > 0; at /= g.data.shape[d]) index[d] = at % g.data.shape[d];
    faults.raise("exec.unwritten", g.declared,
                 fmt::format("{}[{}] is never written", name, fmt::join(index, ", ")));
  }
}

Outcome run(const tl::Program& program, const Launch& launch, Observer* observer) {
  Machine m(program, launch, observer);
  m.run();
  return std::move(m.outcome);
}

}  // namespace kw::exec
