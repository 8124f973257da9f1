// Weights that are functions of their own scores: what only a softmax needs goes.
//
//   fill_columns s = offset_s[t]                       ->   fill s = 0.0
//   if ...: map_at s[i, j] = where(..., s[i, j], -inf)      ...
//   map s[i, j] = sigmoid(...)                              map s[i, j] = sigmoid(...)
//                                                           if ...: map_at s[i, j] = where(...,
//                                                           s[i, j], 0.0)
//   map dp[i, j] = dp[i, j] * ...                           map dp[i, j] = dp[i, j] * ...
//
// and with `if ...: map_at dp[i, j] = where(..., dp[i, j], 0.0)` behind it where a weight of 0 does
// not make the gradient 0. The forward kernel's output and log-sums, what the pre-pass makes of
// them, and the copies of that are gone.
//
// Of weights that are divided by their sum the pre-pass gives its inverse in the log-sum's place,
// by which weights and gradients of scores are multiplied, and delta stays:
//
//   offset = where(l == -inf, l, -l / scale)           ->   where(l == -inf, 0.0, exp2(-l * log2e))
//                                                           scale_columns dp by offset_s[t]
//                                                           scale_columns s by offset_s[t]
//
// behind the maps and masks of both, which are of the weights before they are divided.
//
// When     the form's weights are no softmax's. The last of the rules: the others know the mask
//          where a softmax has it.
// Effect   none.
#include <fmt/format.h>

#include <algorithm>

#include "tl/traits.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

// What only a softmax's gradients read: arguments, scratch, and its rings in shared memory.
const std::set<std::string> kOfSoftmax = {"o",     "do_rows",  "lse",     "offset",
                                          "delta", "offset_s", "delta_s", "scale_log2"};

// Their declarations, among arguments or in shared memory; an epilogue reads do_rows all the same.
void drop_declarations(std::vector<Stmt>& block, bool epilogue) {
  std::erase_if(block, [&](Stmt& s) {
    const bool declares = s.op == Op::arg_tensor || s.op == Op::arg_f32 || s.op == Op::row_ring;
    if (!declares) return false;
    std::erase_if(s.names(), [&](const tl::Item& item) {
      return kOfSoftmax.count(item.name) > 0 && !(epilogue && item.name == "do_rows");
    });
    return s.names().empty();
  });
}

// Copies of a value for each query, and how many arrivals their barriers have without them.
void drop_copies(Edit& edit) {
  std::set<std::string> barriers;
  tl::walk(edit.program.body, [&](Stmt& s) {
    std::erase_if(s.body, [&](const Stmt& copy) {
      if (copy.op == Op::cp_async_rows) return true;
      if (copy.op != Op::tma_load_rows) return false;
      barriers.insert(tl::base_name(copy.barrier()));
      return true;
    });
  });
  tl::walk(edit.program.body, [&](Stmt& s) {
    if (s.op == Op::barrier && barriers.count(s.names()[0].name) > 0)
      s.arrivals() = tl::integer(std::stoll(s.arrivals()->text) - 1);
  });
}

// The tile, or all tiles that begin with a value for each query.
bool begin_with_zeros(Edit& edit, std::vector<Stmt>& step, const std::string& tile = {}) {
  for (Stmt& s : step) {
    if (s.op != Op::fill_columns || (!tile.empty() && tl::base_name(s.dst()) != tile)) continue;
    const auto zeros =
        tl::parse_statement("fill " + tl::print(s.dst()) + " = 0.0", edit.diagnostics);
    if (!zeros) return false;
    s = *zeros;
  }
  return true;
}

// Whether it is 0 where every element of the tile is.
bool vanishes(const tl::ExprPtr& e, const std::string& tile) {
  if (e->kind == tl::ExprKind::index && tl::base_name(e) == tile) return true;
  if (e->kind != tl::ExprKind::binary) return false;
  const bool left = vanishes(e->args[0], tile), right = vanishes(e->args[1], tile);
  if (e->text == "*") return left || right;
  return (e->text == "+" || e->text == "-") && left && right;
}

// The mask of one tile, which drops to 0.
Stmt mask_of(const Stmt& mask, const std::string& tile) {
  Stmt out = mask;
  Stmt& map = out.body.back();
  map.target() = tl::name(tile);
  const tl::ExprPtr keep = map.value()->args[0];
  map.value() =
      tl::where(keep, tl::index(tl::name(tile), {tl::name("i"), tl::name("j")}), tl::real(0));
  return out;
}

// The derivative is of the weights as they are: its map comes before they are divided, and what it
// waits for before it. The place of the last of both maps.
size_t derive_before_dividing(std::vector<Stmt>& step, const Edit::Places& at, Edit& edit) {
  if (at.gradient < at.weights) return at.weights;
  const Stmt gradient = step[at.gradient];
  step.erase(step.begin() + std::ptrdiff_t(at.gradient));
  const auto behind = [&] { return step.begin() + std::ptrdiff_t(at.weights) + 1; };
  step.insert(behind(), gradient);
  const auto waits = [&](const Stmt& s) {
    return tl::print_head(s) == "wgmma_wait 1: " + at.d_score;
  };
  if (std::erase_if(step, waits) == 0) return at.weights + 1;
  step.insert(behind(), *tl::parse_statement("wgmma_wait 0: " + at.d_score, edit.diagnostics));
  return at.weights + 2;
}

// The inverse of the sum, 0 where there is none, in the place of the softmax's offset.
bool write_inverse(Edit& edit) {
  Stmt* offset = edit.written_of_row("offset");
  if (!offset)
    return edit.refuse("transfer.kernel", {}, "this kernel's pre-pass writes no `offset`", "");
  offset->value() = tl::parse_expr("where(l == -inf, 0.0, exp2(-l * log2e))", edit.diagnostics);
  return offset->value() != nullptr;
}

// What only a softmax has, but for what follows the sum.
bool drop_softmax(Edit& edit) {
  drop_copies(edit);
  std::vector<Stmt>* rows = edit.rows();
  if (!rows) return edit.refuse("transfer.kernel", {}, "this kernel has no pre-pass", "");
  const bool epilogue = edit.of_epilogue != nullptr;
  std::erase_if(*rows, [&](const Stmt& s) {
    const bool of_epilogue = epilogue && s.op == Op::let && &s == rows->data();
    return s.op != Op::write_row && !of_epilogue;
  });
  for (Stmt& s : edit.program.body)
    if (s.op == Op::args || s.op == Op::shared) drop_declarations(s.body, epilogue);
  return true;
}

}  // namespace

bool rule_weights(Edit& edit) {
  if (spec::has_softmax(edit.form)) return true;
  const bool divided = spec::takes_saved(edit.form);
  const Edit::Places at = *edit.places();
  std::vector<Stmt>& step = *at.step;
  const Stmt mask = step[at.mask];
  bool again = true;  // no factor of the gradients behind the weights is 0 where the weight is
  for (size_t n = at.weights; n < step.size(); ++n)
    if (tl::is(step[n].op, tl::Family::map) && step[n].has(tl::Hole::target) &&
        tl::base_name(step[n].target()) == at.d_score)
      again = again && !vanishes(step[n].value()->args[1], at.score);
  const size_t both =
      divided ? derive_before_dividing(step, at, edit) : std::max(at.weights, at.gradient);
  // From behind, so that the places hold.
  if (divided)
    for (const std::string& tile : {at.score, at.d_score})
      step.insert(step.begin() + std::ptrdiff_t(both) + 1,
                  *tl::parse_statement(fmt::format("scale_columns {} by {}", tile, at.offset),
                                       edit.diagnostics));
  if (again) step.insert(step.begin() + std::ptrdiff_t(both) + 1, mask_of(mask, at.d_score));
  step.insert(step.begin() + std::ptrdiff_t(at.weights) + 1, mask_of(mask, at.score));
  step.erase(step.begin() + std::ptrdiff_t(at.mask));
  if (!begin_with_zeros(edit, step, divided ? at.score : "")) return false;
  return divided ? write_inverse(edit) : drop_softmax(edit);
}

}  // namespace kw::transfer::bwd
