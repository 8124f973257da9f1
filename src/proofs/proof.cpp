#include "proofs/proof.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "proofs/obligations.h"
#include "proofs/solver/quotients.h"
#include "proofs/solver/sexpr.h"
#include "proofs/solver/shifts.h"
#include "support/largest_size.h"

namespace kw::proofs {
namespace {

// Whose products fit 32 bits: the root of 2^31, and powers of two for what multiplies more. Less
// is no limit but a refutation: where there is one row block, what goes wrong in the second fits.
constexpr int64_t kLimits[] = {46340, 1 << 14, 1 << 12};

}  // namespace

void Proof::name_sizes() {
  const auto add = [&](const char* letter, const spec::Size& size) {
    const Term t =
        size.name.empty() ? Term::number(size.constant) : vocabulary_.constant(size.name);
    sizes_[letter] = size.times == 1 ? t : operation("*", t, Term::number(size.times));
    if (size.times > 1) {  // what is computed of sizes is held to what those given are
      common_.push_back(fmt::format("(<= {} {})", sizes_[letter].text, kLargestSize));
      report_.limits.push_back({tl::binary("<=", tl::name(letter), tl::integer(kLargestSize))});
    }
    if (size.name.empty() || indices_.count(size.name)) return;
    indices_[size.name] = t;
    long_[size.name] = {t, kLargestSize / size.times};
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
  if (heads_ != Heads::own) name_heads();
  const bool of_keys = sides_.of_keys;
  indices_["i"] = vocabulary_.constant(of_keys ? "j" : "i");
  indices_["j"] = vocabulary_.constant(of_keys ? "i" : "j");
  indices_["b"] = vocabulary_.constant("block.b");
  indices_["h"] = vocabulary_.constant("block.h");
  for (const char* name : {"i", "j", "block.b", "block.h"}) shown_.push_back(name);
}

// Of any numbers no more is known than what `H // G` is called: what is asked then has no products
// of symbols, and holds for whatever it is.
void Proof::name_heads() {
  const Term all = sizes_["H"], groups = sizes_["G"];
  Term ratio = Term::number(ratio_);
  if (heads_ == Heads::any && is_literal(groups.text)) ratio = all;
  if (heads_ == Heads::any && !is_literal(groups.text)) {
    ratio = vocabulary_.constant(heads::kRatio);
    common_.push_back(fmt::format("(<= 1 {})", ratio.text));
    if (sides_.of_keys) {  // turns over heads and blocks of queries are counted by one integer
      common_.push_back(fmt::format("(<= {} {})", ratio.text, heads::kMostOfAGroup));
      report_.limits.push_back({tl::binary(
          "<=", tl::name("H"), tl::binary("*", tl::name("G"), tl::integer(heads::kMostOfAGroup)))});
    } else {
      long_[heads::kRatio] = {ratio, kLargestSize};
    }
  }
  if (heads_ == Heads::grouped)
    common_.push_back(fmt::format("(= {} (* {} {}))", all.text, ratio.text, groups.text));
  sizes_[heads::kLetter] = indices_[heads::kRatio] = ratio;
}

Question Proof::question(std::vector<std::string> premises, std::string claim, bool whole) const {
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
  for (std::string& so : small_quotients(terms)) q.premises.push_back(std::move(so));
  q.claim = std::move(claim);
  q.shown = shown_;
  return q;
}

// A key of the last block may lie past the end, where nothing may be kept of it.
std::vector<std::string> Proof::in_tile(const Visit& v, bool columns) const {
  std::vector<std::string> p = {
      fmt::format("(and (<= {0} i) (< i (+ {0} {1})) (<= 0 i))", v.i0->text, v.rows)};
  if (!sides_.of_keys) p.push_back(fmt::format("(< i {})", row_count()));
  if (sides_.of_keys) p.push_back(fmt::format("(and (<= 0 j) (< j {}))", column_count()));
  if (columns)
    p.push_back(fmt::format("(and (<= {0} j) (< j (+ {0} {1})))", v.j0->text, v.columns));
  return p;
}

void Proof::fits_an_int(const std::vector<Step>& steps) {
  std::vector<std::string> each;
  std::set<std::string> seen;
  const std::string address = lists_ ? lists_->address() : "";
  const auto is_of = [](const std::string& part, const std::string& whole) {
    return !part.empty() && whole.find(part) != std::string::npos;
  };
  for (const Step& s : steps) {
    if (s.least > INT32_MIN || is_of(s.term.text, address) || is_of(address, s.term.text)) continue;
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

Question Proof::of_steps(const std::vector<std::string>& each) {
  std::vector<std::string> premises = in_tile(visits_.all[0], false);
  premises.push_back(fmt::format("(and (<= 0 j) (< j {}))", column_count()));
  premises.insert(premises.end(), uses_.of_all.begin(), uses_.of_all.end());
  return question(premises, all_of(each));
}

bool Proof::computes_sizes() {
  for (const ComputedSize& s : visits_.sizes) {
    const Term& is = sizes_.at(s.letter);
    if (s.term.sort != Term::integer) {
      open(kIntegers, fmt::format("{} is {}", s.letter, s.term.text));
      return false;
    }
    ask(kIntegers, question({}, fmt::format("(= {} {})", s.term.text, is.text)),
        {{fmt::format("the program's {}", s.letter), s.term.text, "Int"},
         {"the tensors'", is.text, "Int"}},
        s.span);
    if (report_.obligations.back().answer != Answer::proved) return false;
    report_.obligations.pop_back();
  }
  return true;
}

void Proof::has_its_sign(const std::vector<Step>& steps) {
  std::set<std::string> each;
  for (const Step& s : steps)
    if (s.least > INT32_MIN)
      each.insert(fmt::format("(=> {} (<= {} {}))", all_of(s.premises), s.least, s.term.text));
  if (each.empty()) return;
  const Question q = of_steps({each.begin(), each.end()});
  ask(kSigns, q, {}, visits_.all[0].span);
  if (report_.obligations.back().answer == Answer::refuted) limit(report_.obligations.back(), q);
}

void Proof::limit(Obligation& o, const Question& all) {
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
    for (const std::string& letter : letters)
      report_.limits.push_back({tl::binary("<=", tl::name(letter), tl::integer(most))});
    return;
  }
}

void Proof::by_form(const std::string& what, const std::string& why) {
  report_.obligations.push_back(
      {what, why.empty() ? Answer::proved : Answer::unknown, why, {}, "", {}, 0});
}

void Proof::open(const std::string& what, const std::string& why) {
  report_.obligations.push_back({what, Answer::unknown, why, {}, "", {}, 0});
}

void Proof::ask(const std::string& what, Question q, const Sides& sides, const Span& span) {
  const auto start = std::chrono::steady_clock::now();
  Obligation o{what, Answer::unknown, "", {}, "", span, 0};
  for (size_t n = 0; n < sides.size(); ++n) {
    q.declarations.push_back(fmt::format("(declare-const side.{} {})", n, sides[n].sort));
    q.premises.push_back(fmt::format("(= side.{} {})", n, sides[n].term));
    q.shown.push_back(fmt::format("side.{}", n));
  }
  Reply reply = solver_.ask(q, kEffort);
  if (reply.answer == Answer::refuted && heads_ == Heads::own)
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
  if (sides_.of_keys)  // to the reader, i is a query's row and j a key's
    for (std::string& name : q.shown)
      if (name == "i" || name == "j") name = name == "i" ? "j" : "i";
  if (o.answer == Answer::refuted) describe(o, q.shown, reply.values, sides);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report_.obligations.push_back(std::move(o));
}

}  // namespace kw::proofs
