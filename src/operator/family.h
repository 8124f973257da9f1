// What the layers ask of an operator, whatever it computes: its axes, its outputs and their rules,
// its expressions, and its meaning in fp64 and in the exact algebra.
//
// A form (form.h) is of one family of families.def. What differs from family to family is behind
// this class, one object a family; nobody else asks which family a form is of. A new family has
// this class in each layer (docs/architecture.md lists the files).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "num/exact.h"
#include "operator/evaluate/evaluate.h"
#include "operator/graph/graph.h"

namespace kw::spec {

// A direction of an operator's iteration space: its letter in kernels and proofs, its index in
// expressions ("" where it groups another one, as G does the heads), its size.
struct Axis {
  std::string letter, index;
  Size size;
  bool of_kernel = false;  // a constant of the kernel's text, no size of its launches
};

// How far the indices h and d of an expression run.
struct Extents {
  Size heads, columns;
};
using EachExpression = std::function<void(ExprPtr&, const Extents&)>;
using EachOperand = std::function<void(Operand&)>;
using EachRow = std::function<void(RowMap&)>;

// What an output's elements are held against, of one row, or of a head for outputs without rows.
struct Held {
  std::vector<double> want;
  double rounding = 0;  // deviation for the rounding of changed rows: relative for Rule::row; of
                        // Rule::sum: of the element's own type, relative
  double scale = 1;     // of Rule::row_sum: the norm of the row that is summed
  double noise = 0;     // of Rule::row: the norm of what fp32 may be off by where terms cancel
  std::vector<double> noises;   // the same of rows that are not queries' (length)
  std::vector<double> allowed;  // of Rule::sum: for each element
  int64_t length = 0;           // of an output without rows: of the rows in `want`; 0: all is one
  bool unspecified = false;     // nothing is asked of it
};

// Of an output without rows of queries: how many rows it has of its own, and one of them.
int64_t rows_of(const Held& held);
Held row_of(const Held& held, int64_t row);

// The operator in fp64, a row at a time. Refers to the form and the problem. Not for several
// threads at once.
class Truth {
 public:
  virtual ~Truth() = default;
  virtual int64_t batches() const = 0;
  virtual int64_t heads() const = 0;
  virtual int64_t rows() const = 0;
  // Forgets what the rows before add to outputs without rows: of these a head has a share (sums.h).
  virtual void begin_head() {}
  // Evaluates one row; what outputs()[n] is held against is then of(n).
  virtual void row(int64_t b, int64_t h, int64_t i) = 0;
  const Held& of(size_t output) const { return held_[output]; }
  // Whether PyTorch leaves the row that was evaluated last open, given what it gave for it.
  virtual bool open_in_pytorch(const double* /*golden*/, int64_t /*length*/) const { return false; }

 protected:
  std::vector<Held> held_;  // one for each of outputs()
};

// All rows of one head in the exact algebra: of each of outputs() the elements, a row after the
// other; and of which rows it says nothing (empty: it says all). Of an output without rows it is
// the head's share (sums.h).
struct ExactHead {
  struct One {
    std::vector<exact::Element> elements;
    std::vector<bool> unspecified;
  };
  std::vector<One> outputs;
};

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const Form& form);

  // "a product of matrices": what a message calls it.
  virtual std::string what() const = 0;
  // Whether a form is of this family; the families before it in families.def have been asked.
  virtual bool is(const Form& form) const = 0;

  // The form of a function, or nothing. Reports, with the user's line, where a function is of this
  // family and cannot be read. Nothing and no report where it is of another; that is all that a
  // family does whose forms another one's recogniser finds.
  virtual std::optional<Form> recognise(const Graph& /*graph*/, Diagnostics&) const { return {}; }

  virtual std::string print(const Form& form) const = 0;
  virtual std::vector<Axis> axes(const Form& form) const = 0;
  // What a program may give: what the function returns, in its order, and what is known besides.
  virtual std::vector<Output> outputs(const Form& form) const = 0;
  // Why a program may not have an output of this name, or "".
  virtual std::string no_output(const Form& form, const std::string& name) const;

  // Adds to a problem what follows from what was drawn.
  virtual void complete(const Form& /*form*/, Problem& /*problem*/) const {}

  // Every expression but those that operands are read at; every operand.
  virtual void each_expression(Form& form, const EachExpression& visit) const = 0;
  virtual void each_operand(Form& form, const EachOperand& visit) const = 0;
  // Of gradients: what a score, or what is learned, changes by; and what turns rows round behind
  // the kernel.
  virtual std::vector<ExprPtr> derivatives(const Form& /*form*/) const { return {}; }
  virtual void each_turned_row(Form& /*form*/, const EachRow& /*visit*/) const {}
  std::vector<RowMap> turned_rows(Form form) const;
  // heads_are_alike() and with_key_heads() of form.h.
  virtual bool heads_are_alike(const Form& form) const = 0;
  virtual std::optional<Form> with_key_heads(const Form& /*form*/, int64_t /*key_heads*/) const {
    return std::nullopt;
  }

  virtual std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) const = 0;
  virtual ExactHead exact(const Form& form, const Problem& named, const exact::Algebra& algebra,
                          int64_t b, int64_t h) const = 0;
};

// In the order of families.def.
enum class FamilyName {
#define FAMILY(word) word,
#include "operator/families.def"
};

FamilyName family_of(const Form& form);

std::vector<Axis> axes(const Form& form);
std::vector<Output> outputs(const Form& form);
std::unique_ptr<Truth> truth(const Form& form, const Problem& problem);

// Where elements of an argument that is read at plain indices lie: how far neighbours in each index
// are apart, by the index's name.
std::map<std::string, int64_t> strides_of(const Operand& operand, const Tensor& argument);

// Whether an output is right: by its rule, given what the user's own function errs by on that row.
struct Accepted {
  double error = 0, allowed = 0;
  bool right = true;
  int64_t at = 0;  // of several elements with a rule for each, which one
};
Accepted accept(const Output& output, const Held& held, const double* got, double own_error,
                Dtype dtype);

}  // namespace kw::spec
