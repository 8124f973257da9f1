#include "proofs/one_order.h"

#include <fmt/format.h>

#include "proofs/solver/sexpr.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {
namespace {

using tl::Op;
using tl::Stmt;

constexpr char kOther[] = "block.before";  // some block of keys before this one

class TurnWalk : private Names {
 public:
  TurnWalk(const tl::Program& program, const std::map<std::string, Term>& sizes,
           const Blocks& blocks, Vocabulary& vocabulary)
      : Names(program, sizes, blocks, vocabulary) {}

  WaitsForTurns run() {
    Scope scope = module();
    if (const Stmt* kernel = program_.kernel()) walk(kernel->body, scope);
    if (out_.all.empty()) open("nobody waits for a turn");
    for (WaitForTurn& w : out_.all)
      w.premises.insert(w.premises.end(), of_all_.begin(), of_all_.end());
    out_.open = std::move(open_);
    return std::move(out_);
  }

 private:
  void walk(const std::vector<Stmt>& body, Scope& scope) {
    for (const Stmt& s : body) {
      if (s.op == Op::let) let(s, scope);
      if (s.op == Op::cluster) {
        bind_below(s.rank(), eval(s.ctas(), scope), scope, of_all_);
        rank_ = scope.names[s.rank()].term.text;
      }
      if (s.op == Op::var)
        for (const tl::Item& d : s.names()) scope.names[d.name] = {vocabulary_.fresh(d.name), {}};
      if (s.op == Op::wait_turn) wait(s, scope);
      if (s.op != Op::warpgroup && s.op != Op::thread && !tl::is_loop(s.op)) continue;
      Scope inside = scope;
      if (tl::is_loop(s.op) && !bind(s, inside)) continue;
      walk(s.body, inside);
    }
  }

  // A loop over pairs of a head and a block of queries; other loops have no turns.
  bool bind(const Stmt& loop, Scope& scope) {
    bool waits = false;
    tl::walk(loop.body, [&](const Stmt& s) { waits |= s.op == Op::wait_turn; });
    if (!waits) return false;
    Term x = vocabulary_.fresh(loop.index());
    if (!loop.has(tl::Hole::begin) || !bind_pairs(x, eval(loop.begin(), scope))) {
      open("turns outside of a loop over queries");
      return false;
    }
    scope.names[loop.index()] = {x, {}};
    scope.premises.push_back(in_range(pairs::kPlace, pairs_->count));
    return true;
  }

  // With another block of keys in the place of this one.
  std::string of(const std::string& text, const std::string& block) const {
    return renamed(text, "block." + sides_.row, block);
  }

  // Whether a block of keys has turns at a block of queries.
  std::string sees(const std::string& block, const std::string& queries) const {
    const std::string first = of(first_, block), count = of(pairs_->count, block);
    return fmt::format("(and (<= {0} {1}) (< {1} (+ {0} {2})))", first, queries, count);
  }

  void wait(const Stmt& s, const Scope& scope) {
    const Term row = eval(s.row(), scope), number = eval(s.number(), scope),
               tile = named("B" + sides_.columns, scope);
    for (const Term& t : {row, number, tile})
      if (t.sort != Term::integer) return open(t.text);
    if (!begins_as_zero(tl::base_name(s.tensor()))) return open("turns do not begin as 0");
    // (first + place) * BM, and the CTA's place in its cluster
    Sexpr at = read_term(row.text);
    if (!rank_.empty() && at.is("+", 2) && print(at.parts[2]) == rank_) at = Sexpr(at.parts[1]);
    if (!at.is("*", 2) || print(at.parts[2]) != tile.text) return open("turns at another row");
    const Sexpr place = at.parts[1];
    if (print(place) == pairs::kPlace)
      first_ = "0";
    else if (place.is("+", 2) && print(place.parts[2]) == pairs::kPlace)
      first_ = print(place.parts[1]);
    else
      return open("turns at another row");
    const std::string me = "block." + sides_.row, queries = print(place);
    vocabulary_.constant(kOther);
    std::vector<std::string> premises = scope.premises;
    premises.push_back(fmt::format("(and (<= 0 {0}) (< {0} {1}))", kOther, me));
    out_.all.push_back(
        {std::move(premises),
         fmt::format("(ite (= {0} {1}) (or (= {1} 0) {2}) (and (= {0} 0) (not {3})))", number.text,
                     me, sees(fmt::format("(- {} 1)", me), queries), sees(kOther, queries)),
         s.span});
  }

  bool begins_as_zero(const std::string& turns) const {
    int zeros = 0, others = 0;
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op != Op::write_value || tl::base_name(s.tensor()) != turns) return;
      ++(is_zero(s.value()) ? zeros : others);
    });
    return zeros == 1 && others == 0;
  }

  WaitsForTurns out_;
  std::string rank_, first_;
};

}  // namespace

WaitsForTurns waits_for_turns(const tl::Program& program, const std::map<std::string, Term>& sizes,
                              const Blocks& blocks, Vocabulary& vocabulary) {
  return TurnWalk(program, sizes, blocks, vocabulary).run();
}

}  // namespace kw::proofs
