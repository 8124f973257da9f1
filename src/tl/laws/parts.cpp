// Sums of rows in parts: what warpgroups leave in a scratch, a pass behind the kernel adds up. Each
// half is judged by itself, and that the other half is there at the end of the module. Likewise of
// sums that CTAs add up in a scratch, tile by tile or row by row.
#include "tl/laws/laws_check.h"

namespace kw::tl {

void law_after(Check& c) {
  launcher_computes(c, "C4", c.stmt.count(), "the number of blocks");
  const std::optional<int64_t> threads = c.constant(c.stmt.threads());
  if (!threads || *threads % 32 || *threads < 32 || *threads > 1024)
    c.broken("C1", c.stmt.threads()->span,
             threads ? fmt::format("{} threads: not 1 to 32 warps of 32", *threads)
                     : "the number of threads is not constant");
  for (const Stmt& s : c.stmt.body)
    if (s.op != Op::add_parts && s.op != Op::combine_parts && s.op != Op::round_sums &&
        s.op != Op::sum_over && s.op != Op::sum_tiles)
      c.broken("C2", s.span, fmt::format("`{}` stands where parts are added up", word(s.op)));
  if (c.facts.after)
    c.broken("C3", c.stmt.span, "a second pass behind the kernel")
        .notes.push_back({"the first is here", c.facts.after->span});
  else if (!c.facts.threads)
    c.broken("C3", c.stmt.span, "the pass stands before the kernel");
  if (c.facts.rows_behind)
    c.broken("C3", c.stmt.span, "the pass stands behind one over rows")
        .notes.push_back({"which is here", c.facts.rows_behind->span});
  c.facts.after = &c.stmt;
}

void law_store_part(Check& c) {
  if (!c.warpgroups_block())
    c.broken("C2", c.stmt.span, "parts are stored outside the warpgroups block");
  if (const Symbol* parts = c.find(c.stmt.scratch()))
    c.facts.parts_stored.emplace(parts->name, &c.stmt);
}

void law_add_parts(Check& c) {
  const Symbol* tensor = c.find(c.stmt.tensor());
  if (tensor && (!tensor->written || tensor->element != "f32" || tensor->dims.size() != 3))
    another_tensor_is_due(c, "C1", c.stmt.tensor(), *tensor);
  if (!c.inside(Op::after))
    c.broken("C2", c.stmt.span, "parts are added up outside a pass behind the kernel");
  if (const Symbol* parts = c.find(c.stmt.scratch()))
    c.facts.parts_added.emplace(parts->name, &c.stmt);
}

void law_round_sums(Check& c) {
  const Symbol *sums = c.find(c.stmt.src()), *tensor = c.find(c.stmt.tensor());
  if (sums && (!sums->scratch || sums->element != "f32" || sums->dims.size() != 4))
    another_tensor_is_due(c, "C1", c.stmt.src(), *sums);
  const bool takes = tensor && (tensor->written || tensor->scratch) &&
                     tensor->element == "element" && tensor->dims.size() == 4;
  if (tensor && !takes) another_tensor_is_due(c, "C2", c.stmt.tensor(), *tensor);
  if (takes && tensor->scratch) c.facts.left.emplace(tensor->name, &c.stmt);
  if (!c.inside(Op::after))
    c.broken("C3", c.stmt.span, "sums are rounded outside a pass behind the kernel");
  if (sums) c.facts.sums_rounded.emplace(sums->name, &c.stmt);
}

namespace {
bool has_values(const Symbol& t) { return t.scratch && t.element == "f32" && t.dims.size() == 3; }
// Whether `some` are dimensions of `all`, in their order.
bool are_among(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  size_t found = 0;
  for (const std::string& dim : all) found += found < some.size() && some[found] == dim;
  return found == some.size();
}

void has_other_dimensions(Check& c, const Symbol& to, const Symbol& from) {
  c.broken("C2", c.stmt.tensor()->span,
           fmt::format("`{}` has dimensions {}, `{}` has {}", to.name, fmt::join(to.dims, ", "),
                       from.name, fmt::join(from.dims, ", ")))
      .notes.push_back({fmt::format("`{}` is declared here", to.name), to.span});
}

void adds_values(Check& c, const char* what) {
  const Symbol* tensor = c.find(c.stmt.tensor());
  if (tensor && !has_values(*tensor)) another_tensor_is_due(c, "C1", c.stmt.tensor(), *tensor);
  if (!c.warpgroups_block())
    c.broken("C2", c.stmt.span, fmt::format("{} are added outside the warpgroups block", what));
  if (tensor) c.facts.values_added.emplace(tensor->name, &c.stmt);
}
}  // namespace

void law_add_tile(Check& c) {
  const Symbol &tile = *c.find(c.stmt.src()), &tensor = *c.find(c.stmt.tensor());
  const bool sums = tensor.scratch && tensor.element == "f32" && tensor.dims.size() == 4 &&
                    tensor.category == Category::tensor;
  if (!sums) another_tensor_is_due(c, "C1", c.stmt.tensor(), tensor);
  const std::optional<int64_t> rows = c.extent(&tile, 0), columns = c.extent(&tile, 1);
  if (rows && columns && (*rows != 64 || (*columns % 64 && *columns != 32)))
    c.broken("C1", c.stmt.src()->span,
             fmt::format("`{}` has {} rows and {} columns", tile.name, *rows, *columns))
        .notes.push_back({fmt::format("`{}` is declared here", tile.name), tile.span});
  if (!c.warpgroups_block())
    c.broken("C2", c.stmt.span, "a tile is added outside the warpgroups block");
  note_columns_added(c, tile);
  c.facts.sums_added.emplace(tensor.name, &c.stmt);
}
void law_add_rows(Check& c) { adds_values(c, "totals"); }
void law_add_each(Check& c) { adds_values(c, "elements"); }
void law_add_diagonals(Check& c) { adds_values(c, "elements"); }

void law_sum_over(Check& c) {
  const Symbol *from = c.find(c.stmt.src()), *to = c.find(c.stmt.tensor());
  if (from && !has_values(*from)) another_tensor_is_due(c, "C1", c.stmt.src(), *from);
  if (to && (!to->written || (to->element != "f32" && to->element != "element")))
    another_tensor_is_due(c, "C2", c.stmt.tensor(), *to);
  else if (from && to && !are_among(to->dims, from->dims))
    has_other_dimensions(c, *to, *from);
  if (!c.inside(Op::after))
    c.broken("C3", c.stmt.span, "values are summed outside a pass behind the kernel");
  if (from) c.facts.summed_over.emplace(from->name, &c.stmt);
}

void law_sum_tiles(Check& c) {
  const Symbol *from = c.find(c.stmt.src()), *to = c.find(c.stmt.tensor());
  if (from && (!from->scratch || from->element != "element" || from->dims.size() != 4))
    another_tensor_is_due(c, "C1", c.stmt.src(), *from);
  const bool takes = to && to->written && to->dims.size() >= 2 &&
                     (to->element == "f32" || to->element == "element");
  if (to && !takes) another_tensor_is_due(c, "C2", c.stmt.tensor(), *to);
  if (takes && from && from->dims.size() == 4 &&
      !are_among({to->dims.begin(), to->dims.end() - 2}, {from->dims[0], from->dims[1]}))
    has_other_dimensions(c, *to, *from);
  if (!c.inside(Op::after))
    c.broken("C3", c.stmt.span, "tiles are summed outside a pass behind the kernel");
  if (from) c.facts.tiles_summed.emplace(from->name, &c.stmt);
}

void judge_parts(const Facts& facts, Diagnostics& diagnostics) {
  if (facts.incomplete) return;
  const auto report = [&](const std::string& code, const Stmt& s, std::string message) {
    Diagnostic& d = diagnostics.error(code, s.span, std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
  };
  for (const auto& [name, s] : facts.parts_stored)
    if (!facts.parts_added.count(name))
      report("store_part.C3", *s, fmt::format("nothing adds up the parts in `{}`", name));
  for (const auto& [name, s] : facts.parts_added)
    if (!facts.parts_stored.count(name))
      report("add_parts.C3", *s, fmt::format("no `store_part` writes `{}`", name));
  for (const auto& [name, s] : facts.sums_added)
    if (!facts.sums_rounded.count(name) && !facts.tiles_summed.count(name))
      report(s->op == Op::add_tile ? "add_tile.C3" : "tma_add.C2", *s,
             fmt::format("nothing makes a tensor of the sums in `{}`", name));
  for (const auto& [name, s] : facts.tiles_summed)
    if (!facts.sums_added.count(name))
      report("sum_tiles.C4", *s, fmt::format("no `tma_add` adds to `{}`", name));
  for (const auto& [name, s] : facts.sums_rounded)
    if (!facts.sums_added.count(name))
      report("round_sums.C4", *s, fmt::format("no `tma_add` or `add_tile` adds to `{}`", name));
  for (const auto& [name, s] : facts.values_added) {
    const std::string op(word(s->op));
    if (!facts.summed_over.count(name))
      report(op + ".C3", *s, fmt::format("nothing sums `{}` behind the kernel", name));
    if (const auto read = facts.values_loaded.find(name); read != facts.values_loaded.end())
      report(op + ".C4", *s, fmt::format("`{}` reads `{}`", word(read->second->op), name));
  }
  for (const auto& [name, s] : facts.summed_over)
    if (!facts.values_added.count(name) && !facts.values_written.count(name))
      report("sum_over.C4", *s,
             fmt::format("no warpgroup adds to `{0}`, no `write_value` writes `{0}`", name));
}

}  // namespace kw::tl
