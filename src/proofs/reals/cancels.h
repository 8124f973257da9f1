// Whether terms cancel in the formulas of a specification, and of a program, or are products that
// were multiplied out: where the first has no such terms, the second has lost what it should add
// (expanded.h). And which sums are taken in each.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/form.h"
#include "proofs/reals/expanded.h"
#include "tl/program.h"

namespace kw::proofs {

// Terms that cancel, terms with a factor in common, and the sums that are taken, by plain names;
// and of what an operand's rows are summed up.
struct Losses {
  bool cancel = false, share = false;
  std::set<std::string> sums, rows;
  bool beyond(const Losses& of) const { return (cancel && !of.cancel) || (share && !of.share); }
  bool has_other_sums(const Losses& of) const {
    return !std::includes(of.sums.begin(), of.sums.end(), sums.begin(), sums.end());
  }
};

Losses losses_of(const spec::Form& form);

// What each tensor that it reads is called there: an element of a row, of a key, or of both.
std::map<std::string, std::set<std::string>> places_of(const spec::Form& form);

// A program's numbers, vectors and tiles, each by what it is made of.
class Formulas {
 public:
  // `plain` says what a name, an element or a field is called in sums.
  explicit Formulas(std::function<std::string(const tl::ExprPtr&)> plain) : plain_(plain) {}

  Losses losses(const tl::ExprPtr& e);
  // What it is by the names of its terms, of each way through its choices; or of the sums among
  // these.
  std::set<std::string> terms(const tl::ExprPtr& e, bool sums);
  // What it is, multiplied out.
  Arms arms(const tl::ExprPtr& e);
  // `sometimes`: or what it was before.
  void set(const std::string& name, const tl::ExprPtr& e, bool sometimes = false);
  void let(const std::string& name, const tl::ExprPtr& e);
  // What the launcher computes once.
  void of_launch(const std::string& name, const tl::ExprPtr& e);
  // It is a letter from now on.
  void forget(const std::string& name) {
    known_.erase(name);
    before_.erase(name);
  }
  // What follows stands under this condition, until `leave`.
  void enter(const tl::ExprPtr& condition) { under_.push_back(condition); }
  void leave() { under_.pop_back(); }

 private:
  Arms letter(const tl::ExprPtr& e);
  std::string plain(const tl::ExprPtr& e);
  tl::ExprPtr with_lets(const tl::ExprPtr& e) const;
  std::optional<double> whole(const tl::ExprPtr& e) const;
  Arms of_call(const tl::ExprPtr& e);

  // Whether a condition of a `let` and the one that holds here cannot both.
  bool excluded(const tl::ExprPtr& condition) const;

  // What something was before it changed under a condition.
  struct Before {
    tl::ExprPtr condition;
    Arms arms;
  };
  std::function<std::string(const tl::ExprPtr&)> plain_;
  Expanded expanded_;
  std::map<std::string, Arms> known_;
  std::map<std::string, Before> before_;
  std::vector<tl::ExprPtr> under_;
  std::map<std::string, tl::ExprPtr> lets_;
};

}  // namespace kw::proofs
