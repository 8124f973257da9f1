// Names: declared once, and of the kind that a statement needs.
//
// CUDA writes args.N, shared.k_s and kw::exp2 where TL writes N, k_s and exp2; so a name of the
// module or of the vocabulary belongs to it alone, while locals follow the blocks.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

// What a hole of ops.def wants: the categories that will do, and how to say it.
struct Wanted {
  std::string_view kind;
  std::vector<Category> categories;
  std::string_view text;
};

const Wanted* wanted(std::string_view kind) {
  static const std::vector<Wanted> all = {
      {"tiled", {Category::tiled}, "a tiled tensor"},
      {"tensor", {Category::tensor}, "a tensor"},
      {"filled", {Category::tensor, Category::tiled}, "a tensor"},
      {"workspace", {Category::workspace}, "a workspace"},
      {"scratch", {Category::scratch}, "a scratch"},
      {"queue", {Category::queue}, "a queue"},
      {"shared", {Category::tile, Category::ring}, "a shared tile"},
      {"slot", {Category::row_ring}, "a slot of a row ring"},
      {"barrier", {Category::barrier}, "a barrier"},
      {"accumulator", {Category::accumulator}, "an accumulator"},
      {"operand", {Category::operand}, "an operand"},
      {"left", {Category::operand, Category::tile, Category::ring}, "an operand or a shared tile"},
      {"row", {Category::row}, "a row vector"},
      {"column", {Category::column}, "a column vector"},
      {"diagonal", {Category::diagonal}, "a diagonal vector"},
      {"lane_sum", {Category::lane_sum}, "a lane sum"},
      {"line", {Category::line}, "a line"},
      {"vector", {Category::row, Category::lane_sum}, "a row vector or a lane sum"},
      {"record", {Category::record}, "a record"},
      {"result", {Category::record}, "a record or index"},
      {"step", {Category::step}, "a step"},
  };
  for (const Wanted& w : all)
    if (w.kind == kind) return &w;
  return nullptr;
}

// Whether its slots are used in turn.
bool is_counted(const Symbol& s) {
  return s.category == Category::ring || s.category == Category::row_ring ||
         s.category == Category::barrier;
}

// How many pairs of brackets a use of the symbol has: one for an array, one for a ring.
size_t indices_of(const Symbol& s) { return (s.extent ? 1 : 0) + (is_counted(s) ? 1 : 0); }

// t, t + 1, u: a counter, perhaps with a constant.
bool counts_uses(const Check& c, const ExprPtr& index) {
  if (index->kind == ExprKind::binary && (index->text == "+" || index->text == "-"))
    return counts_uses(c, index->args[0]) && c.constant(index->args[1]);
  const Symbol* s = index->kind == ExprKind::name ? c.scope.find(index->text) : nullptr;
  if (!s || !s->stmt) return false;
  const Op op = s->stmt->op;
  const bool queue =
      op == Op::static_tiles || op == Op::dynamic_tiles || op == Op::dynamic_tiles_warp;
  return op == Op::var || (queue && s->stmt->use() == s->name);
}

}  // namespace

void indices_are_possible(Check& c, const Symbol& s, const ExprPtr& e) {
  if (is_counted(s)) {
    if (!c.inside(Op::warpgroups_kernel) && !counts_uses(c, e->args[1]))
      c.broken_as("uses", "C1", e->args[1]->span,
                  fmt::format("`{}` does not count the uses of `{}`", print(e->args[1]), s.name));
  }
  if (!s.extent) return;
  const Expr* first = e.get();
  while (first->args[0]->kind == ExprKind::index) first = first->args[0].get();
  const std::optional<int64_t> at = c.constant(first->args[1]), count = c.constant(s.extent);
  if (at && count && (*at < 0 || *at >= *count))
    c.broken_as("uses", "C2", first->args[1]->span,
                fmt::format("`{}` is an array of {}, its tile {} is meant", s.name, *count, *at))
        .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
}

namespace {

// q_s[r][u]: every index is one int.
bool indexed_completely(Check& c, const char* label, const Symbol& s, const ExprPtr& e) {
  size_t count = 0;
  for (const Expr* at = e.get(); at->kind == ExprKind::index; at = at->args[0].get(), ++count) {
    const Type type =
        at->args.size() == 2 ? checked_type(c, at->args[1], c.scope) : Type{Type::tile, ""};
    if (type == Type{Type::integer, ""}) continue;
    if (type.kind != Type::unknown)
      c.broken(label, e->span, fmt::format("`{}` takes one int in each pair of brackets", s.name));
    return false;
  }
  if (count == indices_of(s)) {
    if (count) indices_are_possible(c, s, e);
    return true;
  }
  c.broken(label, e->span,
           fmt::format("`{}` has {} indices, {} `{}` needs {}", print(e), count, word(s.category),
                       s.name, indices_of(s)))
      .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
  return false;
}

// Of a shared tile that no product reads: the statements that know it, and tile's law that says so.
struct OwnStatements {
  std::string_view element;
  Op fills, reads;
  const char* label;
};
// Null: those of any tile, or s is none.
const OwnStatements* own_statements(const Symbol& s) {
  static constexpr OwnStatements all[] = {{"e4m3", Op::cp_async, Op::upcast, "C3"},
                                          {"f32", Op::store, Op::tma_add, "C4"}};
  if (s.category != Category::tile && s.category != Category::ring) return nullptr;
  for (const OwnStatements& own : all)
    if (own.element == s.element) return &own;
  return nullptr;
}

bool is_of_kind(Check& c, const Wanted& want, const Item& item) {
  const std::string name = item.expr ? print(item.expr) : item.name;
  const Span span = item.expr ? item.expr->span : item.span;
  const Symbol* s = item.expr ? c.find(item.expr) : c.find(item);
  if (!s) {
    c.broken_as("names", "C2", span, fmt::format("`{}` is not declared here", name));
    return false;
  }
  const auto& ok = want.categories;
  if (holds_data(*s) && c.stmt.op != Op::set_tile) {
    data_is_for_maps(c, *s, span);
    return false;
  }
  const OwnStatements* own = own_statements(*s);
  if (own && c.stmt.op != own->fills && c.stmt.op != own->reads) {
    tile_is_for_its_own(c, *s, span);
    return false;
  }
  const bool of_ints = s->category == Category::row && s->element == "i32";
  if (of_ints && c.stmt.op != Op::set_rows) {
    c.broken_as("row", "C3", span,
                fmt::format("`{}` holds ints: only set_rows and maps know them", s->name))
        .notes.push_back({fmt::format("`{}` is declared here", s->name), s->span});
    return false;
  }
  if (std::find(ok.begin(), ok.end(), s->category) != ok.end())
    return !item.expr || indexed_completely(c, "C1", *s, item.expr);
  Diagnostic& d = c.broken(
      "C1", span, fmt::format("{} is due here, `{}` is {}", want.text, s->name, word(s->category)));
  if (s->span.known()) d.notes.push_back({fmt::format("`{}` is declared here", s->name), s->span});
  if ((want.kind == "operand" || want.kind == "left") && s->category == Category::accumulator)
    d.hint = fmt::format("convert it first: declare an operand p and write `to_operand p = {}`",
                         s->name);
  return false;
}

// Names that CUDA needs beside those of TL.
bool is_reserved(std::string_view name) {
  static constexpr std::string_view reserved[] = {"args", "shared", "warpgroup", "kw", "element"};
  return std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved) ||
         find_function(name) || find_constant(name);
}

}  // namespace

bool holds_data(const Symbol& s) {
  return s.category == Category::operand &&
         (s.element == "bf16" || s.element == "f16" || s.element == "bool");
}

void data_is_for_maps(Check& c, const Symbol& s, Span span) {
  c.broken_as("operand", "C4", span,
              fmt::format("`{}` holds {}: only set_tile and maps know it", s.name, s.element))
      .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
}

bool has_own_statements(const Symbol& s) { return own_statements(s) != nullptr; }

void tile_is_for_its_own(Check& c, const Symbol& s, Span span) {
  const OwnStatements& own = *own_statements(s);
  c.broken_as("tile", own.label, span,
              fmt::format("`{}` holds {}: {} fills it, {} reads it", s.name, own.element,
                          word(own.fills), word(own.reads)))
      .notes.push_back({fmt::format("`{}` is declared here", s.name), s.span});
}

bool operands_are_right(Check& c) {
  std::map<Hole, std::string> kinds;
  for (const Part& p : row(c.stmt.op).tl.parts)
    if (p.hole()) kinds.emplace(p.name, p.kind);
  bool right = true;
  for (const Field& f : c.stmt.fields) {
    const Wanted* want = wanted(kinds[f.hole]);
    if (!want) continue;
    for (const Item& item : f.items)
      if (want->kind != "result" || item.name != "index")
        right = is_of_kind(c, *want, item) && right;
  }
  return right;
}

void names_are_unique(Check& c, const Scope& block, size_t before) {
  const Scope* module = &block;
  while (module->outer()) module = module->outer();
  const std::vector<Symbol>& symbols = block.symbols();
  for (size_t n = before; n < symbols.size(); ++n) {
    const Symbol& s = symbols[n];
    const auto same = [&](const Symbol& other) { return other.name == s.name; };
    const auto here = std::find_if(symbols.begin(), symbols.begin() + n, same);
    const Symbol* earlier = here == symbols.begin() + n ? nullptr : &*here;
    const Symbol* taken = module == &block ? earlier : module->find_here(s.name);
    if (is_reserved(s.name)) {
      c.broken_as(
          "names", "C1", s.span,
          fmt::format("`{}` belongs to the language: nothing else can be called so", s.name));
    } else if (taken) {
      c.broken_as("names", "C1", s.span,
                  fmt::format("`{}` is the name of {} already", s.name, word(taken->category)))
          .notes.push_back({fmt::format("`{}` is declared here", s.name), taken->span});
    } else if (earlier) {
      c.broken_as("names", "C3", s.span, fmt::format("this block declares `{}` already", s.name))
          .notes.push_back({fmt::format("`{}` is declared here", s.name), earlier->span});
    }
  }
}

}  // namespace kw::tl
