#include "proofs/reads.h"

#include <fmt/format.h>

#include <set>

#include "operator/family.h"
#include "proofs/proofs.h"

namespace kw::proofs {
namespace {

using SpecPtr = spec::ExprPtr;

class Reads {
 public:
  Reads(const std::map<std::string, Term>& indices, Vocabulary& vocabulary, const Solver& solver)
      : indices_(indices), vocabulary_(vocabulary), solver_(solver) {}

  // An arm of a choice is needed where its condition says so.
  void look(const SpecPtr& e, const std::vector<std::string>& premises) {
    if (!e || !why_.empty()) return;
    if (e->kind == spec::Kind::where) return choice(e, premises);
    if (spec::is_binary(e, "and") || spec::is_binary(e, "or")) return both(e, premises);
    for (const SpecPtr& a : e->args) {
      look(a, premises);
      if (e->kind == spec::Kind::read && a->kind == spec::Kind::binary &&
          !spec::mentions(a, spec::Kind::read))
        ask(e, term_of(a, indices_, vocabulary_), premises);
    }
  }

  const std::string& why() const { return why_; }

 private:
  // Each side is needed where the other one leaves it to decide.
  void both(const SpecPtr& e, const std::vector<std::string>& premises) {
    for (size_t n : {0, 1}) {
      const Term other = term_of(e->args[1 - n], indices_, vocabulary_);
      std::vector<std::string> inside = premises;
      if (other.sort == Term::boolean)
        inside.push_back(e->name == "and" ? other.text : negation(other).text);
      look(e->args[n], inside);
    }
  }

  void choice(const SpecPtr& e, const std::vector<std::string>& premises) {
    look(e->args[0], premises);
    const Term condition = term_of(e->args[0], indices_, vocabulary_);
    for (size_t n : {1, 2}) {
      std::vector<std::string> inside = premises;
      if (condition.sort == Term::boolean)
        inside.push_back(n == 1 ? condition.text : negation(condition).text);
      look(e->args[n], inside);
    }
  }

  void ask(const SpecPtr& read, const Term& at, const std::vector<std::string>& premises) {
    std::string key = at.text;
    for (const std::string& p : premises) key += "\n" + p;
    if (at.sort != Term::integer || !asked_.insert(key).second) return;
    Question q;
    q.declarations = vocabulary_.declarations();
    q.premises = premises;
    q.claim = fmt::format("(<= 0 {})", at.text);
    if (solver_.ask(q, kEffort).answer != Answer::proved)
      why_ = fmt::format(
          "the function reads {}, at an index that may be negative, which PyTorch "
          "counts from the end",
          print(read));
  }

  const std::map<std::string, Term>& indices_;
  Vocabulary& vocabulary_;
  const Solver& solver_;
  std::set<std::string> asked_;
  std::string why_;
};

}  // namespace

std::string counted_from_the_end(const spec::Form& form, const std::map<std::string, Term>& indices,
                                 const Term& keep, const std::vector<std::string>& extents,
                                 Vocabulary& vocabulary, const Solver& solver) {
  Reads reads(indices, vocabulary, solver);
  std::vector<std::string> inside = extents;
  const std::string &i = indices.at("i").text, &j = indices.at("j").text;
  inside.push_back(fmt::format(
      "(and (<= 0 {0}) (< {0} {1}) (<= 0 {2}) (< {2} {3}))", i,
      form.M.name.empty() ? i : indices.at(form.M.name).text, j,
      form.N.name.empty() ? j
      : form.N.times == 1 ? indices.at(form.N.name).text
                          : fmt::format("(* {} {})", indices.at(form.N.name).text, form.N.times)));
  spec::Form copy = form;
  spec::Family::of(form).each_expression(copy, [&](SpecPtr& e, const spec::Extents&) {
    std::vector<std::string> premises = inside;
    if (e && e == copy.terms[0].score && keep.sort == Term::boolean) premises.push_back(keep.text);
    reads.look(e, premises);
  });
  return reads.why();
}

}  // namespace kw::proofs
