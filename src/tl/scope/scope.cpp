// What each declaring statement declares. This is the only place that knows it; readers, printers,
// laws and the executor ask here.
#include "tl/scope/scope.h"

#include "tl/syntax/table.h"
#include "tl/traits.h"

namespace kw::tl {
namespace {

constexpr Interval kNonNegative{0, Interval::kFar};

Symbol named(const Stmt& stmt, const Item& item, Category category, Type type = {}) {
  Symbol s;
  s.name = item.name;
  s.category = category;
  s.type = std::move(type);
  s.value = item.expr;
  s.stmt = &stmt;
  s.span = item.span;
  return s;
}

Symbol integer(const Stmt& stmt, const Item& item, Interval range) {
  Symbol s = named(stmt, item, Category::local, {Type::integer, ""});
  s.range = range;
  return s;
}

std::vector<std::string> names(const std::vector<Item>& items) {
  std::vector<std::string> out;
  for (const Item& i : items) out.push_back(i.name);
  return out;
}

// param, toggle, let and var: names with values.
Symbol valued(const Stmt& stmt, const Item& item, const Scope& scope) {
  const Interval range = item.expr ? interval_of(item.expr, scope) : Interval{};
  Symbol s = named(stmt, item, Category::local, {Type::integer, ""});
  if (stmt.op == Op::toggle) {
    s.category = Category::toggle;
    s.type = {Type::boolean, ""};
  } else if (stmt.op == Op::param) {
    s.category = Category::param;
    s.range = range;
  } else if (stmt.op == Op::var) {
    s.range = {range.lo, Interval::kFar};
  } else {
    s.type = item.expr ? type_of(item.expr, scope) : Type{};
    s.range = range;
  }
  return s;
}

Symbol tensor(const Stmt& stmt, const Item& item) {
  const Item& access = stmt.access().at(0);
  Symbol s = named(stmt, item, stmt.op == Op::arg_tiled ? Category::tiled : Category::tensor,
                   scalar_type(access.type));
  s.element = access.type;
  s.written = access.name == "out";
  s.scratch = access.name == "scratch";
  s.dims = names(stmt.dims());
  return s;
}

Symbol argument(const Stmt& stmt, const Item& item) {
  if (is(stmt.op, Family::tensor)) return tensor(stmt, item);
  if (stmt.op == Op::arg_f32) return named(stmt, item, Category::scalar, {Type::real, ""});
  Symbol s = named(stmt, item, Category::scalar, {Type::integer, ""});
  if (stmt.op == Op::arg_size) {
    s.category = Category::size;
    s.range = {1, Interval::kFar};
  } else if (stmt.op == Op::arg_scratch) {
    s.category = Category::scratch;
    s.count = stmt.words();
  } else if (stmt.op == Op::arg_workspace) {
    s.category = Category::workspace;
    s.type = {};
    s.count = stmt.words();
  }
  return s;
}

Symbol shared(const Stmt& stmt, const Item& item) {
  const bool tiles = stmt.op == Op::ring || stmt.op == Op::tile;
  Symbol s = named(stmt, item, Category::tile, tiles ? Type{Type::tile, ""} : Type{});
  s.value = nullptr;
  if (tiles) {
    s.extent = item.expr;
    s.element = stmt.type();
    s.shape = {stmt.rows(), stmt.columns()};
  } else if (stmt.op == Op::row_ring) {
    s.category = Category::row_ring;
    s.element = stmt.type();
    s.shape = {stmt.rows()};
  } else {
    s.category = stmt.op == Op::queue ? Category::queue : Category::barrier;
    s.arrivals = stmt.arrivals();
    if (stmt.op != Op::barrier) s.ctas = stmt.ctas();
  }
  if (stmt.op == Op::ring) s.category = Category::ring;
  if (stmt.op != Op::tile) s.count = stmt.stages();
  return s;
}

Symbol register_tile(const Stmt& stmt, const Item& item) {
  const bool vector = stmt.op != Op::accumulator && stmt.op != Op::operand;
  Symbol s = named(stmt, item, Category::accumulator, {vector ? Type::row : Type::tile, ""});
  if (stmt.op == Op::operand) s.category = Category::operand;
  if (stmt.op == Op::row) s.category = Category::row;
  if (stmt.op == Op::column) s.category = Category::column;
  if (stmt.op == Op::diagonal) s.category = Category::diagonal;
  if (stmt.op == Op::lane_sum) s.category = Category::lane_sum;
  if (stmt.op == Op::line) s.category = Category::line;
  // While a statement is being read its type may still be to come.
  if (stmt.has(Hole::type)) s.element = stmt.type();
  if (stmt.has(Hole::rows)) s.shape.push_back(stmt.rows());
  if (stmt.has(Hole::columns)) s.shape.push_back(stmt.columns());
  return s;
}

// The one name of record, def, kernel, plan and step.
Symbol heading(const Stmt& stmt) {
  const Item& item = stmt.items(Hole::name).at(0);
  Symbol s = named(stmt, item, Category::kernel);
  if (stmt.op == Op::record) {
    s.category = Category::record;
    s.type = {Type::record, item.name};
    s.fields = names(stmt.names());
  } else if (stmt.op == Op::def) {
    const std::string result = stmt.result();
    s.category = Category::def;
    s.type = result == "index" ? Type{Type::integer, ""} : Type{Type::record, result};
    s.params = stmt.params();
  } else if (stmt.op == Op::step) {
    s.category = Category::step;
    s.params = stmt.params();
  }
  return s;
}

// Whether a statement's holes `n` or `d` name something for the statements after it.
bool has_heading(Op op) {
  return is(op, Family::function) || is(op, Family::kernel) || is(op, Family::pass) ||
         op == Op::plan || op == Op::step;
}
bool has_declarations(Op op) {
  return is(op, Family::constant) || is(op, Family::tensor) || is(op, Family::argument) ||
         is(op, Family::memory) || is(op, Family::barrier) || is(op, Family::registers) ||
         (is(op, Family::value) && op != Op::count) || op == Op::sum || op == Op::dot_row ||
         op == Op::sum_line;
}

}  // namespace

const Symbol* Scope::find_here(std::string_view name) const {
  for (auto s = symbols_.rbegin(); s != symbols_.rend(); ++s)
    if (s->name == name) return &*s;
  return nullptr;
}

const Symbol* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_)
    if (const Symbol* s = scope->find_here(name)) return s;
  return nullptr;
}

Symbol symbol_of(const Stmt& stmt, const Item& item, const Scope& scope) {
  if (stmt.op == Op::flag) return named(stmt, item, Category::local, {Type::boolean, ""});
  if (stmt.op == Op::sum || stmt.op == Op::dot_row || stmt.op == Op::sum_line)
    return named(stmt, item, Category::local, {Type::real, ""});
  if (is(stmt.op, Family::constant) || is(stmt.op, Family::value)) return valued(stmt, item, scope);
  if (is(stmt.op, Family::registers)) return register_tile(stmt, item);
  if (is(stmt.op, Family::memory) || is(stmt.op, Family::barrier)) return shared(stmt, item);
  return argument(stmt, item);
}

void declare(Scope& scope, const Stmt& stmt) {
  if (is(stmt.op, Family::section))
    for (const Stmt& member : stmt.body) declare(scope, member);
  if (has_heading(stmt.op)) scope.add(heading(stmt));
  if (stmt.op == Op::cluster)
    scope.add(
        integer(stmt, stmt.items(Hole::rank).at(0), {0, interval_of(stmt.ctas(), scope).hi - 1}));
  if (has_declarations(stmt.op))
    for (const Item& item : stmt.names()) scope.add(symbol_of(stmt, item, scope));
}

namespace {

void declare_parameters(Scope& scope, const Stmt& stmt) {
  for (const Item& item : stmt.params()) {
    Symbol s = named(stmt, item, Category::local, scalar_type(item.type));
    if (item.type == "index") s.range = kNonNegative;
    if (item.type == "size") s.range = {1, Interval::kFar};
    scope.add(std::move(s));
  }
}

// What a loop counts.
Interval turns_of(const Stmt& loop, const Scope& scope) {
  const int64_t b = interval_of(loop.end(), scope).hi;
  if (loop.op == Op::range) return {0, b == Interval::kFar ? Interval::kFar : b - 1};
  return {interval_of(loop.end(), scope).lo, interval_of(loop.begin(), scope).hi};
}

// The holes in which a statement declares counters for its block, which are never negative.
std::vector<Hole> counters_of(const Stmt& stmt) {
  if (stmt.op == Op::each_row) return {Hole::batch_index, Hole::head_index, Hole::row_index};
  if (stmt.op == Op::list_blocks) return {Hole::group_begin, Hole::group_end};
  if (stmt.op == Op::grid) return {Hole::names};
  if (stmt.op == Op::blocks) return {Hole::index};
  if (stmt.op == Op::warpgroups || stmt.op == Op::warpgroups_kernel) return {Hole::me};
  if (is(stmt.op, Family::pass)) return {Hole::index};
  if (is(stmt.op, Family::tiles)) return {Hole::use, Hole::index};
  return {};
}

}  // namespace

void declare_inside(Scope& scope, const Stmt& stmt) {
  const auto counter = [&](Hole hole, Interval range) {
    for (const Item& item : stmt.items(hole)) scope.add(integer(stmt, item, range));
  };
  if (stmt.op == Op::def || stmt.op == Op::step) declare_parameters(scope, stmt);
  if (stmt.op == Op::list_blocks)
    counter(Hole::index, {interval_of(stmt.begin(), scope).lo, interval_of(stmt.end(), scope).hi});
  if (is(stmt.op, Family::loop)) counter(Hole::index, turns_of(stmt, scope));
  for (const Hole hole : counters_of(stmt)) counter(hole, kNonNegative);
}

namespace {

void walk_block(const std::vector<Stmt>& body, Scope& scope,
                const std::function<void(const Stmt&, const Scope&)>& visit) {
  for (const Stmt& s : body) {
    visit(s, scope);
    const Block holds = row(s.op).holds;
    if (holds == Block::args || holds == Block::shared) {
      walk_block(s.body, scope, visit);
      continue;
    }
    if (holds == Block::body) {
      Scope inner(&scope);
      declare_inside(inner, s);
      walk_block(s.body, inner, visit);
    }
    declare(scope, s);
  }
}

}  // namespace

void walk_scoped(const Program& program,
                 const std::function<void(const Stmt&, const Scope&)>& visit) {
  Scope module;
  walk_block(program.body, module, visit);
}

void each_expr(const Stmt& stmt, const Scope& scope,
               const std::function<void(const ExprPtr&, const Scope&)>& visit) {
  for (const Field& f : stmt.fields) {
    Scope here(&scope);
    for (const Item& item : f.items) {
      if (item.expr) visit(item.expr, here);
      if (!item.name.empty() && item.expr) here.add(symbol_of(stmt, item, here));
    }
  }
}

Type scalar_type(const std::string& name) {
  if (name == "i32" || name == "i64" || name == "size" || name == "index")
    return {Type::integer, ""};
  if (name == "f32" || name == "real" || name == "element" || name == "bf16" || name == "f16" ||
      name == "e4m3")
    return {Type::real, ""};
  if (name == "bool") return {Type::boolean, ""};
  return {Type::record, name};
}

std::vector<ExprPtr> element_indices(const Symbol* s) {
  const ExprPtr i = tl::name("i"), j = tl::name("j");
  if (!s) return {};
  switch (s->category) {
    case Category::row:
    case Category::lane_sum:
      return {i};
    case Category::column:
    case Category::line:
      return {j};
    case Category::diagonal:
      return {tl::binary("-", j, i)};
    case Category::operand:
    case Category::accumulator:
      return {i, j};
    default:
      return {};
  }
}

bool is_at(const Expr& e, const std::vector<ExprPtr>& indices) {
  return std::equal(indices.begin(), indices.end(), e.args.begin() + 1, e.args.end(),
                    [](const ExprPtr& a, const ExprPtr& b) { return equal(a, b); });
}

std::string_view word(Category category) {
  static constexpr std::string_view words[] = {"a parameter",
                                               "a toggle",
                                               "a size",
                                               "a scalar argument",
                                               "a tiled tensor",
                                               "a tensor",
                                               "a workspace",
                                               "a scratch",
                                               "a shared tile",
                                               "a ring of tiles",
                                               "a row ring",
                                               "a barrier",
                                               "a queue",
                                               "a record",
                                               "a function",
                                               "a kernel",
                                               "a step",
                                               "a local value",
                                               "an accumulator",
                                               "an operand",
                                               "a row vector",
                                               "a column vector",
                                               "a diagonal vector",
                                               "a lane sum",
                                               "a line"};
  return words[static_cast<size_t>(category)];
}

}  // namespace kw::tl
