// The gradients of what the score or the sink reads beside the operands: slopes, a bias of each
// key, a table by distances, a factor of the scores of a head.
//
//   map dp[i, j] = dp[i, j] * s[i, j]
//                       ->   map dp[i, j] = dp[i, j] * s[i, j]
//                            map_real s[i, j] from (j0, m * BM) = i - j
//                            map s[i, j] = s[i, j] * dp[i, j]
//                            lane_sum of_slopes: real[64]
//                            fill of_slopes = 0.0
//                            row_sum of_slopes += s
//                            add_rows of_slopes -> sum_slopes[c.b, h, j0]
//   write_value delta[b, h, r] = -dot
//                       ->   write_value delta[b, h, r] = -dot
//                            write_value sum_sinks[b, h, r] = where(l == -inf, 0.0, ... * -dot)
//
// where what a score changes by is a multiple of q . k, behind that product once more, and of a
// table, of which each score reads the entry that its indices say,
//
//   store_transposed dp.T -> ds_s[me][t]
//                       ->   store_transposed dp.T -> ds_s[me][t]
//                            add_diagonals dp[d] from (j0, m * BM) -> sum_table[c.b, h, 16 - d]
//
// with `sum_slopes: scratch f32[B, H, N]`, zeros in the pre-pass, and `sum_over sum_slopes by w ->
// d_slopes` in the pass behind the kernel.
//
// When     the form's gradients have them (operator/families/attention_bwd/derive.cpp). The tile of
//          weights is free once it is an operand: it takes the scores' gradients times what a score
//          changes by with the element that is read, which are summed over the queries, a number a
//          key. One CTA adds to a key's sum of a head, one block of queries after the other. What a
//          sink's gradient is made of is known of each row before the kernel.
//          Where the entry is no function of their distance, add_each stands for add_diagonals.
// Effect   none: sums in fp32, in one order; of a table's entries in any, as many CTAs add to one.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "operator/expr/fold.h"
#include "transfer/editing/declarations.h"
#include "transfer/editing/write_map.h"
#include "transfer/families/attention_bwd/edit.h"
#include "transfer/masks/distance.h"

namespace kw::transfer::bwd {
namespace {

using spec::ExprPtr;
using tl::Op;
using tl::Stmt;

bool is_one(const ExprPtr& e) { return spec::is_number(e) && e->value == 1; }

std::string in_product(const tl::ExprPtr& e) {
  const std::string text = tl::print(e);
  return e->kind == tl::ExprKind::binary ? "(" + text + ")" : text;
}

struct Names {
  std::string output, sums, rows;  // the gradient, the scratch, the step's vector
  std::string values;              // the letter of the scratch's last dimension
  std::string copies = "B";        // and of its first
};

// Of a table that all batch entries share, the scratch has so many copies for each: where every CTA
// adds to the same few addresses, one waits for the other.
constexpr int kCopies = 16;

// The kernel's letter of a table's entries, in the order in which the function has its dimensions.
std::string letter_of_entries(Edit& edit, const spec::Output& output) {
  for (const Binding& b : edit.result.bindings) {
    const Stmt* table =
        b.user == output.of ? declaration_of_argument(edit.program, b.argument) : nullptr;
    for (size_t n = 0; table && n < output.dims.size(); ++n)
      if (output.dims[n] == "x") return table->dims()[n].name;
  }
  return "";
}

bool add_scratch(Edit& edit, const Names& names) {
  return edit.insert(
      edit.behind_arguments(Op::arg_tensor),
      fmt::format("{}: scratch f32[{}, H, {}]", names.sums, names.copies, names.values));
}

bool sum_up(Edit& edit, const Names& names) {
  Stmt* after = edit.program.find(Op::after);
  if (!after) return edit.refuse_kernel("has no pass behind it");
  return edit.insert(
      {&after->body, after->body.size()},
      fmt::format("sum_over {} by {} -> {}", names.sums, after->index(), names.output));
}

// What the score was made of, where what it changes by is a multiple of that: its tile has been
// overwritten, and the operands are still there.
bool product_again(Edit& edit, std::vector<std::string>& lines) {
  const auto at = edit.places();
  for (const Stmt& s : *at->step) {
    if (!tl::is(s.op, tl::Family::contract) || !s.acc()->is_name(at->score.c_str())) continue;
    lines = {fmt::format("fill {} = 0.0", at->score), tl::print_head(s)};
    if (edit.waits_for_products()) lines.push_back(fmt::format("wgmma_wait 0: {}", at->score));
    return true;
  }
  return edit.refuse_kernel("has no product of queries and keys");
}

void factors_of(const ExprPtr& e, std::vector<ExprPtr>& out) {
  if (e->kind == spec::Kind::binary && e->name == "*") {
    for (const ExprPtr& x : e->args) factors_of(x, out);
    return;
  }
  out.push_back(e);
}

ExprPtr product_of(const std::vector<ExprPtr>& factors) {
  ExprPtr out;
  for (const ExprPtr& x : factors) out = out ? spec::binary("*", out, x) : x;
  return out;
}

// A score that changes by s * shared with what is learned, and by shared * rest with s. Null: 1.
struct Shared {
  ExprPtr shared, rest;
};
std::optional<Shared> shared_by(const ExprPtr& slope, const ExprPtr& derivative) {
  std::vector<ExprPtr> mine, all;
  factors_of(slope, mine);
  factors_of(derivative, all);
  const auto take = [](std::vector<ExprPtr>& from, const ExprPtr& what) {
    const auto at = std::find_if(from.begin(), from.end(),
                                 [&](const ExprPtr& x) { return spec::equal(x, what); });
    if (at == from.end()) return false;
    from.erase(at);
    return true;
  };
  if (!take(mine, spec::score_leaf(0))) return std::nullopt;
  for (const ExprPtr& x : mine)
    if (!take(all, x)) return std::nullopt;
  return Shared{product_of(mine), product_of(all)};
}

using Lines = std::vector<std::string>;

// The scores' gradients times a factor.
bool multiply(Edit& edit, const ExprPtr& by, Lines& lines) {
  if (!by) return true;
  const std::string dp = edit.places()->d_score;
  const ExprPtr hoisted = hoist_parts(edit, by, "weight");
  const auto map =
      hoisted ? map_of(edit, dp, hoisted, fmt::format("{}[i, j] * ({{}})", dp)) : std::nullopt;
  if (map) lines.push_back(*map);
  return map.has_value();
}

// The tile with each score's gradient times what it changes by: its own, or the scores'.
std::optional<std::string> shares(Edit& edit, const ExprPtr& slope, bool last, Lines& lines) {
  const auto at = edit.places();
  if (is_one(slope)) return at->d_score;
  const bool of_product = spec::mentions(slope, spec::Kind::score);
  if (of_product && !product_again(edit, lines)) return std::nullopt;
  const auto shared =
      of_product && last && edit.behind ? shared_by(slope, edit.behind) : std::nullopt;
  if (shared) {
    if (!multiply(edit, shared->shared, lines)) return std::nullopt;
    edit.behind = shared->rest;
  } else {
    const auto map = map_of(edit, at->score, slope, "{}");
    if (!map) return std::nullopt;
    lines.push_back(*map);
  }
  lines.push_back(fmt::format("map {0}[i, j] = {0}[i, j] * {1}[i, j]", at->score, at->d_score));
  return at->score;
}

// Which lines of the step add the tile's shares to a table.
std::optional<std::string> to_table(Edit& edit, const Names& names, const std::string& tile,
                                    const ExprPtr& element) {
  const auto number = edit.in_map(element, false);
  const std::string to =
      names.sums + (names.copies == "B" ? "[c.b, h, {}]"
                                        : fmt::format("[c.b * {0} + c.n % {0}, h, {{}}]", kCopies));
  const auto adds = [&](const char* what, const std::string& number) {
    return fmt::format("{} from (j0, m * BM) -> {}", fmt::format(fmt::runtime(what), tile),
                       fmt::format(fmt::runtime(to), number));
  };
  const auto each = number
                        ? tl::parse_statement(adds("add_each {}[i, j]", *number), edit.diagnostics)
                        : std::nullopt;
  if (!each) return std::nullopt;
  const tl::ExprPtr distance = over_distance(each->value(), false);
  return distance ? adds("add_diagonals {}[d]", tl::print(distance)) : tl::print_head(*each);
}

// Entries of a table are added behind the store, where fewer registers are in use; `lines` come
// before it.
bool learn_of_score(Edit& edit, const Names& names, const spec::Gradients::Learned& what, bool last,
                    Lines& lines) {
  Stmt* rows = edit.program.find(Op::rows);
  if (!rows) return edit.refuse_kernel("has no pre-pass over rows");
  Lines own;
  const auto tile = shares(edit, what.slope, last, own);
  if (!tile) return false;
  if (what.element) {
    const auto text = to_table(edit, names, *tile, what.element);
    if (!text) return false;
    own.push_back(*text);
  } else {
    for (const char* text : {"lane_sum {}: real[64]", "fill {} = 0.0", "row_sum {} += {}"})
      own.push_back(fmt::format(fmt::runtime(text), names.rows, *tile));
    own.push_back(fmt::format("add_rows {} -> {}[c.b, h, j0]", names.rows, names.sums));
  }
  if (what.element) {
    const auto at = edit.places();
    std::vector<Stmt>& step = *at->step;
    size_t where = at->gradient + 1;
    while (where < step.size() && step[where - 1].op != Op::store_transposed) ++where;
    if (!edit.insert({&step, where}, own)) return false;
  } else {
    lines.insert(lines.end(), own.begin(), own.end());
  }
  return edit.insert({&rows->body, rows->body.size()},
                     fmt::format("for b, h, r in each_row({0}, {1}):\n"
                                 "    write_value {0}[b, h, r] = 0.0",
                                 names.sums, rows->index()));
}

// Of a row: what the sink's weight is, times minus delta, times what the sink changes by.
bool learn_of_sink(Edit& edit, const Names& names, const ExprPtr& slope) {
  std::vector<Stmt>* body = edit.rows();
  Stmt* delta = edit.written_of_row("delta");
  if (!delta) return edit.refuse_kernel("has no pre-pass that writes delta");
  const auto sink = edit.of_row(edit.sink), by = edit.of_row(slope);
  if (!sink || !by) return false;
  const std::string value =
      fmt::format("where(l == -inf, 0.0, exp2(({} - l) * log2e) * {}{})", *sink,
                  in_product(delta->value()), *by == "1.0" ? "" : fmt::format(" * ({})", *by));
  return edit.insert({body, size_t(delta - body->data()) + 1},
                     fmt::format("write_value {}[b, h, r] = {}", names.sums, value));
}

// Of a row: the output's gradient times what the epilogue changes by.
bool learn_of_epilogue(Edit& edit, const Names& names, const ExprPtr& slope) {
  std::vector<Stmt>* body = edit.rows();
  Stmt* delta = edit.written_of_row("delta");
  if (!delta) return edit.refuse_kernel("has no pre-pass that writes delta");
  const auto by = edit.of_row(slope);
  if (!by) return false;
  return edit.insert(
      {body, size_t(delta - body->data()) + 1},
      std::vector{
          fmt::format("sum {} over j < D = do_rows[b, h, r, j] * ({})", names.rows, *by),
          fmt::format("write_value {}[b, h, r] = where(r < M, {}, 0.0)", names.sums, names.rows)});
}

}  // namespace

bool rule_learned(Edit& edit) {
  // Multiples of q . k last, of which the last may share a factor with the score's derivative.
  std::vector<size_t> order(edit.learned.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](size_t n) {
    return !spec::mentions(edit.learned[n].slope, spec::Kind::score);
  });
  Lines lines;
  bool of_scores = false;
  for (const size_t n : order) {
    const spec::Gradients::Learned& what = edit.learned[n];
    const spec::Output& output = edit.form.outputs[spec::Gradients::kOperands + n];
    if (output.has('i')) continue;  // of pairs: rule_pairs
    if (declaration_of_argument(edit.program, output.name))
      return edit.refuse_kernel("has an argument " + output.name + ", which a gradient is called");
    const bool of_score = what.of == spec::Gradients::Of::score;
    of_scores |= of_score;
    Names names{output.name, edit.fresh({"sum_" + what.argument}),
                edit.local("of_" + what.argument),
                what.element ? letter_of_entries(edit, output)
                : of_score   ? "N"
                             : "P"};
    if (what.element && !output.has('b')) {
      names.copies = edit.fresh({"R", "C", "E", "L", "U", "V", "W"});
      if (!edit.insert(edit.behind_arguments(Op::arg_size),
                       fmt::format("{}: size = B * {}", names.copies, kCopies)))
        return false;
    }
    const bool learned = of_score ? learn_of_score(edit, names, what, n == order.back(), lines)
                         : what.of == spec::Gradients::Of::sink
                             ? learn_of_sink(edit, names, what.slope)
                             : learn_of_epilogue(edit, names, what.slope);
    if (!learned || !sum_up(edit, names) || !add_scratch(edit, names) ||
        !edit.add_gradient(output, names.values))
      return false;
  }
  if (edit.behind && !multiply(edit, edit.behind, lines)) return false;
  if (of_scores && !edit.has_own_keys())
    return edit.refuse("transfer.kernel", edit.place(nullptr),
                       "warpgroups of this kernel have the same keys: what is learned of scores "
                       "would be added twice",
                       "ask for no such gradient, or for a head dimension of up to 128");
  if (lines.empty()) return true;
  const auto at = edit.places();
  return edit.insert({at->step, at->gradient + 1}, lines);
}

}  // namespace kw::transfer::bwd
