// An agent's own registers: read only once written, and left alone while a product owns them. This
// is a matter of one agent's order alone, so the walk decides it.
#include <fmt/format.h>

#include <algorithm>

#include "exec/ops/exec_ops.h"
#include "schedules/recorder.h"
#include "tl/traits.h"

namespace kw::exec::schedule {

using tl::ExprPtr;
using tl::Item;
using tl::Op;
using tl::Stmt;

void Pen::blame(const char* code, const Stmt& s, const std::string& message, const Stmt* other) {
  Diagnostic& d = m_->faults.raise(code, &s, message);
  if (other) d.notes.push_back({"the product was issued here: " + cite(*other), other->span});
}

void Pen::reads(const Stmt& s, const std::string& name, bool operand) {
  const auto at = registers_.find(name);
  if (at == registers_.end()) return;
  if (at->second.in_flight && !operand)
    blame("schedule.in_flight", s,
          fmt::format("{} reads {} while {} is in flight", cite(s), name,
                      cite(*at->second.in_flight)),
          at->second.in_flight);
  if (!at->second.defined)
    blame("schedule.uninitialised", s,
          fmt::format("{} reads {}, which was never written", cite(s), name));
}

void Pen::reads(const Stmt& s, const ExprPtr& e) {
  if (e->kind == tl::ExprKind::name) reads(s, e->text);
  for (const ExprPtr& arg : e->args) reads(s, arg);
}

void Pen::writes(const Stmt& s, const std::string& name) {
  const auto at = registers_.find(name);
  if (at == registers_.end()) return;
  if (at->second.in_flight)
    blame("schedule.in_flight", s,
          fmt::format("{} writes {} while {} is in flight", cite(s), name,
                      cite(*at->second.in_flight)),
          at->second.in_flight);
  at->second.defined = true;
}

Next Pen::declare(const Stmt& s) {
  for (const Item& d : s.names()) {
    if (d.expr) reads(s, d.expr);
    registers_[d.name] = {.defined = d.expr != nullptr};
    const Context c = context(*m_, a_, s);
    const bool rows = s.has(tl::Hole::rows), columns = s.has(tl::Hole::columns);
    extents_[d.name] = {rows ? int(integer_of(c, s.rows())) : 1,
                        columns ? int(integer_of(c, s.columns())) : 1, 0};
    if (s.op == Op::operand || s.op == Op::diagonal) t_.operands.insert(d.name);
    if (d.expr) compute(s, d.name);
  }
  return Next::on;
}

// What the statement computes: elements of `name`, or a product into it.
void Pen::compute(const Stmt& s, const std::string& name, int depth) {
  if (!w_.measure) return;
  Tables::Work work = extents_[name];
  work.depth = depth;
  Event& e = out_.empty() || out_.back().kind != Kind::issue || out_.back().stmt != &s
                 ? emit(Kind::compute, s)
                 : out_.back();
  e.work = int16_t(t_.work(work));
}

// Either arm: the data decides, so nothing may depend on it. Warps decide apart.
void Pen::set_flag(const Stmt& s, Seen of) {
  const bool taken = arms_.which == Arms::mixed ? random_() % 2 : arms_.which == Arms::always;
  Binding* flag = a_.scope()->find(s.flag());
  if (!flag || !std::holds_alternative<Flag>(*flag))
    return blame("exec.name", s, fmt::format("{} is not a flag", s.flag()));
  std::get<Flag>(*flag) = {true, taken, std::move(of)};
}

// All but the latest n are done. Their accumulators stay in flight.
int64_t Pen::wgmma_wait_group(const Stmt& s) {
  const int64_t pending = integer_of(context(*m_, a_, s), s.pending());
  emit(Kind::wgmma_wait, s).count = int32_t(pending);
  int64_t later =
      std::count_if(flights_.begin(), flights_.end(), [](const Flight& f) { return !f.complete; });
  for (Flight& f : flights_)
    if (!f.complete && later-- > pending) {
      f.complete = true;
      if (!f.left.empty()) registers_[f.left].in_flight = nullptr;
    }
  for (const Flight& f : flights_)
    if (!f.complete && !f.left.empty()) registers_[f.left].in_flight = f.stmt;
  return pending;
}

// And the named accumulators may be touched again.
Next Pen::wgmma_wait(const Stmt& s) {
  const int64_t pending = wgmma_wait_group(s);
  for (const Item& item : s.items(tl::Hole::acc)) {
    const std::string& name = item.expr ? item.expr->text : item.name;
    for (const Flight& f : flights_) {
      if (f.accumulator != name) continue;
      if (!f.complete)
        blame("schedule.in_flight", s,
              fmt::format("{} names {}, and {} is among the latest {}", cite(s), name,
                          cite(*f.stmt), pending),
              f.stmt);
      registers_[name].in_flight = nullptr;
    }
    std::erase_if(flights_, [&](const Flight& f) { return f.accumulator == name; });
  }
  for (auto& [name, r] : registers_) {  // operands of products that are no more
    const bool owned = std::any_of(
        flights_.begin(), flights_.end(),
        [&, name = name](const Flight& f) { return f.left == name || f.accumulator == name; });
    if (!owned) r.in_flight = nullptr;
  }
  return Next::on;
}

// What the table says of its holes: the registers that it reads, then those that it writes. A wait
// names accumulators and has a rule of its own.
void Pen::touches(const Stmt& s) {
  for (const tl::Field& f : s.fields)
    if (tl::reads(tl::access(s.op, f.hole)))
      for (const Item& item : f.items) item.expr ? reads(s, item.expr) : reads(s, item.name);
  for (const tl::Field& f : s.fields)
    if (tl::writes(tl::access(s.op, f.hole))) writes(s, word_of(s, f.hole));
}

// Work on the elements of a tile or a vector: what the statement reads, else what it changes.
Next Pen::work(const Stmt& s) {
  touches(s);
  for (const tl::Hole hole : {tl::Hole::src, tl::Hole::target, tl::Hole::max, tl::Hole::sum})
    if (s.has(hole)) {
      compute(s, word_of(s, hole));
      break;
    }
  return Next::on;
}

Next Pen::online_max(const Stmt& s) {
  work(s);
  set_flag(s, Seen(registers_[word_of(s, tl::Hole::src)].scores));
  return Next::on;
}

Next Pen::any_exceeds(const Stmt& s) {
  work(s);
  set_flag(s, registers_[word_of(s, tl::Hole::sum)].of);
  return Next::on;
}

Next Pen::any_differs(const Stmt& s) {
  work(s);
  set_flag(s, Seen());
  return Next::on;
}

Next Pen::row_sum(const Stmt& s) {
  work(s);
  registers_[word_of(s, tl::Hole::sum)].of = Seen(registers_[word_of(s, tl::Hole::src)].scores);
  return Next::on;
}

// To a tensor, whose name is no register's.
Next Pen::result(const Stmt& s) {
  reads(s, word_of(s, tl::Hole::src));
  compute(s, word_of(s, tl::Hole::src));
  return Next::on;
}

}  // namespace kw::exec::schedule
