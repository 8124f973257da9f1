// Lines: whole rows of tensors in a warpgroup's registers.
//
//   set_line x_r[j] = x[c.b, c.h, i, j]
//   sum_line squares over j = x_r[j] * x_r[j]
//   map_line y_r[j] = x_r[j] * factor
//   store_line y_r -> y[c.b, c.h, i]           (copies.cpp)
//
// A line is one value a column, and a body over lines is one row of a map. What a line of a 16-bit
// type is set to is rounded at once, as on the device, where it has no room for more. A sum adds in
// the device's order.
#include <fmt/format.h>

#include <array>

#include "exec/exact.h"
#include "exec/ops/exec_ops.h"

namespace kw::exec {

using tl::Item;
using tl::Stmt;

Next exec_line(Machine& m, Agent& a, const Stmt& s) {
  const int64_t columns = integer_of(context(m, a, s), s.columns());
  if (m.faults.any()) return Next::on;
  if (columns < 8 || columns % 8) {
    m.faults.raise("exec.shape", &s, fmt::format("a line of {} columns", columns));
    return Next::on;
  }
  const std::string& type = s.type();
  for (const Item& d : s.names()) {
    const auto line = std::make_shared<Row>(int(columns), 1, m.algebra);
    line->column = line->line = true;
    line->dtype = type == "real"   ? Dtype::f32
                  : type == "bf16" ? Dtype::bf16
                  : type == "f16"  ? Dtype::f16
                                   : m.element;
    a.scope()->names[d.name] = line;
  }
  return Next::on;
}

std::shared_ptr<Row> line_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole, bool defined) {
  const std::string name = word_of(s, hole);
  Binding* b = a.scope()->find(name);
  const auto* found = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
  if (!found || !(*found)->line) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a line", name));
    return nullptr;
  }
  if (defined && !(*found)->defined) {
    m.faults.raise("exec.uninitialised", &s,
                   fmt::format("{} reads {}, which was never set", cite(s), name));
    return nullptr;
  }
  return *found;
}

namespace {

constexpr int kLineWarps = 4, kLineLanes = 32, kLineNeighbours = 8;

// The body at every column becomes the line.
Next set_line_to_body(Machine& m, Agent& a, const Stmt& s) {
  const auto line = line_of(m, a, s, tl::Hole::target, false);
  if (!line) return Next::on;
  const Columns columns = run_columns(context(m, a, s), line->rows);
  if (m.faults.any()) return Next::on;
  for (int j = 0; j < line->rows; ++j)
    if (m.algebra)
      line->e[j] = line->dtype == Dtype::f32 ? columns.e[j] : m.algebra->stored(columns.e[j]);
    else
      line->x[j] = static_cast<float>(round_to(line->dtype, columns.x[j]));
  line->defined = true;
  return Next::on;
}

// Thread t has columns 8t to 8t + 7 of every 1024. Lanes at distance 16, 8, ... exchange their
// sums, and then the warps.
float line_total(const std::vector<double>& x) {
  std::array<std::array<float, kLineLanes>, kLineWarps> threads{};
  for (size_t j = 0; j < x.size(); ++j) {
    const size_t t = j / kLineNeighbours % (kLineWarps * kLineLanes);
    threads[t / kLineLanes][t % kLineLanes] += static_cast<float>(x[j]);
  }
  for (auto& lanes : threads)
    for (int apart = kLineLanes / 2; apart > 0; apart /= 2)
      for (int lane = 0; lane < apart; ++lane) lanes[lane] += lanes[lane + apart];
  return (threads[0][0] + threads[1][0]) + (threads[2][0] + threads[3][0]);
}

// Columns of the first line that the body reads; 0 if it reads none.
int line_columns(Agent& a, const tl::ExprPtr& e) {
  if (e->kind == tl::ExprKind::index && e->args[0]->kind == tl::ExprKind::name) {
    Binding* b = a.scope()->find(e->args[0]->text);
    const auto* row = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
    if (row && (*row)->line) return (*row)->rows;
  }
  for (const tl::ExprPtr& part : e->args)
    if (const int columns = line_columns(a, part)) return columns;
  return 0;
}

}  // namespace

Next exec_set_line(Machine& m, Agent& a, const Stmt& s) { return set_line_to_body(m, a, s); }
Next exec_map_line(Machine& m, Agent& a, const Stmt& s) { return set_line_to_body(m, a, s); }

Next exec_sum_line(Machine& m, Agent& a, const Stmt& s) {
  const int width = line_columns(a, s.value());
  if (width == 0) {
    m.faults.raise("exec.shape", &s, fmt::format("{} reads no line", cite(s)));
    return Next::on;
  }
  const Columns columns = run_columns(context(m, a, s), width);
  if (m.faults.any()) return Next::on;
  if (!m.algebra) {
    a.scope()->names[s.names().front().name] = Value::real(line_total(columns.x));
    return Next::on;
  }
  exact::Element total;
  for (const exact::Element& e : columns.e) total = m.algebra->add(total, e);
  a.scope()->names[s.names().front().name] = Value::real(total);
  return Next::on;
}

}  // namespace kw::exec
