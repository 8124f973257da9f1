// What a form means: fp64, one row at a time, written to be read.
//
// A row whose every key is dropped, or whose weights' sum is 0, gives 0 and a logsumexp of -inf,
// unless the user's mask was a large finite number, when it is the mean of v. Inputs are tensors of
// the user's own shapes and types, held exactly in fp64.
#pragma once
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "num/random.h"
#include "num/tensor.h"
#include "operator/form.h"
#include "support/diagnostic.h"

namespace kw::spec {

// One set of arguments.
struct Problem {
  std::map<std::string, int64_t> sizes;   // by the form's names: "B", "M", "N", "L1"
  std::map<std::string, Tensor> tensors;  // every tensor argument
  std::map<std::string, double> scalars;  // every scalar argument
};

// How every argument is drawn.
struct Draws {
  uint64_t seed = 0;
  std::map<std::string, Draw> arguments;
};

// The sizes that belong to an argument alone (a table's length). True: it may be any that is no
// less than what is read. False: it is read at places that are data, which are drawn for it as it
// is.
std::map<std::string, bool> own_sizes(const Form& form);

// Arguments from a seed; sizes that an argument alone has grow to what is read of it (problem.cpp).
// Null when a size or a draw is missing. With `heads`, operands are 0 in all but these query heads
// and those of their keys: for who looks at no others.
std::optional<Problem> make_problem(const Form& form, std::map<std::string, int64_t> sizes,
                                    const Draws& draws, Diagnostics& diagnostics,
                                    const std::vector<int64_t>* heads = nullptr);

// The value of a size; -1 for a symbol that `sizes` lacks.
int64_t value_of(const Size& size, const std::map<std::string, int64_t>& sizes);
// Sets it to this or, where it counts by more than one, to the next that it can be.
void give(const Size& size, int64_t value, std::map<std::string, int64_t>& sizes);

// How many standard deviations (Evaluator) the rounding of changed rows may make a score, a
// logsumexp or a row of the output be off. Checks compare 10^5 rows: of a normal one, 7 are
// exceeded once in 10^12.
inline constexpr double kDeviations = 7;

class MappedRows;  // an operand's rows as its product sees them
class Program;     // an expression made ready for many evaluations

// Refers to the form and the problem: both must outlive it. Not for several threads at once.
class Evaluator {
 public:
  Evaluator(const Form& form, const Problem& problem);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;

  int64_t batches() const { return B_; }
  int64_t heads() const { return H_; }
  int64_t queries() const { return M_; }
  int64_t keys() const { return N_; }
  int64_t value_dim() const { return Dv_; }
  size_t products(int term) const { return terms_[term].products.size(); }  // of a score

  // The scaled score, with everything but the mask; and whether it counts.
  double score(int term, int64_t b, int64_t h, int64_t i, int64_t j);
  bool keep(int term, int64_t b, int64_t h, int64_t i, int64_t j);
  // The same of `count` keys from `first` on: 0 where one is dropped.
  void keep(int term, int64_t b, int64_t h, int64_t i, int64_t first, int64_t count, double* out);
  // What the score is computed from, q . k, of its products the `number`-th; and its deviation
  // where the rows of q or k are changed first, and so rounded to the operands' type once more. 0
  // where they are not.
  double product(int term, int64_t b, int64_t h, int64_t i, int64_t j, size_t number = 0);
  double product_deviation(int term, int64_t b, int64_t h, int64_t i, int64_t j, size_t number = 0);
  double value(int term, int64_t b, int64_t h, int64_t j, int64_t d);

  // One row of the output, value_dim() numbers; returns the logsumexp of its kept scores and the
  // sink, of a softmax.
  double row(int64_t b, int64_t h, int64_t i, double* output);
  // Of the row before, value_dim() numbers: what the epilogue takes.
  const std::vector<double>& before_epilogue() const { return before_epilogue_; }
  // Of the row before, keys() numbers: the weights of its values, up to a common factor.
  const std::vector<double>& weights() const { return weights_; }
  // Of the row before: what its weights are divided by, 0 for a row without a key; the logsumexp.
  double weights_sum() const { return weights_sum_; }
  double lse() const { return lse_; }
  // And the deviations for the rounding of changed rows: of its logsumexp, the most of any score's;
  // of its output, relative. The user's own error on a row is one draw of the latter.
  double lse_deviation() const { return lse_deviation_; }
  double output_deviation() const { return output_deviation_; }

 private:
  // Where an operand's element at (b, h, row, d) is: base(b, h) + row * row_stride + d * d_stride.
  struct Access {
    const double* data = nullptr;
    int64_t b_stride = 0, h_stride = 0, h_divisor = 1, row_stride = 0, d_stride = 0;
    std::shared_ptr<MappedRows>
        mapped;            // where rows are changed or in pages; these follow each other
    bool changed = false;  // and are rounded before the product
    const double* at(int64_t b, int64_t h) const;
  };
  Access access(const Operand& operand, const char* row, int64_t rows, int64_t columns) const;

  struct ProductState {
    Access q, k;
    int64_t D = 0;
    bool changed() const { return q.changed || k.changed; }
  };
  struct TermState {
    std::vector<ProductState> products;
    Access v;
    bool changed() const;
    std::unique_ptr<Program> score, keep, sink, factor;
    Normaliser normaliser = Normaliser::softmax;
    bool finite_mask = false;
  };
  void fill_products(int term, int64_t b, int64_t h, int64_t i, int64_t j, double* out);
  // Of a row, into weights_: each kept key's score, and `dropped` for the others.
  void fill_scores(int term, int64_t b, int64_t h, int64_t i, double dropped);
  // Of a row's weights_: what they are divided by, and the log of the sum of exponentials.
  struct Total {
    double sum = 0, lse = -HUGE_VAL;
  };
  Total exponentials(int term, int64_t b, int64_t h, int64_t i);
  Total plain_weights(int term, int64_t b, int64_t h, int64_t i);

  const Form& form_;
  const Problem& problem_;
  int64_t B_, H_, M_, N_, D_, Dv_;
  std::vector<TermState> terms_;
  std::unique_ptr<Program> epilogue_;
  std::vector<double> before_epilogue_;
  std::vector<double> kept_;                   // of one row
  std::vector<std::vector<double>> products_;  // of one row, a line for each product
  std::vector<double> weights_;                // of one row
  std::vector<double> deviations_;             // of its scores; empty where no row is changed
  double weights_sum_ = 0, lse_ = 0, lse_deviation_ = 0, output_deviation_ = 0;
  void note_deviations(int term, int64_t b, int64_t h, int64_t i);
  double deviation_of_output(int term, int64_t b, int64_t h, double total, const double* output);
};

struct Evaluated {
  Tensor output;   // f64 [B, H, M, Dv], whatever the user's order
  Tensor lse;      // f64 [B, H, M]
  Tensor columns;  // f64 [B, H, N]: of each key the sum of its weights
};
Evaluated evaluate(const Form& form, const Problem& problem);

}  // namespace kw::spec
