#include "proofs/visits.h"

#include <fmt/format.h>

#include <algorithm>

#include "proofs/names.h"
#include "proofs/solver/sexpr.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

// Scores in registers, since the product that they came of.
struct Tile {
  int64_t rows = 0, columns = 0;
  bool scores = false, used = false, again = false;
  bool weights = false;  // its maps have taken the exponential: a 0 leaves an element out
  Term kept = Term::truth(true);
  std::optional<Term> i0, j0;
};

struct State : Scope {
  std::map<std::string, Tile> tiles;
  std::string block, begin, end;
  bool first = false;  // of pairs, before their loop
  bool other = false;  // and none of them is known to be
};

class Walk : private Names {
 public:
  Walk(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& blocks,
       bool without_softmax, Vocabulary& vocabulary)
      : Names(program, sizes, blocks, vocabulary), without_softmax_(without_softmax) {}

  Visits run() {
    walk_kernel();
    out_.of_all = std::move(of_all_);
    out_.list = std::move(list_);
    out_.extents = std::move(extents_);
    out_.sizes = std::move(computed_sizes_);
    if (pairs_) out_.last_pair = pairs_->last();
    out_.open = std::move(open_);
    return std::move(out_);
  }

 private:
  void walk_kernel() {
    State state;
    static_cast<Scope&>(state) = module();
    const Stmt* kernel = program_.kernel();
    if (!kernel) return open("the program has no kernel");
    if (kernel->op == Op::warpgroups_kernel) bind_role(kernel->me(), state);
    walk(kernel->body, state);
    if (out_.all.empty()) open("no scores are used up");
  }

  // ---- statements
  void walk(const std::vector<Stmt>& body, State& state) {
    for (const Stmt& s : body) statement(s, state);
  }

  void statement(const Stmt& s, State& state) {
    if (tl::is_loop(s.op)) return loop(s, state);
    if (tl::is(s.op, tl::Family::contract)) return product(s, state);
    switch (s.op) {
      case Op::warpgroup:  // producers: what they load is another matter
      case Op::thread:
        return;
      case Op::warpgroups:
        bind_role(s.me(), state);
        return walk(s.body, state);
      case Op::cluster:
        return bind_below(s.rank(), eval(s.ctas(), state), state, of_all_);
      case Op::let:
        return let(s, state);
      case Op::var:
        for (const tl::Item& d : s.names()) state.names[d.name] = {vocabulary_.fresh(d.name), {}};
        return;
      case Op::flag:
        return declare_flags(s);
      case Op::accumulator:
        for (const tl::Item& d : s.names())
          state.tiles[d.name] = {number_of(s.rows(), state), number_of(s.columns(), state)};
        return;
      case Op::set_rows:
        return gather(s, s.i0(), nullptr, state);
      case Op::set_columns:
        return gather(s, nullptr, s.j0(), state);
      case Op::set_diagonals:
      case Op::set_tile:
        return gather(s, s.i0(), s.j0(), state);
      case Op::map:
      case Op::map_at:
      case Op::map_real:
        return map(s, state);
      case Op::row_sum:
      case Op::to_operand:
      case Op::store:
      case Op::store_columns:
      case Op::store_transposed:
      case Op::add_diagonals:
        return use(s, tl::base_name(s.src()), false, state);
      case Op::step:
        return declare_step(s);
      case Op::call:
        return call(s, state);
      case Op::if_:
        return branch(s, state);
      default:
        return;
    }
  }

  int64_t number_of(const ExprPtr& e, const State& state) {
    const Term t = eval(e, state);
    return t.sort == Term::integer && t.text.find_first_not_of("0123456789") == std::string::npos
               ? std::stoll(t.text)
               : 0;
  }

  // The element at (i, j), wherever a vector or a tile keeps it.
  void gather(const Stmt& s, const ExprPtr&, const ExprPtr&, State& state) {
    State inside = with_coordinates(state);
    const Term t = eval(s.value(), inside);
    state.names[tl::base_name(s.target())] = {t, {}};
  }

  State with_coordinates(const State& state) {
    State inside = state;
    bind_element(inside);
    return inside;
  }

  // Whether a map leaves an element: not where it makes it -inf, or a weight 0 by a choice, or
  // multiplies it by another tile's weight that is 0.
  Term kept(const ExprPtr& e, bool weights, const State& state) {
    if (is_minus_infinity(e)) return Term::truth(false);
    if (sides_.of_keys && e->kind != ExprKind::where) return weight_kept(e, weights, state);
    if (e->kind != ExprKind::where) return Term::truth(true);
    const auto side = [&](const ExprPtr& x) {
      return is_zero(x) && weights ? Term::truth(false) : kept(x, weights, state);
    };
    const Term a = side(e->args[1]), b = side(e->args[2]);
    if (a.is("true") && b.is("true")) return a;
    const Term condition = eval(e->args[0], state);
    return either(both(condition, a), both(negation(condition), b));
  }

  void map(const Stmt& s, State& state) {
    const std::string name = tl::base_name(s.target());
    auto tile = state.tiles.find(name);
    if (tile == state.tiles.end() || !tile->second.scores) return;
    const State inside = with_coordinates(state);
    Tile& of = tile->second;
    of.weights |= without_softmax_ || takes_exponential(s.value());
    target_ = name;
    const Term k = kept(s.value(), of.weights, inside);
    const bool gradient = sides_.of_keys && has_weights(s.value(), inside);
    target_.clear();
    const bool anew = sides_.of_keys && !tl::mentions(s.value(), name);  // what it was is gone
    of.kept = anew ? k : both(of.kept, k);
    of.weights |= gradient;
    if ((anew || gradient) && of.used) {
      of.used = false;
      of.again = true;  // a turn's visit was counted
    }
    if (s.op == Op::map) return;
    const Term i0 = eval(s.i0(), state), j0 = eval(s.j0(), state);
    const auto same = [&](const std::optional<Term>& was, const Term& now) {
      if (was && was->text != now.text) open("two maps of one tile begin at different elements");
    };
    same(tile->second.i0, i0);
    same(tile->second.j0, j0);
    tile->second.i0 = i0;
    tile->second.j0 = j0;
  }

  // A product is 0 where a factor is, a sum where both terms are.
  Term weight_kept(const ExprPtr& e, bool weights, const State& state) {
    if (const Tile* other = weights_in(*e, state)) return other->kept;
    if (is_zero(e)) return Term::truth(!weights);
    if (!has_weights(e, state)) return Term::truth(true);
    const bool product = e->text == "*", sum = e->text == "+" || e->text == "-";
    if (e->kind != ExprKind::binary || (!product && !sum))
      return Term::unknown(fmt::format("where `{}` is 0", tl::print(e)));
    const auto side = [&](const ExprPtr& x) { return kept(x, weights || sum, state); };
    const Term a = side(e->args[0]), b = side(e->args[1]);
    return product ? both(a, b) : either(a, b);
  }

  // The tile of weights that an expression is an element of, but for the one that a map changes.
  const Tile* weights_in(const Expr& e, const State& state) const {
    if (!sides_.of_keys || e.kind != ExprKind::index || e.args[0]->kind != ExprKind::name)
      return nullptr;
    const auto tile = state.tiles.find(e.args[0]->text);
    const bool other = tile != state.tiles.end() && tile->first != target_;
    return other && tile->second.weights ? &tile->second : nullptr;
  }

  bool has_weights(const ExprPtr& e, const State& state) const {
    bool found = false;
    tl::rewrite(e, [&](const ExprPtr& part) {
      found |= weights_in(*part, state) != nullptr;
      return ExprPtr();
    });
    return found;
  }

  // A product of queries and keys begins a tile of scores; what adds to an accumulator uses
  // weights.
  void product(const Stmt& s, State& state) {
    const auto tile = state.tiles.find(tl::base_name(s.acc()));
    if (tile == state.tiles.end()) return;
    const bool adds = tl::adds_product(s.op), transposed = tl::traits(s.op).transposed;
    if (adds && !transposed) return;
    Tile& t = tile->second;
    if (adds && t.scores && !t.used) return;  // a further part of the same scores
    t.scores = true;
    t.again = sides_.of_keys && (t.used || t.again);  // the same scores once more in this turn
    t.used = false;
    t.weights = false;
    t.kept = Term::truth(true);
    t.i0.reset();
    t.j0.reset();
  }

  void use(const Stmt& s, const std::string& name, bool again, State& state) {
    const auto found = state.tiles.find(name);
    if (found == state.tiles.end() || !found->second.scores || found->second.used) return;
    Tile& t = found->second;
    t.used = true;
    if (t.kept.sort == Term::open) open(t.kept.text);
    if (state.other) open("a turn before the loop over queries that is not about the last of them");
    out_.all.push_back({.premises = state.premises,
                        .block = state.block,
                        .begin = state.begin,
                        .end = state.end,
                        .first = state.first,
                        .tile = name,
                        .i0 = t.i0,
                        .j0 = t.j0,
                        .rows = t.rows,
                        .columns = t.columns,
                        .kept = t.kept,
                        .again = again || t.again || under_flag_,
                        .span = s.span});
  }

  void call(const Stmt& s, State& state) {
    State inside = state;
    const Stmt* step = enter(s, inside);
    if (!step) return;
    if (sides_.of_keys && state.block.empty()) {
      if (!pairs_)
        return open(fmt::format("`{}` outside of loops over queries", tl::print_head(s)));
      turn(inside);
      inside.first = true;
      const std::string last = pairs_->alone ? pairs::kPlace : pairs::kFirst;
      inside.other = std::none_of(inside.names.begin(), inside.names.end(),
                                  [&](const auto& name) { return name.second.term.text == last; });
      const bool any = std::none_of(step->params().begin(), step->params().end(),
                                    [](const tl::Item& p) { return p.type == "index"; });
      if (!inside.other || any) ++first_calls_[s.name()];
    }
    walk(step->body, inside);
    state.tiles = std::move(inside.tiles);
  }

  // Of pairs: at this one.
  void turn(State& state) {
    state.block = pairs::kPlace;
    state.begin = fmt::format("(- {} 1)", pairs_->count);
    state.end = "0";
    state.premises.push_back(in_range(pairs::kPlace, pairs_->count));
  }

  void branch(const Stmt& s, State& state) {
    if (on_flag(s.condition())) {
      State inside = state;
      const bool outer = under_flag_;
      under_flag_ = true;
      if (possible(s.condition(), state)) walk(s.body, inside);
      under_flag_ = outer;
      return;
    }
    const Term condition = eval(s.condition(), state);
    if (condition.is("false")) return;
    if (condition.is("true")) return walk(s.body, state);
    if (condition.sort != Term::boolean) return open(condition.text);
    State inside = state;
    inside.premises.push_back(condition.text);
    const std::map<std::string, int> first_calls = first_calls_;  // those in it are some agents'
    walk(s.body, inside);
    first_calls_ = first_calls;
    for (auto& [name, tile] : state.tiles) {
      const auto then = inside.tiles.find(name);
      if (then == inside.tiles.end()) continue;
      tile.kept = choice(condition, then->second.kept, tile.kept);
      if (then->second.used != tile.used) open("scores that are used in one branch");
      if (!tile.i0) tile.i0 = then->second.i0;
      if (!tile.j0) tile.j0 = then->second.j0;
    }
  }

  void loop(const Stmt& s, State& state) {
    State inside = state;
    if (tl::is(s.op, tl::Family::tiles)) {
      bind_block(s, inside);
      return walk(s.body, inside);
    }
    const std::string& name = s.items(tl::Hole::index)[0].name;
    if (s.op == Op::range) {
      bind_below(name, eval(s.end(), state), inside, inside.premises);
      return walk(s.body, inside);
    }
    Term n = vocabulary_.fresh(name);
    const Term begin = eval(s.begin(), state), end = eval(s.end(), state);
    if (begin.sort != Term::integer || end.sort != Term::integer)
      return open(begin.sort == Term::integer ? end.text : begin.text);
    if (sides_.of_keys && !bind_pairs(n, begin)) return open("the turns of a loop over queries");
    inside.names[name] = {n, {}};
    if (sides_.of_keys) {
      out_.loops.insert({begin.text, end.text, begun(s)});
      turn(inside);
    } else {
      inside.premises.push_back(
          fmt::format("(and (<= {} {}) (<= {} {}))", end.text, n.text, n.text, begin.text));
      inside.block = n.text;
      inside.begin = begin.text;
      inside.end = end.text;
    }
    walk(s.body, inside);
    state.tiles = std::move(inside.tiles);
  }

  // Whether a step of the loop's has had its first turn before it.
  bool begun(const Stmt& loop) const {
    return std::any_of(loop.body.begin(), loop.body.end(), [&](const Stmt& s) {
      const auto called = s.op == Op::call ? first_calls_.find(s.name()) : first_calls_.end();
      return called != first_calls_.end() && called->second == 1;
    });
  }

  const bool without_softmax_;
  std::string target_;  // of the map that is looked at
  Visits out_;
  bool under_flag_ = false;
  std::map<std::string, int> first_calls_;  // by step, of pairs: about the last, or about none
};

}  // namespace

Visits visits_of(const tl::Program& program, const std::map<std::string, Term>& sizes,
                 const Blocks& blocks, bool without_softmax, Vocabulary& vocabulary) {
  return Walk(program, sizes, blocks, without_softmax, vocabulary).run();
}

}  // namespace kw::proofs
