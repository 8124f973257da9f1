// What makes weights of the scores, where it is not a plain softmax.
//
// Weights without a softmax, f(s) or f(s) / sum of f(s):
//   if partial: map_at s = where(j < N, s, -inf)     ->   map s[i, j] = max(s[i, j] * scale, 0.0)
//   raised = online_max m, factor, s, slack, scale           if partial: map_at s = where(j < N, s,
//   0.0) map s[i, j] = exp2(fma(s[i, j], scale, -offset[i])) with everything gone that only the
//   running maximum, and of f(s) the sum, needed
// A sink, one logit more in each row:
//   fill m = -inf                                  ->   fill m = sink
//   row sum = total(l), inverse = sum              ->   row sum = total(l)
//                                                       map_rows sum[i] = sum[i] + exp2((sink -
//                                                       m[i]) * scale) row inverse = sum
//   with `let sink = sinks[c.h] * unscale`
//
// When     the form's normaliser is none or sum, or its scores are bounded (rule_bounded; the log
//          of the sum then stays); or it is a softmax with a sink. The reference of a row then
//          starts at the sink, so that its own power is never above 1.
// Effect   factors of a weight that are the same for a whole row go to the output, in f32. The
//          factor of s within an exponential or a sigmoid, times log2e, is `scale`; a sigmoid is
//          1 / (1 + 2^-x), with the device's approximations. The log-sum-exp is not an output of
//          weights without a softmax; with a sink it counts the sink.
#include <fmt/format.h>

#include "operator/expr/fold.h"
#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/scale.h"
#include "transfer/families/attention/score_map.h"
#include "transfer/prune.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;
using tl::Op;
using tl::Stmt;

ExprPtr name(const std::string& text) { return spec::leaf(Kind::argument, Type::real, text); }

// ---- the weight, as the kernel computes it

// A weight as a factor of its row, null for 1, times what depends on the key.
struct Weight {
  ExprPtr of_row, of_key;
};

void multiply(ExprPtr& product, const ExprPtr& e, bool inverse) {
  const ExprPtr factor = inverse ? spec::unary("reciprocal", e) : e;
  if (const auto c = spec::constant(factor); c && *c == 1) return;
  product = product ? spec::binary("*", product, factor) : factor;
}

void split_row(const ExprPtr& e, bool inverse, Weight& w) {
  if (e->kind == Kind::binary && (is(e, "*") || is(e, "/"))) {
    split_row(e->args[0], inverse, w);
    split_row(e->args[1], inverse != is(e, "/"), w);
  } else {
    const bool of_key = spec::mentions(e, Kind::score) || spec::mentions(e, Kind::index, "j");
    multiply(of_key ? w.of_key : w.of_row, e, inverse);
  }
}

// x * log2e, where the logarithms in x are of 2.
ExprPtr in_powers_of_two(const ExprPtr& x) {
  if (is(x, "+") || is(x, "-")) {
    if (x->kind == Kind::unary) return spec::unary("-", in_powers_of_two(x->args[0]));
    return spec::binary(x->name, in_powers_of_two(x->args[0]), in_powers_of_two(x->args[1]));
  }
  if (is(x, "log")) return spec::unary("log2", x->args[0]);
  if (const auto c = spec::constant(x)) return spec::real(*c * 1.4426950408889634);
  return spec::binary("*", x, name("log2e"));
}

// Writes exponentials and sigmoids of scores as powers of 2; the first takes `scale`.
class Powers {
 public:
  explicit Powers(Edit& edit) : edit_(edit) {}
  bool failed() const { return failed_; }

  ExprPtr write(const ExprPtr& e) {
    const bool sigmoid = is(e, "sigmoid");
    if ((sigmoid || is(e, "exp")) && spec::mentions(e, Kind::score))
      if (const ExprPtr x = power(e->args[0], sigmoid)) {
        const ExprPtr p = spec::unary("exp2", x);
        return sigmoid ? spec::unary("reciprocal", spec::binary("+", spec::real(1), p)) : p;
      }
    if (e->args.empty()) return e;
    spec::Expr out = *e;
    for (ExprPtr& a : out.args) a = write(a);
    return spec::make(std::move(out));
  }

  // s * 0.125  ->  s * scale, if no exponential took it.
  ExprPtr write_factor(const ExprPtr& e) {
    const bool factor =
        is(e, "*") && spec::mentions(e->args[0], Kind::score) && e->args[1]->kind == Kind::number;
    if (factor && !taken_) take(plain_ = e->args[1], false);
    if (factor && plain_ && spec::equal(e->args[1], plain_))
      return spec::binary("*", e->args[0], name(edit_.facts.scale));
    if (e->args.empty()) return e;
    spec::Expr out = *e;
    for (ExprPtr& a : out.args) a = write_factor(a);
    return spec::make(std::move(out));
  }

 private:
  // The power of 2 that exp(x) is, or exp(-x); null where the Speller's own way must do.
  ExprPtr power(const ExprPtr& x, bool negative) {
    const Score parts = take_apart(x);
    if (taken_ || !parts.core || !same_for_all_scores(parts.factor)) return nullptr;
    take(parts.factor, true);
    const ExprPtr core = spec::binary("*", write(parts.core), name(edit_.facts.scale));
    if (!parts.bias) return negative ? spec::unary("-", core) : core;
    const ExprPtr bias = in_powers_of_two(parts.bias);
    if (negative) return spec::binary("-", spec::unary("-", bias), core);
    return spec::binary("+", core, bias);
  }

  void take(const ExprPtr& factor, bool of_powers) {
    taken_ = true;
    failed_ = !set_scale(edit_, edit_.facts.scale, edit_.facts.dim, factor, of_powers);
  }

  Edit& edit_;
  ExprPtr plain_;  // the factor that `scale` is outside of exponentials
  bool taken_ = false, failed_ = false;
};

// ---- places

bool is_map_of(const Stmt& s, const std::string& tile) {
  return s.op == Op::map && tl::base_name(s.target()) == tile;
}

Stmt* find(std::vector<Stmt>& body, const std::function<bool(const Stmt&)>& test) {
  Stmt* found = nullptr;
  tl::walk(body, [&](Stmt& s) {
    if (!found && test(s)) found = &s;
  });
  return found;
}

// Blocks are not looked at late any more.
void never_check_late(Edit& edit, Pruner& pruner) {
  for (const std::string& toggle : late_toggles(edit.program, edit.facts))
    pruner.decide(toggle, false);
}

void rename_step(Edit& edit, const std::string& to) {
  tl::walk(edit.program.body, [&](Stmt& s) {
    if ((s.op == Op::step || s.op == Op::call) && s.name() == edit.facts.softmax) s.name() = to;
  });
  edit.facts.softmax = to;
}

// fill fresh = 0.0; row_sum fresh += s; add l += fresh   ->   row_sum l += s
void sum_directly(Edit& edit, Pruner& pruner) {
  Stmt* step = softmax_step(edit.program, edit.facts);
  const Stmt* add = find(step->body, [](const Stmt& s) { return s.op == Op::add; });
  if (!add) return;
  const tl::ExprPtr sum = add->sum();
  const std::string fresh = tl::base_name(add->part());
  Stmt* row_sum = find(step->body, [](const Stmt& s) { return s.op == Op::row_sum; });
  row_sum->sum() = sum;
  pruner.remove([&](const Stmt& s) {
    return (s.op == Op::add && tl::base_name(s.part()) == fresh) ||
           (s.op == Op::fill && tl::base_name(s.target()) == fresh);
  });
}

// ---- weights without a softmax

// (m[i] * scale + log2(l[i])) * ln2   ->   log2(l[i]) * ln2
void log_of_sum_alone(Edit& edit, Pruner& pruner, const std::string& reference) {
  tl::walk(edit.program.body, [&](Stmt& s) {
    if (s.op != Op::map_rows || !mentions(s, reference) || !tl::mentions(s.value(), "ln2")) return;
    pruner.suspect(s.value());
    s.value() = tl::rewrite(s.value(), [&](const tl::ExprPtr& e) -> tl::ExprPtr {
      const bool sum = e->kind == tl::ExprKind::binary && e->text == "+";
      return sum && tl::mentions(e->args[0], reference) ? e->args[1] : nullptr;
    });
  });
}

// map s = w   ->   map s = to_bf16(w)
//
// Of what is saved for gradients, the sum is of the weights as the product with v has them: where
// one key outweighs all others the output is then its value, and `do . v - do . o` cancels.
void sum_what_is_multiplied(Edit& edit) {
  const Place mask = mask_of(edit.program, edit.facts);
  Stmt& map = (*mask.block)[mask.at - 1];  // which write_score_map() puts before the mask
  map.value() = tl::call("to_bf16", {map.value()});
}

// Everything that follows the maximum of a row, and the log of its sum where that is no output.
void drop_statistics(Edit& edit, Pruner& pruner) {
  never_check_late(edit, pruner);
  pruner.settle_parameters();
  const Stmt* online_max = edit.program.find(Op::online_max);
  const std::string flag = online_max->flag(), factor = tl::base_name(online_max->alpha());
  if (edit.keeps_lse) log_of_sum_alone(edit, pruner, tl::base_name(online_max->max()));
  pruner.remove([&](const Stmt& s) {
    const bool rescales = (s.op == Op::map_rows && mentions(s, factor)) ||
                          (s.op == Op::if_ && tl::mentions(s.condition(), flag));
    const bool exponentials = is_map_of(s, edit.facts.score);
    const bool sums = s.op == Op::store_rows && !edit.keeps_lse;
    return s.op == Op::online_max || s.op == Op::any_exceeds || sums || rescales || exponentials;
  });
}

// Dropped scores become dropped weights.
void mask_by_zero(Edit& edit) {
  const Place place = mask_of(edit.program, edit.facts);
  tl::ExprPtr& keep = (*place.block)[place.at].body[0].value();
  keep = tl::where(keep->args[0], keep->args[1], tl::real(0));
}

// The output is not divided any more.
void drop_division(Edit& edit, Pruner& pruner) {
  Stmt* map = output_map_of(edit.program);
  pruner.suspect(map->value());
  map->value() = tl::index(tl::name(tl::base_name(map->target())), {tl::name("i"), tl::name("j")});
}

bool write_weights(Edit& edit, bool divided) {
  if (!spec::mentions(edit.score, Kind::score))
    return edit.refuse("transfer.score", edit.place(edit.term.score),
                       fmt::format("the weight {} does not depend on q and k", print(edit.score)),
                       "supported are weights that do");
  Weight weight;
  split_row(edit.score, false, weight);
  Powers powers(edit);
  ExprPtr value = powers.write_factor(powers.write(weight.of_key));
  if (powers.failed()) return false;
  value = hoist_parts(edit, value, "bias", Hoist::sizes);
  if (!value) return false;

  Pruner pruner(edit.program);
  drop_statistics(edit, pruner);
  rename_step(edit, edit.fresh({"weigh", "weigh_scores"}));
  if (divided) {
    sum_directly(edit, pruner);
  } else {
    drop_division(edit, pruner);
    const ExprPtr o = spec::leaf(Kind::output, Type::real, "o");
    if (weight.of_row)
      edit.epilogue = spec::rewrite(edit.epilogue ? edit.epilogue : o, [&](const ExprPtr& e) {
        return e->kind == Kind::output ? spec::binary("*", o, weight.of_row) : nullptr;
      });
  }
  mask_by_zero(edit);
  if (!write_score_map(edit, value)) return false;
  if (divided && edit.form.saves) sum_what_is_multiplied(edit);
  pruner.prune();
  return true;
}

// ---- a sink

// The sink in the units of the tile, as TL text.
std::optional<std::string> sink_text(Edit& edit) {
  if (const auto c = spec::constant(edit.sink); c && *c == 0) return "0.0";
  if (!edit.unscale.empty() || declare_unscale(edit)) {
    const ExprPtr value =
        edit.unscale.empty() ? edit.sink : spec::binary("*", edit.sink, name(edit.unscale));
    const ExprPtr hoisted = edit.hoist(value, {"sink"});
    if (hoisted) return hoisted->name;
  }
  return std::nullopt;
}

bool write_sink(Edit& edit) {
  if (has_coordinate(edit.sink))
    return edit.refuse("transfer.sink", edit.place(edit.term.sink),
                       fmt::format("the sink {} is another for each query", print(edit.sink)),
                       "supported is one for each head and batch entry");
  const std::string reference = tl::base_name(edit.program.find(Op::online_max)->max());
  const auto sink = sink_text(edit);
  if (!sink) return false;
  Stmt* fill = find(edit.program.body, [&](const Stmt& s) {
    return s.op == Op::fill && tl::base_name(s.target()) == reference;
  });
  fill->value() = tl::parse_expr(*sink, edit.diagnostics);

  // row sum = total(l), inverse = sum   ->   row sum = total(l); ...; row inverse = sum
  Place rows{nullptr, 0};
  tl::walk(edit.program.body, [&](Stmt& s) {
    for (size_t n = 0; n < s.body.size(); ++n)
      if (s.body[n].op == Op::row && s.body[n].names()[0].expr &&
          s.body[n].names()[0].expr->text == "total")
        rows = {&s.body, n};
  });
  if (!rows.block)
    return edit.refuse("transfer.kernel", {}, "this kernel has no total of its exponentials", "");
  Stmt first = (*rows.block)[rows.at];
  first.names().resize(1);
  std::vector<tl::Item>& others = (*rows.block)[rows.at].names();
  others.erase(others.begin());
  const std::string sum = first.names()[0].name,
                    beyond = *sink == "0.0" ? fmt::format("-{}[i]", reference)
                                            : fmt::format("({} - {}[i])", *sink, reference);
  rows.block->insert(rows.block->begin() + rows.at, first);
  return edit.insert(
      {rows.block, rows.at + 1},
      fmt::format("map_rows {0}[i] = {0}[i] + exp2({1} * {2})", sum, beyond, edit.facts.scale));
}

}  // namespace

bool rule_normaliser(Edit& edit) {
  if (edit.sink) return write_sink(edit);
  if (edit.normaliser == spec::Normaliser::softmax) return true;
  const bool divided = edit.normaliser == spec::Normaliser::sum;
  edit.keeps_lse = edit.keeps_lse || (divided && edit.form.saves);
  return write_weights(edit, divided);
}

}  // namespace kw::transfer
