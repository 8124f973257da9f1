// What is read at one place for a whole tile of scores is read once.
//
//   map_at s[i, j] from (i0, n * BN) = s[i, j] + unscale * table[c.h, min(max(j - i, -R), R) + R]
//     ->
//   let uniform = min(max(n * BN + BN - i0 - 1, -R), R) == min(max(n * BN - i0 - 63, -R), R)
//   if uniform:
//       let everywhere = unscale * table[c.h, min(max(n * BN - min(M - 1, i0), -R), R) + R]
//       map s[i, j] = s[i, j] + everywhere
//   if not uniform:
//       map_at s[i, j] from (i0, n * BN) = ...
//
// When     the map of the scores reads tensors at coordinates, and in some tiles, not in all, the
//          least and the greatest value of those indices (tile_ranges.h) are the same: a clamped
//          distance far from the diagonal, a bucket that is wider than a tile. An index that
//          differs within every tile (j - i + N) leaves the map as it is. Several reads are uniform
//          together. What else the map computes from coordinates stays in both maps, and so does
//          what is one value in every tile, which the rule `invariant` takes out of them.
//          The element is read at a row that exists: rows past the end may be all that a tile has.
// Effect   the same elements; what is multiplied by one is rounded before it is added, as in fp32
//          without contraction.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "operator/expr/fold.h"
#include "operator/expr/linear.h"
#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/score_map.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/one_value.h"
#include "transfer/masks/tile_ranges.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Linear;
using spec::Type;
using tl::Op;
using tl::Stmt;

ExprPtr coordinate(const char* name) { return spec::leaf(Kind::index, Type::integer, name); }

// A tile's first row and key are the coordinates i0 and j0; `rows` and `keys` count them, as they
// are written and as numbers.
struct Tile {
  ExprPtr rows, keys;
  int64_t row_count, key_count;
};

ExprPtr last(const char* first, const ExprPtr& count) {
  return spec::binary("-", spec::binary("+", coordinate(first), count), spec::integer(1));
}

class UniformParts {
 public:
  explicit UniformParts(const Tile& tile)
      : tile_(tile),
        ranges_({coordinate("i0"), last("i0", tile.rows)},
                {coordinate("j0"), last("j0", tile.keys)},
                [names = 0](const std::string& name) mutable {  // its own: parts may be copied
                  return fmt::format("{}{}", name, ++names);
                }) {}

  // Where it holds, e is one value in the tile; null where that is never so, or not known. Nobody
  // declares the names of remainders here: it says what they stand for.
  ExprPtr condition(const ExprPtr& e) {
    const ExprPtr one = named_condition(e);
    return one ? ranges_.without_names(one) : nullptr;
  }

  // Every conjunct once.
  static ExprPtr both(const ExprPtr& all, const ExprPtr& one) {
    return holds_in(all, one) ? all : spec::binary("and", all, one);
  }

  static bool reads_at_coordinates(const ExprPtr& e) {
    if (e->kind == Kind::read && has_coordinate(e)) return true;
    return std::any_of(e->args.begin(), e->args.end(), reads_at_coordinates);
  }

 private:
  const Tile tile_;
  TileRanges ranges_;

  ExprPtr named_condition(const ExprPtr& e) {
    if (!varies_in_a_block(e)) return spec::boolean(true);
    if (e->type == Type::integer && !reads_at_coordinates(e)) return one_point(e);
    if (e->args.empty()) return nullptr;
    ExprPtr all = spec::boolean(true);
    for (const ExprPtr& a : e->args) {
      const ExprPtr one = named_condition(a);
      if (!one) return nullptr;
      all = both(all, one);
    }
    return all;
  }

  // `c` is one of the conjuncts of `all`.
  static bool holds_in(const ExprPtr& all, const ExprPtr& c) {
    return spec::equal(all, c) ||
           (is(all, "and") && (holds_in(all->args[0], c) || holds_in(all->args[1], c)));
  }

  // Greatest == least, without what stands on both sides. Of a choice: the condition is decided for
  // the tile, and what is taken is one value; of a sum with choices: each term is.
  ExprPtr one_point(const ExprPtr& e) {
    if (!has_coordinate(e)) return spec::boolean(true);
    if (e->kind == Kind::where) return one_choice(*e);
    if (const Linear sum = spec::linear(e); sum.terms.size() > 1 && mentions_choice(e)) {
      ExprPtr all = spec::boolean(true);
      for (const Linear::Term& t : sum.terms) {
        const ExprPtr one = one_point(t.atom);
        if (!one) return nullptr;
        all = both(all, one);
      }
      return all;
    }
    const WrittenRange range = ranges_.range(e);
    if (!range.known() || spread(e) != 0) return nullptr;
    const ExprPtr at_most =
        spec::solved(spec::add(spec::linear(range.high), spec::linear(range.low), -1), false);
    return at_most->args.empty() ? at_most : spec::binary("==", at_most->args[0], at_most->args[1]);
  }

  ExprPtr one_choice(const spec::Expr& e) {
    const WrittenTruth c = ranges_.truth(e.args[0]);
    const ExprPtr yes = one_point(e.args[1]), no = one_point(e.args[2]);
    const ExprPtr taken = yes ? spec::binary("and", c.all, yes) : spec::boolean(false);
    const ExprPtr left =
        no ? spec::binary("and", spec::unary("not", c.some), no) : spec::boolean(false);
    const ExprPtr one = spec::binary("or", taken, left);
    return one->kind == Kind::number && !one->integer ? nullptr : one;
  }

  static bool mentions_choice(const ExprPtr& e) { return spec::mentions(e, Kind::where); }

  // The least difference between the ends of an integer's range (as TileRanges takes it) that any
  // tile has; what it does not know counts as any.
  int64_t spread(const ExprPtr& e) const {
    if (!has_coordinate(e)) return 0;
    if (e->kind == Kind::index) return (e->name == "i" ? tile_.row_count : tile_.key_count) - 1;
    if (e->kind == Kind::where) return std::max(spread(e->args[1]), spread(e->args[2]));
    if (is(e, "min") || is(e, "max")) return std::min(spread(e->args[0]), spread(e->args[1]));
    if (is(e, "abs")) return (spread(e->args[0]) + 1) / 2;
    if (is(e, "//") || is(e, "%")) {
      const ExprPtr& d = e->args[1];
      const int64_t width = spread(e->args[0]);
      if (!is_positive_number(d)) return 0;
      return is(e, "//") ? width / d->integer : std::min(width, d->integer - 1);
    }
    const Linear sum = spec::linear(e);
    if (sum.terms.size() == 1 && spec::equal(sum.terms[0].atom, e)) return 0;
    int64_t out = 0;
    for (const Linear::Term& t : sum.terms) out += std::abs(t.factor) * spread(t.atom);
    return out;
  }
};

// The score with the largest parts that read the tile, and are uniform in some tiles, not in all,
// taken out.
class Split {
 public:
  Split(Edit& edit, UniformParts parts) : edit_(edit), parts_(std::move(parts)) {}

  struct Part {
    ExprPtr value, name;
  };
  std::vector<Part> taken;
  ExprPtr condition = spec::boolean(true);

  // Of a part of the score, what is left; `tiles` is null where the map has no integer coordinates.
  ExprPtr take(const ExprPtr& e, const TileValues* tiles) {
    if (!UniformParts::reads_at_coordinates(e) || (tiles && is_one(e, *tiles))) return e;
    if (const ExprPtr when = parts_.condition(e)) {
      condition = UniformParts::both(condition, when);
      for (const Part& known : taken)
        if (spec::equal(known.value, e)) return known.name;
      const ExprPtr name = spec::leaf(Kind::argument, e->type, edit_.fresh({"everywhere"}));
      taken.push_back({e, name});
      return name;
    }
    if (e->kind == Kind::read) return e;  // its indices alone are not worth a second map
    spec::Expr out = *e;
    for (ExprPtr& a : out.args) a = take(a, tiles);
    return spec::make(std::move(out));
  }

 private:
  Edit& edit_;
  UniformParts parts_;

  // In every tile.
  bool is_one(const ExprPtr& e, const TileValues& tiles) {
    if (spec::mentions(e, Kind::score)) return false;
    const auto text = edit_.in_map(e, false);
    const tl::ExprPtr written = text ? tl::parse_expr(*text, edit_.diagnostics) : nullptr;
    return written && tiles.is_one(written);
  }
};

// The value at a row and a key that exist.
ExprPtr at_first(const Edit& edit, const ExprPtr& value) {
  const ExprPtr row = spec::binary("min", coordinate("i0"),
                                   spec::binary("-", size(edit.facts.queries), spec::integer(1)));
  return spec::rewrite(value, [&](const ExprPtr& e) -> ExprPtr {
    if (e->kind != Kind::index) return nullptr;
    return e->name == "i" ? row : e->name == "j" ? coordinate("j0") : nullptr;
  });
}

ExprPtr as_size(const tl::ExprPtr& e, int64_t value) {
  return e->kind == tl::ExprKind::integer ? spec::integer(value) : size(tl::print(e));
}

// The tile of a map of the scores; nothing where its size is no constant.
std::optional<Tile> tile_of(const Edit& edit) {
  const Stmt* declared = declaration_of_scores(edit.program, edit.facts);
  const tl::ExprPtr rows = declared->rows(), keys = declared->columns();
  const auto row_count = constant(edit.program, rows), key_count = constant(edit.program, keys);
  if (!row_count || !key_count) return std::nullopt;
  return Tile{as_size(rows, *row_count), as_size(keys, *key_count), *row_count, *key_count};
}

// Integers of several operators that stand in e more than twice become names, the largest first.
struct Named {
  std::string name;
  ExprPtr value;
};

void count_integers(const ExprPtr& e, std::map<std::string, std::pair<int, ExprPtr>>& found) {
  const bool computed = e->type == Type::integer && !e->args.empty() && e->kind != Kind::where;
  if (computed && (e->args[0]->args.size() || e->args.back()->args.size())) {
    auto& [count, value] = found[spec::print(e)];
    ++count, value = e;
  }
  for (const ExprPtr& a : e->args) count_integers(a, found);
}

std::vector<Named> take_repeated(Edit& edit, ExprPtr& e, const char* stem) {
  std::vector<Named> out;
  while (true) {
    std::map<std::string, std::pair<int, ExprPtr>> found;
    count_integers(e, found);
    std::string largest;
    for (const auto& [text, counted] : found)
      if (counted.first > 2 && text.size() > largest.size()) largest = text;
    if (largest.empty()) return out;
    const ExprPtr value = found.at(largest).second;
    const ExprPtr name = spec::leaf(Kind::argument, Type::integer, edit.fresh({stem}));
    out.push_back({name->name, value});
    e = spec::rewrite(e, [&](const ExprPtr& x) { return spec::equal(x, value) ? name : nullptr; });
  }
}

std::string indented(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "\n    " + line;
  return out;
}

}  // namespace

bool rule_uniform(Edit& edit) {
  if (!edit.score_map || !UniformParts::reads_at_coordinates(edit.score_map)) return true;
  const auto tile = tile_of(edit);
  if (!tile) return true;
  const Place mask = mask_of(edit.program, edit.facts);
  const Place map{mask.block, mask.at - 1};  // write_score_map put it there
  const Stmt& written = (*map.block)[map.at];
  Split split(edit, UniformParts(*tile));
  ExprPtr rest;
  if (written.op == Op::map_at)
    with_tile_values(edit.program, edit.facts, written,
                     [&](const TileValues& tiles) { rest = split.take(edit.score_map, &tiles); });
  if (!rest) rest = split.take(edit.score_map, nullptr);
  if (split.taken.empty()) return true;

  const tl::ExprPtr i0 = written.i0(), j0 = written.j0();
  const auto text = [&](const ExprPtr& e) { return edit.in_tile(e, i0, j0); };

  std::vector<std::string> once, lines;
  const auto name_parts = [&](ExprPtr& e, const char* stem, std::vector<std::string>& lets) {
    for (const Named& part : take_repeated(edit, e, stem)) {
      const auto value = text(part.value);
      if (!value) return false;
      lets.push_back(fmt::format("let {} = {}", part.name, *value));
    }
    return true;
  };
  for (const Split::Part& part : split.taken) {
    ExprPtr first = at_first(edit, part.value);
    if (!name_parts(first, "place", once)) return false;
    const auto value = text(first);
    if (!value) return false;
    once.push_back(fmt::format("let {} = {}", part.name->name, *value));
  }
  const Coordinates coordinates = coordinates_of(rest);
  const auto body = edit.in_map(rest, coordinates == Coordinates::real);
  if (!name_parts(split.condition, "end", lines)) return false;
  const auto condition = text(split.condition);
  if (!body || !condition || !exact_coordinates(edit, coordinates)) return false;
  once.push_back(map_text(coordinates, edit.facts.score, tl::print(i0), tl::print(j0), *body));

  const std::string uniform = edit.fresh({"uniform"});
  lines.push_back(fmt::format("let {} = {}", uniform, *condition));
  lines.push_back(fmt::format("if {}:{}", uniform, indented(once)));
  lines.push_back(fmt::format("if not {}:{}", uniform, indented({tl::print(written)})));
  map.block->erase(map.block->begin() + map.at);
  return edit.insert(map, lines);
}

}  // namespace kw::transfer
