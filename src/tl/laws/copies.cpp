// Copies: both ends have the same shape and type, and an asynchronous one has the barrier that says
// when it is done.
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/scope/panels.h"

namespace kw::tl {
namespace {

std::string box(const MovedTensor& one) {
  if (one.columns == kPartOfRows) return fmt::format("parts of {} rows", one.rows);
  const std::string tile = fmt::format("tiles of {} x {}", one.rows, one.columns);
  if (one.page) return fmt::format("{} from pages of {}", tile, one.page);
  return one.ctas == 1 ? tile : fmt::format("{} of {}", one.ctas == 2 ? "halves" : "parts", tile);
}

// The tensor's last dimension is what a row of the tile holds; the copy engine's box is part of the
// tensor map, so one tensor moves in tiles of one shape.
void box_fits(Check& c, const Symbol& tensor, const Symbol& tile, int64_t ctas = 1,
              int64_t page = 0) {
  const std::optional<int64_t> rows = c.extent(&tile, 0), columns = c.extent(&tile, 1);
  if (!rows || !columns || tensor.dims.size() != 4) return;
  const Symbol* last = c.scope.find(tensor.dims[3]);
  const std::optional<int64_t> width =
      last && last->category == Category::param && last->range.lo == last->range.hi
          ? std::optional(last->range.lo)
          : std::nullopt;
  const bool fits = c.stmt.op == Op::tma_store ? width && *width <= *columns : width == columns;
  if (!fits)
    c.broken(
         "C2", c.stmt.span,
         fmt::format("`{}` has {} columns, `{}` has {}", tensor.name,
                     width ? std::to_string(*width) : "no constant number of", tile.name, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
  const MovedTensor here{&c.stmt, *rows, *columns, ctas, page};
  const auto [first, fresh] = c.facts.moved.insert({tensor.name, here});
  const MovedTensor& one = first->second;
  if (!fresh && box(one) != box(here))
    c.broken(
         "C3", c.stmt.span,
         fmt::format("`{}` moves in {} here, in {} elsewhere", tensor.name, box(here), box(one)))
        .notes.push_back({"elsewhere is here", one.stmt->span});
}

// A tile of wider rows, which the copy engine moves 64 columns at a time.
void part_fits(Check& c, const Symbol& tensor, const Symbol& tile) {
  const std::optional<int64_t> rows = c.extent(&tile, 0), columns = c.extent(&tile, 1);
  if (!rows || !columns) return;
  if (*columns % 64 != 0)
    c.broken("C2", c.stmt.span,
             fmt::format("`{}` has {} columns, panels have 64", tile.name, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
  const MovedTensor here{&c.stmt, *rows, kPartOfRows, 1};
  const auto [first, fresh] = c.facts.moved.insert({tensor.name, here});
  const MovedTensor& one = first->second;
  if (!fresh && box(one) != box(here))
    c.broken(
         "C3", c.stmt.span,
         fmt::format("`{}` moves in {} here, in {} elsewhere", tensor.name, box(here), box(one)))
        .notes.push_back({"elsewhere is here", one.stmt->span});
}

std::string use_of(const ExprPtr& e) { return e->kind == ExprKind::index ? print(e->args[1]) : ""; }

// The last wait or wait_free of this use before the statement among those that precede it in its
// blocks.
const Stmt* waited_before(const Check& c, Op op, const std::string& use) {
  const Stmt* inner = &c.stmt;
  for (auto block = c.parents.rbegin(); block != c.parents.rend(); ++block) {
    const Stmt* found = nullptr;
    for (const Stmt& s : (*block)->body) {
      if (&s == inner) break;
      if (s.op == op && use_of(s.barrier()) == use) found = &s;
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

// A slot is filled at the use at which it arrives, where a barrier of as many slots tells of it,
// and when it is free. `same` and `free`: the labels. Gives the wait_free, or null.
const Stmt* fills_when_free(Check& c, const Symbol& ring, const char* same, const char* free) {
  const Symbol& bar = *c.find(c.stmt.barrier());
  const std::string use = use_of(c.stmt.dst()), arrival = use_of(c.stmt.barrier());
  const std::optional<int64_t> slots = c.constant(ring.count), length = c.constant(bar.count);
  const bool counts = ring.category != Category::tile;  // else C1 has said it
  if (counts && slots && length && *slots != *length)
    c.broken(same, c.stmt.barrier()->span,
             fmt::format("`{}` has {} slots, `{}` has {}", ring.name, *slots, bar.name, *length));
  if (counts && use != arrival)
    c.broken(same, c.stmt.barrier()->span,
             fmt::format("use `{}` of `{}` arrives at use `{}` of `{}`", use, ring.name, arrival,
                         bar.name));
  const Stmt* freed = waited_before(c, Op::wait_free, use);
  if (!freed)
    c.broken(free, c.stmt.span,
             fmt::format("nothing waits until slot `{}` of `{}` is free", use, ring.name))
        .hint = "put a wait_free of its barrier before the copy";
  return freed;
}

// Who runs the copy, the last of its laws; and the arrival that it brings.
void by_the_producer(Check& c, const char* label) {
  if (!c.inside(Op::warpgroup) || !c.inside(Op::thread))
    c.broken(label, c.stmt.span, "the copy stands outside a thread of the producer");
  note_copy(c);
}

// C1 to C7, alike for tma_load, tma_load_pages, tma_load_tile and tma_load_multicast. Gives the
// barrier that the thread has waited at for the slot, or null.
const Symbol* fills_slot(Check& c, int64_t ctas, int64_t page = 0) {
  const Symbol &tensor = *c.find(c.stmt.tensor()), &tile = *c.find(c.stmt.dst()),
               &bar = *c.find(c.stmt.barrier());
  if (tensor.written)
    c.broken("C1", c.stmt.tensor()->span, fmt::format("`{}` is an `out` tensor", tensor.name))
        .notes.push_back({"declared here", tensor.span});
  if (tile.category != Category::ring)
    c.broken("C1", c.stmt.dst()->span,
             fmt::format("`{}` is not a ring: it has no uses to count", tile.name));
  if (c.stmt.op == Op::tma_load_tile)
    part_fits(c, tensor, tile);
  else
    box_fits(c, tensor, tile, ctas, page);
  const Stmt* freed = fills_when_free(c, tile, "C4", "C5");
  const Symbol* barrier = freed ? c.find(freed->barrier()) : nullptr;
  if (freed) c.facts.freed_by[tile.name] = barrier ? barrier->name : "";
  c.facts.fills[bar.name] = tile.name;
  static constexpr std::string_view hints[] = {"evict_first", "evict_normal", "evict_last"};
  if (std::find(std::begin(hints), std::end(hints), c.stmt.hint()) == std::end(hints))
    c.broken(
        "C6", c.stmt.items(Hole::hint)[0].span,
        fmt::format("`{}` is not a cache hint; the hints are evict_first, evict_normal, evict_last",
                    c.stmt.hint()));
  by_the_producer(c, "C7");
  return barrier;
}

}  // namespace

void law_tma_load(Check& c) { fills_slot(c, 1); }

void law_tma_load_tile(Check& c) { fills_slot(c, 1); }

namespace {
// The tensor has a dimension of pages where others have the batch, and one of a page's rows.
void pages_fit(Check& c) {
  const Symbol &tensor = *c.find(c.stmt.tensor()), &tile = *c.find(c.stmt.dst());
  const std::optional<int64_t> page = c.constant(c.stmt.rows()), rows = c.extent(&tile, 0);
  const Symbol* own = tensor.dims.size() == 4 ? c.scope.find(tensor.dims[2]) : nullptr;
  const bool is_param = own && own->category == Category::param && own->range.lo == own->range.hi;
  if (!page || !rows || *rows < 1) return;  // ring.C1
  if (!is_param || own->range.lo != *page)
    c.broken("C8", c.stmt.span,
             fmt::format("`{}` has {} rows in a page, the copy says {}", tensor.name,
                         is_param ? std::to_string(own->range.lo) : "no constant number of", *page))
        .notes.push_back({fmt::format("`{}` is declared here", tensor.name), tensor.span});
  else if (*page < 8 || *page % 8 != 0 || (*rows % *page != 0 && *page % *rows != 0))
    c.broken(
        "C8", c.stmt.span,
        fmt::format(
            "pages of {} rows neither make up tiles of {} nor are made up of them in groups of 8",
            *page, *rows));
  else if (const int64_t at_once = c.constant(c.stmt.count()).value_or(0),
           pages = std::max<int64_t>(*rows / *page, 1);
           at_once < 1 || pages % at_once != 0)
    c.broken("C10", c.stmt.span,
             fmt::format("{} pages are looked up at once, a tile has {}", at_once, pages));
}
}  // namespace
void law_tma_load_pages(Check& c) {
  fills_slot(c, 1, c.constant(c.stmt.rows()).value_or(0));
  if (c.find(c.stmt.tensor())->scratch)
    another_tensor_is_due(c, "C1", c.stmt.tensor(), *c.find(c.stmt.tensor()));
  pages_fit(c);
  const Symbol& table = *c.find(c.stmt.table());
  if (table.written || table.scratch || table.element != "i32" || table.dims.size() != 2)
    another_tensor_is_due(c, "C9", c.stmt.table(), table);
}

namespace {
// One value a row, from what a pre-pass has written.
void values_are_read(Check& c) {
  const Symbol& tensor = *c.find(c.stmt.tensor());
  if (!tensor.scratch || tensor.element != "f32" || tensor.dims.size() != 3)
    another_tensor_is_due(c, "C1", c.stmt.tensor(), tensor);
  c.facts.values_loaded.emplace(tensor.name, &c.stmt);
}
}  // namespace
void law_tma_load_rows(Check& c) {
  values_are_read(c);
  fills_when_free(c, *c.find(c.stmt.dst()), "C2", "C3");
  by_the_producer(c, "C4");
}

void law_tma_load_multicast(Check& c) {
  const int64_t ctas = c.constant(c.stmt.ctas()).value_or(1);
  const Symbol* freed = fills_slot(c, ctas);
  const Symbol& tile = *c.find(c.stmt.dst());
  if (freed && freed->category == Category::barrier && !freed->ctas)
    c.broken("C8", c.stmt.span,
             fmt::format("slots of `{}` are filled in every CTA, `{}` tells of this one alone",
                         tile.name, freed->name))
        .notes.push_back({fmt::format("`{}` is declared here", freed->name), freed->span});
  note_ctas(c, "C9");
  const std::optional<int64_t> rows = c.extent(&tile, 0), columns = c.extent(&tile, 1);
  if (ctas < 1 || !rows || !columns) return;  // cluster.C1
  const int64_t panel = panel_columns(*columns);
  if (*columns % panel != 0) return;  // ring.C1
  if (!multicast_box({*rows, *columns}, ctas))
    c.broken("C10", c.stmt.span,
             fmt::format("a tile of {} x {} has no {} equal parts: {} panels, and groups of 8 rows",
                         *rows, *columns, ctas, *columns / panel));
}

namespace {
// The barrier where the thread that stores a tile gives it back: it arrives there behind the copy,
// in the same block or one around it.
void note_giving_back(Check& c, const std::string& tile) {
  const Stmt* inner = &c.stmt;
  for (auto block = c.parents.rbegin(); block != c.parents.rend(); ++block) {
    bool behind = false;
    for (const Stmt& s : (*block)->body) {
      if (behind && s.op == Op::arrive)
        if (const Symbol* barrier = c.find(s.barrier())) {
          c.facts.freed_by.emplace(tile, barrier->name);
          return;
        }
      behind |= &s == inner;
    }
    if ((*block)->op == Op::thread) return;
    inner = *block;
  }
}

// Whether one thread alone runs it, and not one of the warpgroups that multiply where only the
// loader's may. `verb`: what it does, "store".
bool one_thread_does_it(Check& c, const char* label, const char* verb, bool loader) {
  if (c.inside(Op::thread) && (!loader || c.inside(Op::warpgroup))) return true;
  c.broken(label, c.stmt.span,
           c.inside(Op::thread) ? fmt::format("a thread of the warpgroups that multiply {}s", verb)
                                : fmt::format("every thread of a warpgroup would {}", verb));
  return false;
}

// C4 of a thread of the loader that copies a tile out: the warpgroups hand it over at the barrier
// where the thread has waited for this use.
void is_handed_over(Check& c, const Symbol& tile) {
  const std::string use = use_of(c.stmt.src());
  const Stmt* waited = waited_before(c, Op::wait, use);
  if (!waited)
    c.broken("C4", c.stmt.span,
             fmt::format("nothing waits until use `{}` of `{}` is complete", use, tile.name))
        .hint = "put a wait for the barrier where the warpgroups arrive before the copy";
  else if (const Symbol* barrier = c.find(waited->barrier()))
    c.facts.hands_over[barrier->name].push_back(&c.stmt);
}

void stored_by_thread(Check& c) {
  const Symbol &tensor = *c.find(c.stmt.tensor()), &tile = *c.find(c.stmt.src());
  const bool part = c.stmt.op == Op::tma_store_tile, leaves = tensor.scratch && !part;
  if (!tensor.written && !leaves)
    c.broken("C1", c.stmt.tensor()->span,
             fmt::format("`{}` is {} `{}` tensor", tensor.name, tensor.scratch ? "a" : "an",
                         word_of_access(tensor)))
        .notes.push_back({"declared here", tensor.span});
  if (leaves) c.facts.left.emplace(tensor.name, &c.stmt);
  if (part)
    part_fits(c, tensor, tile);
  else
    box_fits(c, tensor, tile);
  c.facts.stored.insert(tile.name);
  if (!one_thread_does_it(c, "C6", "store", part)) return;
  if (!c.inside(Op::warpgroup)) return;  // flow.cpp
  is_handed_over(c, tile);
  if (part) note_giving_back(c, tile.name);
}
}  // namespace
void law_tma_store(Check& c) { stored_by_thread(c); }
void law_tma_store_tile(Check& c) { stored_by_thread(c); }

namespace {
// With each number below `count` in the place of a name.
std::vector<ExprPtr> for_each_number(const std::vector<ExprPtr>& all, std::string_view name,
                                     int64_t count) {
  std::vector<ExprPtr> out;
  for (const ExprPtr& e : all)
    for (int64_t n = 0; n < count; ++n)
      out.push_back(
          rewrite(e, [&](const ExprPtr& x) { return x->is_name(name) ? integer(n) : ExprPtr(); }));
  return out;
}
}  // namespace

void note_columns_added(Check& c, const Symbol& tile) {
  std::vector<ExprPtr> all = {c.stmt.column()};
  if (c.facts.cluster) all = for_each_number(all, c.facts.cluster->rank(), c.facts.ctas);
  if (const Stmt* loop = c.parents.empty() ? nullptr : c.parents.back();
      loop && loop->op == Op::range)
    if (const auto turns = c.constant(loop->end()))
      all = for_each_number(all, loop->index(), *turns);
  const std::optional<int64_t> columns = c.extent(&tile, 1);
  for (const ExprPtr& column : all) {
    const std::optional<int64_t> first = c.constant(column);
    c.facts.columns_added[&c.stmt].push_back(
        first && columns ? std::optional(std::pair(*first, *first + *columns)) : std::nullopt);
  }
}

// Who adds a tile waits for it and gives it back as one that stores does.
void law_tma_add(Check& c) {
  const Symbol &tensor = *c.find(c.stmt.tensor()), &tile = *c.find(c.stmt.src());
  const bool numbers = tensor.element == "f32" || tensor.element == "element";
  const bool sums =
      tensor.scratch && numbers && tensor.category == Category::tensor && tensor.dims.size() == 4;
  if (!sums || tile.element != tensor.element || tile.category != Category::ring)
    c.broken("C1", c.stmt.span,
             fmt::format("`{}` is {} of {}, `{}` is `{} {}`", tile.name, word(tile.category),
                         tile.element, tensor.name, word_of_access(tensor), tensor.element))
        .notes.push_back({fmt::format("`{}` is declared here", tensor.name), tensor.span});
  c.facts.stored.insert(tile.name);
  c.facts.sums_added.emplace(tensor.name, &c.stmt);
  note_columns_added(c, tile);
  if (!one_thread_does_it(c, "C3", "add", true)) return;
  is_handed_over(c, tile);
  note_giving_back(c, tile.name);
}

// What comes is told of as by a tma_load. When the slots are free in both CTAs is told by a barrier
// of both, of which the schedules reading knows.
void law_tma_send(Check& c) {
  const Symbol &from = *c.find(c.stmt.src()), &to = *c.find(c.stmt.dst()),
               &bar = *c.find(c.stmt.barrier());
  const auto slot = [](const Symbol& tile) {
    return fmt::format("`{}` is {} of {}", tile.name, word(tile.category), tile.element);
  };
  bool alike = from.category == Category::ring && to.category == Category::ring &&
               from.element == to.element && from.name != to.name;
  for (const size_t axis : {0, 1}) alike = alike && c.extent(&from, axis) == c.extent(&to, axis);
  if (!alike)
    c.broken("C1", c.stmt.span, slot(from) + ", " + slot(to))
        .notes.push_back({fmt::format("`{}` is declared here", to.name), to.span});
  if (c.facts.ctas != 2)
    c.broken("C1", c.stmt.span, fmt::format("a cluster has {} CTAs here", c.facts.ctas));
  const std::optional<int64_t> slots = c.constant(to.count), length = c.constant(bar.count);
  if (use_of(c.stmt.dst()) != use_of(c.stmt.barrier()) || slots != length)
    c.broken("C2", c.stmt.barrier()->span,
             fmt::format("use `{}` of `{}` arrives at use `{}` of `{}`", use_of(c.stmt.dst()),
                         to.name, use_of(c.stmt.barrier()), bar.name));
  c.facts.fills[bar.name] = to.name;
  if (!one_thread_does_it(c, "C3", "send", true)) return;
  is_handed_over(c, from);
  note_copy(c);
}

namespace {
void moved_by_warpgroups(Check& c, const Symbol& tensor, bool out,
                         const std::string& type = "element") {
  const bool leaves = c.stmt.op == Op::copy_out && tensor.scratch;  // for a pass behind the kernel
  if (leaves) c.facts.left.emplace(tensor.name, &c.stmt);
  if ((tensor.written != out && !leaves) || tensor.element != type || tensor.dims.size() != 4)
    another_tensor_is_due(c, "C1", c.stmt.tensor(), tensor);
}
void by_whole_warpgroups(Check& c, const char* how_many = "C3", const char* who = "C4") {
  const std::optional<int64_t> by = c.constant(c.stmt.by());
  if (by && *by != 1 && *by != c.facts.warpgroups())
    c.broken(how_many, c.stmt.by()->span,
             fmt::format("by {} warpgroups: 1 or all {} copy together", *by, c.facts.warpgroups()));
  if (!c.inside(Op::warpgroups_kernel))  // and in no thread: thread.C3
    c.broken(who, c.stmt.span, "not every thread of a warpgroup comes here").hint =
        "in a kernel with a loader, one thread says tma_load or tma_store";
}
void rows_are_as_long(Check& c, const Symbol& tensor, const Symbol& tile) {
  const Symbol* last = tensor.dims.size() == 4 ? c.scope.find(tensor.dims[3]) : nullptr;
  const std::optional<int64_t> columns = c.extent(&tile, 1);
  if (last && columns && (last->range.lo != *columns || last->range.hi != *columns))
    c.broken("C2", c.stmt.span,
             fmt::format("rows of `{}` have `{}` columns, `{}` has {}", tensor.name, last->name,
                         tile.name, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
}
// A tile and the rows of a tensor that it is copied from or to, by whole warpgroups.
void copied_by_warpgroups(Check& c, const Symbol& tensor, const Symbol& tile, bool out) {
  moved_by_warpgroups(c, tensor, out, tile.element);
  rows_are_as_long(c, tensor, tile);
  by_whole_warpgroups(c);
}
void in_warpgroups_kernel(Check& c) {
  if (!c.inside(Op::warpgroups_kernel))
    c.broken(
        "C1", c.stmt.span,
        fmt::format("`{}` stands outside a kernel whose warpgroups are alike", word(c.stmt.op)));
}
}  // namespace

void law_cp_async(Check& c) {
  copied_by_warpgroups(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.dst()), false);
}
void law_cp_async_rows(Check& c) {
  values_are_read(c);
  by_whole_warpgroups(c, "C2", "C3");
}
void law_copy_in(Check& c) {
  copied_by_warpgroups(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.dst()), false);
}
void law_copy_out(Check& c) {
  copied_by_warpgroups(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.src()), true);
}

namespace {
// A tile of a tensor of any width: the tile has whole panels, the tensor what it has.
void tile_of_matrix(Check& c, const Symbol& tensor, const Symbol& tile, bool out) {
  moved_by_warpgroups(c, tensor, out);
  const std::optional<int64_t> columns = c.extent(&tile, 1);
  if (columns && *columns % 64 != 0)
    c.broken("C2", c.stmt.span,
             fmt::format("`{}` has {} columns, panels have 64", tile.name, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
  by_whole_warpgroups(c);
}
}  // namespace
void law_cp_async_tile(Check& c) {
  tile_of_matrix(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.dst()), false);
}
void law_copy_tile_in(Check& c) {
  tile_of_matrix(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.dst()), false);
}
void law_copy_tile_out(Check& c) {
  tile_of_matrix(c, *c.find(c.stmt.tensor()), *c.find(c.stmt.src()), true);
}
void law_cp_async_commit(Check& c) { in_warpgroups_kernel(c); }
void law_cp_async_wait(Check& c) { in_warpgroups_kernel(c); }
void law_sync_block(Check& c) { in_warpgroups_kernel(c); }

void law_upcast(Check& c) {
  const Symbol &from = *c.find(c.stmt.src()), &to = *c.find(c.stmt.dst());
  for (const auto& [tile, hole, due] :
       {std::tuple(&from, Hole::src, "e4m3"), {&to, Hole::dst, "element"}})
    if (tile->element != due)
      c.broken("C1", c.stmt.expr(hole)->span,
               fmt::format("`{}` holds {}, {} is due", tile->name, tile->element, due))
          .notes.push_back({fmt::format("`{}` is declared here", tile->name), tile->span});
  same_shape(c, from, to);
  by_whole_warpgroups(c);
}

void law_load(Check& c) { same_shape(c, *c.find(c.stmt.src()), *c.find(c.stmt.dst())); }

namespace {
// Whole panels of a tile that has more columns.
void stores_panels(Check& c, const Symbol& from, const Symbol& to) {
  const std::optional<int64_t> width = c.extent(&from, 1), room = c.extent(&to, 1);
  if (!width || !room || *width >= *room) return same_shape(c, from, to);
  const std::optional<int64_t> rows = c.extent(&from, 0), places = c.extent(&to, 0);
  if (rows && places && *rows != *places)
    c.broken(
         "C2", c.stmt.span,
         fmt::format("rows of `{}` ({}) and `{}` ({}) differ", from.name, *rows, to.name, *places))
        .notes.push_back({fmt::format("`{}` is declared here", to.name), to.span});
  const int64_t panel = panel_columns(*room);
  if (*width % panel != 0)
    c.broken(
         "C2", c.stmt.span,
         fmt::format("`{}` has {} columns, `{}` panels of {}", from.name, *width, to.name, panel))
        .notes.push_back({fmt::format("`{}` is declared here", to.name), to.span});
}
}  // namespace

void law_store(Check& c) { stores_panels(c, *c.find(c.stmt.src()), *c.find(c.stmt.dst())); }
// Whether the columns begin at a panel and end inside, running it tells.
void law_store_columns(Check& c) { stores_panels(c, *c.find(c.stmt.src()), *c.find(c.stmt.dst())); }

void law_store_transposed(Check& c) {
  const Symbol &from = *c.find(c.stmt.src()), &to = *c.find(c.stmt.dst());
  for (const size_t axis : {0, 1}) {
    const std::optional<int64_t> x = c.extent(&from, axis), y = c.extent(&to, 1 - axis);
    if (x && y && *x != *y)
      c.broken("C2", c.stmt.span,
               fmt::format("{} of `{}` ({}) and {} of `{}` ({}) differ", axis ? "columns" : "rows",
                           from.name, *x, axis ? "rows" : "columns", to.name, *y))
          .notes.push_back({fmt::format("`{}` is declared here", to.name), to.span});
  }
  c.facts.transposed.emplace(to.name, &c.stmt);
}

namespace {
void a_value_a_column(Check& c) {
  const Symbol &from = *c.find(c.stmt.src()), &to = *c.find(c.stmt.dst());
  const std::optional<int64_t> has = c.extent(&from, 0), due = c.extent(&to, 1);
  if (has && due && *has != *due)
    c.broken("C2", c.stmt.span,
             fmt::format("a slot of `{}` has {} values, `{}` {} columns", from.name, *has, to.name,
                         *due))
        .notes.push_back({fmt::format("`{}` is declared here", from.name), from.span});
}
}  // namespace

void law_fill_columns(Check& c) { a_value_a_column(c); }
void law_add_columns(Check& c) { a_value_a_column(c); }
void law_scale_columns(Check& c) { a_value_a_column(c); }

namespace {
void same_rows(Check& c, const Symbol& vector, const Symbol& ring) {
  const std::optional<int64_t> has = c.extent(&vector, 0), due = c.extent(&ring, 0);
  if (has && due && *has != *due)
    c.broken("C2", c.stmt.span,
             fmt::format("`{}` has {} rows, a slot of `{}` {}", vector.name, *has, ring.name, *due))
        .notes.push_back({fmt::format("`{}` is declared here", ring.name), ring.span});
}
}  // namespace
void law_put_rows(Check& c) { same_rows(c, *c.find(c.stmt.src()), *c.find(c.stmt.dst())); }
void law_get_rows(Check& c) { same_rows(c, *c.find(c.stmt.dst()), *c.find(c.stmt.src())); }

namespace {
// Results: of the kernel, or of a part of it, which a pass behind it combines.
bool takes_results(const Check& c, const Symbol& tensor, size_t dimensions) {
  if (tensor.scratch) c.facts.parts_left.emplace(tensor.name, &c.stmt);
  return (tensor.written || tensor.scratch) && tensor.element == "f32" &&
         tensor.dims.size() == dimensions && tensor.category == Category::tensor;
}
}  // namespace

void law_store_rows(Check& c) {
  const Symbol& tensor = *c.find(c.stmt.tensor());
  if (!takes_results(c, tensor, 3)) another_tensor_is_due(c, "C1", c.stmt.tensor(), tensor);
}

void law_store_accumulator(Check& c) {
  const Symbol& tensor = *c.find(c.stmt.tensor());
  if (!takes_results(c, tensor, 4)) return another_tensor_is_due(c, "C1", c.stmt.tensor(), tensor);
  rows_are_as_long(c, tensor, *c.find(c.stmt.src()));
}

void law_copy(Check& c) {
  if (!c.inside(Op::plan))
    c.broken("C1", c.stmt.span, "a copy without its schedule stands outside a plan").hint =
        "a kernel says tma_load, load, store or tma_store";
}

}  // namespace kw::tl
