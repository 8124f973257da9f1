#include "proofs/visits.h"

#include <fmt/format.h>

#include "proofs/names.h"
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
  bool scores = false, used = false;
  bool weights = false;  // its maps have taken the exponential: a 0 leaves an element out
  Term kept = Term::truth(true);
  std::optional<Term> i0, j0;
};

struct State : Scope {
  std::map<std::string, Tile> tiles;
  std::string block, begin, end;
};

class Walk : private Names {
 public:
  Walk(const tl::Program& program, const std::map<std::string, Term>& sizes, bool without_softmax,
       Vocabulary& vocabulary)
      : Names(program, sizes, vocabulary), without_softmax_(without_softmax) {}

  Visits run() {
    walk_kernel();
    out_.of_all = std::move(of_all_);
    out_.list = std::move(list_);
    out_.extents = std::move(extents_);
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

  // Whether a map leaves an element: not where it makes it -inf, or a weight 0 by a choice.
  Term kept(const ExprPtr& e, bool weights, const State& state) {
    if (is_minus_infinity(e)) return Term::truth(false);
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
    const Term k = kept(s.value(), of.weights, inside);
    tile->second.kept = both(tile->second.kept, k);
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
    out_.all.push_back({state.premises, state.block, state.begin, state.end, t.i0, t.j0, t.rows,
                        t.columns, t.kept, again || under_flag_, s.span});
  }

  void call(const Stmt& s, State& state) {
    State inside = state;
    const Stmt* step = enter(s, inside);
    if (!step) return;
    walk(step->body, inside);
    state.tiles = std::move(inside.tiles);
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
    walk(s.body, inside);
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
    const Term n = vocabulary_.fresh(name), begin = eval(s.begin(), state),
               end = eval(s.end(), state);
    if (begin.sort != Term::integer || end.sort != Term::integer)
      return open(begin.sort == Term::integer ? end.text : begin.text);
    inside.names[name] = {n, {}};
    inside.premises.push_back(
        fmt::format("(and (<= {} {}) (<= {} {}))", end.text, n.text, n.text, begin.text));
    inside.block = n.text;
    inside.begin = begin.text;
    inside.end = end.text;
    walk(s.body, inside);
    state.tiles = std::move(inside.tiles);
  }

  const bool without_softmax_;
  Visits out_;
  bool under_flag_ = false;
};

}  // namespace

Visits visits_of(const tl::Program& program, const std::map<std::string, Term>& sizes,
                 bool without_softmax, Vocabulary& vocabulary) {
  return Walk(program, sizes, without_softmax, vocabulary).run();
}

}  // namespace kw::proofs
