// 16-bit data and bools that are read for every score are read before the map, many neighbours at a
// time.
//
//   map_at s[i, j] from (i0, n * BN) =             ->   operand bias_ij: bf16[64, BN]
//       s[i, j] + unscale * bias[0, c.h, i, j]          set_tile bias_ij[i, j] from (i0, n * BN) =
//                                                           bias[0, c.h, i, j]
//                                                       map_at s[i, j] from (i0, n * BN) =
//                                                           s[i, j] + unscale * bias_ij[i, j]
//
// When     a map of the scores by coordinates reads a tensor of bf16, f16 or bool whose last index
//          is j alone, while i stands in another and j in none. Equal reads share a tile. Not
//          table[c.h, j - i], whose neighbours may lie on both sides of an edge; not what i has no
//          part in, which the rule columns reads once for a key; and not f32 or ints: a tile of
//          them would not fit beside the scores.
// Why      two numbers take a register, 32 bools one; a load brings 16 bytes, and none waits for
//          the one before.
// Effect   none: the same elements.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

bool is_read_in_pairs(const ExprPtr& e, const tl::Program& program) {
  const Stmt* tensor = tensor_read(*e, program);
  if (!tensor || !e->args.back()->is_name("j") || !is_given(e, program)) return false;
  const std::string& type = tensor->access().at(0).type;
  const auto mention = [&](const char* coordinate) {
    return std::any_of(e->args.begin() + 1, e->args.end() - 1,
                       [&](const ExprPtr& a) { return tl::mentions(a, coordinate); });
  };
  return (type == "bf16" || type == "f16" || type == "bool") && mention("i") && !mention("j");
}

// A tile that is set, in a block or one around it.
struct Tile {
  ExprPtr read, i0, j0;
  std::string name;
};

class Reading {
 public:
  explicit Reading(Edit& edit) : edit_(edit) {}

  bool run() {
    Stmt* step = softmax_step(edit_.program, edit_.facts);
    if (const Stmt* scores = declaration_of_scores(edit_.program, edit_.facts))
      shape_ = tl::print(scores->rows()) + ", " + tl::print(scores->columns());
    return !step || apply(step->body, {});
  }

 private:
  Edit& edit_;
  std::string shape_;  // of the scores

  bool apply(std::vector<Stmt>& block, std::vector<Tile> known) {
    for (size_t n = 0; n < block.size(); ++n) {
      if (!is_map_of_scores(block[n], Op::map_at, edit_.facts)) {
        if (!apply(block[n].body, known)) return false;
        continue;
      }
      const ExprPtr body = block[n].value();
      bool done = true;
      const ExprPtr by_tiles = tl::rewrite(body, [&](const ExprPtr& e) -> ExprPtr {
        if (!done || !is_read_in_pairs(e, edit_.program)) return nullptr;
        const std::string tile = tile_of(e, block, n, known);
        done = !tile.empty();
        return tl::index(tl::name(tile), {tl::name("i"), tl::name("j")});
      });
      if (!done) return false;
      block[n].value() = by_tiles;
    }
    return true;
  }

  // The tile's name; it is set before the map block[n], unless it is there. "" after a refusal.
  std::string tile_of(const ExprPtr& read, std::vector<Stmt>& block, size_t& n,
                      std::vector<Tile>& known) {
    const ExprPtr i0 = block[n].i0(), j0 = block[n].j0();
    for (const Tile& t : known)
      if (tl::equal(t.read, read) && tl::equal(t.i0, i0) && tl::equal(t.j0, j0)) return t.name;
    const std::string& tensor = read->args[0]->text;
    const std::string& type = tensor_read(*read, edit_.program)->access().at(0).type;
    const std::string name = edit_.fresh({tensor + "_ij", tensor + "_at_ij"});
    known.push_back({read, i0, j0, name});
    const std::vector<std::string> texts = {
        fmt::format("operand {}: {}[{}]", name, type, shape_),
        fmt::format("set_tile {}[i, j] from ({}, {}) = {}", name, tl::print(i0), tl::print(j0),
                    tl::print(read))};
    if (!edit_.insert({&block, n}, texts)) return "";
    n += texts.size();
    return name;
  }
};

}  // namespace

bool rule_pairs(Edit& edit) { return Reading(edit).run(); }

}  // namespace kw::transfer
