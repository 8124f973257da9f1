// What each declaring statement declares. This is the only place that knows it; readers, printers,
// laws and the executor ask here.
#include "tl/scope.h"

#include "tl/table.h"

namespace kw::tl {
namespace {

constexpr int64_t kFar = Interval::kFar;
constexpr Interval kNonNegative{0, kFar};

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
    s.range = {range.lo, kFar};
  } else {
    s.type = item.expr ? type_of(item.expr, scope) : Type{};
    s.range = range;
  }
  return s;
}

Symbol argument(const Stmt& stmt, const Item& item) {
  switch (stmt.op) {
    case Op::arg_size: {
      Symbol s = named(stmt, item, Category::size, {Type::integer, ""});
      s.range = {1, kFar};
      return s;
    }
    case Op::arg_i32:
      return named(stmt, item, Category::scalar, {Type::integer, ""});
    case Op::arg_f32:
      return named(stmt, item, Category::scalar, {Type::real, ""});
    case Op::arg_workspace:
    case Op::arg_scratch: {
      const bool scratch = stmt.op == Op::arg_scratch;
      Symbol s = named(stmt, item, scratch ? Category::scratch : Category::workspace,
                       scratch ? Type{Type::integer, ""} : Type{});
      s.count = stmt.expr("n");
      return s;
    }
    default:
      break;
  }
  const Item& access = stmt.items("t").at(0);
  Symbol s = named(stmt, item, stmt.op == Op::arg_tiled ? Category::tiled : Category::tensor,
                   scalar_type(access.type));
  s.element = access.type;
  s.written = access.name == "out";
  s.scratch = access.name == "scratch";
  s.dims = names(stmt.items("s"));
  return s;
}

Symbol shared(const Stmt& stmt, const Item& item) {
  const bool tiles = stmt.op == Op::ring || stmt.op == Op::tile;
  Symbol s = named(stmt, item, Category::tile, tiles ? Type{Type::tile, ""} : Type{});
  s.value = nullptr;
  if (tiles) {
    s.extent = item.expr;
    s.element = stmt.word("t");
    s.shape = {stmt.expr("r"), stmt.expr("c")};
  } else if (stmt.op == Op::row_ring) {
    s.category = Category::row_ring;
    s.element = stmt.word("t");
    s.shape = {stmt.expr("r")};
  } else {
    s.category = stmt.op == Op::queue ? Category::queue : Category::barrier;
    s.arrivals = stmt.expr("a");
    if (stmt.op != Op::barrier) s.ctas = stmt.expr("k");
  }
  if (stmt.op == Op::ring) s.category = Category::ring;
  if (stmt.op != Op::tile) s.count = stmt.expr("n");
  return s;
}

Symbol register_tile(const Stmt& stmt, const Item& item) {
  const bool vector = stmt.op != Op::accumulator && stmt.op != Op::operand;
  Symbol s = named(stmt, item, Category::accumulator, {vector ? Type::row : Type::tile, ""});
  if (stmt.op == Op::operand) s.category = Category::operand;
  if (stmt.op == Op::row) s.category = Category::row;
  if (stmt.op == Op::column) s.category = Category::column;
  if (stmt.op == Op::diagonal) s.category = Category::diagonal;
  if (stmt.op == Op::partial) s.category = Category::partial;
  // While a statement is being read its type may still be to come.
  if (stmt.has("t")) s.element = stmt.word("t");
  if (stmt.has("r")) s.shape.push_back(stmt.expr("r"));
  if (stmt.has("c")) s.shape.push_back(stmt.expr("c"));
  return s;
}

// The one name of record, def, kernel, plan and step.
Symbol heading(const Stmt& stmt) {
  const Item& item = stmt.items("n").at(0);
  switch (stmt.op) {
    case Op::record: {
      Symbol s = named(stmt, item, Category::record, {Type::record, item.name});
      s.fields = names(stmt.items("d"));
      return s;
    }
    case Op::def: {
      const std::string result = stmt.word("r");
      Symbol s = named(stmt, item, Category::def,
                       result == "index" ? Type{Type::integer, ""} : Type{Type::record, result});
      s.params = stmt.items("ps");
      return s;
    }
    case Op::step: {
      Symbol s = named(stmt, item, Category::step);
      s.params = stmt.items("ps");
      return s;
    }
    default:
      return named(stmt, item, Category::kernel);
  }
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
  switch (stmt.op) {
    case Op::param:
    case Op::toggle:
    case Op::let:
    case Op::var:
      return valued(stmt, item, scope);
    case Op::flag:
      return named(stmt, item, Category::local, {Type::boolean, ""});
    case Op::sum:
      return named(stmt, item, Category::local, {Type::real, ""});
    case Op::accumulator:
    case Op::operand:
    case Op::row:
    case Op::column:
    case Op::diagonal:
    case Op::partial:
      return register_tile(stmt, item);
    case Op::ring:
    case Op::tile:
    case Op::row_ring:
    case Op::barrier:
    case Op::cluster_barrier:
    case Op::queue:
      return shared(stmt, item);
    default:
      return argument(stmt, item);
  }
}

void declare(Scope& scope, const Stmt& stmt) {
  const Row& r = row(stmt.op);
  if (stmt.op == Op::args || stmt.op == Op::shared) {
    for (const Stmt& member : stmt.body) declare(scope, member);
    return;
  }
  switch (stmt.op) {
    case Op::record:
    case Op::def:
    case Op::kernel:
    case Op::workers_kernel:
    case Op::lists:
    case Op::rows:
    case Op::after:
    case Op::plan:
    case Op::step:
      scope.add(heading(stmt));
      return;
    case Op::cluster:
      scope.add(
          integer(stmt, stmt.items("c").at(0), {0, interval_of(stmt.expr("k"), scope).hi - 1}));
      return;
    case Op::param:
    case Op::toggle:
    case Op::let:
    case Op::var:
    case Op::flag:
    case Op::sum:
    case Op::accumulator:
    case Op::operand:
    case Op::row:
    case Op::column:
    case Op::diagonal:
    case Op::partial:
      break;
    default:
      if (r.where != Block::args && r.where != Block::shared) return;
  }
  for (const Item& item : stmt.items("d")) scope.add(symbol_of(stmt, item, scope));
}

void declare_inside(Scope& scope, const Stmt& stmt) {
  const auto counter = [&](std::string_view hole, Interval range) {
    for (const Item& item : stmt.items(hole)) scope.add(integer(stmt, item, range));
  };
  switch (stmt.op) {
    case Op::def:
    case Op::step:
      for (const Item& item : stmt.items("ps")) {
        Symbol s = named(stmt, item, Category::local, scalar_type(item.type));
        if (item.type == "index") s.range = kNonNegative;
        if (item.type == "size") s.range = {1, kFar};
        scope.add(std::move(s));
      }
      return;
    case Op::workers:
    case Op::workers_kernel:
      return counter("me", kNonNegative);
    case Op::lists:
    case Op::rows:
    case Op::after:
      return counter("w", kNonNegative);
    case Op::each_row:
      for (const char* place : {"b", "h", "r"}) counter(place, kNonNegative);
      return;
    case Op::list_blocks:
      counter("n", {interval_of(stmt.expr("a"), scope).lo, interval_of(stmt.expr("b"), scope).hi});
      counter("r", kNonNegative);
      return counter("s", kNonNegative);
    case Op::deal:
    case Op::take:
    case Op::take_warp:
      counter("u", kNonNegative);
      return counter("w", kNonNegative);
    case Op::down:
    case Op::down_rolled:
    case Op::descend:
      return counter(
          "n", {interval_of(stmt.expr("b"), scope).lo, interval_of(stmt.expr("a"), scope).hi});
    case Op::range: {
      const int64_t end = interval_of(stmt.expr("b"), scope).hi;
      return counter("r", {0, end == kFar ? kFar : end - 1});
    }
    case Op::grid:
      return counter("d", kNonNegative);
    case Op::blocks:
      return counter("n", kNonNegative);
    default:
      return;
  }
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
    case Category::partial:
      return {i};
    case Category::column:
      return {j};
    case Category::diagonal:
      return {tl::binary("-", j, i)};
    case Category::operand:
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
                                               "a row partial"};
  return words[static_cast<size_t>(category)];
}

}  // namespace kw::tl
