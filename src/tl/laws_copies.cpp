// Copies: both ends have the same shape and type, and an asynchronous one has the barrier that says
// when it is done.
#include <algorithm>

#include "tl/laws_check.h"

namespace kw::tl {
namespace {

// The tensor's last dimension is what a row of the tile holds; the copy engine's box is part of the
// tensor map, so one tensor moves in tiles of one shape.
void box_fits(Check& c, const Symbol& tensor, const Symbol& tile) {
  const std::optional<int64_t> rows = c.extent(&tile, 0), columns = c.extent(&tile, 1);
  if (!rows || !columns || tensor.dims.size() != 4) return;
  const Symbol* last = c.scope.find(tensor.dims[3]);
  const std::optional<int64_t> width =
      last && last->category == Category::param && last->range.lo == last->range.hi
          ? std::optional(last->range.lo)
          : std::nullopt;
  if (width != columns)
    c.broken(
         "C2", c.stmt.span,
         fmt::format("`{}` has {} columns, `{}` has {}", tensor.name,
                     width ? std::to_string(*width) : "no constant number of", tile.name, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
  const auto [first, fresh] = c.facts.moved.insert({tensor.name, {&c.stmt, *rows, *columns}});
  if (!fresh && (first->second.rows != *rows || first->second.columns != *columns))
    c.broken("C3", c.stmt.span,
             fmt::format("`{}` moves in tiles of {} x {} here, of {} x {} elsewhere", tensor.name,
                         *rows, *columns, first->second.rows, first->second.columns))
        .notes.push_back({"elsewhere is here", first->second.stmt->span});
}

std::string use_of(const ExprPtr& e) { return e->kind == ExprKind::index ? print(e->args[1]) : ""; }

// The last wait_free before the statement among those that precede it in its blocks.
const Stmt* wait_free_before(const Check& c, const std::string& use) {
  const Stmt* inner = &c.stmt;
  for (auto block = c.parents.rbegin(); block != c.parents.rend(); ++block) {
    const Stmt* found = nullptr;
    for (const Stmt& s : (*block)->body) {
      if (&s == inner) break;
      if (s.op == Op::wait_free && use_of(s.expr("b")) == use) found = &s;
    }
    if (found) return found;
    if ((*block)->op == Op::thread) return nullptr;
    inner = *block;
  }
  return nullptr;
}

void same_shape(Check& c, const Symbol& a, const Symbol& b) {
  for (size_t axis : {0, 1}) {
    const std::optional<int64_t> x = c.extent(&a, axis), y = c.extent(&b, axis);
    if (x && y && *x != *y)
      c.broken("C2", c.stmt.span,
               fmt::format("{} of `{}` ({}) and `{}` ({}) differ", axis ? "columns" : "rows",
                           a.name, *x, b.name, *y))
          .notes.push_back({fmt::format("`{}` is declared here", b.name), b.span});
  }
}

}  // namespace

void law_load_async(Check& c) {
  const Symbol &tensor = *c.find(c.stmt.expr("m")), &tile = *c.find(c.stmt.expr("d")),
               &bar = *c.find(c.stmt.expr("bar"));
  if (tensor.written)
    c.broken("C1", c.stmt.expr("m")->span, fmt::format("`{}` is an `out` tensor", tensor.name))
        .notes.push_back({"declared here", tensor.span});
  if (tile.category != Category::ring)
    c.broken("C1", c.stmt.expr("d")->span,
             fmt::format("`{}` is no ring: it has no uses to count", tile.name));
  box_fits(c, tensor, tile);
  const std::string use = use_of(c.stmt.expr("d")), arrival = use_of(c.stmt.expr("bar"));
  const std::optional<int64_t> slots = c.constant(tile.count), length = c.constant(bar.count);
  if (tile.category == Category::ring && slots && length && *slots != *length)
    c.broken("C4", c.stmt.expr("bar")->span,
             fmt::format("`{}` has {} slots, `{}` has {}", tile.name, *slots, bar.name, *length));
  if (tile.category == Category::ring && use != arrival)
    c.broken("C4", c.stmt.expr("bar")->span,
             fmt::format("use `{}` of `{}` arrives at use `{}` of `{}`", use, tile.name, arrival,
                         bar.name));
  const Stmt* freed = wait_free_before(c, use);
  if (!freed)
    c.broken("C5", c.stmt.span,
             fmt::format("nothing waits until slot `{}` of `{}` is free", use, tile.name))
        .hint = "put a wait_free of its barrier before the copy";
  else
    c.facts.freed_by[tile.name] = c.find(freed->expr("b")) ? c.find(freed->expr("b"))->name : "";
  static constexpr std::string_view hints[] = {"evict_first", "evict_normal", "evict_last"};
  if (std::find(std::begin(hints), std::end(hints), c.stmt.word("hint")) == std::end(hints))
    c.broken("C6", c.stmt.items("hint")[0].span,
             fmt::format("`{}` is no hint: evict_first, evict_normal, evict_last are",
                         c.stmt.word("hint")));
  if (!c.inside(Op::worker) || !c.inside(Op::thread))
    c.broken("C7", c.stmt.span, "the copy stands outside a thread of the loading worker");
  note_copy(c);
}

void law_store_async(Check& c) {
  const Symbol &tensor = *c.find(c.stmt.expr("m")), &tile = *c.find(c.stmt.expr("s"));
  if (!tensor.written)
    c.broken("C1", c.stmt.expr("m")->span, fmt::format("`{}` is an `in` tensor", tensor.name))
        .notes.push_back({"declared here", tensor.span});
  box_fits(c, tensor, tile);
  if (!c.inside(Op::workers) || !c.inside(Op::thread))
    c.broken("C6", c.stmt.span, "the copy stands outside a thread of a worker that stores");
}

void law_load(Check& c) { same_shape(c, *c.find(c.stmt.expr("s")), *c.find(c.stmt.expr("d"))); }

void law_store(Check& c) { same_shape(c, *c.find(c.stmt.expr("s")), *c.find(c.stmt.expr("d"))); }

void law_store_rows(Check& c) {
  const Symbol& tensor = *c.find(c.stmt.expr("m"));
  if (!tensor.written || tensor.element != "f32" || tensor.dims.size() != 3)
    c.broken("C1", c.stmt.expr("m")->span,
             fmt::format("`{}` is `{} {}` with {} dimensions", tensor.name,
                         tensor.written ? "out" : "in", tensor.element, tensor.dims.size()))
        .notes.push_back({"declared here", tensor.span});
}

void law_copy(Check& c) {
  if (!c.inside(Op::plan))
    c.broken("C1", c.stmt.span, "a copy without its schedule stands outside a plan").hint =
        "a kernel says load_async, load, store or store_async";
}

}  // namespace kw::tl
