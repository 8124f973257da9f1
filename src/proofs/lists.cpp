#include "proofs/lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "proofs/names.h"
#include "proofs/solver/sexpr.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::proofs {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

namespace {

// Every application of a function in a term, by its argument.
void arguments_of(const Sexpr& e, const std::string& function, std::set<std::string>& out) {
  if (e.is(function.c_str(), 1)) out.insert(print(e.parts[1]));
  for (const Sexpr& p : e.parts) arguments_of(p, function, out);
}

std::set<std::string> arguments_of(const std::vector<std::string>& terms,
                                   const std::string& function) {
  std::set<std::string> out;
  for (const std::string& t : terms)
    if (t.find(function) != std::string::npos) arguments_of(read_term(t), function, out);
  return out;
}

Term at_least(const Term& a, const Term& b) { return operation(">=", a, b); }
Term below(const Term& a, const Term& b) { return operation("<", a, b); }

}  // namespace

class Lists::Pass : private Names {
 public:
  Pass(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& of,
       Vocabulary& vocabulary, const std::string& list, std::vector<Vocabulary::Element> elements,
       const std::function<bool(const std::string&)>& proved)
      : Names(program, sizes, of, vocabulary), elements_(std::move(elements)), proved_(proved) {
    scope_ = module();
    for (const Stmt& s : program.body)
      if (s.op == Op::lists) enter(s, list);
    if (!blocks_) Names::open("no pass lists key blocks");
  }

  const std::string& open() const { return open_; }

  Facts facts(const std::vector<std::string>& terms, bool why_whole) {
    const bool last_alone = only_the_last_is_partial();
    boxes_.clear();
    out_ = {};
    const std::set<std::string> places = arguments_of(terms, "list.at"),
                                numbers = arguments_of(terms, "list.group"),
                                blocks = arguments_of(terms, "list.place");
    if (places.empty() && numbers.empty() && blocks.empty() && !mention_numbers(terms)) return {};
    say(out_.sizes, both(at_least(count_, Term::number(1)),
                         both(at_least(full_, Term::number(0)), at_least(count_, full_))));
    say(out_.sizes,
        at_least(function("max", {Term::number(1), operation("-", end_, begin_)}), count_));
    if (last_alone) say(out_.sizes, at_least(operation("+", full_, Term::number(1)), count_));
    for (const std::string& r : numbers) group(Term::an_int(r));
    std::vector<Term> read;
    for (const std::string& p : places) read.push_back(Term::an_int(p));
    for (const std::string& x : blocks) {
      if (numbers.empty()) listed(Term::an_int(x), Term::number(0));
      for (const std::string& r : numbers) listed(Term::an_int(x), Term::an_int(r));
      read.push_back(vocabulary_.apply("list.place", Term::an_int(x)));
    }
    for (const Term& p : read) place(p);
    bounds(out_.found);
    boxes_.clear();
    for (const Term& p : why_whole ? read : std::vector<Term>()) {
      const Term block = vocabulary_.apply("list.at", p);
      say(out_.found, either(negation(whole(block)), is_full(block)));
    }
    bounds(out_.found);
    return out_;
  }

  std::vector<std::string> inside(const std::string& term) const {
    std::vector<std::string> out;
    for (const std::string& p : arguments_of({term}, "list.at"))
      out.push_back(in_range(p, "list.count"));
    for (const std::string& r : arguments_of({term}, "list.group"))
      out.push_back(in_range(r, std::to_string(words_->groups)));
    return out;
  }

  std::string address() const { return fmt::format("(* {} {})", number_, words_->stride); }

  std::vector<Step> steps() {
    std::vector<Step> out;
    const Term n = vocabulary_.constant("pass.block"), r = vocabulary_.constant("pass.group");
    premises_ = {is_looked_at(n).text, is_group(r).text};
    steps_ = &out;
    kept(n, r, operation("+", r, Term::number(1)));
    kept(n, Term::number(0), Term::number(words_->groups));
    steps_ = nullptr;
    return out;
  }

 private:
  // A box of a tensor's elements, and what is the least or greatest of them.
  struct Box {
    std::string tensor, text;
    bool truth = false, least = false;
    std::vector<std::string> low, high;
  };

  // Of any key block, and of all groups or one.
  void computed(const Term& t, const Scope& scope, int64_t least) override {
    if (!steps_) return;
    std::vector<std::string> premises = premises_;
    premises.insert(premises.end(), scope.premises.begin(), scope.premises.end());
    steps_->push_back({std::move(premises), t, least});
  }

  // ---- whose list it is
  void enter(const Stmt& pass, const std::string& list) {
    if (!words_) return;
    number_ = list;
    const std::string& w = pass.index();
    scope_.names[w] = {Term::an_int(list), {}};
    const Term lists = eval(pass.count(), scope_);
    if (!is_below(read_term(list), read_term(lists.text)))
      return Names::open(fmt::format("whether list {} is one of {}", list, lists.text));
    for (const Stmt& s : pass.body) {
      if (s.op == Op::let)
        for (const tl::Item& d : s.names())
          scope_.names[d.name] = {divided(eval(d.expr, scope_)), {}};
      if (s.op == Op::list_blocks) blocks_ = &s;
    }
    if (!blocks_) return;
    begin_ = eval(blocks_->begin(), scope_);
    end_ = eval(blocks_->end(), scope_);
    count_ = vocabulary_.constant("list.count");
    full_ = vocabulary_.constant("list.full");
    for (const char* f : {"list.at", "list.group", "list.place", "list.whole"})
      vocabulary_.apply(f, Term::number(0));
    has_room(lists);
  }

  // From one list to the next lie as many words as it may have, and the scratch has all of them.
  void has_room(const Term& lists) {
    const std::string words = fmt::format("(- {} {})", words_->stride, 2 + words_->groups);
    if (begin_.sort != Term::integer || end_.sort != Term::integer)
      return Names::open(begin_.sort == Term::integer ? end_.text : begin_.text);
    if (!proved_(fmt::format("(and (<= 0 {0}) (<= 1 {1}) (<= (- {2} {0}) {1}))", begin_.text, words,
                             end_.text)))
      return Names::open("whether a list has room for its key blocks");
    tl::walk(program_.body, [&](const Stmt& s) {
      if (s.op != Op::arg_scratch || s.names()[0].name != words_->scratch) return;
      const Term all = eval(s.words(), scope_);
      if (all.text != fmt::format("(* {} {})", lists.text, words_->stride))
        Names::open(fmt::format("whether all lists fit into {} words", all.text));
    });
  }

  // a * T + b < T * P where 0 <= b < T and a < P.
  bool is_below(const Sexpr& e, const Sexpr& end) {
    if (proved_(in_range(print(e), print(end)))) return true;
    if (!e.is("+", 2) || !e.parts[1].is("*", 2)) return false;
    const std::string tile = print(e.parts[1].parts[2]), rest = print(e.parts[2]);
    std::vector<std::string> factors = factors_of(end);
    const auto found = std::find(factors.begin(), factors.end(), tile);
    if (found == factors.end() || factors.size() < 2) return false;
    factors.erase(found);
    std::string product = factors[0];
    for (size_t n = 1; n < factors.size(); ++n)
      product = fmt::format("(* {} {})", product, factors[n]);
    return proved_(in_range(rest, tile)) && is_below(e.parts[1].parts[1], read_term(product));
  }

  // (a * T + b) % T is b and (a * T + b) // T is a, where 0 <= b < T.
  Term divided(const Term& t) {
    if (t.sort != Term::integer) return t;
    return Term::an_int(print(divided(read_term(t.text))));
  }

  Sexpr divided(Sexpr e) {
    for (Sexpr& p : e.parts) p = divided(p);
    if (!e.is("div", 2) && !e.is("mod", 2)) return e;
    const Sexpr& sum = e.parts[1];
    if (!sum.is("+", 2) || !sum.parts[1].is("*", 2)) return e;
    const std::string tile = print(sum.parts[1].parts[2]), by = print(e.parts[2]),
                      rest = print(sum.parts[2]);
    if (by != tile && by != fmt::format("(ite (> {0} 0) {0} 1)", tile)) return e;
    if (!proved_(in_range(rest, tile))) return e;
    return Sexpr(e.is("mod", 2) ? sum.parts[2] : sum.parts[1].parts[1]);
  }

  // ---- what the pass says of a key block and the rows of some groups
  struct Kept {
    Term some, all;
  };

  Kept kept(const Term& block, const Term& group, const Term& end) {
    Scope scope = scope_;
    scope.names[blocks_->index()] = {block, {}};
    scope.names[blocks_->group_begin()] = {group, {}};
    scope.names[blocks_->group_end()] = {end, {}};
    for (const Stmt& s : blocks_->body) {
      if (s.op == Op::let) let(s, scope);
      if (s.op == Op::return_ && s.values().size() == 2)
        return {eval(s.values()[0].expr, scope), eval(s.values()[1].expr, scope)};
    }
    return {Term::unknown("a pass that returns no two conditions"), Term::truth(false)};
  }

  Kept of_group(const Term& block, const Term& group) {
    return kept(block, group, operation("+", group, Term::number(1)));
  }

  // All of its rows together keep all of it, or each group alone does.
  Term is_full(const Term& block) {
    const Kept together = kept(block, Term::number(0), Term::number(words_->groups));
    Term each = Term::truth(words_->groups > 1);
    for (int64_t r = 0; words_->groups > 1 && r < words_->groups; ++r)
      each = both(each, of_group(block, Term::number(r)).all);
    return both(together.some, either(together.all, each));
  }

  // A group is asked about alone where all of them may keep something.
  Term may_keep(const Term& block, const Term& group) {
    const Kept together = kept(block, Term::number(0), Term::number(words_->groups));
    const Term alone = words_->groups > 1 ? of_group(block, group).some : Term::truth(true);
    return both(together.some, alone);
  }

  // Whether the pass has found that all of it is kept.
  Term whole(const Term& block) {
    return operation("==", vocabulary_.apply("list.whole", block), Term::number(1));
  }

  // Whether all is kept of each block but the last, or nothing: asked once, and by a question that
  // may ask for facts itself.
  bool only_the_last_is_partial() {
    if (!partial_) {
      partial_ = false;
      boxes_.clear();
      const Term n = vocabulary_.constant("pass.block");
      const Kept of_n = kept(n, Term::number(0), Term::number(words_->groups));
      const Term partial = both(is_looked_at(n), both(of_n.some, negation(is_full(n)))),
                 last = operation("==", n, operation("-", end_, Term::number(1)));
      std::vector<std::string> known = {partial.text};
      of_one_element(known);
      partial_ = partial.sort != Term::open && last.sort != Term::open &&
                 proved_(fmt::format("(=> (and {}) {})", fmt::join(known, " "), last.text));
    }
    return *partial_;
  }

  // The least and the greatest of one element are it.
  void of_one_element(std::vector<std::string>& out) const {
    for (const Box& a : boxes_)
      for (const Box& b : boxes_) {
        if (!a.least || b.least || a.tensor != b.tensor || a.low != b.low || a.high != b.high)
          continue;
        std::vector<std::string> one = {"true"};
        for (size_t d = 0; d < a.low.size(); ++d)
          one.push_back(fmt::format("(= {} {})", a.low[d], a.high[d]));
        out.push_back(fmt::format("(=> (and {}) (= {} {}))", fmt::join(one, " "), a.text, b.text));
      }
  }

  Term is_looked_at(const Term& block) { return both(at_least(block, begin_), below(block, end_)); }

  // ---- what is so of each word
  void say(std::vector<std::string>& out, const Term& t) {
    if (t.sort == Term::open) return Names::open(t.text);
    out.push_back(t.text);
  }

  void group(const Term& r) {
    const Term number = vocabulary_.apply("list.group", r);
    say(out_.sizes, either(negation(is_group(r)),
                           both(at_least(number, Term::number(1)), at_least(count_, number))));
  }

  Term is_group(const Term& r) {
    return both(at_least(r, Term::number(0)), below(r, Term::number(words_->groups)));
  }

  void place(const Term& p) {
    const Term block = vocabulary_.apply("list.at", p), looked = is_looked_at(block);
    const Term none = operation("==", block, Term::number(0)), full = below(p, full_);
    const Term once = operation("==", vocabulary_.apply("list.place", block), p);
    const Term elsewhere = negation(both(at_least(p, Term::number(0)), below(p, count_)));
    say(out_.sizes, either(elsewhere, either(both(none, negation(full)), looked)));
    say(out_.found, either(elsewhere, both(once, operation("==", full, whole(block)))));
  }

  void listed(const Term& block, const Term& r) {
    const Term p = vocabulary_.apply("list.place", block);
    const Term useful = both(both(is_looked_at(block), is_group(r)), may_keep(block, r));
    Term so = both(at_least(p, Term::number(0)), below(p, count_));
    so = both(so, operation("==", vocabulary_.apply("list.at", p), block));
    so = both(so, below(p, vocabulary_.apply("list.group", r)));
    say(out_.found, either(negation(useful), so));
  }

  bool mention_numbers(const std::vector<std::string>& terms) const {
    return std::any_of(terms.begin(), terms.end(), [](const std::string& t) {
      return t.find("list.count") != std::string::npos || t.find("list.full") != std::string::npos;
    });
  }

  // ---- what was looked at
  Term extreme(const tl::Expr& e, const Scope& scope) override {
    const std::string tensor = e.args[0]->text, type = type_of(tensor);
    if (type != "bool" && tl::scalar_type(type).kind != tl::Type::integer)
      return Term::unknown(fmt::format("the {} of what is no integer", e.text));
    Box box{user_of(tensor), "", type == "bool", e.text == "least", {}, {}};
    std::string name = fmt::format("({}.{}", box.tensor, e.text);
    for (size_t n = 1; n < e.args.size(); ++n) {
      const Term t = eval(e.args[n], scope);
      if (t.sort != Term::integer) return t.sort == Term::open ? t : Term::unknown("a real index");
      (n % 2 ? box.low : box.high).push_back(t.text);
      name += " " + t.text;
    }
    vocabulary_.declare(fmt::format("{}.{}", box.tensor, e.text), e.args.size() - 1);
    box.text = name + ")";
    vocabulary_.is_datum(box.text);
    const bool known =
        std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& b) { return b.text == box.text; });
    if (!known) boxes_.push_back(box);
    return Term::an_int(box.text);
  }

  // Each element that the specification reads, where it lies in a box.
  void bounds(std::vector<std::string>& out) {
    for (const Box& box : boxes_)
      for (const Vocabulary::Element& element : elements_) {
        if (element.tensor != box.tensor || element.at.size() != box.low.size()) continue;
        std::vector<std::string> in = {
            fmt::format("(<= 0 i (- {} 1))", sizes_.at(sides_.rows).text),
            fmt::format("(<= 0 j (- {} 1))", sizes_.at(sides_.columns).text)};
        for (size_t d = 0; d < element.at.size(); ++d)
          in.push_back(fmt::format("(<= {} {} {})", box.low[d], element.at[d], box.high[d]));
        const std::string inside = fmt::format("(and {})", fmt::join(in, " "));
        const auto& [lower, upper] =
            box.least ? std::pair(box.text, element.text) : std::pair(element.text, box.text);
        out.push_back(fmt::format("(=> {} (<= {} {}))", inside, lower, upper));
        if (element.truth) out.push_back(fmt::format("(<= 0 {} 1)", element.text));
      }
  }

  std::vector<Step>* steps_ = nullptr;
  std::string number_;
  std::vector<std::string> premises_;
  Scope scope_;
  const Stmt* blocks_ = nullptr;
  Term begin_, end_, count_, full_;
  std::vector<Vocabulary::Element> elements_;
  std::vector<Box> boxes_;
  std::optional<bool> partial_;  // only_the_last_is_partial()
  Facts out_;
  std::function<bool(const std::string&)> proved_;
};

Lists::Lists(const tl::Program& program, const std::map<std::string, Term>& sizes,
             const Blocks& blocks, Vocabulary& vocabulary, const std::string& list,
             std::vector<Vocabulary::Element> elements,
             const std::function<bool(const std::string&)>& proved)
    : pass_(std::make_unique<Pass>(program, sizes, blocks, vocabulary, list, std::move(elements),
                                   proved)) {}
Lists::~Lists() = default;

const std::string& Lists::open() const { return pass_->open(); }
Lists::Facts Lists::facts(const std::vector<std::string>& terms, bool whole) {
  return pass_->facts(terms, whole);
}
std::string Lists::address() const { return pass_->address(); }
std::vector<Step> Lists::steps() { return pass_->steps(); }
std::vector<std::string> Lists::inside(const std::string& term) const {
  return pass_->inside(term);
}

}  // namespace kw::proofs
