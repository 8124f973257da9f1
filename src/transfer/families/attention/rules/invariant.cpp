// What is one value in every tile of scores is computed before the map, not for every score.
//
//   if partial:                                      ->   if partial:
//       map_at s[i, j] from (i0, n * BN) =                  let table_here = table[c.b, c.h,
//           where(table[c.b, c.h, i // 128,                     min(i0, M - 1) // 128,
//                       j // 128] and j < i + 1,                n * BN // 128]
//                 s[i, j], -inf)                            map_at s[i, j] from (i0, n * BN) =
//                                                               where(j < where(table_here, i + 1,
//                                                                     0), s[i, j], -inf)
//
// When     a part of a map of the scores by integer coordinates mentions i or j, no element of the
//          tile, and has one value in each tile (one_value.h): a block of the tile's size or a
//          multiple, a comparison with a bound on such a place. The largest such parts are taken.
//          What the rows of a tile say alone is computed where the block of the output begins, if
//          the map is under no condition.
//          What reads is read at a row that exists: rows past the end may be all that a tile has.
//          Where the map decides whether to read at all (an arm of where, the right of `and`), the
//          read's indices are brought into the tensor, as a map brings them. What of a mask's
//          conjuncts is one value becomes a part of its bound, where it has one: one comparison for
//          each score.
// Why      a thread would read one element for each of its 64 scores and bring each index into its
//          tensor, which takes so many registers that tiles of 128 keys cannot be had.
// Effect   none: the same operations on the same numbers.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/one_value.h"

namespace kw::transfer {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

bool reads(const ExprPtr& e, const tl::Program& program) {
  return tensor_read(*e, program) ||
         std::any_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return reads(a, program); });
}

// Indices of coordinates as a map has them: outside of a dimension, that of an element inside.
ExprPtr within_tensors(const ExprPtr& e, const tl::Program& program) {
  tl::Expr out = *e;
  for (ExprPtr& a : out.args) a = within_tensors(a, program);
  if (const Stmt* tensor = tensor_read(*e, program))
    for (size_t n = 1; n < out.args.size(); ++n) {
      if (!has_coordinate(out.args[n])) continue;
      const ExprPtr size = tl::name(tensor->dims().at(n - 1).name);
      out.args[n] = tl::call("min", {tl::call("max", {out.args[n], tl::integer(0)}),
                                     tl::binary("-", size, tl::integer(1))});
    }
  return std::make_shared<const tl::Expr>(std::move(out));
}

bool is_connective(const tl::Expr& e) {
  return e.kind == ExprKind::binary && (e.text == "and" || e.text == "or");
}

// A part of a map's body, and what it is in the tile that begins at the map's origin.
struct Part {
  ExprPtr part, value;
  std::string stem;
};

// The parts of one map, each once.
class Finder {
 public:
  Finder(const Edit& edit, const Stmt& map, const TileValues& values)
      : edit_(edit), map_(map), values_(values) {}

  // `guarded`: the map decides whether e is computed.
  void visit(const ExprPtr& e, bool guarded) {
    if (!has_coordinate(e) || e->args.empty()) return;
    if (is_given(e, edit_.program) && values_.is_one(e)) return add(e, guarded);
    const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
    const bool decides = e->kind == ExprKind::where || is_connective(*e);
    for (size_t n = first; n < e->args.size(); ++n)
      visit(e->args[n], guarded || (decides && n > 0));
  }

  std::vector<Part> parts;

 private:
  const Edit& edit_;
  const Stmt& map_;
  const TileValues& values_;

  void add(const ExprPtr& e, bool guarded) {
    for (const Part& known : parts)
      if (tl::equal(known.part, e)) return;
    const bool read = reads(e, edit_.program);
    const ExprPtr i0 = map_.i0();
    const ExprPtr last = tl::binary("-", tl::name(edit_.facts.queries), tl::integer(1));
    const ExprPtr row = read ? tl::call("min", {i0, last}) : i0;
    const ExprPtr inside = guarded ? within_tensors(e, edit_.program) : e;
    const ExprPtr value = tl::rewrite(inside, [&](const ExprPtr& x) -> ExprPtr {
      return x->is_name("i") ? row : x->is_name("j") ? map_.j0() : nullptr;
    });
    parts.push_back({e, value, stem_of(e)});
  }

  std::string stem_of(const ExprPtr& e) const {
    if (tensor_read(*e, edit_.program)) return e->args[0]->text + "_here";
    return tl::is_comparison(*e) || is_connective(*e) ? "holds_here" : "here";
  }
};

void conjuncts(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (e->kind != ExprKind::binary || e->text != "and") return out.push_back(e);
  for (const ExprPtr& a : e->args) conjuncts(a, out);
}

// `all and one`; `all` is null where nothing came before.
ExprPtr both(const ExprPtr& all, const ExprPtr& one) {
  return all ? tl::binary("and", all, one) : one;
}

// `j < end`, of all keys of a row.
bool is_upper_bound(const ExprPtr& e) {
  return e->kind == ExprKind::binary && e->text == "<" && e->args[0]->is_name("j") &&
         !tl::mentions(e->args[1], "j");
}

// A mask's `one and j < end` as `j < where(one, end, 0)`, for what is one value in every tile: a
// comparison less for each score. j is never negative.
ExprPtr with_one_bound(const ExprPtr& body, const TileValues& values, const tl::Program& program) {
  if (body->kind != ExprKind::where) return body;
  std::vector<ExprPtr> all;
  conjuncts(body->args[0], all);
  const auto bound = std::find_if(all.begin(), all.end(), is_upper_bound);
  if (bound == all.end()) return body;
  ExprPtr one, condition;
  std::vector<ExprPtr> rest;
  for (const ExprPtr& e : all)  // the first is computed always, the others where those before hold
    if (e != *bound && has_coordinate(e) && is_given(e, program) && values.is_one(e))
      one = both(one, e == all.front() ? e : within_tensors(e, program));
    else
      rest.push_back(e);
  if (!one) return body;
  const ExprPtr end = tl::where(one, (*bound)->args[1], tl::integer(0));
  for (const ExprPtr& e : rest)
    condition = both(condition, e == *bound ? tl::binary("<", e->args[0], end) : e);
  return tl::where(condition, body->args[1], body->args[2]);
}

// The map's parts; its body first gets one bound.
std::vector<Part> take_parts(const Edit& edit, Stmt& map) {
  std::vector<Part> parts;
  with_tile_values(edit.program, edit.facts, map, [&](const TileValues& values) {
    ExprPtr& body = map.value();
    body = with_one_bound(body, values, edit.program);
    Finder finder(edit, map, values);
    finder.visit(body, false);
    parts = std::move(finder.parts);
  });
  return parts;
}

// Takes the parts out of the maps of a block of statements and of those in it. `of_block`: lets of
// what is one value in all tiles of a block of the output, which a map that every tile runs needs.
bool apply(Edit& edit, std::vector<Stmt>& block, bool conditional,
           std::vector<std::string>& of_block) {
  for (size_t n = 0; n < block.size(); ++n) {
    if (!is_map_of_scores(block[n], Op::map_at, edit.facts)) {
      if (!apply(edit, block[n].body, true, of_block)) return false;
      continue;
    }
    const bool always = !conditional && tl::equal(block[n].i0(), edit.facts.i0);
    std::vector<tl::Replacement> names;
    std::vector<std::string> lets;
    for (const Part& p : take_parts(edit, block[n])) {
      const std::string name = edit.fresh({p.stem});
      names.push_back({p.part, tl::name(name)});
      const bool once = always && !tl::mentions(p.part, "j");
      (once ? of_block : lets).push_back(fmt::format("let {} = {}", name, tl::print(p.value)));
    }
    ExprPtr& body = block[n].value();
    body = tl::replace(body, names);
    if (!edit.insert({&block, n}, lets)) return false;
    n += lets.size();
  }
  return true;
}

}  // namespace

bool rule_invariant(Edit& edit) {
  Stmt* step = softmax_step(edit.program, edit.facts);
  std::vector<std::string> of_block;
  if (step && !apply(edit, step->body, false, of_block)) return false;
  return edit.insert(block_lets_end(edit.program, edit.facts), of_block);
}

}  // namespace kw::transfer
