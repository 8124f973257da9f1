#include "proofs/reals/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tl/scope/functions.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Stmt;

namespace {

// By the number of its block of rows, where what a block reads once is hoisted.
bool is_of_block(const ExprPtr& e) {
  return (e->kind == ExprKind::field && e->text == "m") ||
         std::any_of(e->args.begin(), e->args.end(), is_of_block);
}

// What a pass reads of keys: they, and the gradients of what they become.
bool reads_keys(const std::vector<Stmt>& body) {
  bool found = false;
  tl::walk(body, [&](const Stmt& s) {
    if (const ExprPtr what = value_of_row(s))
      for (const char* tensor : {"k", "v", "dk_rows", "dv_rows"})
        found |= tl::mentions(what, tensor);
  });
  return found;
}

}  // namespace

std::string RealWalk::run() {
  State state;
  static_cast<Scope&>(state) = module();
  for (const Stmt& s : program_.body)
    if (s.op == Op::param)
      for (const tl::Item& d : s.names()) formulas_.let(d.name, d.expr);
  const Stmt* kernel = program_.kernel();
  if (!kernel) return "the program has no kernel";
  for (const Stmt& s : program_.body)
    for (const Stmt& a : s.body) {
      if (a.op == Op::arg_f32)
        for (const tl::Item& d : a.names())
          if (d.expr) of_launch(d.name, d.expr);
      if (a.op == Op::arg_f32 || tl::is(a.op, Family::tensor))
        for (const tl::Item& d : a.names())
          if (!d.expr) arguments_[d.name] = {d.name};
    }
  tl::walk(kernel->body, [&](const Stmt& s) { role(s); });
  roles_known();
  for (const Stmt& s : program_.body)
    if (s.op == Op::rows) pass(s);
  walk(kernel->body, state);
  return open_;
}

// ---- who is what
void RealWalk::role(const Stmt& s) {
  if (s.op == Op::flag) declare_flags(s);
  if (tl::is(s.op, Family::contract))
    (tl::begins_scores(s.op) ? scores_ : outputs_).insert(tl::base_name(s.acc()));
  if (s.op == Op::to_operand) weights_.insert(tl::base_name(s.dst()));
}

// ---- statements
void RealWalk::walk(const std::vector<Stmt>& body, State& state) {
  for (const Stmt& s : body)
    if (open_.empty()) statement(s, state);
}

void RealWalk::other(const Stmt& s) { open(fmt::format("`{}`", tl::print_head(s))); }

void RealWalk::statement(const Stmt& s, State& state) {
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
      return move(s, state);
    case Family::result:
      return result(s, state);
    default:
      return;
  }
}

void RealWalk::producer(const Stmt& of) {  // what loads tiles computes nothing
  tl::walk(of.body, [&](const Stmt& s) {
    const Family f = tl::traits(s.op).family;
    if (f == Family::map || f == Family::reduce || f == Family::contract || f == Family::gather)
      other(s);
  });
}

void RealWalk::value(const Stmt& s, State& state) {
  if (s.op == Op::let) {
    for (const tl::Item& d : s.names())
      if (degree(d.expr, state) > 0) return other(s);
    for (const tl::Item& d : s.names()) {
      if (is_detour(d.expr, state)) return other(s);
      define(d.name, d.expr);
      // An integer counts once, whatever it is computed of.
      if (eval(d.expr, state).sort == Term::integer)
        degrees_[d.name] = std::min(1, degrees_[d.name]);
    }
    return let(s, state);
  }
  if (s.op == Op::var)
    for (const tl::Item& d : s.names()) state.names[d.name] = {vocabulary_.fresh(d.name), {}};
}

// A pass over rows before the kernel: what it writes has a low degree in what it reads.
void RealWalk::pass(const Stmt& of) {
  tl::walk(of.body, [&](const Stmt& s) {
    const ExprPtr what = value_of_row(s);
    if (s.op == Op::each_row)
      row_ = Row{s.items(tl::Hole::row_index)[0].name, !reads_keys(s.body), {}};
    if (s.op == Op::let)
      for (const tl::Item& d : s.names()) {
        if (loses_of_row(s, d.expr)) return other(s);
        define(d.name, d.expr);
      }
    if (what && loses_of_row(s, what)) return other(s);
    if (what && (s.op == Op::sum || s.op == Op::dot_row))
      for (const tl::Item& d : s.names()) {
        remember(d.name, what);
        formulas_.forget(d.name);
        if (row_) row_->sums.insert(d.name);
      }
    if (what && s.has(tl::Hole::tensor) && s.op != Op::dot_row)
      arguments_[tl::base_name(s.tensor())].merge(arguments_of(what));
    if (what && (of_data(what, 1) > most_of_rows() || constants_.gain(what) > most_gain_of_rows()))
      other(s);
  });
  row_.reset();
}

// Of what a row is summed up, too: of q * (q - mean) large terms cancel, where (q - mean) * (q -
// mean) has none.
bool RealWalk::loses_of_row(const Stmt& s, const ExprPtr& e) {
  if (loses(e, row_.has_value())) return true;
  if (!row_ || s.op != Op::sum) return false;
  // Gradients sum up products of two rows, too.
  const std::set<std::string> terms =
      formulas_.terms(e, form_.training() == spec::Training::backward);
  return !std::includes(lost_.rows.begin(), lost_.rows.end(), terms.begin(), terms.end());
}

// A row of a pass is one of the operand that it reads; its columns are not told apart.
std::string RealWalk::plain_of_row(const ExprPtr& e) const {
  const std::string name = tl::base_name(e);
  if (row_->sums.count(name)) return Expanded::kTotal;
  if (!arguments_.count(name)) return Expanded::kInteger;
  std::string user = form_.user_name(name);
  if (e->kind == ExprKind::name) return Expanded::kOfLaunch + user;
  if (user.ends_with("_rows")) user = "rows." + user.substr(0, user.size() - 5);  // of gradients
  const bool here = tl::mentions(e, row_->index);
  return user + Expanded::place(here && row_->of_queries, here && !row_->of_queries);
}

void RealWalk::gather(const Stmt& s, State& state) {
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
void RealWalk::of_launch(const std::string& name, const ExprPtr& e) {
  if (loses(e, false)) open(fmt::format("`{} = {}`", name, tl::print(e)));
  remember(name, e);
  launch_.insert(name);
  formulas_.of_launch(name, e);
  degrees_[name] = std::max(0, degrees_[name] - 1);
}

// A number that a name stands for from here on.
void RealWalk::define(const std::string& name, const ExprPtr& e) {
  remember(name, e);
  formulas_.let(name, e);
}

void RealWalk::remember(const std::string& name, const ExprPtr& e) {
  constants_.remember(name, e);
  degrees_[name] = of_data(e, 1);
  arguments_[name] = arguments_of(e);
}

std::set<std::string> RealWalk::arguments_of(const ExprPtr& e) const {
  std::set<std::string> out;
  const auto known = arguments_.find(tl::base_name(e));
  if (known != arguments_.end()) out = known->second;
  for (const ExprPtr& a : e->args) out.merge(arguments_of(a));
  return out;
}

// ---- blocks, turns, branches
void RealWalk::block(const Stmt& s, const State& state) {
  State inside = state;
  bind_block(s, inside);
  inside.filled.clear();
  inside.body = ++bodies_;
  walk(s.body, inside);
}

RealWalk::State RealWalk::turn_of(const State& state, bool keeps_scores) {
  State inside = state;
  inside.turn = true;
  inside.body = ++bodies_;
  if (keeps_scores) return inside;
  for (auto& [name, scores] : inside.scores) scores = {};
  new_turn(inside);
  return inside;
}

void RealWalk::loop(const Stmt& s, State& state) {
  const std::string& name = s.items(tl::Hole::index)[0].name;
  if (sides_.of_keys && s.op == Op::range) {  // over what all warpgroups have made in this turn
    state.names[name] = {vocabulary_.fresh(name), {}};
    return walk(s.body, state);
  }
  State inside = turn_of(state, false);
  inside.names[name] = {vocabulary_.fresh(name), {}};
  walk(s.body, inside);
  for (auto& [tile, scores] : state.scores) scores = {};
}

void RealWalk::call(const Stmt& s, State& state) {
  State inside = turn_of(state, true);
  const Stmt* step = enter(s, inside);
  if (!step) return;
  walk(step->body, inside);
  state.scores = std::move(inside.scores);
}

void RealWalk::branch(const Stmt& s, State& state) {
  const ExprPtr& e = s.condition();
  if (!possible(e, state)) return;
  if (!on_flag(e) && eval(e, state).is("true")) return walk(s.body, state);
  if (degree(e, state) > 0) return other(s);
  State inside = state;
  if (is_of_agents(eval(e, state))) return walk(s.body, inside);
  inside.sometimes = true;
  formulas_.enter(e);
  walk(s.body, inside);
  formulas_.leave();
  for (auto& [name, scores] : state.scores) merge(scores, inside.scores[name], e, state);
  state.finished.insert(inside.finished.begin(), inside.finished.end());
  for (auto& [name, local] : state.locals) {
    const Local& then = inside.locals.at(name);
    local.degree = std::max(local.degree, then.degree);
    local.sum &= then.sum;
    local.pure &= then.pure;
    if (!local.scaled != !then.scaled) local = {.body = local.body, .degree = kTooHigh};
  }
}

void RealWalk::merge(Scores& scores, const Scores& then, const ExprPtr&, const State&) {
  scores.masked |= then.masked;
  scores.here &= then.here;
  scores.gain = std::max(scores.gain, then.gain);
  scores.degree = std::max(scores.degree, then.degree);
  scores.weights &= then.weights;
  scores.with_row &= then.with_row;
}

bool RealWalk::is_zero_fill(const Stmt& s) const { return s.op == Op::fill && is_zero(s.value()); }

// ---- formulas
int RealWalk::of_data(const ExprPtr& e, int scores) const {
  if (e->kind == ExprKind::real || e->kind == ExprKind::integer) return 0;
  const std::string name = tl::base_name(e);
  if (e->kind == ExprKind::name || e->kind == ExprKind::index) {
    if (const auto tile = of_tiles_.find(name); tile != of_tiles_.end()) return tile->second;
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

bool RealWalk::is_detour(const ExprPtr& e, const State& state, const Degrees::Has& has) {
  Scope inside = state;
  bind_element(inside);
  if (eval(e, inside).sort == Term::real && loses(e)) return true;
  return is_detour(e, inside, state, has);
}

bool RealWalk::loses(const ExprPtr& e, bool asks_for_sums) {
  const Losses losses = formulas_.losses(e);
  return losses.beyond(lost_) || (asks_for_sums && losses.has_other_sums(lost_));
}

bool RealWalk::masks_last(const Stmt& s, Scores& scores) const {
  const bool last = keeps_masks(s.value(), tl::base_name(s.target()), scores.masked);
  scores.masked |= tl::mentions(s.value(), "-inf");
  return last;
}

bool RealWalk::keeps_masks(const ExprPtr& e, const std::string& tile, bool masked) const {
  if (e->kind == ExprKind::where)
    return keeps_masks(e->args[1], tile, masked) && keeps_masks(e->args[2], tile, masked);
  if (is_minus_infinity(e)) return true;
  if (tl::mentions(e, "-inf")) return false;
  if (!masked || !tl::mentions(e, tile) || tl::base_name(e) == tile) return true;
  const auto of_launch = [&](const ExprPtr& x) {
    return x->kind == ExprKind::name ? launch_.count(x->text) > 0
                                     : x->kind == ExprKind::real && std::stod(x->text) > 0;
  };
  const auto left = [&] { return keeps_masks(e->args[0], tile, masked); };
  const bool right = e->args.size() > 1 && tl::mentions(e->args[1], tile);
  if (e->kind == ExprKind::binary && e->text == "+")
    return left() && keeps_masks(e->args[1], tile, masked);
  if (e->kind == ExprKind::binary && e->text == "-") return !right && left();
  if (e->kind == ExprKind::binary && e->text == "*")
    return right ? of_launch(e->args[0]) && keeps_masks(e->args[1], tile, masked)
                 : of_launch(e->args[1]) && left();
  if (e->kind != ExprKind::call) return false;
  if (e->text == "fma")
    return !right && !tl::mentions(e->args[2], tile) && of_launch(e->args[1]) && left();
  return e->text == "exp2" && left();
}

std::string RealWalk::plain(const ExprPtr& e) const {
  if (row_) return plain_of_row(e);
  const std::string name = tl::base_name(e);
  if (scores_.count(name)) return Expanded::kScore;
  if (outputs_.count(name)) return Expanded::kOutput;
  if (is_handed_on(name) || rows_.count(name)) return Expanded::kOfRow;
  if (!arguments_.count(name)) return Expanded::kInteger;
  const std::string user = form_.user_name(name);
  if (e->kind == ExprKind::name) return Expanded::kOfLaunch + user;
  // What the function reads by keys or pairs at one place alone is that, and a block may read it
  // once. A number of the row is named by its row: a softmax takes it off, so that no case shows
  // which it was.
  const auto known = places_of_form_.find(user);
  if (known != places_of_form_.end() && known->second.size() == 1 &&
      *known->second.begin() != user + Expanded::kRow)
    return *known->second.begin();
  const bool pairs = tl::mentions(e, "d");  // j - i, of a diagonal
  const bool row = pairs || tl::mentions(e, "i") || is_of_block(e);
  return user + Expanded::place(row, pairs || tl::mentions(e, "j"));
}

// An integer as a number of reals, and its negative.
bool RealWalk::is_whole(const ExprPtr& e, const Scope& inside) {
  if (e->kind == ExprKind::unary && e->text == "-") return is_whole(e->args[0], inside);
  return e->kind == ExprKind::call && e->text == "f32" &&
         eval(e->args[0], inside).sort == Term::integer;
}

// max(f32(d), 0.0) is the integer max(d, 0).
bool RealWalk::is_order_of_whole(const tl::Expr& e, const Scope& inside) {
  return std::all_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) {
    const bool number = a->kind == ExprKind::integer || a->kind == ExprKind::real;
    return is_whole(a, inside) || (number && std::stod(a->text) == std::floor(std::stod(a->text)));
  });
}

bool RealWalk::is_detour(const ExprPtr& e, const Scope& inside, const State& state,
                         const Degrees::Has& has) {
  static const std::set<std::string> comparisons = {"<", "<=", ">", ">=", "==", "!="},
                                     functions = {"exp2", "tanh", "rsqrt"},
                                     orders = {"max", "min", "abs"};
  const auto is_real = [&](const ExprPtr& a) {
    return eval(a, inside).sort == Term::real && !is_whole(a, inside);
  };
  const bool of_reals = std::any_of(e->args.begin(), e->args.end(), is_real);
  if (e->kind == ExprKind::call && of_reals) {
    if (orders.count(e->text) && !has.orders && !is_order_of_whole(*e, inside)) return true;
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

}  // namespace kw::proofs
