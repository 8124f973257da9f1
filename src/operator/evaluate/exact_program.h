// A real expression made ready to be evaluated in the exact algebra: as Program is in fp64.
#pragma once
#include <memory>
#include <vector>

#include "num/exact.h"
#include "operator/evaluate/program.h"

namespace kw::spec {

class ExactProgram {
 public:
  // What e is of: in a row, integers that are computed of columns alone are what they are.
  enum class Of { scores, rows };
  // e is real or boolean; parts without a real in them run as a Program.
  ExactProgram(const ExprPtr& e, const Problem& named, const exact::Algebra& algebra,
               Of of = Of::scores);

  // What the score or the output stands for is given apart from the indices; further products of
  // a score are in `more`.
  exact::Element run(const Program::Inputs& inputs, const exact::Element& given);
  // What the sums over a row are, by number.
  std::vector<exact::Element> totals;
  std::vector<exact::Element> more;
  // What elements of a tensor are that are no inputs: -1 of a tensor is the first of these.
  const std::vector<exact::Element>* computed = nullptr;
  exact::Algebra::Truth holds(const Program::Inputs& inputs);

  // Whether e can be evaluated: no integer is computed from a real.
  static bool supports(const ExprPtr& e);

 private:
  // A real, an integer or a truth.
  struct Item {
    exact::Element real;
    double integer = 0;  // also 0 and 1 of a truth
    uint8_t opaque = 0;  // of a truth
  };
  struct Step {
    enum class Do { constant, given, more, total, whole, read, choose, apply } what;
    Op op = Op::invalid;
    Type type = Type::real;
    int a = -1, b = -1, c = -1;  // steps before this one
    Item value;
    std::unique_ptr<Program> whole;
    bool plain = false;  // a whole that is an index, a size or a number, or of columns alone
    const Tensor* tensor = nullptr;
    std::vector<int> indices;
  };
  int compile(const ExprPtr& e, const Problem& named);
  int compile_real(const ExprPtr& e, const Problem& named);
  const Item& evaluate(const Program::Inputs& inputs, const exact::Element& given);
  exact::Element real(int step) const;
  Item apply(const Step& s) const;
  Item compare(const Step& s) const;
  exact::Element read(const Step& s) const;

  const exact::Algebra& algebra_;
  Of of_;
  std::vector<Step> steps_;
  std::vector<Item> items_;
};

}  // namespace kw::spec
