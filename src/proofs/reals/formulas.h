// Formulas over reals, of a specification and of a program: their degrees, and forms that are
// known.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>

#include "operator/form.h"
#include "tl/program.h"

namespace kw::proofs {

// What the specification's formulas are made of.
struct Degrees {
  int score = 1, output = 1;  // degrees in scores, data and integers
  int gradient = 1;           // of the gradient of a score, or of what it gives to others
  struct Has {
    bool functions = false;   // exponentials, logarithms, roots,
    bool logarithms = false;  // among them
    bool orders = false;      // maxima, absolute values and comparisons of reals
  };
  Has scores, all;  // scores with their mask, and all formulas
  double gain = 0;  // binades that their constants come to
  bool sink = false;
};

Degrees degrees_of(const spec::Form& form);

// The degree of an operation, of its operands': of a product their sum, else the largest.
int combined(const tl::ExprPtr& e, const std::function<int(const tl::ExprPtr&)>& degree);
// sum[i] + exp2(...)
bool is_more(const tl::ExprPtr& e, const std::string& name);
// where(offset[i] == -inf, 0.0, offset[i] * scale): the scale; null where it is something else.
tl::ExprPtr scale_of_offset(const tl::ExprPtr& e, const std::string& name);
// The largest constant that is added in an exponent.
double exponent(const tl::ExprPtr& e);

// What numbers and vectors of a program are made of.
class Constants {
 public:
  void remember(const std::string& name, const tl::ExprPtr& e);
  // Binades that the constants of a formula may add, all together.
  double gain(const tl::ExprPtr& e) const;
  // Whether it is made of an integer: it may be as large as a size.
  bool counts(const tl::ExprPtr& e) const;

 private:
  std::map<std::string, double> gains_;
  std::set<std::string> counts_;
};

}  // namespace kw::proofs
