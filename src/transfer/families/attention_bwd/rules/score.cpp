// What the score is beyond a multiple of s, and its derivative.
//
//   map s[i, j] = exp2(s[i, j] * scale_log2)
//     ->   map_real s[i, j] from (j0, m * BM) = exp2(s[i, j] * scale_log2 + slope * (i - j))
//          with `let slope = slopes[h] * log2e`
//
//   fill_columns s = offset_s[t]   ->   fill s = 0.0
//   if ...: the mask               ->   map s[i, j] = tanh(s[i, j] * 0.02)
//                                       wgmma_wait 0: dp
//                                       map dp[i, j] = dp[i, j] * (1.0 - s[i, j] * s[i, j]) * 0.02
//                                       add_columns s += offset_s[t]
//                                       if ...: the mask
//
//   map dp[i, j] = dp[i, j] * s[i, j]   ->   map dp[i, j] = dp[i, j] * s[i, j]
//                                            map_real dp[i, j] from ... = dp[i, j] * factor
//
//   map s[i, j] = exp2(s[i, j] * scale_log2)   ->   map s[i, j] = sigmoid(s[i, j] * 0.125 - bias)
//   map dp[i, j] = dp[i, j] * s[i, j]               map dp[i, j] = dp[i, j] * (s[i, j] * ...)
//
// When     score = c * core + bias (rule_scale took c). A bias stands in the exponent. With a core
//          other than s the product begins with zeros, and what is taken off a row of scores comes
//          after the core. The gradient of a score times the core's derivative is that of s; the
//          derivative is written with the core's own values where it can be (tanh), or before them;
//          behind the weights where it needs no score and something is learned from the scores
//          (rule_learned), which takes their gradients as they are.
//          A weight that is a function of its own score is written as it is (rule_weights does the
//          rest).
// Effect   tanh and the other functions are the device's approximations, in the derivative too.
//          Coordinates are reals, exact while M and N are at most 2^24 (a condition of the launch);
//          where they stand in // or % they are integers.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "operator/expr/derivative.h"
#include "operator/expr/fold.h"
#include "transfer/editing/bias.h"
#include "transfer/editing/terms.h"
#include "transfer/editing/write_map.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

// The derivative with the core's own values in it, under the name of the score; null where it
// needs s itself.
ExprPtr by_core(const ExprPtr& slope, const ExprPtr& core) {
  const ExprPtr marked = spec::rewrite(slope, [&](const ExprPtr& x) -> ExprPtr {
    return spec::equal(x, core) ? spec::leaf(Kind::output, Type::real, "") : nullptr;
  });
  if (spec::mentions(marked, Kind::score)) return nullptr;
  return spec::rewrite(marked, [&](const ExprPtr& x) -> ExprPtr {
    return x->kind == Kind::output ? spec::score_leaf(0) : nullptr;
  });
}

ExprPtr derivative_of(const ExprPtr& e) {
  ExprPtr operation;
  return spec::derivative(e, spec::score_leaf(0), operation).value_or(nullptr);
}

// It is waited for where the score's derivative stands, before the weights.
void drop_wait(std::vector<tl::Stmt>& step, const std::string& tile) {
  std::erase_if(step,
                [&](const tl::Stmt& s) { return tl::print_head(s) == "wgmma_wait 1: " + tile; });
}

bool write_core(Edit& edit, const ExprPtr& core, const ExprPtr& slope) {
  const ExprPtr after = by_core(slope, core);
  const auto places = edit.places();
  const std::string &s = places->score, &dp = places->d_score;
  const auto map = map_of(edit, s, core, "{}");
  const auto gradient =
      map_of(edit, dp, after ? after : slope, fmt::format("{}[i, j] * ({{}})", dp));
  if (!map || !gradient) return false;
  const bool learns = std::any_of(edit.learned.begin(), edit.learned.end(),
                                  [](const auto& l) { return l.of == spec::Gradients::Of::score; });
  const bool behind = learns && !spec::mentions(slope, Kind::score);
  if (behind) edit.behind = derivative_of(edit.parts.core);
  std::vector<std::string> lines;
  if (!behind && edit.waits_for_products()) lines.push_back("wgmma_wait 0: " + dp);
  if (!behind) lines.push_back(*gradient);
  lines.insert(after ? lines.begin() : lines.end(), *map);
  lines.push_back(fmt::format("add_columns {} += {}", s, places->offset));
  const auto zeros = tl::parse_statement(fmt::format("fill {} = 0.0", s), edit.diagnostics);
  if (!zeros || !edit.insert({places->step, places->mask}, lines)) return false;
  std::vector<tl::Stmt>& step = *places->step;
  step[places->fill] = *zeros;
  if (!behind) drop_wait(step, dp);
  return true;
}

// Each weight is the function of its own score: with its derivative in the place of the softmax's.
bool write_weights(Edit& edit) {
  const ExprPtr weight = hoist_parts(edit, edit.score, "bias", Hoist::sizes);
  const auto slope = weight ? slope_of(weight) : std::nullopt;
  if (!slope) return false;
  if (!slope->of_weight && !slope->of_score)
    return edit.refuse("transfer.score", edit.place(edit.term.score),
                       "each weight changes with its score by what does not depend on the score",
                       "supported are softmax, and functions that are not linear");
  const auto places = edit.places();
  const std::string &s = places->score, &dp = places->d_score;
  std::vector<std::string> before, after;
  const auto add = [&](std::vector<std::string>& to, const ExprPtr& factor) {
    const auto map =
        factor ? map_of(edit, dp, factor, fmt::format("{}[i, j] * ({{}})", dp)) : std::string();
    if (map && !map->empty()) to.push_back(*map);
    return map.has_value();
  };
  const auto map = map_of(edit, s, weight, "{}");
  const auto weights = map ? tl::parse_statement(*map, edit.diagnostics) : std::nullopt;
  if (!weights || !add(before, slope->of_score) || !add(after, slope->of_weight) ||
      !add(slope->of_score ? before : after, slope->of_place))
    return false;
  std::vector<tl::Stmt>& step = *places->step;
  step[places->weights] = *weights;
  step.erase(step.begin() + std::ptrdiff_t(places->gradient));
  if (!edit.insert({&step, places->gradient}, after)) return false;
  if (before.empty()) return true;
  // What needs the scores comes before the weights, behind its product.
  drop_wait(step, dp);
  if (edit.waits_for_products()) before.insert(before.begin(), "wgmma_wait 0: " + dp);
  return edit.insert({&step, places->weights}, before);
}

// A kernel's exponent is the score's own multiple of two's powers.
bool write_bias(Edit& edit, const ExprPtr& bias) {
  const auto named = [](const char* name) { return spec::leaf(Kind::argument, Type::real, name); };
  const ExprPtr powers = with_bias(
      edit, spec::binary("*", spec::score_leaf(0), named("scale_log2")), bias, named("log2e"));
  if (!powers) return false;
  const auto places = edit.places();
  const auto map = map_of(edit, places->score, powers, "exp2({})");
  const auto written = map ? tl::parse_statement(*map, edit.diagnostics) : std::nullopt;
  if (!written) return false;
  (*places->step)[places->weights] = *written;
  return true;
}

}  // namespace

std::optional<Slope> slope_of(const ExprPtr& weight) {
  ExprPtr operation;
  const auto slope = spec::derivative(weight, spec::score_leaf(0), operation);
  if (!slope) return std::nullopt;
  Slope out;
  const std::function<void(const ExprPtr&)> split = [&](const ExprPtr& e) {
    if (is(e, "*") && e->kind == Kind::binary) return split(e->args[0]), split(e->args[1]);
    if (const auto c = spec::constant(e)) {
      out.constant *= *c;
      return;
    }
    const bool of_score = spec::mentions(e, Kind::score);
    const ExprPtr by = of_score ? by_core(e, weight) : nullptr;
    ExprPtr& part = by ? out.of_weight : of_score ? out.of_score : out.of_place;
    const ExprPtr& factor = by ? by : e;
    part = part ? spec::binary("*", part, factor) : factor;
  };
  split(*slope);
  return out;
}

bool rule_score(Edit& edit) {
  const bool plain = spec::has_softmax(edit.form) && edit.parts.core->kind == Kind::score &&
                     !edit.parts.bias && edit.form.outputs.size() == 3;
  if (edit.has_many_queries() && !plain)
    return edit.refuse_kernel(
        "has registers for softmax of a scaled score alone, of which nothing is learned");
  if (!spec::has_softmax(edit.form)) return write_weights(edit);
  const Score& parts = edit.parts;
  if (parts.core->kind != Kind::score) {
    const ExprPtr core = hoist_parts(edit, parts.core, "weight");
    const ExprPtr slope = core ? derivative_of(core) : nullptr;
    if (!slope || !write_core(edit, core, slope)) return false;
  }
  return !parts.bias || write_bias(edit, parts.bias);
}

}  // namespace kw::transfer::bwd
