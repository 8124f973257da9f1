#include "proofs/reals/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "proofs/names.h"
#include "proofs/reals/cancels.h"
#include "proofs/reals/formulas.h"
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
constexpr double kGain = 12;  // binades that all constants of a turn add to the specification's, or
                              // all behind loops
constexpr double kGainOfRows = 80;  // that those of one value which a pass writes do

// Scores in registers, since their product.
struct Scores {
  bool here = false;     // made in this turn
  ExprPtr asked;         // the scale with which the reference was asked for of what they are
  bool weights = false;  // by the reference
  bool unasked = false;  // of a reference that nothing has asked whether it lags too far behind
  std::string flag;      // that says so
  double gain = 0;
  int degree = 1;  // in scores, data and integers
};

// A row vector that has a value where it is declared.
struct Local {
  size_t body = 0;         // where: it lives no longer
  int degree = 0;          // of what turns hand on, in it
  bool reference = false;  // it is the reference itself,
  ExprPtr scaled;          // times this, and 0 where it is -inf
  bool sum = false;        // it is the sum itself, or more
};

struct State : Scope {
  std::map<std::string, Scores> scores;
  std::map<std::string, Local> locals;
  std::set<std::string> filled;    // in this block, or for the sum of a turn in this turn
  std::set<std::string> finished;  // outputs, behind the loops
  bool turn = false, sometimes = false;
  size_t body = 0;
};

class OnlineSoftmax : private Names {
 public:
  OnlineSoftmax(const tl::Program& program, const spec::Form& form,
                const std::map<std::string, Term>& sizes, Vocabulary& vocabulary)
      : Names(program, sizes, vocabulary), specified_(degrees_of(form)), lost_(losses_of(form)) {}

  std::string run() {
    State state;
    static_cast<Scope&>(state) = module();
    for (const Stmt& s : program_.body)
      if (s.op == Op::param)
        for (const tl::Item& d : s.names()) formulas_.let(d.name, d.expr);
    const Stmt* kernel = program_.kernel();
    if (!kernel) return "the program has no kernel";
    for (const Stmt& s : program_.body)
      for (const Stmt& a : s.body)
        if (a.op == Op::arg_f32)
          for (const tl::Item& d : a.names())
            if (d.expr) of_launch(d.name, d.expr);
    tl::walk(kernel->body, [&](const Stmt& s) { role(s); });
    for (const Stmt& s : program_.body)
      if (s.op == Op::rows) pass(s);
    if (references_.size() > 1 || factors_.size() > 1) open("two references");
    for (const std::string& s : sums_)
      if (!within_turns_.count(s)) carried_.insert(s);
    if (carried_.size() > 1)
      open(fmt::format("two sums, {} and {}", *carried_.begin(), *carried_.rbegin()));
    walk(kernel->body, state);
    return open_;
  }

 private:
  // ---- who is what
  void role(const Stmt& s) {
    if (s.op == Op::online_max) {
      references_.insert(tl::base_name(s.max()));
      factors_.insert(tl::base_name(s.alpha()));
    }
    if (s.op == Op::row_sum || s.op == Op::add) sums_.insert(tl::base_name(s.sum()));
    if (s.op == Op::step || tl::is(s.op, Family::loop))
      for (const Stmt& of : s.body)
        if (of.op == Op::fill) within_turns_.insert(tl::base_name(of.target()));
    if (s.op == Op::flag) declare_flags(s);
    if (tl::is(s.op, Family::contract)) {
      const bool begins = !tl::adds_product(s.op) || tl::traits(s.op).transposed;
      (begins ? scores_ : outputs_).insert(tl::base_name(s.acc()));
    }
    if (s.op == Op::to_operand) weights_.insert(tl::base_name(s.dst()));
  }

  bool is_handed_on(const std::string& name) const {
    return references_.count(name) || factors_.count(name) || sums_.count(name) ||
           outputs_.count(name);
  }

  // ---- statements
  void walk(const std::vector<Stmt>& body, State& state) {
    for (const Stmt& s : body)
      if (open_.empty()) statement(s, state);
  }

  void other(const Stmt& s) { open(fmt::format("`{}`", tl::print_head(s))); }

  void statement(const Stmt& s, State& state) {
    const Family family = tl::traits(s.op).family;
    switch (family) {
      case Family::role:
        if (s.op == Op::warpgroup || s.op == Op::thread) return producer(s);
        if (s.op == Op::warpgroups) bind_role(s.me(), state);
        return walk(s.body, state);
      case Family::tiles:
        return s.body.empty() ? void() : block(s, state);
      case Family::loop:
        return loop(s, state);
      case Family::branch:
        return s.op == Op::step   ? declare_step(s)
               : s.op == Op::call ? call(s, state)
               : s.op == Op::if_  ? branch(s, state)
                                  : void();
      case Family::value:
        return value(s, state);
      case Family::registers:
        return s.op == Op::row || s.op == Op::lane_sum ? rows(s, state) : void();
      case Family::contract:
        return product(s, state);
      case Family::map:
        return map(s, state);
      case Family::reduce:
        return reduce(s, state);
      case Family::gather:
        return gather(s, state);
      case Family::move:
        if (s.op == Op::load || s.op == Op::upcast) return;
        if ((s.op == Op::store || s.op == Op::store_columns) && !state.turn) return;
        return other(s);
      case Family::result:
        return state.turn ? other(s) : void();
      default:
        return;
    }
  }

  void producer(const Stmt& of) {  // what loads tiles computes nothing
    tl::walk(of.body, [&](const Stmt& s) {
      const Family f = tl::traits(s.op).family;
      if (f == Family::map || f == Family::reduce || f == Family::contract || f == Family::gather)
        other(s);
    });
  }

  void value(const Stmt& s, State& state) {
    if (s.op == Op::let) {
      for (const tl::Item& d : s.names())
        if (degree(d.expr, state) > 0) return other(s);
      for (const tl::Item& d : s.names()) {
        if (is_detour(d.expr, state)) return other(s);
        define(d.name, d.expr);
      }
      return let(s, state);
    }
    if (s.op == Op::var)
      for (const tl::Item& d : s.names()) state.names[d.name] = {vocabulary_.fresh(d.name), {}};
  }

  // A pass over rows before the kernel: what it writes has a low degree in what it reads.
  void pass(const Stmt& of) {
    tl::walk(of.body, [&](const Stmt& s) {
      const ExprPtr what = value_of_row(s);
      if (s.op == Op::let)
        for (const tl::Item& d : s.names()) {
          if (cancels(d.expr)) return other(s);
          define(d.name, d.expr);
        }
      if (what && (s.op == Op::sum || s.op == Op::dot_row))
        for (const tl::Item& d : s.names()) remember(d.name, what);
      if (what &&
          (of_data(what, 1) > kOfRows || constants_.gain(what) > kGainOfRows || cancels(what)))
        other(s);
    });
  }

  void gather(const Stmt& s, State& state) {
    const std::string name = tl::base_name(s.target());
    if (is_handed_on(name) || scores_.count(name) || degree(s.value(), state) > 0 ||
        is_detour(s.value(), state))
      other(s);
    remember(name, s.value());
    formulas_.set(name, s.value());
    Scope inside = state;
    bind_element(inside);
    state.names[name] = {eval(s.value(), inside), {}};
  }

  // A scale is made of D: of numbers of the launch one is free.
  void of_launch(const std::string& name, const ExprPtr& e) {
    if (cancels(e)) open(fmt::format("`{} = {}`", name, tl::print(e)));
    remember(name, e);
    formulas_.of_launch(name, e);
    degrees_[name] = std::max(0, degrees_[name] - 1);
  }

  // A number that a name stands for from here on.
  void define(const std::string& name, const ExprPtr& e) {
    remember(name, e);
    formulas_.let(name, e);
  }

  // A number, a vector or a sum, by what it is made of.
  void remember(const std::string& name, const ExprPtr& e) {
    constants_.remember(name, e);
    degrees_[name] = of_data(e, 1);
  }

  // ---- blocks, turns, branches
  void block(const Stmt& s, const State& state) {
    State inside = state;
    bind_block(s, inside);
    inside.filled.clear();
    inside.body = ++bodies_;
    walk(s.body, inside);
  }

  // A turn has nothing of the one before but what turns may hand on.
  State turn_of(const State& state, bool keeps_scores) {
    State inside = state;
    inside.turn = true;
    inside.body = ++bodies_;
    if (!keeps_scores)
      for (auto& [name, scores] : inside.scores) scores = {};
    if (!keeps_scores)
      for (const std::string& s : within_turns_) inside.filled.erase(s);
    return inside;
  }

  void loop(const Stmt& s, State& state) {
    State inside = turn_of(state, false);
    const std::string& name = s.items(tl::Hole::index)[0].name;
    inside.names[name] = {vocabulary_.fresh(name), {}};
    walk(s.body, inside);
    for (auto& [tile, scores] : state.scores) scores = {};
  }

  void call(const Stmt& s, State& state) {
    State inside = turn_of(state, true);
    const Stmt* step = enter(s, inside);
    if (!step) return;
    walk(step->body, inside);
    state.scores = std::move(inside.scores);
  }

  // The flag is raised, and for the rest the condition is true.
  bool asks(const ExprPtr& e, const std::string& flag, const State& state) {
    if (e->kind == ExprKind::binary && e->text == "and")
      return asks(e->args[0], flag, state) && asks(e->args[1], flag, state);
    return e->is_name(flag.c_str()) || eval(e, state).is("true");
  }

  void branch(const Stmt& s, State& state) {
    const ExprPtr& e = s.condition();
    if (!possible(e, state)) return;
    if (!on_flag(e) && eval(e, state).is("true")) return walk(s.body, state);
    if (degree(e, state) > 0) return other(s);
    State inside = state;
    inside.sometimes = true;
    formulas_.enter(e);
    walk(s.body, inside);
    formulas_.leave();
    for (auto& [name, scores] : state.scores) {
      const Scores& then = inside.scores[name];
      const bool asked_for = scores.unasked && !scores.flag.empty() && asks(e, scores.flag, state);
      scores.here &= then.here;
      scores.gain = std::max(scores.gain, then.gain);
      scores.degree = std::max(scores.degree, then.degree);
      scores.weights &= then.weights;
      scores.unasked = then.unasked || (scores.unasked && !asked_for);
      if (!then.asked || !scores.asked || !tl::equal(then.asked, scores.asked))
        scores.asked = nullptr;
    }
    state.finished.insert(inside.finished.begin(), inside.finished.end());
    for (auto& [name, local] : state.locals) {
      const Local& then = inside.locals.at(name);
      local.degree = std::max(local.degree, then.degree);
      local.sum &= then.sum;
      if (!local.scaled != !then.scaled) local = {.body = local.body, .degree = kOutputs + 1};
    }
  }

  // ---- scores, weights, outputs
  void product(const Stmt& s, State& state) {
    const std::string acc = tl::base_name(s.acc()), a = tl::base_name(s.a());
    const bool adds = tl::adds_product(s.op), begins = !adds || tl::traits(s.op).transposed;
    if (begins) {
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

  void map(const Stmt& s, State& state) {
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
        is_detour(s.value(), state))
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
    if (scores.asked || degree(s.value(), state) > 0) return other(s);
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
  void rows(const Stmt& s, State& state) {
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
    local.sum &= is_more(e, name);
  }

  void reduce(const Stmt& s, State& state) {
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
  int degree(const ExprPtr& e, const State& state) const {
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

  // Of scores, whose own is given, of data and of integers among reals; what was handed on has none
  // but an output, which counts as the data that it is of.
  int of_data(const ExprPtr& e, int scores) const {
    if (e->kind == ExprKind::real || e->kind == ExprKind::integer) return 0;
    const std::string name = tl::base_name(e);
    if (e->kind == ExprKind::name || e->kind == ExprKind::index) {
      if (scores_.count(name)) return scores;
      if (outputs_.count(name)) return 1;
      if (const auto known = degrees_.find(name); known != degrees_.end()) return known->second;
      return is_handed_on(name) || rows_.count(name) || tl::find_constant(name) ? 0 : 1;
    }
    if (e->kind == ExprKind::field) return 1;
    if (e->kind == ExprKind::where)
      return std::max(of_data(e->args[1], scores), of_data(e->args[2], scores));
    return combined(e, [&](const ExprPtr& a) { return of_data(a, scores); });
  }

  bool cancels(const ExprPtr& e) { return formulas_.losses(e).beyond(lost_); }

  // Whether it has functions or comparisons of reals, or terms that cancel, where the specification
  // has none.
  bool is_detour(const ExprPtr& e, const State& state) {
    return is_detour(e, state, specified_.all);
  }

  bool is_detour(const ExprPtr& e, const State& state, const Degrees::Has& has) {
    Scope inside = state;
    bind_element(inside);
    if (eval(e, inside).sort == Term::real && cancels(e)) return true;
    return is_detour(e, inside, state, has);
  }

  bool is_detour(const ExprPtr& e, const Scope& inside, const State& state,
                 const Degrees::Has& has) {
    static const std::set<std::string> comparisons = {"<", "<=", ">", ">=", "==", "!="},
                                       functions = {"exp2", "tanh", "rsqrt"},
                                       orders = {"max", "min", "abs"};
    const auto is_real = [&](const ExprPtr& a) { return eval(a, inside).sort == Term::real; };
    const bool of_reals = std::any_of(e->args.begin(), e->args.end(), is_real);
    if (e->kind == ExprKind::call && of_reals) {
      if (orders.count(e->text) && !has.orders) return true;
      if (functions.count(e->text) && !has.functions) return true;
      // Behind the loops there is the logarithm of the sum.
      if (e->text == "log2" && !has.logarithms && degree(e->args[0], state) == 0) return true;
    }
    if (e->kind == ExprKind::binary && comparisons.count(e->text) && of_reals && !has.orders &&
        !is_question(e, state))
      return true;
    const size_t first = e->kind == ExprKind::index ? e->args.size() : 0;
    return std::any_of(e->args.begin() + std::ptrdiff_t(first), e->args.end(),
                       [&](const ExprPtr& a) { return is_detour(a, inside, state, has); });
  }

  // A row without a key: its sum is 0, or its reference -inf.
  bool is_question(const ExprPtr& e, const State& state) const {
    if (e->kind != ExprKind::binary || e->text != "==" || e->args[0]->kind != ExprKind::index)
      return false;
    const std::string name = tl::base_name(e->args[0]);
    const auto local = state.locals.find(name);
    const bool sum = local != state.locals.end() ? local->second.sum : carried_.count(name) > 0;
    const bool reference =
        local != state.locals.end() ? local->second.reference : references_.count(name) > 0;
    return (sum && is_zero(e->args[1])) || (reference && is_minus_infinity(e->args[1]));
  }

  std::set<std::string> references_, factors_, sums_, carried_, within_turns_;
  std::set<std::string> scores_, outputs_, weights_;
  const Degrees specified_;
  const Losses lost_;
  const double most_gain_ = kGain + specified_.gain;
  Formulas formulas_;
  Arms begun_;                  // with what the reference begins
  std::set<std::string> rows_;  // locals
  std::map<std::string, int> degrees_;
  Constants constants_;
  double gain_behind_ = 0;
  size_t bodies_ = 0;
};

}  // namespace

std::string another_form(const tl::Program& program, const spec::Form& form,
                         const std::map<std::string, Term>& sizes, Vocabulary& vocabulary) {
  return OnlineSoftmax(program, form, sizes, vocabulary).run();
}

}  // namespace kw::proofs
