#include "sketch/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "tl/analysis/effects.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class Placer {
 public:
  Placer(const tl::Program& program, const Plan& plan, bool part_of_tile, Diagnostics& diagnostics)
      : program_(program), plan_(plan), part_of_tile_(part_of_tile), diagnostics_(diagnostics) {}

  std::optional<Placed> run() {
    const auto each = [&](const std::vector<const Stmt*>& body, bool keys) {
      return std::all_of(body.begin(), body.end(),
                         [&](const Stmt* s) { return statement(*s, keys); });
    };
    if (!each(plan_.before, false) || !each(plan_.inside, true) || !chain() ||
        !each(plan_.after, false))
      return std::nullopt;
    if (placed_.products.size() == 2 && !placed_.leaves.empty()) return std::move(placed_);
    const bool few = placed_.products.size() != 2;
    return refuse(*plan_.loop, few ? fmt::format("{} products in the loop, and two are scheduled",
                                                 placed_.products.size())
                                   : std::string("nothing is copied to an `out` tensor"));
  }

 private:
  std::nullopt_t refuse(const Stmt& at, const std::string& what) {
    diagnostics_.error("sketch.place", at.span, what).hint =
        "docs/sketches.md lists what the passes place";
    return std::nullopt;
  }

  Tile& add(Tile tile) {
    for (Tile& t : placed_.tiles)
      if (t.name == tile.name) {
        if (t.columns.empty()) t.columns = tile.columns;
        if (t.space == Space::accumulator || tile.space == Space::accumulator)
          t.space = Space::accumulator;
        if (tile.space == Space::lane_sum) t.space = Space::lane_sum;
        return t;
      }
    placed_.tiles.push_back(std::move(tile));
    return placed_.tiles.back();
  }

  bool statement(const Stmt& s, bool keys) {
    switch (s.op) {
      case Op::copy:
        return copy(s, keys);
      case Op::mma:
      case Op::mma_add:
        return product(s, keys);
      case Op::online_max:
        add({s.flag(), Space::flag});
        add({tl::base_name(s.max()), Space::row});
        add({tl::base_name(s.alpha()), Space::row});
        return true;
      case Op::row_sum:
        add({tl::base_name(s.sum()), Space::lane_sum});
        return true;
      case Op::fill:
        add({tl::base_name(s.target()), Space::row});
        return true;
      case Op::map_rows:
      case Op::compute:  // declared where they are written
      case Op::map:
      case Op::map_at:
      case Op::store_rows:
      case Op::let:
        return true;
      default:
        refuse(s, fmt::format("`{}` is not one of a sketch's statements", tl::word(s.op)));
        return false;
    }
  }

  bool copy(const Stmt& s, bool keys) {
    const std::string from = tl::base_name(s.src()), to = tl::base_name(s.dst());
    if (const Stmt* in = tensor_named(program_, from); in && !is_output(*in)) {  // P1
      const bool part = s.src()->args.size() > 4;
      const Stmt* leaves = part ? output() : nullptr;
      if (part && !leaves) {
        refuse(s, fmt::format("`{}` is copied from a column on, and nothing leaves", from));
        return false;
      }
      add({to, Space::shared, keys, dimension(leaves ? *leaves : *in, 3)});
      return true;
    }
    const Stmt* out = tensor_named(program_, to);
    const Tile* tile = placed_.find(from);
    if (!out || !tile || tile->space != Space::accumulator) {
      refuse(s, fmt::format("`{}` is copied from neither a tensor nor an accumulator", from));
      return false;
    }
    const auto values = parameters(program_);  // P4
    const auto width = [&](const std::string& name) {
      const auto at = values.find(name);
      return at == values.end() ? int64_t{-1} : at->second;
    };
    const Tile* left = placed_.find(placed_.left);
    const int64_t room = left ? width(left->columns) : 0, wanted = width(tile->columns);
    if (left && (room == wanted || (part_of_tile_ && room > wanted)))
      placed_.leaves = left->name;
    else
      placed_.leaves = add({fresh("o_s"), Space::shared, false, tile->columns}).name;
    return true;
  }

  bool product(const Stmt& s, bool keys) {
    const std::string a = tl::base_name(s.a()), b = tl::base_name(s.b()),
                      c = tl::base_name(s.acc());
    Tile* right = nullptr;
    for (Tile& t : placed_.tiles)
      if (t.name == b) right = &t;
    if (!keys || !right || right->space != Space::shared || !right->of_keys) {
      refuse(s, fmt::format("`{}` is not a tile that the loop has copied", b));
      return false;
    }
    if (right->first_read < 0) right->first_read = int(placed_.products.size());
    const std::string columns = s.op == Op::mma ? "BN" : right->columns;  // P2
    if (s.op == Op::mma) placed_.left = a;
    placed_.products.push_back(right->columns);
    add({c, Space::accumulator, false, columns});
    if (s.op == Op::mma_add) placed_.chained = a;
    return true;
  }

  bool chain() {  // P5
    const Tile* tile = placed_.find(placed_.chained);
    if (!tile) return true;
    if (tile->space != Space::accumulator) {
      placed_.chained.clear();
      return true;
    }
    for (size_t n = 0; n < plan_.inside.size(); ++n) {
      const Stmt& s = *plan_.inside[n];
      if (s.op == Op::mma_add) break;
      if (tl::reads(s, placed_.chained) || tl::writes(s, placed_.chained))
        placed_.reshape_after = n;
    }
    placed_.operand = fresh("p");
    add({placed_.operand, Space::operand, false, tile->columns});
    return true;
  }

  // The tensor that an accumulator leaves for: the first that is written.
  const Stmt* output() const {
    for (const Stmt* s : plan_.after)
      if (s->op == Op::copy)
        if (const Stmt* out = tensor_named(program_, tl::base_name(s->dst()))) return out;
    return nullptr;
  }

  std::string fresh(const std::string& name) const { return fresh_name(program_, placed_, name); }

  const tl::Program& program_;
  const Plan& plan_;
  bool part_of_tile_;
  Diagnostics& diagnostics_;
  Placed placed_;
};

}  // namespace

const Tile* Placed::find(const std::string& name) const {
  for (const Tile& t : tiles)
    if (t.name == name) return &t;
  return nullptr;
}

std::string fresh_name(const tl::Program& program, const Placed& placed, std::string name) {
  while (placed.find(name = fresh_name(program, name))) name += "_";
  return name;
}

std::optional<Placed> place(const tl::Program& program, const Plan& plan, bool part_of_tile,
                            Diagnostics& diagnostics) {
  return Placer(program, plan, part_of_tile, diagnostics).run();
}

}  // namespace kw::sketch
