// What is one value in every tile of scores is computed before the map, not for every score.
//
//   if mixed:                                      ->   if mixed:
//       map_at s[i, j] from (i0, n * BN) =                  let table_here = table[c.b, c.h,
//           where(table[c.b, c.h, i // 128,                     min(i0, M - 1) // 128,
//                       j // 128] and j < N,                    n * BN // 128]
//                 s[i, j], -inf)                            map_at s[i, j] from (i0, n * BN) =
//                                                               where(table_here and j < N,
//                                                                     s[i, j], -inf)
//
// When     a part of a map of the scores by integer coordinates mentions i or j, no element of the
//          tile, and has one value in each tile (one_value.h): a block of the tile's size or a
//          multiple, a comparison with a bound on such a place. The largest such parts are taken.
//          What reads is read at a row that exists: rows past the end may be all that a tile has.
//          Where the map decides whether to read at all (an arm of where, the right of `and`), the
//          read's indices are brought into the tensor, as a map brings them.
// Why      a thread would read 64 scores' worth of one element, and bring each index into its
//          tensor; of registers that took so many that tiles of 128 keys could not be had.
// Effect   none: the same operations on the same numbers.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/one_value.h"
#include "transfer/rules.h"

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
    const bool coordinates = tl::mentions(e, "i") || tl::mentions(e, "j");
    if (!coordinates || e->args.empty()) return;
    if (is_given(e, edit_.program) && values_.is_one(e)) return add(e, guarded);
    const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
    for (size_t n = first; n < e->args.size(); ++n) {
      const bool decides = e->kind == ExprKind::where || e->text == "and" || e->text == "or";
      visit(e->args[n], guarded || (decides && n > 0));
    }
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
    const ExprPtr i0 = map_.expr("i0");
    const ExprPtr last = tl::binary("-", tl::name(edit_.facts.queries), tl::integer(1));
    const ExprPtr row = read ? tl::call("min", {i0, last}) : i0;
    const ExprPtr inside = guarded ? within_tensors(e) : e;
    const ExprPtr value = tl::rewrite(inside, [&](const ExprPtr& x) -> ExprPtr {
      return x->is_name("i") ? row : x->is_name("j") ? map_.expr("j0") : nullptr;
    });
    parts.push_back({e, value, stem_of(e)});
  }

  // Indices of coordinates as a map has them: outside of a dimension, that of an element inside.
  ExprPtr within_tensors(const ExprPtr& e) const {
    tl::Expr out = *e;
    for (ExprPtr& a : out.args) a = within_tensors(a);
    if (const Stmt* tensor = tensor_read(*e, edit_.program))
      for (size_t n = 1; n < out.args.size(); ++n) {
        if (!tl::mentions(out.args[n], "i") && !tl::mentions(out.args[n], "j")) continue;
        const ExprPtr size = tl::name(tensor->items("s").at(n - 1).name);
        out.args[n] = tl::call("min", {tl::call("max", {out.args[n], tl::integer(0)}),
                                       tl::binary("-", size, tl::integer(1))});
      }
    return std::make_shared<const tl::Expr>(std::move(out));
  }

  std::string stem_of(const ExprPtr& e) const {
    if (tensor_read(*e, edit_.program)) return e->args[0]->text + "_here";
    return tl::is_comparison(*e) || e->text == "and" || e->text == "or" ? "holds_here" : "here";
  }
};

bool is_map(const Stmt& s, const Facts& facts) {
  return s.op == Op::map_at && tl::base_name(s.expr("t")) == facts.score;
}

std::vector<Part> parts_of(const Edit& edit, const Stmt& map) {
  std::vector<Part> parts;
  with_tile_values(edit.program, edit.facts, map, [&](const TileValues& values) {
    Finder finder(edit, map, values);
    finder.visit(map.expr("f"), false);
    parts = std::move(finder.parts);
  });
  return parts;
}

// From the outside in: a part may stand within another.
ExprPtr named(const ExprPtr& e, const std::vector<Part>& parts,
              const std::vector<std::string>& names) {
  for (size_t n = 0; n < parts.size(); ++n)
    if (tl::equal(e, parts[n].part)) return tl::name(names[n]);
  tl::Expr out = *e;
  for (ExprPtr& a : out.args) a = named(a, parts, names);
  return std::make_shared<const tl::Expr>(std::move(out));
}

bool apply(Edit& edit, std::vector<Stmt>& block) {
  for (size_t n = 0; n < block.size(); ++n) {
    if (!is_map(block[n], edit.facts)) {
      if (!apply(edit, block[n].body)) return false;
      continue;
    }
    const std::vector<Part> parts = parts_of(edit, block[n]);
    std::vector<std::string> names;
    for (const Part& p : parts) names.push_back(edit.fresh({p.stem}));
    ExprPtr& body = block[n].items("f").at(0).expr;
    body = named(body, parts, names);
    for (size_t p = 0; p < parts.size(); ++p, ++n)
      if (!edit.insert({&block, n},
                       fmt::format("let {} = {}", names[p], tl::print(parts[p].value))))
        return false;
  }
  return true;
}

}  // namespace

bool rule_invariant(Edit& edit) {
  Stmt* step = softmax_step(edit.program, edit.facts);
  return !step || apply(edit, step->body);
}

}  // namespace kw::transfer
