// The obligations of attention: its mask, which key blocks are visited, and the width of integers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "proofs/extents.h"
#include "proofs/obligations.h"
#include "proofs/one_order.h"
#include "proofs/order.h"
#include "proofs/proof.h"
#include "proofs/reads.h"
#include "proofs/reals/gradients.h"
#include "proofs/reals/range.h"
#include "proofs/reals/turns.h"
#include "proofs/solver/sexpr.h"
#include "proofs/told_apart.h"

namespace kw::proofs {
namespace {

// As many turns as the schedules look at (schedules/instances.h), for whom a bound beyond is none.
constexpr int64_t kMostTurns = 16;

class Attention : Proof {
 public:
  Attention(const tl::Program& program, const spec::Form& form, Heads heads, const Solver& solver)
      : Proof(program, form, heads, solver) {}

  Report run() {
    const auto start = std::chrono::steady_clock::now();
    report_.solver = "Z3 " + solver_.version();
    name_sizes();
    const bool softmax = form_.terms[0].normaliser == spec::Normaliser::softmax;
    visits_ = visits_of(program_, sizes_, sides_, !softmax, vocabulary_);
    keep_ = specified();
    extents_ = common_;
    inside_tensors();
    if (const std::string size = bounded(common_, vocabulary_, long_, solver_); !size.empty())
      visits_.open = fmt::format("what is taken for granted bounds the size {}", size);
    if (visits_.open.empty() && !visits_.list.empty()) read_lists();
    if (visits_.open.empty() && keep_.sort == Term::open) visits_.open = keep_.text;
    if (visits_.open.empty()) place_tiles();
    if (!visits_.open.empty()) {
      open("the program's key blocks", visits_.open);
    } else {
      uses_ = uses_of(program_, sizes_, sides_, !softmax, counts(), vocabulary_);
      const std::function<void()> parts[] = {
          [&] { masks(); },
          [&] { visited_once(); },
          [&] {
            if (sides_.of_keys) visited_there();
          },
          [&] { widths(); },
          [&] { integers(); },
          [&] { loops(); },
          [&] { by_form(kOrder, disorder(program_, sizes_, sides_, vocabulary_)); },
          [&] {
            if (tl::takes_turns(program_)) in_turn();
          },
          [&] { by_form(kReals, out_of_range(program_, form_)); },
          [&] { formulas(); }};
      for (const auto& part : parts) {
        part();
        if (heads_ != Heads::own && !report_.complete()) break;  // of no use but whole
      }
    }
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  Term specified() {
    const spec::ExprPtr& keep = form_.terms[0].keep;
    const Term mask = keep ? term_of(keep, indices_, vocabulary_) : Term::truth(true);
    const Term j = indices_["j"];
    return both(both(operation("<=", Term::number(0), j), operation("<", j, sizes_["N"])), mask);
  }

  // Where a tile begins whose maps do not say it: where those of the same program do.
  void place_tiles() {
    const Visit* known = nullptr;
    for (const Visit& v : visits_.all)
      if (v.i0 && v.j0 && (!known || !v.block.empty())) known = &v;
    if (!known) return void(visits_.open = "no map says which keys a tile of scores is of");
    const Visit of = *known;
    for (Visit& v : visits_.all) {
      if (!v.i0) v.i0 = of.i0;
      if (v.j0) continue;
      if (v.block.empty())
        return void(visits_.open = "no map says which keys a tile of scores is of");
      v.j0 = of.block.empty() ? operation("*", {Term::integer, v.block}, Term::number(v.columns))
                              : Term{Term::integer, renamed(of.j0->text, of.block, v.block)};
    }
    for (const Visit& v : visits_.all) {
      if (v.i0->sort != Term::integer) visits_.open = v.i0->text;
      if (v.j0->sort != Term::integer) visits_.open = v.j0->text;
    }
  }

  // What the specification reads of its tensors for a row and a key that there are lies in them, or
  // PyTorch had refused to run it; and the program's letters are the tensors' sizes.
  void inside_tensors() {
    for (std::string& so : same_sizes(visits_.extents, of_kernel(form_, indices_)))
      common_.push_back(std::move(so));
    Extents extents = of_user(form_, indices_);
    const std::string there =
        fmt::format("(and (<= 0 i) (< i {}) (<= 0 j) (< j {}))", row_count(), column_count());
    for (const Vocabulary::Element& e : vocabulary_.elements()) {
      const auto& of = extents[e.tensor];
      if (keep_.text.find(e.text) == std::string::npos || of.size() != e.at.size()) continue;
      elements_.push_back(e);
      for (size_t d = 0; d < of.size(); ++d)
        common_.push_back(
            fmt::format("(=> {} (and (<= 0 {}) (< {} {})))", there, e.at[d], e.at[d], of[d]));
    }
  }

  // What a pass before the kernel has listed is known by its words (lists.h).
  void read_lists() {
    const auto proved = [&](const std::string& claim) {
      return solver_.ask(question({}, claim), kEffort).answer == Answer::proved;
    };
    auto lists = std::make_unique<Lists>(program_, sizes_, sides_, vocabulary_, visits_.list,
                                         elements_, proved);
    visits_.open = lists->open();
    lists_ = std::move(lists);
  }

  void keeps(const Visit& v) {
    std::vector<std::string> premises = v.premises, tile = in_tile(v, true);
    premises.insert(premises.end(), tile.begin(), tile.end());
    ask(kKeeps,
        question(premises, fmt::format("(= {} {})", v.kept.text, keep_.text),
                 v.kept.is("true") || sides_.of_keys),
        {{"the program keeps it", v.kept.text}, {"the specification keeps it", keep_.text}},
        v.span);
  }

  // The number of a visit's key block, by the loop's symbol; "": it is no multiple of a tile.
  static std::string block_of(const Visit& v) {
    const Sexpr j0 = read_term(v.j0->text);
    return j0.is("*", 2) && print(j0.parts[2]) == std::to_string(v.columns) ? print(j0.parts[1])
                                                                            : "";
  }

  // The loop's values of which the key block may be key.block: the number itself; its place in a
  // list; that many below where a loop leaves out some, n + where(n < first, 0, count).
  std::vector<std::string> places_of_key_block(const Visit& v) const {
    const std::string block = block_of(v);
    if (block == v.block) return {"key.block"};
    Sexpr e = read_term(block);
    while (e.is("ite", 3) && never(print(e.parts[1]))) e = Sexpr(e.parts[3]);
    if (print(e) == fmt::format("(list.at {})", v.block)) return {"(list.place key.block)"};
    if (e.is("+", 2) && print(e.parts[2]) == v.block) {  // the first one, and so many more
      const std::string first = print(e.parts[1]);
      if (renamed(first, v.block, "@") != first) return {};
      return {fmt::format("(- key.block {})", first)};
    }
    if (!e.is("+", 2) || print(e.parts[1]) != v.block || !e.parts[2].is("ite", 3)) return {};
    std::vector<std::string> out;
    for (const size_t side : {2, 3}) {
      const std::string more = print(e.parts[2].parts[side]);
      if (renamed(more, v.block, "@") != more) return {};
      out.push_back(fmt::format("(- key.block {})", more));
    }
    return out;
  }

  bool never(const std::string& condition) const {
    return solver_.ask(question({}, fmt::format("(not {})", condition)), kEffort).answer ==
           Answer::proved;
  }

  void masks() {
    for (const Visit& v : visits_.all) keeps(v);
  }

  void widths() {
    const std::vector<Step> all = steps();
    fits_an_int(all);
    has_its_sign(all);
  }

  void formulas() {
    if (sides_.of_keys && rounds_in_a_map(program_)) return open(kGradients, kRoundsInAMap);
    if (sides_.of_keys)
      return by_form(kGradients, another_form_of_gradients(program_, form_, sizes_, vocabulary_));
    by_form(kForm, another_form(program_, form_, sizes_, vocabulary_));
    if (report_.obligations.back().answer == Answer::proved) rounding();
  }

  void visited_once() {
    std::string sum = "0";
    int64_t columns = 0;
    if (const std::string why = pairs_left_out(); !why.empty()) return open(kOnce, why);
    const std::vector<std::string> agents = agents_of(visits_.all[0]);
    for (const Visit& v : visits_.all) {
      if (v.again || v.first || v.tile != visits_.all[0].tile) continue;
      if (agents_of(v) != agents) return open(kOnce, "visits of some agents");
      if (columns && columns != v.columns) return open(kOnce, "tiles of two widths");
      columns = v.columns;
      std::vector<std::string> here = v.premises;
      here.push_back(fmt::format("(= {} (* key.block {}))", v.j0->text, v.columns));
      const std::string in = all_of(here);
      if (v.block.empty()) {
        sum = fmt::format("(+ {} (ite {} 1 0))", sum, in);
        continue;
      }
      const std::vector<std::string> places = places_of_key_block(v);
      if (places.empty()) return open(kOnce, fmt::format("the key block {}", block_of(v)));
      std::string other = "true";
      for (const std::string& p : places) {
        sum = fmt::format("(+ {} (ite (and {} {}) 1 0))", sum, renamed(in, v.block, p), other);
        other = fmt::format("(and {} (not (= {} {})))", other, places.back(), p);
      }
    }
    vocabulary_.constant("key.block");
    std::vector<std::string> premises = in_tile(visits_.all[0], false);
    premises.push_back(fmt::format("(= key.block (div j {}))", columns));
    premises.push_back(keep_.text);
    premises.insert(premises.end(), agents.begin(), agents.end());
    ask(kOnce, question(premises, fmt::format("(= {} 1)", sum)), {{"visits of it", sum, "Int"}},
        visits_.all[0].span);
  }

  // Sums are added to a tensor of whole blocks of queries: no turn is about others.
  void visited_there() {
    std::vector<std::string> each;
    for (const Visit& v : visits_.all)
      each.push_back(fmt::format("(=> {0} (and (<= 0 {1}) (< {1} {2})))", all_of(v.premises),
                                 v.j0->text, column_count()));
    ask(kThere, question({}, all_of(each)), {}, visits_.all[0].span);
  }

  // Which agents make a visit.
  std::vector<std::string> agents_of(const Visit& v) const {
    std::vector<std::string> out;
    for (const std::string& p : v.premises)
      if (says_which_agent(p, uses_)) out.push_back(p);
    return out;
  }

  // A loop over pairs of a head and a block of queries has one turn for each: the last pair stands
  // before it, or is its first turn.
  std::string pairs_left_out() const {
    if (!sides_.of_keys) return "";
    if (visits_.loops.empty()) return "no loop over pairs of a head and a block of queries";
    const auto is_first = [](const Visit& v) { return v.first; };
    const bool before = std::any_of(visits_.all.begin(), visits_.all.end(), is_first);
    std::map<std::string, int> twice;  // visits of a tile before the loop less those in it
    for (const Visit& v : visits_.all)
      twice[fmt::format("{} {}", v.tile, v.span.begin)] += v.first ? 1 : -1;
    for (const auto& [tile, n] : twice)
      if (before && n != 0) return "the first turn is another than those of the loop";
    for (const auto& [begin, end, begun] : visits_.loops) {
      const std::string claim =
          fmt::format("(and (= {} (- {} {})) (= {} 0))", begin, visits_.last_pair, int(begun), end);
      if (solver_.ask(question({}, claim), kEffort).answer != Answer::proved)
        return "whether the loop is over all pairs of a head and a block of queries";
    }
    return "";
  }

  // Of the kernel and of the pass that lists key blocks.
  std::vector<Step> steps() {
    std::vector<Step> out = uses_.steps;
    if (!lists_) return out;
    const std::vector<Step> of_pass = lists_->steps();
    out.insert(out.end(), of_pass.begin(), of_pass.end());
    return out;
  }

  // How many key blocks there are, or are whole: loops with visits have shown it.
  std::set<std::string> counts() const {
    std::set<std::string> out;
    const std::function<void(const Sexpr&)> add = [&](const Sexpr& e) {
      if (e.is("+", 2) || e.is("-", 2))
        for (size_t n = 1; n < e.parts.size(); ++n) add(e.parts[n]);
      else if (!e.parts.empty())
        out.insert(print(e));
    };
    for (const Visit& v : visits_.all)
      for (const std::string& bound : {v.begin, v.end, v.block.empty() ? block_of(v) : ""})
        add(read_term(bound));
    return out;
  }

  // What is not plain is one of the specification's (integers.h).
  void integers() {
    if (!computes_sizes()) return;
    const auto start = std::chrono::steady_clock::now();
    Uses& uses = uses_;
    for (const Visit& v : visits_.all) {
      if (!v.block.empty()) {
        uses.firsts.insert(sides_.of_keys ? visits_.last_pair : v.begin);  // ahead of the loop
        continue;
      }
      const Sexpr block = read_term(block_of(v));
      uses.firsts.insert(print(block));
      if (block.is("list.at", 1)) uses.firsts.insert(print(block.parts[1]));
      if (block.is("+", 2) && block.parts[2].is("ite", 3))  // the place behind a hole
        uses.firsts.insert(print(block.parts[1]));
    }
    for (const Visit& v : visits_.all)
      if (!v.block.empty() && block_of(v) != v.block)
        uses.key_blocks.insert(renamed(block_of(v), v.block, "@"));
    Specified specified = integers_of(form_, indices_, vocabulary_);
    std::vector<Term>& wanted = specified.all;
    wanted.push_back(keep_);
    if (sides_.of_keys)  // a row of whole blocks of queries, of which there is none behind the last
      wanted.push_back(operation("<", vocabulary_.constant("row"), sizes_.at(sides_.columns)));
    Obligation o{kIntegers, Answer::proved, "", {}, "", {}, 0};
    const auto leave = [&](const std::string& why, const Span& span) {
      if (o.answer != Answer::proved || why.empty()) return;
      o.answer = Answer::unknown;
      o.why = why;
      o.span = span;
    };
    leave(uses.open, {});
    const auto of_kept = [&](const Use& u, const std::string& claim) {
      Question q = of_tile(u, claim);
      q.premises.push_back(keep_.text);
      return q;
    };
    const auto none = [&](const Use& u) {
      leave(fmt::format("{}: no sum or product of indices and sizes, and none of the "
                        "specification's integers",
                        u.text),
            u.span);
    };
    std::set<std::string> free;  // conditions that choose between two ways to the same function
    for (const Choice& c : uses.choices)
      if (!uses.branches.count(c.condition.term.text) && !uses.branches.count(c.negation) &&
          is_one_function(c, wanted))
        free.insert({c.condition.term.text, c.negation});
    for (const Use& u : uses.all)
      if (o.answer == Answer::proved && !free.count(u.term.text) &&
          (u.real || !is_plain(u.term, uses)) && !is_one_of(u, u.real ? specified.reals : wanted))
        none(u);
    for (const Use& u : uses.all)
      if (o.answer == Answer::proved && !is_head_along(u)) none(u);
    if (o.answer == Answer::proved) report_.small_reals = specified.data_among_reals;
    if (o.answer == Answer::proved)
      leave(not_told_apart(specified.whole, uses, solver_, sizes_, form_.N.times, drawn(), of_kept),
            {});
    o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report_.obligations.push_back(std::move(o));
    if (lists_) words_of_lists(uses);
    turns(uses);
    launches(uses);
    if (const std::string why =
            counted_from_the_end(form_, indices_, keep_, extents_, vocabulary_, solver_);
        !why.empty())
      open(kIntegers, why);
  }

  // A query's head and that of its keys are the same in all cases where the form has as many of
  // both; here each stands at its own tensors. A pass over rows of keys has heads of its own.
  bool is_head_along(const Use& u) const {
    const Term head = indices_.at("h");
    if (u.along.empty()) return true;
    if (u.along == sizes_.at("G").text)
      return u.term.text.find(head.text) == std::string::npos ||
             is_one(u, operation("//", head, sizes_.at(heads::kLetter)));
    return !counts_heads(u.term.text) || is_one(u, head);
  }

  // The blocks of a pass share its rows out among them, however many: one there must be.
  void launches(const Uses& uses) {
    for (const Use& u : uses.launched) {
      const Term some = operation("<", Term::number(0), u.term);
      if (some.sort != Term::boolean)
        return open(kOrder, fmt::format("a pass of `{}` blocks", u.text));
      ask(kOrder, question(u.premises, some.text), {}, u.span);
      if (report_.obligations.back().answer != Answer::proved) return;
      report_.obligations.pop_back();
    }
  }

  // Sums in one order (one_order.h).
  void in_turn() {
    const WaitsForTurns waits = waits_for_turns(program_, sizes_, sides_, vocabulary_);
    if (!waits.open.empty()) return open(kInTurn, waits.open);
    if (const std::string why = falling(program_, sizes_, sides_, vocabulary_); !why.empty())
      return open(kInTurn, why);
    for (const WaitForTurn& w : waits.all) {
      ask(kInTurn, question(w.premises, w.claim), {}, w.span);
      if (report_.obligations.back().answer != Answer::proved) return;
      report_.obligations.pop_back();
    }
    by_form(kInTurn, "");
  }

  // Between what integers of the data, each that was read, lie in cases.
  std::vector<std::string> drawn() const {
    std::vector<std::string> out;
    const auto within = [&](const std::string& text, int64_t low, int64_t high) {
      out.push_back(fmt::format("(and (<= {1} {0}) (<= {0} {2}))", text, Term::number(low).text,
                                Term::number(high).text));
    };
    for (const Vocabulary::Element& e : vocabulary_.elements())
      if (const spec::Argument* a = form_.argument(e.tensor)) {
        const auto [low, high] = a->drawn.value_or(kLengths);
        within(e.text, low, high);
      }
    for (const spec::Argument& a : form_.arguments)
      if (!a.is_tensor && !is_float(a.dtype) && vocabulary_.reads_scalar(a.name))
        within(vocabulary_.name_of_scalar(a.name), kLengths[0], kLengths[1]);
    return out;
  }

  // Beyond the words of its own list a block would read those of the next.
  void words_of_lists(const Uses& uses) {
    if (!uses.open.empty()) return;
    if (uses.list != visits_.list) return open(kPlaces, "two lists for one block");
    std::set<std::string> asked;
    for (const Use& u : uses.all)
      for (const std::string& inside : lists_->inside(u.term.text)) {
        if (!asked.insert(all_of(u.premises) + inside).second) continue;
        Question q = question(u.premises, inside);
        q.premises.insert(q.premises.end(), uses.of_all.begin(), uses.of_all.end());
        ask(kPlaces, q, {}, u.span);
        if (report_.obligations.back().answer != Answer::proved) return;
        report_.obligations.pop_back();
      }
    by_form(kPlaces, "");
  }

  // How often a loop may turn, as small a number as is proved: with more turns than somebody has
  // looked at, it is another program.
  void loops() {
    for (const Range& r : uses_.ranges) {
      const auto is_most = [&](int64_t k) {
        Question q =
            question(r.premises, fmt::format("(<= (+ (- {} {}) 1) {})", r.begin, r.end, k));
        q.premises.insert(q.premises.end(), uses_.of_all.begin(), uses_.of_all.end());
        return solver_.ask(q, kEffort / 10).answer == Answer::proved;
      };
      int64_t most = kMostTurns + 1, least = 0;
      while (least < most) {
        const int64_t k = most > kMostTurns ? kMostTurns : (least + most) / 2;
        if (is_most(k))
          most = k;
        else if (most > kMostTurns)
          break;
        else
          least = k + 1;
      }
      if (most > kMostTurns) most = -1;
      const auto known = std::find_if(report_.loops.begin(), report_.loops.end(),
                                      [&](const Bound& b) { return b.loop == r.loop; });
      if (known == report_.loops.end())
        report_.loops.push_back({r.loop, most});
      else
        known->most = known->most < 0 || most < 0 ? -1 : std::max(known->most, most);
    }
    std::set<const tl::Stmt*> never, reached;
    for (const Bound& b : report_.loops)
      if (b.most == 0) never.insert(b.loop);
    for (const auto& [statement, loops] : uses_.reached)
      if (std::none_of(loops.begin(), loops.end(),
                       [&](const tl::Stmt* loop) { return never.count(loop) > 0; }))
        reached.insert(statement);
    report_.statements.assign(reached.begin(), reached.end());
  }

  // A place of a ring is filled and used in the same turn: each loop goes on where the ones before
  // have ended, or one block further where a product is under way, and all roles make as many
  // turns.
  void turns(const Uses& uses) {
    if (uses.loops.empty() || !uses.open.empty()) return;
    const auto claim = [&](const std::vector<std::string>& premises, const std::string& what) {
      Question q = question(premises, what);
      q.premises.insert(q.premises.end(), uses.of_all.begin(), uses.of_all.end());
      return q;
    };
    const std::string& first = uses.loops[0].begin;
    for (const Loop& l : uses.loops) {
      const auto goes_on = [&](int ahead) {
        return claim(l.premises, fmt::format("(=> (>= {0} {1}) (= (+ {0} {2}) (- {3} {4})))",
                                             l.begin, l.end, l.after, first, ahead));
      };
      if (solver_.ask(goes_on(1), kEffort).answer == Answer::proved) continue;
      ask(kTurns, goes_on(0), {}, l.span);
      if (report_.obligations.back().answer != Answer::proved) return;
      report_.obligations.pop_back();
    }
    std::vector<std::string> same = {"true"}, premises;
    for (const Turns& t : uses.turns) {
      same.push_back(fmt::format("(= {} {})", t.all, uses.turns[0].all));
      premises.insert(premises.end(), t.premises.begin(), t.premises.end());
    }
    ask(kTurns, claim(premises, all_of(same)), {},
        uses.turns.empty() ? Span{} : uses.turns[0].span);
  }

  // What is known of the form alone bounds its rounding, too.
  void rounding() {
    if (rounds_in_a_map(program_)) return open(kRounds, kRoundsInAMap);
    report_.rounding = rounding_of(program_, form_, visits_.all[0].columns);
    if (report_.rounding && report_.rounding->at(kMostKeys) > kMostRounding)
      open(kRounds, print(*report_.rounding));
    else if (report_.rounding)
      by_form(kRounds, "");
  }

  // Both ways give one formula, of integers that are the specification's.
  bool is_one_function(const Choice& c, const std::vector<Term>& wanted) const {
    Use one = c.condition, other = c.condition;
    one.premises.push_back(c.condition.term.text);
    other.premises.push_back(c.negation);
    return is_same(c.one, c.other, [&](const Term& a, const Term& b) {
      one.term = a;
      other.term = b;
      if (a.sort != b.sort) return false;
      if (a.text == b.text && is_literal(a.text)) return true;
      return std::any_of(wanted.begin(), wanted.end(),
                         [&](const Term& w) { return is_one(one, w) && is_one(other, w); });
    });
  }

  bool is_one_of(const Use& u, const std::vector<Term>& wanted) const {
    const auto same = [&](const Term& t) { return t.sort == u.term.sort && t.text == u.term.text; };
    return std::any_of(wanted.begin(), wanted.end(), same) ||
           std::any_of(wanted.begin(), wanted.end(), [&](const Term& t) { return is_one(u, t); });
  }

  // Of its tile, wherever it is used.
  bool is_one(const Use& u, const Term& t) const {
    if (t.sort != u.term.sort) return false;
    if (t.text == u.term.text) return true;
    const Question q = of_tile(u, fmt::format("(= {} {})", u.term.text, t.text));
    return solver_.ask(q, kEffort / 10).answer == Answer::proved;
  }

  // Of the elements of its tile, wherever it is used.
  Question of_tile(const Use& u, const std::string& claim) const {
    const std::vector<std::string>& of_all = uses_.of_all;
    Question q = question(u.premises, claim);
    q.premises.insert(q.premises.end(), of_all.begin(), of_all.end());
    q.premises.push_back("(and (<= 0 i) (<= 0 j))");
    if (u.tile) {
      q.premises.push_back(
          fmt::format("(and (<= {0} i) (< i (+ {0} {1})))", u.tile->i0, u.tile->rows));
      q.premises.push_back(fmt::format("(< i {})", row_count()));
      if (u.tile->columns > 0)
        q.premises.push_back(fmt::format("(and (<= {0} j) (< j (+ {0} {1})) (< j {2}))", u.tile->j0,
                                         u.tile->columns, column_count()));
    }
    return q;
  }

  std::vector<std::string> extents_;           // what is known of sizes alone
  std::vector<Vocabulary::Element> elements_;  // that the mask reads
  Term keep_;
};

}  // namespace

// For any numbers of heads where that is proved, or for as many a group as the form has, or for the
// form's own.
Report prove_attention(const tl::Program& program, const spec::Form& form, const Solver& solver) {
  const auto of = [&](Heads heads) { return Attention(program, form, heads, solver).run(); };
  if (!may_vary(form)) return of(Heads::own);
  const auto heads_are = [](Report report, const char* size, const tl::ExprPtr& number) {
    report.limits.push_back({tl::binary("==", tl::name(size), number)});
    return report;
  };
  const int64_t H = form.H.constant, G = form.G.constant;
  if (form.heads == spec::Form::Heads::any)
    if (Report any = of(Heads::any); any.complete()) return any;
  Report own = of(Heads::own);
  if (!own.complete()) return own;
  if (G > 1)
    if (Report grouped = of(Heads::grouped); grouped.complete())
      return heads_are(std::move(grouped), "H",
                       H == G ? tl::name("G") : tl::binary("*", tl::name("G"), tl::integer(H / G)));
  return heads_are(heads_are(std::move(own), "H", tl::integer(H)), "G", tl::integer(G));
}

}  // namespace kw::proofs
