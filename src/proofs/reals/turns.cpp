#include "proofs/reals/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "proofs/reals/walk.h"
#include "tl/scope/functions.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Stmt;

constexpr int kRows = 1, kOutputs = 2;  // degrees of what was handed on, behind the loops
constexpr int kOfRows = 6;              // of what a pass reads, in what it writes

class OnlineSoftmax : public RealWalk {
 public:
  OnlineSoftmax(const tl::Program& program, const spec::Form& form,
                const std::map<std::string, Term>& sizes, Vocabulary& vocabulary)
      : RealWalk(program, form, sizes, blocks_of_queries(), vocabulary) {
    for (const spec::Term& term : form.terms) {
      for (const spec::ExprPtr& e : {term.score, term.keep, term.sink}) of_scores(e);
      for (const spec::Operand* operand : spec::operands(term))
        if (operand->row && operand != &term.v) {
          for (const spec::ExprPtr& sum : operand->row->sums) of_scores(sum);
          of_scores(operand->row->element);
        }
    }
  }

 private:
  // Names in what the specification's scores are made of.
  void of_scores(const spec::ExprPtr& e) {
    if (!e) return;
    spec::rewrite(e, [&](const spec::ExprPtr& part) {
      of_scores_.insert(part->name);
      return spec::ExprPtr();
    });
  }

  // Nothing else is in the program's: a number of the row is the same for all its keys, and a
  // softmax takes it off again. But scores as large as it are rounded before.
  bool has_more(const ExprPtr& e) const {
    const std::set<std::string> found = arguments_of(e);
    return std::any_of(found.begin(), found.end(), [&](const std::string& argument) {
      return !of_scores_.count(argument) && !of_scores_.count(form_.user_name(argument));
    });
  }

  // ---- who is what
  void role(const Stmt& s) override {
    RealWalk::role(s);
    if (s.op == Op::online_max) {
      references_.insert(tl::base_name(s.max()));
      factors_.insert(tl::base_name(s.alpha()));
    }
    if (s.op == Op::row_sum || s.op == Op::add) sums_.insert(tl::base_name(s.sum()));
    if (s.op == Op::step || tl::is(s.op, Family::loop))
      for (const Stmt& of : s.body)
        if (of.op == Op::fill) within_turns_.insert(tl::base_name(of.target()));
  }

  void roles_known() override {
    if (references_.size() > 1 || factors_.size() > 1) open("two references");
    for (const std::string& s : sums_)
      if (!within_turns_.count(s)) carried_.insert(s);
    if (hides_numbers_of_rows())
      open("no log-sums are given, in which a number of the row would show");
    if (carried_.size() > 1)
      open(fmt::format("two sums, {} and {}", *carried_.begin(), *carried_.rbegin()));
  }

  // What is added to all scores of a row a softmax takes off again: where the function adds
  // something, outputs alone do not show which of it is left.
  bool hides_numbers_of_rows() const {
    const spec::Term& term = form_.terms[0];
    bool adds = false;
    spec::rewrite(term.score, [&](const spec::ExprPtr& e) {
      if (spec::is_binary(e, "+") || spec::is_binary(e, "-"))
        for (const spec::ExprPtr& a : e->args)
          adds |= e->type == spec::Type::real && !spec::is_number(a) &&
                  !spec::mentions(a, spec::Kind::score);
      return spec::ExprPtr();
    });
    if (!adds || term.normaliser != spec::Normaliser::softmax) return false;
    for (const Stmt& s : program_.body)
      for (const Stmt& a : s.body)
        if (tl::is(a.op, Family::tensor))
          for (const tl::Item& d : a.names())
            if (d.name == "lse") return false;
    return true;
  }

  bool is_handed_on(const std::string& name) const override {
    return references_.count(name) || factors_.count(name) || sums_.count(name) ||
           outputs_.count(name);
  }

  int most_of_rows() const override { return kOfRows; }

  void new_turn(State& state) const override {
    for (const std::string& s : within_turns_) state.filled.erase(s);
  }

  void move(const Stmt& s, State& state) override {
    if (s.op == Op::load || s.op == Op::upcast) return;
    if ((s.op != Op::store && s.op != Op::store_columns) || state.turn) other(s);
  }

  void result(const Stmt& s, State& state) override {
    if (state.turn) other(s);
  }

  void merge(Scores& scores, const Scores& then, const ExprPtr& condition,
             const State& state) override {
    const bool asked_for =
        scores.unasked && !scores.flag.empty() && asks(condition, scores.flag, state);
    RealWalk::merge(scores, then, condition, state);
    scores.unasked = then.unasked || (scores.unasked && !asked_for);
    if (!then.asked || !scores.asked || !tl::equal(then.asked, scores.asked))
      scores.asked = nullptr;
  }

  // The flag is raised, and for the rest the condition is true.
  bool asks(const ExprPtr& e, const std::string& flag, const State& state) {
    if (e->kind == ExprKind::binary && e->text == "and")
      return asks(e->args[0], flag, state) && asks(e->args[1], flag, state);
    return e->is_name(flag.c_str()) || eval(e, state).is("true");
  }

  // ---- scores, weights, outputs
  void product(const Stmt& s, State& state) override {
    const std::string acc = tl::base_name(s.acc()), a = tl::base_name(s.a());
    const bool adds = tl::adds_product(s.op);
    if (tl::begins_scores(s.op)) {
      if (weights_.count(a) || scores_.count(a) || outputs_.count(a) || outputs_.count(acc))
        return other(s);
      Scores& scores = state.scores[acc];
      if (adds && (!scores.here || scores.asked || scores.weights)) return other(s);
      if (!adds) scores = {.here = true};
      formulas_.forget(acc);
      return;
    }
    if (!weights_.count(a) || !state.filled.count(acc) || state.finished.count(acc)) other(s);
  }

  void map(const Stmt& s, State& state) override {
    if (s.op == Op::to_operand) return used(tl::base_name(s.src()), s, state);
    const std::string name = tl::base_name(s.target());
    if (s.op == Op::fill) return fill(s, name, state);
    if (s.op == Op::map_rows) return map_rows(s, name, state);
    if (s.op != Op::map && s.op != Op::map_at && s.op != Op::map_real) return other(s);
    if (scores_.count(name)) return map_scores(s, state.scores[name], state);
    if (!outputs_.count(name)) return other(s);
    if (is_times_factor(s.value(), name)) {
      if (!state.filled.count(name) || state.finished.count(name)) other(s);
      return;
    }
    if (state.turn || !state.filled.count(name) || degree(s.value(), state) > kOutputs ||
        of_data(s.value(), 1) > specified_.score + specified_.output - 1 ||
        !divides_first(s.value(), name, state) || is_detour(s.value(), state))
      return other(s);
    formulas_.set(name, s.value(), state.sometimes);
    gain_behind_ += constants_.gain(s.value());
    if (gain_behind_ > most_gain_) other(s);
    state.finished.insert(name);
  }

  void fill(const Stmt& s, const std::string& name, State& state) {
    const bool sum = sums_.count(name) || outputs_.count(name);
    const bool known = sum ? is_zero(s.value()) : references_.count(name) > 0 && begins(s.value());
    const bool of_turn = within_turns_.count(name) && sums_.count(name);
    if (!known || degree(s.value(), state) > 0 || (!of_turn && (state.sometimes || state.turn)))
      return other(s);
    state.filled.insert(name);
    formulas_.forget(name);
    if (references_.count(name)) begun_ = formulas_.arms(s.value());
  }

  // A reference, by -inf or the sink, which is a number of the data or 0.
  bool begins(const ExprPtr& e) const {
    if (!specified_.sink) return is_minus_infinity(e);
    return is_zero(e) ||
           (e->kind == ExprKind::name && !constants_.counts(e) && constants_.gain(e) <= most_gain_);
  }

  // acc[i, j] * inverse[i] before it meets data: an output that is not divided yet is as large as
  // the number of keys lets it be, and times exp(gate) beyond fp32's range.
  bool divides_first(const ExprPtr& e, const std::string& acc, const State& state) const {
    const auto is_row = [&](const ExprPtr& a) {
      const auto local = state.locals.find(tl::base_name(a));
      return a->kind == ExprKind::index && local != state.locals.end() && local->second.degree > 0;
    };
    const auto is_acc = [&](const ExprPtr& a) {
      return a->kind == ExprKind::index && tl::base_name(a) == acc;
    };
    bool right = true, divides = false;
    tl::rewrite(e, [&](const ExprPtr& part) {
      const bool product =
          part->kind == ExprKind::binary && (part->text == "*" || part->text == "/");
      for (const ExprPtr& a : part->args) {
        divides |= is_row(a);
        if (!is_acc(a)) continue;
        const ExprPtr& by = part->args.back();
        right &=
            product && a == part->args[0] && is_row(by) && state.locals.at(tl::base_name(by)).pure;
      }
      return ExprPtr();
    });
    const bool of_data =
        !state.finished.count(acc) && !carried_.empty() && !arguments_of(e).empty();
    return divides ? right : !of_data;
  }

  // sum[i] + exp2((sink - m[i]) * scale), with the sink that the reference began with: then it is
  // no larger than 1, and both are no less than what they stand for.
  bool is_of_sink(const ExprPtr& e, const std::string& sum) {
    if (!specified_.sink || !is_more(e, sum)) return false;
    const ExprPtr& exponent = e->args[1]->args[0];
    if (exponent->kind != ExprKind::binary || exponent->text != "*") return false;
    const ExprPtr& lag = exponent->args[0];
    const bool less = lag->text == "-" && references_.count(tl::base_name(lag->args.back()));
    if (lag->kind == ExprKind::unary) return less && begun_ == formulas_.arms(tl::integer(0));
    return less && lag->kind == ExprKind::binary && begun_ == formulas_.arms(lag->args[0]);
  }

  void map_scores(const Stmt& s, Scores& scores, State& state) {
    if (!scores.here || scores.weights) return other(s);
    if (const ExprPtr scale = scale_of_weights(s.value(), s, state)) {
      if (scores.asked && !tl::equal(scores.asked, scale)) return other(s);
      scores.unasked = !scores.asked;
      scores.weights = true;
      scores.asked = nullptr;
      return;
    }
    if (scores.asked || degree(s.value(), state) > 0 || has_more(s.value()) ||
        !masks_last(s, scores))
      return other(s);
    scores.gain += constants_.gain(s.value());
    scores.degree = of_data(s.value(), scores.degree);
    if (scores.gain > most_gain_ || scores.degree > specified_.score ||
        is_detour(s.value(), state, specified_.scores))
      other(s);
    formulas_.set(tl::base_name(s.target()), s.value(), state.sometimes);
  }

  // exp2(fma(s[i, j], scale, -offset[i])): the scale; null where it is something else.
  ExprPtr scale_of_weights(const ExprPtr& e, const Stmt& s, const State& state) const {
    if (e->kind != ExprKind::call || e->text != "exp2") return nullptr;
    const ExprPtr& fma = e->args[0];
    if (fma->kind != ExprKind::call || fma->text != "fma") return nullptr;
    const ExprPtr &x = fma->args[0], &scale = fma->args[1], &less = fma->args[2];
    if (x->kind != ExprKind::index || tl::base_name(x) != tl::base_name(s.target()) ||
        less->kind != ExprKind::unary || less->args[0]->kind != ExprKind::index)
      return nullptr;
    const auto offset = state.locals.find(tl::base_name(less->args[0]));
    const bool known = offset != state.locals.end() && offset->second.scaled &&
                       tl::equal(offset->second.scaled, scale);
    return known ? scale : nullptr;
  }

  bool is_times_factor(const ExprPtr& e, const std::string& name) const {
    return e->kind == ExprKind::binary && e->text == "*" && e->args[0]->kind == ExprKind::index &&
           tl::base_name(e->args[0]) == name && e->args[1]->kind == ExprKind::index &&
           factors_.count(tl::base_name(e->args[1]));
  }

  void used(const std::string& name, const Stmt& s, State& state) {
    if (!scores_.count(name)) return other(s);
    const Scores& scores = state.scores[name];
    if (!scores.here || scores.unasked || (!references_.empty() && !scores.weights)) other(s);
  }

  // ---- rows
  void rows(const Stmt& s, State& state) override {
    for (const tl::Item& d : s.names()) {
      const bool counts = is_handed_on(d.name) || (d.expr && degree(d.expr, state) > 0);
      if (counts && s.type() != "real") return other(s);
      if (!d.expr) continue;
      Local local;
      const std::string of = tl::base_name(d.expr);
      const auto copied = state.locals.find(of);
      if (copied != state.locals.end()) local = copied->second;
      local.body = state.body;
      local.degree = degree(d.expr, state);
      const bool total = d.expr->kind == ExprKind::call && d.expr->text == "total";
      local.reference |= references_.count(of) > 0;
      local.sum |= total || carried_.count(of) > 0;
      if (local.degree > 0 && !local.reference && state.turn) return other(s);
      state.locals[d.name] = local;
      formulas_.set(d.name, d.expr);
      rows_.insert(d.name);
    }
  }

  void map_rows(const Stmt& s, const std::string& name, State& state) {
    const ExprPtr& e = s.value();
    if (sums_.count(name)) {
      if (!is_times_factor(e, name) || !state.filled.count(name)) other(s);
      return;
    }
    const auto found = state.locals.find(name);
    if (found == state.locals.end() || found->second.body != state.body || is_handed_on(name))
      return other(s);
    Local& local = found->second;
    if (local.reference && !local.scaled) {
      local.scaled = scale_of_offset(e, name);
      return local.scaled ? void() : other(s);
    }
    local.degree = degree(e, state);
    const bool of_sink = is_of_sink(e, name);
    if (local.degree > kRows || (local.degree > 0 && state.turn) ||
        (!of_sink && is_detour(e, state)) || of_data(e, 1) > specified_.score)
      return other(s);
    formulas_.set(name, e, state.sometimes);
    gain_behind_ += constants_.gain(e);
    if (gain_behind_ > most_gain_) return other(s);
    local.pure &= of_sink || arguments_of(e).empty();
    local.sum &= is_more(e, name);
  }

  void reduce(const Stmt& s, State& state) override {
    if (s.op == Op::online_max) {
      Scores& scores = state.scores[tl::base_name(s.src())];
      if (!scores.here || scores.weights || scores.asked ||
          !state.filled.count(tl::base_name(s.max())))
        return other(s);
      scores.asked = s.scale();
      return;
    }
    if (s.op == Op::any_exceeds) return exceeds(s, state);
    if (s.op != Op::row_sum && s.op != Op::add) return other(s);
    const std::string sum = tl::base_name(s.sum());
    if (!state.filled.count(sum)) return other(s);
    if (s.op == Op::add) {
      const std::string part = tl::base_name(s.part());
      return within_turns_.count(part) && state.filled.count(part) ? void() : other(s);
    }
    const Scores& scores = state.scores[tl::base_name(s.src())];
    const bool late = scores.unasked && !within_turns_.count(sum);
    if (!scores.here || late || (!references_.empty() && !scores.weights)) other(s);
  }

  // Whether a sum of this turn shows that the reference lags behind: then weights are made anew.
  void exceeds(const Stmt& s, State& state) {
    if (!within_turns_.count(tl::base_name(s.sum()))) return other(s);
    for (auto& [name, scores] : state.scores)
      if (scores.unasked) scores.flag = s.flag();
  }

  // ---- formulas
  // Of what turns hand on, in a formula. What is no sum and asked whether it is 0 has none.
  int degree(const ExprPtr& e, const State& state) const override {
    if (e->kind == ExprKind::name || e->kind == ExprKind::index) {
      const std::string name = tl::base_name(e);
      const auto local = state.locals.find(name);
      if (local != state.locals.end()) return local->second.degree;
      if (is_handed_on(name)) return 1;
    }
    if (e->kind == ExprKind::where) {
      const int asked = degree(e->args[0], state);
      if (asked > 0 && !is_question(e->args[0], state)) return kOutputs + 1;
      return std::max({asked, degree(e->args[1], state), degree(e->args[2], state)});
    }
    return combined(e, [&](const ExprPtr& a) { return degree(a, state); });
  }

  // A row without a key: its sum is 0, or its reference -inf.
  bool is_question(const ExprPtr& e, const State& state) const override {
    if (e->kind != ExprKind::binary || e->text != "==" || e->args[0]->kind != ExprKind::index)
      return false;
    const std::string name = tl::base_name(e->args[0]);
    const auto local = state.locals.find(name);
    const bool sum = local != state.locals.end() ? local->second.sum : carried_.count(name) > 0;
    const bool reference =
        local != state.locals.end() ? local->second.reference : references_.count(name) > 0;
    return (sum && is_zero(e->args[1])) || (reference && is_minus_infinity(e->args[1]));
  }

  std::set<std::string> of_scores_;
  std::set<std::string> references_, factors_, sums_, carried_, within_turns_;
  Arms begun_;  // with what the reference begins
};

}  // namespace

std::string another_form(const tl::Program& program, const spec::Form& form,
                         const std::map<std::string, Term>& sizes, Vocabulary& vocabulary) {
  return OnlineSoftmax(program, form, sizes, vocabulary).run();
}

}  // namespace kw::proofs
