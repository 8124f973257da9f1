// Declarations inside a body: scalars, register tiles, row vectors.
#include <fmt/format.h>

#include "exec/exact.h"
#include "exec/ops/exec_ops.h"
#include "tl/traits.h"

namespace kw::exec {

using tl::ExprKind;
using tl::Item;
using tl::Stmt;

Next exec_let(Machine& m, Agent& a, const Stmt& s) {
  bind_lets(context(m, a, s), s);
  return Next::on;
}

Next exec_var(Machine& m, Agent& a, const Stmt& s) {
  for (const Item& d : s.names())
    a.scope()->names[d.name] = Value::integer(integer_of(context(m, a, s), d.expr));
  return Next::on;
}

Next exec_flag(Machine&, Agent& a, const Stmt& s) {
  a.scope()->names[s.names().front().name] = Flag{};
  return Next::on;
}

namespace {

Next declare_register(Machine& m, Agent& a, const Stmt& s, Role role) {
  const Context c = context(m, a, s);
  const std::string& type = s.type();
  const Dtype dtype = type == "real"   ? Dtype::f32
                      : type == "bf16" ? Dtype::bf16
                      : type == "f16"  ? Dtype::f16
                      : type == "bool" ? Dtype::boolean
                                       : m.element;
  const int64_t rows = integer_of(c, s.rows()), columns = integer_of(c, s.columns());
  if (rows < 1 || columns < 8 || columns % 8 != 0) {
    m.faults.raise("exec.shape", &s, fmt::format("a register tile of {} x {}", rows, columns));
    return Next::on;
  }
  for (const Item& d : s.names())
    a.scope()->names[d.name] =
        std::make_shared<Tile>(role, dtype, int(rows), int(columns), m.algebra);
  return Next::on;
}

// The values that a row vector starts with: another row vector, or the total of a lane sum.
void initialise(Machine& m, Agent& a, const Stmt& s, Row& row, const tl::ExprPtr& e) {
  const bool total = e->kind == ExprKind::call && e->text == "total" && e->args.size() == 1;
  const std::string& name = total ? e->args[0]->text : e->text;
  Binding* b = a.scope()->find(name);
  const auto* from = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
  if (!from || (*from)->rows != row.rows || (*from)->lanes != (total ? 4 : 1) ||
      !(*from)->ints.empty() || !row.ints.empty()) {
    m.faults.raise("exec.shape", &s,
                   fmt::format("{} is not a row vector of {} rows", tl::print(e), row.rows));
    return;
  }
  const Row& r = **from;
  if (!r.defined)
    m.faults.raise("exec.uninitialised", &s, fmt::format("{} is read and was never set", name));
  row.defined = true;
  if (m.algebra) return exact_total(m, r, row);
  // Lanes are added as two butterfly exchanges do: neighbours first.
  for (int k = 0; k < row.rows; ++k)
    row.x[k] = total ? (r.x[4 * k] + r.x[4 * k + 1]) + (r.x[4 * k + 2] + r.x[4 * k + 3]) : r.x[k];
}

}  // namespace

Next exec_accumulator(Machine& m, Agent& a, const Stmt& s) {
  return declare_register(m, a, s, Role::accumulator);
}
Next exec_operand(Machine& m, Agent& a, const Stmt& s) {
  return declare_register(m, a, s, Role::operand);
}

namespace {
std::shared_ptr<Row> vector_of(Machine& m, const Stmt& s, int64_t count) {
  if (s.type() == "i32") return std::make_shared<Row>(int(count));
  return std::make_shared<Row>(int(count), 1, m.algebra);
}
}  // namespace

Next exec_column(Machine& m, Agent& a, const Stmt& s) {
  const int64_t columns = integer_of(context(m, a, s), s.columns());
  for (const Item& d : s.names()) {
    if (columns < 1 || m.faults.any()) break;
    const auto column = vector_of(m, s, columns);
    column->column = true;
    a.scope()->names[d.name] = column;
  }
  return Next::on;
}

Next exec_diagonal(Machine& m, Agent& a, const Stmt& s) {
  const Context c = context(m, a, s);
  const int64_t rows = integer_of(c, s.rows()), columns = integer_of(c, s.columns());
  for (const Item& d : s.names()) {
    if (rows < 1 || columns < 1 || m.faults.any()) break;
    const auto diagonal = vector_of(m, s, rows + columns - 1);
    diagonal->tile_rows = int(rows);
    a.scope()->names[d.name] = diagonal;
  }
  return Next::on;
}

Next exec_row(Machine& m, Agent& a, const Stmt& s) {
  const int64_t rows = integer_of(context(m, a, s), s.rows());
  for (const Item& d : s.names()) {
    if (rows < 1 || m.faults.any()) break;
    const auto row = vector_of(m, s, rows);
    if (d.expr) initialise(m, a, s, *row, d.expr);
    a.scope()->names[d.name] = row;
  }
  return Next::on;
}

Next exec_lane_sum(Machine& m, Agent& a, const Stmt& s) {
  const int64_t rows = integer_of(context(m, a, s), s.rows());
  for (const Item& d : s.names()) {
    if (rows < 1 || m.faults.any()) break;
    a.scope()->names[d.name] = std::make_shared<Row>(int(rows), 4, m.algebra);
  }
  return Next::on;
}

// ---- reaching them
std::shared_ptr<Tile> tile_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole, Role role,
                              bool defined) {
  const std::string name = word_of(s, hole);
  Binding* b = a.scope()->find(name);
  const auto* found = b ? std::get_if<std::shared_ptr<Tile>>(b) : nullptr;
  if (!found) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a register tile", name));
    return nullptr;
  }
  const Tile& t = **found;
  auto fault = [&](const char* code, const std::string& message) {
    Diagnostic& d = m.faults.raise(code, &s, message);
    if (t.in_flight) d.notes.push_back({"the product was issued here", t.issued->span});
    return nullptr;
  };
  if (t.role != role)
    return fault("exec.layout",
                 role == Role::operand
                     ? fmt::format("{} has the layout of an accumulator and {} needs an operand: "
                                   "convert it first",
                                   name, cite(s))
                     : fmt::format("{} has the layout of an operand and {} needs an accumulator",
                                   name, cite(s)));
  // Several products may read one operand, and several that follow each other add to one
  // accumulator.
  const bool adds = role == Role::accumulator && tl::adds_product(s.op) &&
                    tl::traits(s.op).async == tl::Async::wgmma;
  if (t.in_flight && !(role == Role::operand && defined) && !adds)
    return fault("exec.in_flight", fmt::format("{} touches {}, and {} is in flight: no wgmma_wait "
                                               "has named its accumulator",
                                               cite(s), name, cite(*t.issued)));
  if (defined && !t.defined)
    return fault("exec.uninitialised",
                 fmt::format("{} reads {}, which was never written", cite(s), name));
  return *found;
}

std::shared_ptr<Row> row_of(Machine& m, Agent& a, const Stmt& s, tl::Hole hole, bool defined) {
  const std::string name = word_of(s, hole);
  Binding* b = a.scope()->find(name);
  const auto* found = b ? std::get_if<std::shared_ptr<Row>>(b) : nullptr;
  if (!found) {
    m.faults.raise("exec.name", &s, fmt::format("{} is not a row vector", name));
    return nullptr;
  }
  const bool sets = tl::is(s.op, tl::Family::gather);
  if (!sets && ((*found)->column || (*found)->tile_rows || !(*found)->ints.empty())) {
    m.faults.raise("exec.type", &s, fmt::format("{} takes no vector like {}", cite(s), name));
    return nullptr;
  }
  if (defined && !(*found)->defined) {
    m.faults.raise("exec.uninitialised", &s,
                   fmt::format("{} reads {}, which was never set", cite(s), name));
    return nullptr;
  }
  return *found;
}

}  // namespace kw::exec
