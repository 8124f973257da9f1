// Passes over rows: what the rows of operands become, found before the kernel starts; and behind it
// their gradients, from what it has left in tensors of scratch.
//
//   rows attention_rows, threads 256, w of blocks:
//       for b, h, r in each_row(q_rows, w):
//           sum squares over j < D = q[b, h, r, j] * q[b, h, r, j]
//           let factor = rsqrt(squares * 0.0078125 + 1e-06)
//           write_row q_rows[b, h, r] over j < D = q[b, h, r, j] * factor
//
// It is a launch of its own, and no row depends on another: one after the other, whichever warp has
// it. A sum adds up what each lane adds up of its columns, in the order of the device.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "exec/alignment.h"
#include "exec/machine.h"
#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

constexpr int kLanes = 32;

// Lane l has `together` columns, two or four, of every 32 times as many; lanes at distance 16, 8,
// ... exchange their sums.
float total_of(const std::vector<double>& x, int together) {
  std::array<float, kLanes> lanes{};
  for (size_t j = 0; j < x.size(); ++j) lanes[j / together % kLanes] += static_cast<float>(x[j]);
  for (int apart = kLanes / 2; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
  return lanes[0];
}

Value sum_of(Machine& m, const Columns& columns, int together) {
  if (!m.algebra) return Value::real(total_of(columns.x, together));
  exact::Element total;
  for (const exact::Element& e : columns.e) total = m.algebra->add(total, e);
  return Value::real(total);
}

// The products of two rows' elements, which are 0 behind the last row.
std::optional<Columns> products_of(Machine& m, const Stmt& s, const Context& c) {
  const auto a = m.tensors.find(tl::base_name(s.src())),
             b = m.tensors.find(tl::base_name(s.tensor()));
  const int64_t width = integer_of(c, s.columns()), batch = integer_of(c, s.batch()),
                head = integer_of(c, s.head()), row = integer_of(c, s.row());
  if (m.faults.any()) return std::nullopt;
  const bool are = a != m.tensors.end() && b != m.tensors.end() && a->second.data.rank() == 4 &&
                   a->second.data.shape == b->second.data.shape;
  if (!are || a->second.data.shape[3] != width || width % 8 != 0) {
    m.faults.raise("exec.shape", &s, fmt::format("{} is of other rows", cite(s)));
    return std::nullopt;
  }
  if (!rows_are_chunks(m, s, a->second) || !rows_are_chunks(m, s, b->second)) return std::nullopt;
  const std::vector<int64_t>& n = a->second.data.shape;
  if (batch < 0 || batch >= n[0] || head < 0 || head >= n[1] || row < 0) {
    m.faults.raise("exec.bounds", &s, fmt::format("[{}, {}, {}] is outside", batch, head, row));
    return std::nullopt;
  }
  Columns out;
  const int64_t first = ((batch * n[1] + head) * n[2] + row) * width;
  for (int64_t j = first; j < first + width; ++j) {
    const bool inside = row < n[2];
    if (m.algebra)
      out.e.push_back(inside ? m.algebra->mul(a->second.exact[j], b->second.exact[j])
                             : exact::Element());
    else
      out.x.push_back(inside ? static_cast<float>(a->second.data.values[j]) *
                                   static_cast<float>(b->second.data.values[j])
                             : 0.0f);
  }
  return out;
}

void write_row(Machine& m, const Stmt& s, Global& to, int64_t row, const Columns& columns) {
  const int64_t width = to.data.shape.back();
  if (width != static_cast<int64_t>(m.algebra ? columns.e.size() : columns.x.size())) {
    m.faults.raise("exec.shape", &s, fmt::format("{} writes rows of {} columns", cite(s), width));
    return;
  }
  if (!rows_are_pairs(m, s, to)) return;
  for (int64_t j = 0; j < width; ++j) {
    const int64_t at = row * width + j;
    note_written(m, s, to.written[at]);
    if (m.algebra)
      to.exact[at] = m.algebra->stored(columns.e[j]);
    else
      to.data.values[at] = round_to(to.data.dtype, columns.x[j]);
  }
}

// The row of another tensor than the loop's, which has as many; the loop may read it from then on.
void write_other_row(Machine& m, const Stmt& s, const Global& of_loop, int64_t row,
                     const Columns& columns) {
  const std::string name = tl::base_name(s.tensor());
  const auto to = m.tensors.find(name);
  const std::vector<int64_t>& due = of_loop.data.shape;
  if (to == m.tensors.end() || to->second.data.rank() < 3 ||
      !std::equal(due.begin(), due.begin() + 3, to->second.data.shape.begin())) {
    m.faults.raise("exec.shape", &s, fmt::format("{} has not as many rows", cite(s)));
    return;
  }
  write_row(m, s, to->second, row, columns);
  m.of_this_row.insert(name);
}

// One value of the row that the loop is at, in a tensor that has one a row.
void write_value(Machine& m, const Stmt& s, const Context& c) {
  const auto to = m.tensors.find(tl::base_name(s.tensor()));
  const int64_t b = integer_of(c, s.batch()), h = integer_of(c, s.head()),
                i = integer_of(c, s.row());
  const Value v = real_of(c, s.value());
  if (m.faults.any()) return;
  if (to == m.tensors.end() || !to->second.scratch || to->second.data.rank() != 3) {
    m.faults.raise("exec.name", &s, fmt::format("{} writes no value of a row", cite(s)));
    return;
  }
  Global& g = to->second;
  const std::vector<int64_t>& n = g.data.shape;
  if (b < 0 || b >= n[0] || h < 0 || h >= n[1] || i < 0 || i >= n[2]) {
    m.faults.raise("exec.bounds", &s, fmt::format("[{}, {}, {}] is outside", b, h, i));
    return;
  }
  const int64_t at = (b * n[1] + h) * n[2] + i;
  note_written(m, s, g.written[at]);
  if (m.algebra)
    g.exact[at] = v.e;
  else
    g.data.values[at] = static_cast<float>(v.x);
}

// Row number `row` of the tensor that the loop is over.
void one_row(Machine& m, const Stmt& loop, Global& to, const ScopePtr& outer, int64_t row) {
  const ScopePtr scope = std::make_shared<Scope>(outer);
  const std::vector<int64_t>& shape = to.data.shape;
  scope->names[loop.batch_index()] = Value::integer(row / shape[2] / shape[1]);
  scope->names[loop.head_index()] = Value::integer(row / shape[2] % shape[1]);
  scope->names[loop.row_index()] = Value::integer(row % shape[2]);
  m.of_this_row.clear();
  for (const Stmt& s : loop.body) {
    if (m.faults.any()) return;
    const Context c{m, scope.get(), &s};
    if (s.op == Op::let) {
      bind_lets(c, s);
      continue;
    }
    if (s.op == Op::write_value) {
      write_value(m, s, c);
      continue;
    }
    if (s.op == Op::dot_row) {
      const std::optional<Columns> products = products_of(m, s, c);
      if (products) scope->names[s.names().front().name] = sum_of(m, *products, 4);
      continue;
    }
    if (s.op != Op::sum && s.op != Op::write_row) {
      m.faults.raise("exec.name", &s, fmt::format("{} stands in a loop over rows", cite(s)));
      return;
    }
    const int64_t width = integer_of(c, s.columns());
    const Columns columns = run_columns(c, static_cast<int>(width));
    if (m.faults.any()) return;
    if (s.op == Op::sum) scope->names[s.names().front().name] = sum_of(m, columns, 2);
    if (s.op != Op::write_row) continue;
    if (tl::base_name(s.tensor()) == tl::base_name(loop.tensor()))
      write_row(m, s, to, row, columns);
    else
      write_other_row(m, s, to, row, columns);
  }
}

void each_row(Machine& m, const Stmt& loop, const ScopePtr& scope) {
  const auto to = m.tensors.find(tl::base_name(loop.tensor()));
  const bool is = to != m.tensors.end() && to->second.data.rank() >= 3 &&
                  (m.is_behind ? to->second.writes : to->second.scratch);
  if (!is) {
    m.faults.raise("exec.name", &loop, fmt::format("{} is over no rows to be written", cite(loop)));
    return;
  }
  const std::vector<int64_t>& shape = to->second.data.shape;
  for (int64_t row = 0; row < shape[0] * shape[1] * shape[2] && !m.faults.any(); ++row)
    one_row(m, loop, to->second, scope, row);
}

void run_pass(Machine& m, const Stmt& pass) {
  const ScopePtr scope = std::make_shared<Scope>(nullptr);
  scope->names[pass.index()] = Value::integer(0);  // a row does not depend on who has it
  for (const Stmt& s : pass.body) {
    if (m.faults.any()) break;
    const Context c{m, scope.get(), &s};
    if (s.op == Op::let) bind_lets(c, s);
    if (s.op == Op::each_row) each_row(m, s, scope);
  }
  m.of_this_row.clear();
}

// The tensors of scratch that the kernel, or the pass that rounds sums, leaves for one behind it.
std::set<std::string> left_by_kernel(const Machine& m) {
  std::set<std::string> out;
  tl::walk(m.program.body, [&](const Stmt& s) {
    if (leaves_for_a_pass(s.op) || s.op == Op::round_sums) out.insert(tl::base_name(s.tensor()));
  });
  return out;
}

}  // namespace

void run_rows(Machine& m) {
  if (m.launch.shapes_only) return;
  m.faults.agent = "the pre-pass over rows";
  if (m.rows) run_pass(m, *m.rows);
  const std::set<std::string> left = left_by_kernel(m);
  for (const auto& [name, g] : m.tensors)
    if (g.scratch && !left.contains(name) && !m.faults.any() &&
        (g.written.empty() || !g.written[0]))
      m.faults.raise("exec.uninitialised", g.declared,
                     fmt::format("no pre-pass writes the rows of {}", name));
  m.faults.agent.clear();
}

void run_behind(Machine& m) {
  if (!m.behind) return;
  m.faults.agent = "the pass over rows behind the kernel";
  for (const std::string& name : left_by_kernel(m)) {
    const auto g = m.tensors.find(name);
    if (g == m.tensors.end() || !g->second.scratch || m.faults.any()) continue;
    const auto& written = g->second.written;
    const auto gap = std::find_if(written.begin(), written.end(), [](const auto& w) { return !w; });
    if (gap != written.end())
      m.faults.raise("exec.uninitialised", m.behind,
                     fmt::format("element {} of {} is read and was never stored",
                                 gap - written.begin(), name));
  }
  m.is_behind = true;
  if (!m.faults.any()) run_pass(m, *m.behind);
  m.is_behind = false;
  m.faults.agent.clear();
}

namespace {
constexpr const char* kPass = "a pass over rows";
}
Next exec_each_row(Machine& m, Agent&, const Stmt& s) { return outside(m, s, kPass); }
Next exec_sum(Machine& m, Agent&, const Stmt& s) { return outside(m, s, kPass); }
Next exec_dot_row(Machine& m, Agent&, const Stmt& s) { return outside(m, s, kPass); }
Next exec_write_row(Machine& m, Agent&, const Stmt& s) { return outside(m, s, kPass); }
Next exec_write_value(Machine& m, Agent&, const Stmt& s) { return outside(m, s, kPass); }

}  // namespace kw::exec
