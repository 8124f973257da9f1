// Turns: CTAs that add to the same sums, one after another.
//
//   wait_turn turns[c.b, h, m * BM] == c.n          a thread of the producer, until it is so
//   pass_turn turns[c.b, h, m * BM] = c.n + 1       and the one that has added
//
// A GPU begins CTAs in the order of their numbers, and one that waits keeps its multiprocessor: a
// turn that came from a CTA behind could be waited for before that CTA has a place to run. So it
// comes from one before, or from the pre-pass; anything else is a fault, whatever this run has
// shown.
#include <fmt/format.h>

#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Stmt;

namespace {

struct Turn {
  Global* of = nullptr;
  int64_t at = 0, number = 0;
  std::string name;  // for messages
};

// The value of a turn, and the number that the statement gives it or waits for; of: null after a
// fault.
Turn turn_of(Machine& m, Agent& a, const Stmt& s) {
  if (!a.guarded() && a.thread < 0) {
    m.faults.raise("exec.sync", &s,
                   fmt::format("{} is run by every thread of a warpgroup", cite(s)));
    return {};
  }
  const Context c = context(m, a, s);
  const int64_t row = integer_of(c, s.row()), number = integer_of(c, s.number());
  const Values values = values_of(m, a, s);
  if (!values.of) return {};
  const Turn out{values.of, values.first + row, number, fmt::format("{}{}]", values.place, row)};
  if (row < 0 || row >= values.count) {
    m.faults.raise("exec.bounds", &s, fmt::format("{} is outside", out.name));
    return {};
  }
  if (!was_written(m, s, *out.of, out.at)) return {};
  if (out.of->turns.empty()) out.of->turns.resize(out.of->written.size());
  return out;
}

bool is_at(const Machine& m, const Turn& p) {
  if (!m.algebra) return p.of->data.values[p.at] == double(p.number);
  const exact::Element& e = p.of->exact[p.at];
  return e.kind == exact::Kind::number && e.x == m.algebra->integer(p.number).x;
}

}  // namespace

Next exec_wait_turn(Machine& m, Agent& a, const Stmt& s) {
  const Turn p = turn_of(m, a, s);
  if (!p.of) return Next::on;
  if (!is_at(m, p)) return block_on(a, s, "", fmt::format("{} is not {} yet", p.name, p.number));
  Turns& turns = p.of->turns[p.at];
  const int64_t me = a.block->index;
  if (turns.passed_by > me)
    m.faults
        .raise(
            "exec.order", &s,
            fmt::format("CTA {} waits for {} == {}, which CTA {} passed on: it is launched later, "
                        "and may never come to run",
                        me, p.name, p.number, turns.passed_by))
        .hint = "let turns come in the order of the blocks of the launch";
  else if (turns.taken_by >= 0)
    m.faults
        .raise(
            "exec.order", &s,
            fmt::format("CTA {} waits for {} == {}, and so does CTA {}: which comes first is open",
                        me, p.name, p.number, turns.taken_by))
        .hint = "give each block a number of its own";
  turns.taken_by = me;
  return Next::on;
}

Next exec_pass_turn(Machine& m, Agent& a, const Stmt& s) {
  const Turn p = turn_of(m, a, s);
  if (!p.of) return Next::on;
  Turns& turns = p.of->turns[p.at];
  if (turns.taken_by != a.block->index) {
    m.faults.raise(
        "exec.order", &s,
        fmt::format("CTA {} passes {} on, whose turn it is not", a.block->index, p.name));
    return Next::on;
  }
  turns = {a.block->index, -1};
  if (m.algebra)
    p.of->exact[p.at] = m.algebra->integer(p.number);
  else
    p.of->data.values[p.at] = double(p.number);
  return Next::on;
}

}  // namespace kw::exec
