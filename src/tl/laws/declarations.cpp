// The head of a module, its arguments and shared memory, its functions and its kernel; and the
// budgets that the hardware sets: threads, registers (laws_control.cpp), shared memory.
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/scope/elements.h"
#include "tl/scope/functions.h"

namespace kw::tl {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The letters of a tensor's dimensions name sizes (of this block, perhaps below) or parameters.
void dimensions_are_sizes(Check& c, const char* label) {
  for (const Item& d : c.stmt.dims()) {
    const Symbol* s = c.find(d);
    bool found = s && (s->category == Category::param || s->category == Category::size);
    for (const Stmt& other : c.parents.back()->body)
      if (other.op == Op::arg_size)
        for (const Item& size : other.names()) found |= size.name == d.name;
    if (d.name.size() != 1)
      c.broken(label, d.span, fmt::format("dimension `{}` is not one letter", d.name));
    else if (!found)
      c.broken(label, d.span,
               fmt::format("dimension `{}` is neither a size argument nor a parameter", d.name))
          .hint = fmt::format("declare it: `{}: size`", d.name);
  }
}

bool some_tensor_has(const Stmt& args, const std::string& dimension) {
  for (const Stmt& s : args.body)
    if (s.op == Op::arg_tiled || s.op == Op::arg_tensor)
      for (const Item& d : s.dims())
        if (d.name == dimension) return true;
  return false;
}

// The constraints of kw::SharedTile and of the copy engine's boxes (256 rows).
void shared_tile_is_possible(Check& c, const char* shape, const char* type) {
  const std::optional<int64_t> rows = c.constant(c.stmt.rows()),
                               columns = c.constant(c.stmt.columns());
  if (rows && (*rows <= 0 || *rows > 256 || *rows % 8))
    c.broken(shape, c.stmt.rows()->span,
             fmt::format("{} rows: not a multiple of 8 up to 256", *rows));
  const int64_t unit = c.stmt.type() == "f32" ? 16 : 32;
  if (columns && (*columns <= 0 || *columns % unit))
    c.broken(shape, c.stmt.columns()->span,
             fmt::format("{} columns: not a multiple of {}", *columns, unit));
  const std::string& held = c.stmt.type();
  if (held == "f32" && rows && *rows != 64)
    c.broken(shape, c.stmt.rows()->span,
             fmt::format("{} rows of f32: what a warpgroup adds to sums has 64", *rows));
  if (held != "element" && held != "f32" && (c.stmt.op != Op::tile || held != "e4m3"))
    c.broken(type, c.stmt.items(Hole::type)[0].span,
             fmt::format("a shared tile holds `element` or f32, this one `{}`", held));
}

void add_tiles(Check& c, int64_t slots) {
  const int64_t bytes = c.constant(c.stmt.rows()).value_or(0) *
                        c.constant(c.stmt.columns()).value_or(0) * bytes_of(c.stmt.type());
  for (const Item& d : c.stmt.names()) {
    const int64_t count = d.expr ? c.constant(d.expr).value_or(0) : 1;
    c.facts.shared_bytes += slots * count * ((bytes + 1023) / 1024 * 1024);
  }
}

int64_t slots(Check& c, const char* label) {
  const std::optional<int64_t> n = c.constant(c.stmt.stages());
  if (n && *n >= 1) return *n;
  if (n)
    c.broken(label, c.stmt.stages()->span, fmt::format("{} slots: at least one is needed", *n));
  return 0;
}

}  // namespace

void law_include(Check& c) {
  const std::string& file = c.stmt.file();
  if (file != "kw/kw.cuh" && file != "\"kw/kw.cuh\"")  // C1
    c.broken("C1", c.stmt.items(Hole::file)[0].span,
             fmt::format("`{}` is included, only kw/kw.cuh may be", file));
}

void law_element(Check& c) {
  if (!is_one_of(c.stmt.type(), {"bf16", "f16"}))
    c.broken(
        "C1", c.stmt.items(Hole::type)[0].span,
        fmt::format("the vocabulary has bf16 and f16, the element type is `{}`", c.stmt.type()));
  if (c.facts.element)
    c.broken("C2", c.stmt.span, "a second element type")
        .notes.push_back({"the first is here", c.facts.element->span});
  c.facts.element = &c.stmt;
}

void law_param(Check& c) {
  Scope here(&c.scope);
  for (const Item& d : c.stmt.names()) {
    if (!d.expr || interval_of(d.expr, here).lo != interval_of(d.expr, here).hi)
      c.broken("C1", d.span,
               fmt::format("`{}` is not a constant: {}", d.name,
                           d.expr ? print(d.expr) : "it has no value"));
    here.add(symbol_of(c.stmt, d, here));
  }
}

std::optional<bool> decided(const Facts& facts, const ExprPtr& condition) {
  const Expr& e = *condition;
  if (e.is_name("true") || e.is_name("false")) return e.is_name("true");
  if (e.kind == ExprKind::name) {
    const auto toggle = facts.toggles.find(e.text);
    return toggle == facts.toggles.end() ? std::nullopt : decided(facts, toggle->second);
  }
  if (e.kind == ExprKind::unary && e.text == "not") {
    const std::optional<bool> x = decided(facts, e.args[0]);
    return x ? std::optional(!*x) : std::nullopt;
  }
  if (e.kind != ExprKind::binary || (e.text != "and" && e.text != "or")) return std::nullopt;
  const std::optional<bool> x = decided(facts, e.args[0]), y = decided(facts, e.args[1]);
  const bool settles = e.text == "or";
  if (x == settles || y == settles) return settles;
  return x && y ? std::optional(!settles) : std::nullopt;
}

void law_toggle(Check& c) {
  for (const Item& d : c.stmt.names()) c.facts.toggles[d.name] = d.expr;
  for (const Item& d : c.stmt.names())
    for (const Symbol& s : c.scope.symbols())
      if (d.expr && s.category != Category::toggle && s.category != Category::param &&
          mentions(d.expr, s.name))
        c.broken("C1", d.expr->span,
                 fmt::format("`{}` is not a constant: it depends on `{}`", d.name, s.name));
}

void law_level(Check& c) {
  const std::string& level = c.stmt.name();
  bool first = is_one_of(level, {"sketch", "sized", "scheduled"});
  if (!first)
    c.broken("C1", c.stmt.items(Hole::name)[0].span,
             fmt::format("`{}` is not a level: sketch, sized and scheduled are", level));
  if (!c.scope.symbols().empty() || c.facts.args || c.facts.element)
    c.broken("C1", c.stmt.span, "the level stands after other statements");
  c.facts.level = level;
}

void law_args(Check& c) {
  if (c.facts.args)
    c.broken("C1", c.stmt.span, "a second block of arguments")
        .notes.push_back({"the first is here", c.facts.args->span});
  c.facts.args = &c.stmt;
}

void law_arg_tiled(Check& c) {
  const Item& access = c.stmt.access().at(0);
  if (c.stmt.dims().size() != 4)
    c.broken("C1", c.stmt.span,
             fmt::format("a tiled tensor has 4 dimensions, this one has {}", c.stmt.dims().size()));
  dimensions_are_sizes(c, "C2");
  if (access.type != "element")
    c.broken("C3", access.span,
             fmt::format("a tiled tensor holds `element`, this one `{}`", access.type));
}

void law_arg_tensor(Check& c) {
  const Item& access = c.stmt.access().at(0);
  if (!is_one_of(access.type, {"f32", "bf16", "f16", "e4m3", "i32", "i64", "bool", "element"}))
    c.broken("C1", access.span,
             fmt::format("a tensor holds f32, bf16, f16, e4m3, i32, i64, bool or element, this one "
                         "`{}`",
                         access.type));
  dimensions_are_sizes(c, "C2");
  const std::vector<Item>& dims = c.stmt.dims();
  if (access.name != "scratch") return;
  const bool value = dims.size() == 3 && access.type == "f32",
             row = dims.size() == 4 && c.constant(name(dims.back().name)) &&
                   (access.type == "element" || access.type == "f32");
  if (!value && !row)
    c.broken("C3", access.span,
             fmt::format("this one has {} dimensions, the last of them `{}`, and holds `{}`",
                         dims.size(), dims.back().name, access.type));
}

namespace {
// The launcher computes values in order, before any tensor is on the device.
void value_reads_scalars(Check& c, const char* label) {
  for (const Item& d : c.stmt.names())
    for (const Symbol& s : c.scope.symbols())
      if (d.expr && s.category == Category::tensor && mentions(d.expr, s.name))
        c.broken(
            label, d.expr->span,
            fmt::format("the value of `{}` reads the tensor `{}`: who launches has only scalars",
                        d.name, s.name));
}

// The caller's own numbers are asked to be positive where something is divided by one.
bool may_be_zero(const Check& c, const ExprPtr& e) {
  const Symbol* own = e->kind == ExprKind::name ? c.find(e) : nullptr;
  if (e->kind == ExprKind::name && !own) return false;  // names.C2
  if (own && own->category == Category::scalar && !own->value) return false;
  // A launch asks for H % G == 0.
  const ExprPtr grouped = tl::rewrite(e, [](const ExprPtr& part) -> ExprPtr {
    const bool group = part->kind == ExprKind::binary && part->text == "//" &&
                       part->args[0]->is_name("H") && part->args[1]->is_name("G");
    return group ? tl::integer(1) : nullptr;
  });
  return interval_of(grouped, c.scope).lo < 1;
}

void values_are_launchers(Check& c, const char* label) {
  for (const Item& d : c.stmt.names())
    launcher_computes(c, label, d.expr, fmt::format("the value of `{}`", d.name));
}

}  // namespace

void launcher_computes(Check& c, const char* label, const ExprPtr& e, const std::string& what) {
  static const std::set<std::string> known = {
      "+", "-", "*", "/", "//", "%", "min", "max", "ceil_div", "rsqrt", "heads_at_once", "f32"};
  tl::rewrite(e, [&](const ExprPtr& part) -> ExprPtr {
    const bool leaf = part->args.empty();
    if (part->kind == ExprKind::call && !find_function(part->text)) return nullptr;  // types.C4
    const std::string word = part->kind == ExprKind::where ? "where" : part->text;
    if (!leaf && part->kind != ExprKind::index && !known.contains(word))
      c.broken(label, part->span, fmt::format("{} has `{}`: `{}`", what, word, tl::print(part)));
    const bool divides = word == "//" || word == "%" || word == "ceil_div";
    if (divides && may_be_zero(c, part->args[1]))
      c.broken(label, part->args[1]->span,
               fmt::format("{} divides by `{}`, which may be 0", what, tl::print(part->args[1])));
    if (word == "heads_at_once" && may_be_zero(c, part->args[0]))
      c.broken(label, part->args[0]->span,
               fmt::format("{} has `{}` bytes a head, which may be none", what,
                           tl::print(part->args[0])));
    return nullptr;
  });
}

void law_arg_size(Check& c) {
  for (const Item& d : c.stmt.names())
    if (!d.expr && !some_tensor_has(*c.parents.back(), d.name))
      c.broken(
          "C1", d.span,
          fmt::format("`{}` has no value, and no tensor has a dimension `{}`", d.name, d.name));
  value_reads_scalars(c, "C2");
  values_are_launchers(c, "C3");
}

void law_arg_i32(Check& c) {
  value_reads_scalars(c, "C1");
  values_are_launchers(c, "C2");
}
void law_arg_f32(Check& c) {
  value_reads_scalars(c, "C1");
  values_are_launchers(c, "C2");
}

void law_arg_workspace(Check& c) {
  if (c.constant(c.stmt.words()).value_or(0) < 1)
    c.broken("C1", c.stmt.words()->span, "a workspace of no words");
}

void law_arg_scratch(Check& c) {
  for (const Symbol& s : c.scope.symbols())
    if ((s.category == Category::tensor || s.category == Category::scratch) &&
        mentions(c.stmt.words(), s.name))
      c.broken("C1", c.stmt.words()->span,
               fmt::format("the words of `{}` depend on `{}`, which only the device can read",
                           c.stmt.names().front().name, s.name));
  launcher_computes(c, "C2", c.stmt.words(), "the number of words");
}

void law_shared(Check& c) {
  if (c.facts.shared)
    c.broken("C1", c.stmt.span, "a second block of shared memory")
        .notes.push_back({"the first is here", c.facts.shared->span});
  c.facts.shared = &c.stmt;
}

void law_ring(Check& c) {
  shared_tile_is_possible(c, "C1", "C2");
  add_tiles(c, slots(c, "C3"));
}

void law_tile(Check& c) {
  shared_tile_is_possible(c, "C1", "C2");
  add_tiles(c, 1);
}

void law_row_ring(Check& c) {
  const std::optional<int64_t> rows = c.constant(c.stmt.rows());
  if (c.stmt.type() != "real" || (rows && (*rows < 64 || *rows % 64 != 0)))
    c.broken("C1", c.stmt.rows()->span,
             fmt::format("this one holds {} of {}", rows.value_or(0), c.stmt.type()));
  c.facts.shared_bytes += int64_t(c.stmt.names().size()) * slots(c, "C2") * 4 * rows.value_or(0);
}

namespace {
void declare_barriers(Check& c) {
  const int64_t n = slots(c, "C1");
  const std::optional<int64_t> arrivals = c.constant(c.stmt.arrivals());
  if (arrivals && *arrivals < 1)
    c.broken("C1", c.stmt.arrivals()->span,
             fmt::format("{} arrivals: at least one is needed", *arrivals));
  for (const Item& d : c.stmt.names()) {
    c.facts.barriers[d.name] = {symbol_of(c.stmt, d, c.scope), n, arrivals, {}, {}, {}, {}};
    c.facts.shared_bytes += 8 * n;
  }
}
}  // namespace

void law_barrier(Check& c) { declare_barriers(c); }
void law_cluster_barrier(Check& c) {
  declare_barriers(c);
  note_ctas(c, "C2");
}

void law_queue(Check& c) {
  const int64_t n = slots(c, "C1");
  for (const Item& d : c.stmt.names()) {
    if (!c.facts.queues.empty())
      c.broken("C5", d.span, fmt::format("`{}` is a second queue", d.name))
          .notes.push_back({"the first is here", c.facts.queues.begin()->second.symbol.span});
    c.facts.queues[d.name] = {
        symbol_of(c.stmt, d, c.scope), c.constant(c.stmt.arrivals()), {}, {}, 0};
    c.facts.shared_bytes += (2 * 8 + 4) * n;
  }
  note_ctas(c, "C4");
}

void law_record(Check& c) {
  std::set<std::string> names;
  for (const Item& d : c.stmt.names())
    if (!names.insert(d.name).second)
      c.broken("C1", d.span, fmt::format("`{}` has two fields `{}`", c.stmt.name(), d.name));
}

void law_def(Check& c) {
  for (const Item& p : c.stmt.params()) {
    const Symbol* s = c.scope.find(p.type);
    const bool record = s && s->category == Category::record;
    if (!record && !is_one_of(p.type, {"index", "i32", "size", "f32", "bool"}))
      c.broken("C1", p.span,
               fmt::format("`{}` of type `{}`: no scalar and no record", p.name, p.type));
  }
  const std::vector<Stmt>& body = c.stmt.body;
  for (size_t n = 0; n < body.size(); ++n) {
    const bool last = n + 1 == body.size();
    if (body[n].op != (last ? Op::return_ : Op::let))
      c.broken(
          "C2", body[n].span,
          fmt::format("`{}` stands {}", word(body[n].op),
                      last ? "where the function should return" : "among the lets of a function"));
  }
  if (body.empty()) c.broken("C2", c.stmt.span, "the function returns nothing");
}

void law_kernel(Check& c) {
  if (c.facts.level != "scheduled") return;  // level.C2 says it
  const std::optional<int64_t> threads = c.constant(c.stmt.threads());
  if (!threads || *threads % 128 || *threads < 256 || *threads > 1024)
    c.broken("C1", c.stmt.threads()->span,
             threads ? fmt::format("{} threads: not 2 to 8 warpgroups of 128", *threads)
                     : "the number of threads is not constant");
  if (c.facts.threads == 0 && threads && *threads % 128 == 0 && *threads >= 256 && *threads <= 1024)
    c.facts.threads = *threads;
  size_t n = 0;
  const std::vector<Stmt>& body = c.stmt.body;
  const auto prepares = [](Op op) {
    return op == Op::let || op == Op::cluster || op == Op::init || op == Op::sync_cluster;
  };
  while (n < body.size() && prepares(body[n].op)) ++n;
  for (Op due : {Op::warpgroup, Op::warpgroups}) {
    if (n < body.size() && body[n].op == due) {
      ++n;
      continue;
    }
    c.broken("C2", n < body.size() ? body[n].span : c.stmt.span,
             fmt::format("the `{}` block is due here", word(due)));
    return;
  }
  if (n < body.size() && body[n].op == Op::sync_cluster) ++n;
  if (n < body.size())
    c.broken("C2", body[n].span, fmt::format("`{}` stands after the warpgroups", word(body[n].op)));
}

void law_warpgroups_kernel(Check& c) {
  const std::optional<int64_t> threads = c.constant(c.stmt.threads()),
                               resident = c.constant(c.stmt.resident());
  if (!threads || *threads % 128 || *threads < 128 || *threads > 1024)
    c.broken("C1", c.stmt.threads()->span,
             threads ? fmt::format("{} threads: not 1 to 8 warpgroups of 128", *threads)
                     : "the number of threads is not constant");
  else
    c.facts.threads = *threads;
  if (!resident || *resident < 1 || *resident * threads.value_or(0) > 2048)
    c.broken("C2", c.stmt.resident()->span,
             fmt::format("`{}` CTAs of {} threads on a multiprocessor, which has 2048",
                         print(c.stmt.resident()), threads.value_or(0)));
  c.facts.alike = true;
}

void law_plan(Check& c) {
  if (c.facts.level == "scheduled")
    c.broken("C1", c.stmt.span, "the module is scheduled: it has a kernel, no plan").hint =
        "write `level sketch` or `level sized` at its head";
}

}  // namespace kw::tl
