#include "proofs/reals/gradients.h"

#include <algorithm>
#include <map>
#include <set>

#include "proofs/reals/walk.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Op;
using tl::Stmt;

// Products that a turn makes for the one before it, as they are said: all turns but the first make
// them, and behind the loop they stand once, for the last. So there is one for each turn. Which
// turn is the first, a parameter of the step says: it is true in the one call that stands before
// the loops, and false in those that stand in one.
class Late {
 public:
  explicit Late(const tl::Program& program) {
    tl::walk(program.body, [&](const Stmt& s) {
      if (s.op != Op::step) return;
      for (size_t n = 0; n < s.params().size(); ++n)
        if (is_first_turn(program, s.name(), n))
          but_first_[s.name()].insert("not " + s.params()[n].name);
    });
    count(program.body, nullptr, false, "");
  }
  bool has(const Stmt& s) const {
    const auto said = counts_.find(tl::print_head(s));
    return said != counts_.end() && said->second == Counts{1, 0, 1};
  }

 private:
  struct Counts {
    int but_first = 0, in_all = 0, behind = 0;
    bool operator==(const Counts&) const = default;
  };
  static bool is_first_turn(const tl::Program& program, const std::string& step, size_t n) {
    int before = 0;
    bool others = false;
    const auto look = [&](auto& self, const std::vector<Stmt>& body, bool repeats) -> void {
      for (const Stmt& s : body) {
        if (s.op == Op::call && s.name() == step) {
          const bool given = n < s.arguments().size();
          const std::string is = given ? tl::print(s.arguments()[n].expr) : "";
          before += !repeats;
          others |= is != (repeats ? "false" : "true");
        }
        self(self, s.body, repeats || s.op == Op::step || tl::is_loop(s.op));
      }
    };
    look(look, program.body, false);
    return before == 1 && !others;
  }
  void count(const std::vector<Stmt>& body, const Stmt* step, bool repeats,
             const std::string& but_first) {
    for (const Stmt& s : body) {
      if (tl::is(s.op, Family::contract)) {
        Counts& counts = counts_[tl::print_head(s)];
        ++(!repeats ? counts.behind : but_first.empty() ? counts.in_all : counts.but_first);
      }
      std::string condition = but_first;
      if (s.op == Op::if_ && step && but_first_[step->name()].count(tl::print(s.condition())))
        condition = tl::print(s.condition());
      const bool is_step = s.op == Op::step;
      count(s.body, is_step ? &s : step, repeats || is_step || tl::is_loop(s.op), condition);
    }
  }
  std::map<std::string, std::set<std::string>> but_first_;  // conditions, of each step
  std::map<std::string, Counts> counts_;
};

constexpr int kOfAdjoints = 8;  // the degree of what a pass writes: adjoints of what changes rows

class Gradients : public RealWalk {
 public:
  Gradients(const tl::Program& program, const spec::Form& form,
            const std::map<std::string, Term>& sizes, Vocabulary& vocabulary)
      : RealWalk(program, form, sizes, blocks_of_keys(), vocabulary),
        softmax_(spec::has_softmax(form)),
        late_(program) {}

 private:
  // ---- who is what
  void role(const Stmt& s) override {
    RealWalk::role(s);
    if (s.op == Op::row_sum) sums_.insert(tl::base_name(s.sum()));
    if (s.op == Op::step || tl::is(s.op, Family::loop))
      tl::walk(s.body, [&](const Stmt& of) {
        if (of.op == Op::fill) of_turns_.insert(tl::base_name(of.target()));
      });
  }

  // Gradients of the block's keys; an accumulator that a turn fills is the turn's.
  bool is_handed_on(const std::string& name) const override {
    return outputs_.count(name) && !of_turns_.count(name);
  }

  int most_of_rows() const override { return kOfAdjoints; }
  double most_gain_of_rows() const override { return 2 * kGainOfRows; }  // a norm's numbers twice

  void new_turn(State& state) const override {
    for (const std::string& name : of_turns_) state.filled.erase(name);
  }

  // ---- tiles
  void product(const Stmt& s, State& state) override {
    const std::string acc = tl::base_name(s.acc()), a = tl::base_name(s.a());
    if (tl::begins_scores(s.op)) {
      if (weights_.count(a) || is_register(a)) return other(s);
      Scores& scores = state.scores[acc];
      if (!tl::adds_product(s.op)) scores = {.here = true};
      if (!scores.here || scores.weights || !state.turn) return other(s);
      of_tiles_[acc] = 1;
      return formulas_.forget(acc);
    }
    if (!state.filled.count(acc) || state.finished.count(acc) || is_register(a)) return other(s);
    if (is_handed_on(acc) && !state.turn && !late_.has(s)) other(s);
  }

  bool is_register(const std::string& name) const {
    return scores_.count(name) || outputs_.count(name);
  }

  void map(const Stmt& s, State& state) override {
    if (s.op == Op::to_operand) return used(s, state);
    const std::string name = tl::base_name(s.target());
    if (s.op == Op::fill) return fill(s, name, state);
    if (s.op == Op::map_rows) return map_rows(s, name, state);
    if (s.op != Op::map && s.op != Op::map_at && s.op != Op::map_real) return other(s);
    if (scores_.count(name)) return map_scores(s, name, state);
    // Behind the loop, or of what a turn adds in memory: numbers alone.
    if (!outputs_.count(name) || !state.filled.count(name) || (is_handed_on(name) && state.turn) ||
        degree(s.value(), state) > 1 || of_data(s.value(), 0) > 2 || is_detour(s.value(), state))
      return other(s);
    formulas_.set(name, s.value(), state.sometimes);
    gain_behind_ += constants_.gain(s.value());
    if (gain_behind_ > most_gain_) return other(s);
    if (is_handed_on(name)) state.finished.insert(name);
  }

  void fill(const Stmt& s, const std::string& name, State& state) {
    if (!is_zero_fill(s)) return other(s);
    if (scores_.count(name)) {
      state.scores[name] = {.here = true};
      of_tiles_[name] = 1;
      return formulas_.forget(name);
    }
    const bool known = sums_.count(name) || outputs_.count(name);
    if (!known || (is_handed_on(name) && (state.turn || state.sometimes))) return other(s);
    state.filled.insert(name);
    state.finished.erase(name);
    formulas_.forget(name);
  }

  // exp2(...) of scores with their log-sum: from there on the tile is one of weights.
  void map_scores(const Stmt& s, const std::string& name, State& state) {
    Scores& scores = state.scores[name];
    if (!scores.here || degree(s.value(), state) > 0 || !masks_last(s, scores)) return other(s);
    const ExprPtr& e = s.value();
    const bool weights =
        softmax_ && !scores.weights && e->kind == ExprKind::call && e->text == "exp2";
    if (weights && !scores.with_row) return other(s);
    const ExprPtr& formula = weights ? e->args[0] : e;
    if (!tl::mentions(e, name)) scores.gain = 0;
    scores.gain += constants_.gain(formula);
    const int degree = of_data(formula, 0);
    if (scores.gain > most_gain_ || degree > specified_.gradient ||
        is_detour_of(formula, name, state))
      return other(s);
    if (weights) {
      scores.weights = true;
      scores.masked = false;  // 0
      scores.gain = 0;
      of_tiles_[name] = 0;
      return formulas_.forget(name);
    }
    of_tiles_[name] = state.sometimes ? std::max(degree, of_tiles_[name]) : degree;
    formulas_.set(name, e, state.sometimes);
  }

  // What is added to a score that was rounded loses no more by rounding than the score has, also
  // where both are multiplied by one number: s * scale_log2 + bias * log2e. So what is added is
  // looked at by itself, all of it.
  bool is_detour_of(const ExprPtr& e, const std::string& tile, const State& state) {
    const auto adds = [&](const ExprPtr& x) {
      return x->kind == ExprKind::binary && (x->text == "+" || x->text == "-") &&
             tl::mentions(x->args[0], tile) && !tl::mentions(x->args[1], tile);
    };
    ExprPtr of_tile = e, rest;
    std::vector<ExprPtr> sums;
    for (; adds(of_tile); of_tile = of_tile->args[0]) sums.push_back(of_tile);
    for (size_t n = sums.size(); n-- > 0;) {
      const ExprPtr& more = sums[n]->args[1];
      const bool less = sums[n]->text == "-";
      rest = rest ? tl::binary(sums[n]->text, rest, more) : less ? tl::unary("-", more) : more;
    }
    return is_detour(of_tile, state) || (rest && is_detour(rest, state));
  }

  void used(const Stmt& s, State& state) {
    const std::string name = tl::base_name(s.src());
    if (!scores_.count(name) || !state.scores[name].here) other(s);
  }

  // ---- vectors
  void rows(const Stmt& s, State& state) override {
    for (const tl::Item& d : s.names()) {
      if (!d.expr) continue;
      if (degree(d.expr, state) > 0 || is_detour(d.expr, state)) return other(s);
      remember(d.name, d.expr);
      formulas_.set(d.name, d.expr);
      state.locals[d.name].body = state.body;
    }
  }

  void map_rows(const Stmt& s, const std::string& name, State& state) {
    const auto local = state.locals.find(name);
    if (local == state.locals.end() || local->second.body != state.body ||
        degree(s.value(), state) > 0 || of_data(s.value(), 1) > specified_.gradient ||
        is_detour(s.value(), state))
      return other(s);
    remember(name, s.value());
    formulas_.set(name, s.value(), state.sometimes);
  }

  // Sums over the keys of a turn are the turn's.
  void reduce(const Stmt& s, State& state) override {
    if (s.op != Op::row_sum) return other(s);
    const std::string sum = tl::base_name(s.sum()), of = tl::base_name(s.src());
    if (!of_turns_.count(sum) || !state.filled.count(sum) || !state.scores[of].here) other(s);
  }

  void move(const Stmt& s, State& state) override {
    if (s.op == Op::load || s.op == Op::upcast) return;
    if (s.op == Op::fill_columns || s.op == Op::add_columns || s.op == Op::scale_columns) {
      const std::string name = tl::base_name(s.dst());
      if (!scores_.count(name)) return other(s);
      Scores& scores = state.scores[name];
      if (s.op == Op::fill_columns) scores = {.here = true};
      if (!scores.here || scores.weights != (s.op == Op::scale_columns && scores.weights))
        return other(s);
      scores.with_row |= s.op != Op::scale_columns;
      if (s.op == Op::fill_columns) of_tiles_[name] = 1;
      const ExprPtr row = tl::name(tl::base_name(s.src()));
      if (s.op == Op::fill_columns) return formulas_.set(name, row);
      const char* op = s.op == Op::add_columns ? "+" : "*";
      return formulas_.set(name, tl::binary(op, s.dst(), row), state.sometimes);
    }
    const std::string of = tl::base_name(s.src());
    const bool stored = s.op == Op::store || s.op == Op::store_transposed;
    if (!stored || (is_handed_on(of) && state.turn) ||
        (scores_.count(of) && !state.scores[of].here))
      other(s);
  }

  void result(const Stmt& s, State& state) override {
    const std::string of = tl::base_name(s.src());
    if ((is_handed_on(of) && state.turn) || (scores_.count(of) && !state.scores[of].here) ||
        (sums_.count(of) && !state.filled.count(of)))
      other(s);
  }

  int degree(const ExprPtr& e, const State& state) const override {
    if (e->kind == ExprKind::name || e->kind == ExprKind::index)
      return is_handed_on(tl::base_name(e)) ? 1 : 0;
    return combined(e, [&](const ExprPtr& a) { return degree(a, state); });
  }

  const bool softmax_;
  const Late late_;
  std::set<std::string> sums_, of_turns_;
};

}  // namespace

std::string another_form_of_gradients(const tl::Program& program, const spec::Form& form,
                                      const std::map<std::string, Term>& sizes,
                                      Vocabulary& vocabulary) {
  return Gradients(program, form, sizes, vocabulary).run();
}

}  // namespace kw::proofs
