// The obligations of attention: its mask, which key blocks are visited, and the width of integers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "proofs/counterexample.h"
#include "proofs/extents.h"
#include "proofs/integers.h"
#include "proofs/lists.h"
#include "proofs/obligations.h"
#include "proofs/order.h"
#include "proofs/proofs.h"
#include "proofs/reads.h"
#include "proofs/reals/range.h"
#include "proofs/reals/turns.h"
#include "proofs/solver/sexpr.h"
#include "proofs/solver/shifts.h"
#include "proofs/told_apart.h"
#include "proofs/visits.h"
#include "support/largest_size.h"

namespace kw::proofs {
namespace {

// Whose products fit 32 bits: the root of 2^31, and powers of two for what multiplies more. Less
// is no limit but a refutation: where there is one row block, what goes wrong in the second fits.
constexpr int64_t kLimits[] = {46340, 1 << 14, 1 << 12};

class Attention {
 public:
  Attention(const tl::Program& program, const spec::Form& form, const Solver& solver)
      : program_(program), form_(form), solver_(solver) {}

  Report run() {
    const auto start = std::chrono::steady_clock::now();
    report_.solver = "Z3 " + solver_.version();
    name_sizes();
    const bool softmax = form_.terms[0].normaliser == spec::Normaliser::softmax;
    visits_ = visits_of(program_, sizes_, !softmax, vocabulary_);
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
      uses_ = uses_of(program_, sizes_, !softmax, counts(), vocabulary_);
      for (const Visit& v : visits_.all) keeps(v);
      visited_once();
      const std::vector<Step> all = steps();
      fits_an_int(all);
      has_its_sign(all);
      integers();
      by_form(kOrder, disorder(program_, sizes_, vocabulary_));
      by_form(kReals, out_of_range(program_, form_));
      by_form(kForm, another_form(program_, form_, sizes_, vocabulary_));
      if (report_.obligations.back().answer == Answer::proved) rounding();
    }
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  // The letters of the program, and the names of the form, as terms.
  void name_sizes() {
    const auto add = [&](const char* letter, const spec::Size& size) {
      const Term t =
          size.name.empty() ? Term::number(size.constant) : vocabulary_.constant(size.name);
      sizes_[letter] = t;
      if (size.name.empty() || indices_.count(size.name)) return;
      indices_[size.name] = long_[size.name] = t;
      common_.push_back(fmt::format("(and (<= 1 {0}) (<= {0} {1}))", t.text, kLargestSize));
      shown_.push_back(t.text);
    };
    add("B", form_.B);
    add("H", form_.H);
    add("G", form_.G);
    add("M", form_.M);
    add("N", form_.N);
    for (const spec::Argument& a : form_.arguments)
      for (const spec::Size& size : a.dims) {
        if (size.name.empty() || indices_.count(size.name)) continue;
        const Term t = vocabulary_.constant(size.name);
        indices_[size.name] = t;
        common_.push_back(fmt::format("(and (<= 1 {0}) (<= {0} {1}))", t.text, kLargestSize));
      }
    for (const char* index : {"i", "j"}) indices_[index] = vocabulary_.constant(index);
    indices_["b"] = vocabulary_.constant("block.b");
    indices_["h"] = vocabulary_.constant("block.h");
    for (const char* name : {"i", "j", "block.b", "block.h"}) shown_.push_back(name);
  }

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
    const std::string there = fmt::format("(and (<= 0 i) (< i {}) (<= 0 j) (< j {}))",
                                          sizes_.at("M").text, sizes_.at("N").text);
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
    auto lists =
        std::make_unique<Lists>(program_, sizes_, vocabulary_, visits_.list, elements_, proved);
    visits_.open = lists->open();
    lists_ = std::move(lists);
  }

  // `whole`: it is about what a pass has found to be kept whole.
  Question question(std::vector<std::string> premises, std::string claim,
                    bool whole = false) const {
    Question q;
    std::vector<std::string> terms = premises;
    terms.push_back(claim);
    if (lists_) {
      const Lists::Facts facts = lists_->facts(terms, whole);
      premises.insert(premises.end(), facts.sizes.begin(), facts.sizes.end());
      q.spare = facts.found;
      terms.insert(terms.end(), facts.found.begin(), facts.found.end());
      for (std::string& so : shift_bounds(terms)) q.spare.push_back(std::move(so));
    }
    q.declarations = vocabulary_.declarations();
    q.premises = common_;
    q.premises.insert(q.premises.end(), visits_.of_all.begin(), visits_.of_all.end());
    for (const std::string& d : vocabulary_.data_within(31)) q.premises.push_back(d);
    q.premises.insert(q.premises.end(), premises.begin(), premises.end());
    q.claim = std::move(claim);
    q.shown = shown_;
    return q;
  }

  // Element (i, j) lies in the tile.
  std::vector<std::string> in_tile(const Visit& v, bool keys) const {
    std::vector<std::string> p = {
        fmt::format("(and (<= {0} i) (< i (+ {0} {1})) (<= 0 i) (< i {2}))", v.i0->text, v.rows,
                    sizes_.at("M").text)};
    if (keys) p.push_back(fmt::format("(and (<= {0} j) (< j (+ {0} {1})))", v.j0->text, v.columns));
    return p;
  }

  void keeps(const Visit& v) {
    std::vector<std::string> premises = v.premises, tile = in_tile(v, true);
    premises.insert(premises.end(), tile.begin(), tile.end());
    ask(kKeeps,
        question(premises, fmt::format("(= {} {})", v.kept.text, keep_.text), v.kept.is("true")),
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
  static std::vector<std::string> places_of_key_block(const Visit& v) {
    const std::string block = block_of(v);
    if (block == v.block) return {"key.block"};
    if (block == fmt::format("(list.at {})", v.block)) return {"(list.place key.block)"};
    const Sexpr e = read_term(block);
    if (!e.is("+", 2) || print(e.parts[1]) != v.block || !e.parts[2].is("ite", 3)) return {};
    std::vector<std::string> out;
    for (const size_t side : {2, 3}) {
      const std::string more = print(e.parts[2].parts[side]);
      if (renamed(more, v.block, "@") != more) return {};
      out.push_back(fmt::format("(- key.block {})", more));
    }
    return out;
  }

  void visited_once() {
    std::string sum = "0";
    int64_t columns = 0;
    for (const Visit& v : visits_.all) {
      if (v.again) continue;
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
    ask(kOnce, question(premises, fmt::format("(= {} 1)", sum)), {{"visits of it", sum}},
        visits_.all[0].span);
  }

  // Every sum, difference and product of integers, of all agents and of the pass; addresses in a
  // scratch apart, which are as long as it is.
  void fits_an_int(const std::vector<Step>& steps) {
    std::vector<std::string> each;
    std::set<std::string> seen;
    const std::string address = lists_ ? lists_->address() : "";
    const auto is_of = [](const std::string& part, const std::string& whole) {
      return !part.empty() && whole.find(part) != std::string::npos;
    };
    for (const Step& s : steps) {
      if (s.least > INT32_MIN || is_of(s.term.text, address) || is_of(address, s.term.text))
        continue;
      std::string claim = fmt::format("(=> {1} (and (<= (- 2147483648) {0}) (<= {0} 2147483647)))",
                                      s.term.text, all_of(s.premises));
      if (seen.insert(claim).second) each.push_back(std::move(claim));
    }
    if (each.empty()) return;
    Question q = of_steps(each);
    const auto refuted = [&] { return report_.obligations.back().answer == Answer::refuted; };
    ask(kFits, q, {}, visits_.all[0].span);
    if (!refuted()) return;
    // A window that is an argument is added to a row; sums of two of 2^29 fit.
    const Obligation first = report_.obligations.back();
    const Question any_data = q;
    for (const std::string& d : vocabulary_.data_within(29)) q.premises.push_back(d);
    report_.obligations.pop_back();
    ask(std::string(kFits) + kOfSmallData, q, {}, visits_.all[0].span);
    report_.small_data = !refuted();
    if (!refuted()) return;
    const Obligation second = std::exchange(report_.obligations.back(), first);
    limit(report_.obligations.back(), any_data);
    if (!refuted()) return;
    report_.obligations.back() = second;
    limit(report_.obligations.back(), q);
    report_.small_data = !refuted();
    if (refuted()) report_.obligations.back() = first;
  }

  // Of the kernel and of the pass that lists key blocks.
  std::vector<Step> steps() {
    std::vector<Step> out = uses_.steps;
    if (!lists_) return out;
    const std::vector<Step> of_pass = lists_->steps();
    out.insert(out.end(), of_pass.begin(), of_pass.end());
    return out;
  }

  Question of_steps(const std::vector<std::string>& each) {
    std::vector<std::string> premises = in_tile(visits_.all[0], false);
    premises.push_back(fmt::format("(and (<= 0 j) (< j {}))", sizes_.at("N").text));
    premises.insert(premises.end(), uses_.of_all.begin(), uses_.of_all.end());
    return question(premises, all_of(each));
  }

  // What is an index, or divides, wherever it stands: CUDA's text takes for granted what it is.
  void has_its_sign(const std::vector<Step>& steps) {
    std::set<std::string> each;
    for (const Step& s : steps)
      if (s.least > INT32_MIN)
        each.insert(fmt::format("(=> {} (<= {} {}))", all_of(s.premises), s.least, s.term.text));
    if (each.empty()) return;
    const Question q = of_steps({each.begin(), each.end()});
    ask(kSigns, q, {}, visits_.all[0].span);
    if (report_.obligations.back().answer == Answer::refuted) limit(report_.obligations.back(), q);
  }

  // The longest sequences of which a refuted obligation holds.
  void limit(Obligation& o, const Question& all) {
    std::vector<std::string> letters;
    for (const auto& [letter, size] : {std::pair{"M", &form_.M}, {"N", &form_.N}})
      if (!size->name.empty()) letters.push_back(letter);
    for (const int64_t most : kLimits) {
      Question q = all;
      for (const std::string& letter : letters)
        q.premises.push_back(fmt::format("(<= {} {})", sizes_[letter].text, most));
      if (letters.empty() || solver_.ask(q, kEffort).answer != Answer::proved) continue;
      o.answer = Answer::proved;
      o.what += fmt::format(" where {} <= {}", fmt::join(letters, " and "), most);
      o.at.clear();
      o.message.clear();
      for (const std::string& letter : letters) report_.limits.push_back({letter, most});
      return;
    }
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
    const auto start = std::chrono::steady_clock::now();
    Uses& uses = uses_;
    for (const Visit& v : visits_.all) {
      if (!v.block.empty()) {
        uses.firsts.insert(v.begin);  // loaded ahead of the loop
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
    if (o.answer == Answer::proved)
      leave(not_told_apart(specified.whole, uses, solver_, sizes_, of_kept), {});
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
    if (rounds_in_a_map(program_)) return open(kRounds, "`to_bf16`, of which no proof knows");
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
      q.premises.push_back(fmt::format("(< i {})", sizes_.at("M").text));
      if (u.tile->columns > 0)
        q.premises.push_back(fmt::format("(and (<= {0} j) (< j (+ {0} {1})) (< j {2}))", u.tile->j0,
                                         u.tile->columns, sizes_.at("N").text));
    }
    return q;
  }

  // Without the solver, but for a reason.
  void by_form(const std::string& what, const std::string& why) {
    report_.obligations.push_back(
        {what, why.empty() ? Answer::proved : Answer::unknown, why, {}, "", {}, 0});
  }

  void open(const std::string& what, const std::string& why) {
    report_.obligations.push_back({what, Answer::unknown, why, {}, "", {}, 0});
  }

  // A counterexample is asked for at small sizes first, where a run can confirm it.
  void ask(const std::string& what, Question q, const Sides& sides, const Span& span) {
    const auto start = std::chrono::steady_clock::now();
    Obligation o{what, Answer::unknown, "", {}, "", span, 0};
    for (size_t n = 0; n < sides.size(); ++n) {
      const bool count = sides[n].first == "visits of it";
      q.declarations.push_back(
          fmt::format("(declare-const side.{} {})", n, count ? "Int" : "Bool"));
      q.premises.push_back(fmt::format("(= side.{} {})", n, sides[n].second));
      q.shown.push_back(fmt::format("side.{}", n));
    }
    Reply reply = solver_.ask(q, kEffort);
    if (reply.answer == Answer::refuted)
      for (int64_t most : {300, 1200, 5000, 40000}) {
        Question small = q;
        for (const char* size : {"M", "N"})
          small.premises.push_back(fmt::format("(<= {} {})", sizes_.at(size).text, most));
        const Reply there = solver_.ask(small, kEffort);
        if (there.answer != Answer::refuted) continue;
        reply = there;
        break;
      }
    o.answer = reply.answer;
    o.why = reply.why;
    const auto of_bits = [](const std::string& t) { return t.find("(bits.") != std::string::npos; };
    if (o.answer == Answer::refuted &&
        (of_bits(q.claim) || std::any_of(q.premises.begin(), q.premises.end(), of_bits) ||
         std::any_of(q.spare.begin(), q.spare.end(), of_bits))) {
      o.answer = Answer::unknown;
      o.why = "it asks for more than is known of operators on bits";
    }
    if (o.answer == Answer::refuted) describe(o, q.shown, reply.values, sides);
    o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report_.obligations.push_back(std::move(o));
  }

  const tl::Program& program_;
  const spec::Form& form_;
  const Solver& solver_;
  Vocabulary vocabulary_;
  std::map<std::string, Term> sizes_, indices_;
  std::vector<std::string> extents_;  // what is known of sizes alone
  std::map<std::string, Term> long_;  // the sizes that a launch may have as long as it likes
  std::vector<std::string> common_, shown_;
  Visits visits_;
  Uses uses_;
  std::unique_ptr<Lists> lists_;
  std::vector<Vocabulary::Element> elements_;  // that the mask reads
  Term keep_;
  Report report_;
};

}  // namespace

Report prove_attention(const tl::Program& program, const spec::Form& form, const Solver& solver) {
  return Attention(program, form, solver).run();
}

}  // namespace kw::proofs
