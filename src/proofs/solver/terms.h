// Expressions as the solver reads them: of programs and of specifications, in one vocabulary.
//
// Integers are mathematical, `//` and `%` floor where the divisor is positive, data are
// uninterpreted functions of their indices: `document[c.b, j]` is (document b j), whoever writes
// it; so are `|`, `^`, `&` and shifts of two variables. What is real has no term. A term that
// cannot be given says why, and whatever depends on it stays open.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/form.h"
#include "tl/syntax/expr.h"

namespace kw::proofs {

struct Term {
  enum Sort { integer, boolean, real, open } sort = open;
  std::string text;  // SMT-LIB; of an open term why it is none

  static Term number(int64_t value);
  static Term an_int(std::string text) { return {integer, std::move(text)}; }
  static Term truth(bool value) { return {boolean, value ? "true" : "false"}; }
  static Term unknown(std::string why) { return {open, std::move(why)}; }
  bool is(const char* t) const { return sort == boolean && text == t; }
};

// With "true" and "false" folded, so that constants decide branches.
Term both(const Term& a, const Term& b);
Term either(const Term& a, const Term& b);
Term negation(const Term& a);
Term choice(const Term& condition, const Term& a, const Term& b);
// One of the operators that the two languages share: + - * // % == < and << ... , of integers and
// truths.
Term operation(const std::string& op, const Term& a, const Term& b);
// A number that fits 32 bits where a << count does, which PyTorch computes in 64: above the counts
// for which it is written out, it is one that does not.
Term shifted_left(const Term& a, const Term& count);
Term function(const std::string& name, const std::vector<Term>& arguments);  // min max abs ceil_div

// What is declared to the solver. Names of fresh constants are those asked for, with a number where
// two ask for one.
class Vocabulary {
 public:
  Vocabulary();
  Term constant(const std::string& name, Term::Sort sort = Term::integer);  // one for each name
  Term fresh(const std::string& name, Term::Sort sort = Term::integer);
  Term scalar(const std::string& argument);  // an integer of the user's
  Term read(const std::string& tensor, bool truth, const std::vector<Term>& indices);
  void declare(const std::string& function, size_t arguments);    // of integers, once
  Term apply(const std::string& function, const Term& argument);  // from integers to integers
  // An element that was read, each once, in order.
  struct Element {
    std::string tensor;
    bool truth = false;
    std::vector<std::string> at;
    std::string text;  // its integer
  };
  const std::vector<Element>& elements() const { return elements_; }
  const std::vector<std::string>& declarations() const { return declarations_; }
  // Integers of data and scalars, each that was read, lie between -2^bits and 2^bits - 1.
  std::vector<std::string> data_within(int bits) const;
  static std::string name_of_scalar(const std::string& argument) { return argument + ".arg"; }
  bool reads_scalar(const std::string& argument) const {
    return reads_.count(name_of_scalar(argument)) > 0;
  }
  void is_datum(const std::string& term) { reads_.insert(term); }

 private:
  std::set<std::string> names_, reads_;
  std::vector<Element> elements_;
  std::vector<std::string> declarations_;
};

// A specification's integer or boolean expression: the indices b, h, i, j and the sizes as given,
// arguments by the names that the user gave them.
Term term_of(const spec::ExprPtr& e, const std::map<std::string, Term>& indices,
             Vocabulary& vocabulary);

}  // namespace kw::proofs
