// An expression made ready to be evaluated for many elements: postfix steps over an array of
// numbers, with names resolved to slots and tensors to pointers.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "num/tensor.h"
#include "operator/expr/fold.h"

namespace kw::spec {

struct Problem;

class Program {
 public:
  // score + n is the n-th product of a score, totals + n the n-th sum of a row.
  enum Slot { b, h, i, j, d, score, output = score + 4, totals, kSlots = totals + 4 };
  using Inputs = std::array<double, kSlots>;
  static Inputs at(int64_t b, int64_t h, int64_t i, int64_t j);  // the other inputs are 0

  // Elements beside each other: `along` counts from `first` on. Of other inputs that are not the
  // same for all of them, so many numbers.
  struct Line {
    Slot along;
    int64_t first = 0, count = 0;
    std::array<const double*, kSlots> of{};  // null: the same for all, as in the inputs
  };

  // Every read must be of a tensor, and every name be known, in the problem.
  Program(const ExprPtr& e, const Problem& problem);

  // Both sides of and/or/where are computed; a read out of range gives NaN.
  double run(const Inputs& inputs);
  // The same for the elements of a line, into `out`.
  void run(const Inputs& inputs, const Line& line, double* out);

 private:
  struct Step {
    enum class Do { constant, input, read, choose, apply } what;
    Op op = Op::invalid;
    int a = -1, b = -1, c = -1;  // steps before this one, or an input's slot
    double value = 0;
    bool rounds = false;  // to fp32, as PyTorch does before it compares
    const Tensor* tensor = nullptr;
    std::vector<int> indices;
  };
  int compile(const ExprPtr& e, const Problem& problem, bool in_fp32 = false);
  template <class IndexOf>
  static double read(const Step& step, const IndexOf& index_of);
  void step(size_t n, const Inputs& inputs);

  std::vector<Step> steps_;
  std::vector<double> values_;
  std::vector<double> lines_;  // of each step, for a piece of a line
};

}  // namespace kw::spec
