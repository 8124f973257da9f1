// Sums of rows in parts: store_part leaves one, and the pass behind the kernel adds them up.
//
//   after add_sums, threads 256, w of ceil_div(M, 256) * H * B:
//       add_parts parts of columns by w -> sums
//
// The pass is a launch of its own, which begins when the kernel has ended, and no row depends on
// another: one after the other, whichever thread has it. Parts are added in their order, as on the
// device.
#include <fmt/format.h>

#include "exec/alignment.h"
#include "exec/machine.h"
#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Op;
using tl::Stmt;

namespace {

// Null after a fault.
Parts* parts_of(Machine& m, const Stmt& s) {
  const std::string name = tl::base_name(s.scratch());
  const auto words = m.scratches.find(name);
  if (words == m.scratches.end()) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a scratch", name));
    return nullptr;
  }
  Parts& parts = m.parts[name];
  if (parts.written.empty()) {
    parts.written.assign(words->second.size(), 0);
    parts.x.resize(m.algebra ? 0 : words->second.size());
    parts.e.resize(m.algebra ? words->second.size() : 0);
  }
  return &parts;
}

// Whether a word is there.
bool inside(Machine& m, const Stmt& s, const Parts& parts, int64_t at) {
  if (at >= 0 && at < int64_t(parts.written.size())) return true;
  m.faults.raise("exec.bounds", &s,
                 fmt::format("{} is about word {} of {}", cite(s), at, parts.written.size()));
  return false;
}

void add_parts(Machine& m, const Stmt& s, const Context& c) {
  const Parts* parts = parts_of(m, s);
  const auto to = m.tensors.find(tl::base_name(s.tensor()));
  const int64_t count = integer_of(c, s.count());
  if (!parts || m.faults.any()) return;
  if (to == m.tensors.end() || !to->second.writes || to->second.data.rank() != 3 || count < 1) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} needs 1 part or more, and one value a row to write", cite(s)));
    return;
  }
  Global& g = to->second;
  const int64_t rows = g.data.shape[2];
  for (int64_t x = 0; x < int64_t(g.written.size()); ++x) {
    float sum = 0;
    exact::Element exact;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t at = (x / rows * count + n) * rows + x % rows;
      if (!inside(m, s, *parts, at)) return;
      if (!parts->written[at]) {
        m.faults.raise("exec.uninitialised", &s,
                       fmt::format("part {} of row {} is added but was never stored", n, x % rows));
        return;
      }
      if (m.algebra)
        exact = n ? m.algebra->add(exact, parts->e[at]) : parts->e[at];
      else
        sum = n ? sum + parts->x[at] : parts->x[at];
    }
    note_written(m, s, g.written[x]);
    if (m.algebra)
      g.exact[x] = exact;
    else
      g.data.values[x] = sum;
  }
}

// Each element of the tensor: the sum that CTAs have added up, times a factor.
void round_sums(Machine& m, const Stmt& s, const Context& c) {
  const auto from = m.tensors.find(tl::base_name(s.src()));
  const auto to = m.tensors.find(tl::base_name(s.tensor()));
  const Value scale = real_of(c, s.scale());
  if (m.faults.any()) return;
  const auto is = [&](auto t, bool sums) {
    return t != m.tensors.end() && t->second.data.rank() == 4 &&
           (t->second.scratch || (!sums && t->second.writes));
  };
  if (!is(from, true) || !is(to, false)) {
    m.faults.raise("exec.shape", &s, fmt::format("{} needs sums and a tensor to write", cite(s)));
    return;
  }
  const std::vector<int64_t>&sums = from->second.data.shape, &shape = to->second.data.shape;
  if (sums[0] != shape[0] || sums[1] != shape[1] || sums[2] < shape[2] || sums[3] != shape[3]) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{}: sums of [{}] and a tensor of [{}]", cite(s),
                               fmt::join(sums, ", "), fmt::join(shape, ", ")));
    return;
  }
  Global& g = to->second;
  if (!rows_are_chunks(m, s, g)) return;
  for (int64_t x = 0; x < int64_t(g.written.size()); ++x) {
    const int64_t row = x / shape[3];
    const int64_t at = (row / shape[2] * sums[2] + row % shape[2]) * sums[3] + x % shape[3];
    note_written(m, s, g.written[x]);
    if (m.algebra)
      g.exact[x] = m.algebra->mul(from->second.exact[at], scale.e);
    else
      g.data.values[x] = round_to(g.data.dtype, static_cast<float>(from->second.data.values[at]) *
                                                    static_cast<float>(scale.x));
  }
}

}  // namespace

Next exec_store_part(Machine& m, Agent& a, const Stmt& s) {
  const auto from = row_of(m, a, s, tl::Hole::src, true);
  Parts* parts = parts_of(m, s);
  const Context c = context(m, a, s);
  const int64_t part = integer_of(c, s.at()), row = integer_of(c, s.row()),
                rows = integer_of(c, s.rows());
  if (!from || !parts || m.faults.any()) return Next::on;
  if (from->lanes != 1) {
    m.faults.raise("exec.shape", &s, fmt::format("{} needs a row vector", cite(s)));
    return Next::on;
  }
  for (int64_t r = 0; r < from->rows && row + r < rows; ++r) {
    const int64_t at = part * rows + row + r;
    if (row + r < 0 || !inside(m, s, *parts, at)) return Next::on;
    note_written(m, s, parts->written[at]);
    if (m.algebra)
      parts->e[at] = from->e[r];
    else
      parts->x[at] = from->x[r];
  }
  return Next::on;
}

void run_after(Machine& m) {
  if (!m.after) return;
  m.faults.agent = "the pass behind the kernel";
  const ScopePtr scope = std::make_shared<Scope>(nullptr);
  scope->names[m.after->index()] = Value::integer(0);  // a row does not depend on who has it
  const int64_t blocks = integer_of({m, nullptr, m.after}, m.after->count());
  if (!m.faults.any() && blocks < 1)
    m.faults.raise("exec.launch", m.after, fmt::format("{} has no CTAs", cite(*m.after)));
  for (const Stmt& s : m.after->body) {
    if (m.faults.any()) break;
    const Context c{m, scope.get(), &s};
    if (s.op == Op::round_sums)
      round_sums(m, s, c);
    else if (s.op == Op::add_parts)
      add_parts(m, s, c);
    else if (s.op == Op::combine_parts)
      combine_parts(m, s, c);
    else if (s.op == Op::sum_over)
      sum_over(m, s);
    else if (s.op == Op::sum_tiles)
      sum_tiles(m, s, c);
    else
      m.faults.raise("exec.name", &s,
                     fmt::format("{} stands in the pass behind the kernel", cite(s)));
  }
  m.faults.agent.clear();
}

Next exec_add_parts(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}
Next exec_round_sums(Machine& m, Agent&, const Stmt& s) {
  return outside(m, s, "the pass behind the kernel");
}

}  // namespace kw::exec
