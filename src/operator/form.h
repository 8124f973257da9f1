// The form of an operator: what is left of a user's function once everything that is written in
// more than one way has been normalised. Which family it is of, family.h knows. Of attention:
//
//   o[b, h, i, :] = epilogue( factor sum_j P(i, j) v[b, h // (H // G), j, :] + ... ),
//   P = normaliser over j of score(s[i, j]) where keep, s[i, j] = q[b, h, i, :] . k[b, ..., j, :]
//
// score includes the scale. It may hold further products, s2 = q2 . k2 over a head dimension of
// their own (positions apart from contents): no rule writes these, and a program that does is
// checked. Without a normaliser the score itself is the weight. Several terms (the
// difference of two softmaxes) are a list, over the same indices and sizes: no rule transfers them,
// and a program that does is checked. Sizes are symbols ("B", "M") or constants; head counts and
// head dimensions are always constants.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "num/dtype.h"
#include "operator/expr/expr.h"
#include "support/diagnostic.h"

namespace kw::spec {

// A size: a symbol that launches may vary, or a constant.
struct Size {
  std::string name;      // "M", or "" for a constant
  int64_t constant = 0;  // when name is empty
  int64_t times = 1;     // the symbol's: keys in pages of 16 are 16 for each entry of a table
};

// An argument of the user's function, in order.
struct Argument {
  std::string name;
  Dtype dtype = Dtype::f32;
  bool is_tensor = false;
  std::vector<Size> dims;         // of a tensor, as the user passes it
  std::vector<int> stride_order;  // dims from outermost to innermost in memory
  double value = 0;               // of a scalar: what example_inputs() gave
  Span span;
  bool saved = false;  // by a forward kernel: nobody draws it, it follows (Family::complete)
  // Of a tensor of integers: the least and the greatest that cases draw, as far as it is known.
  std::optional<std::array<int64_t, 2>> drawn;
};

// What a row of an operand becomes before its product: QK-norm, RoPE, a scale for each token.
// Written in b, h (the operand's own head), i (query row) or j (key), and d, over any arguments;
// the operand's own is read at any column. A sum is over all columns d of the row, and may mention
// those before it.
struct RowMap {
  std::vector<ExprPtr> sums;  // what Kind::total "0", "1", ... stand for
  ExprPtr element;            // what is at column d
};
// As many sums as one row may need.
inline constexpr size_t kMostSums = 4;

// How an operand of a contraction is read: argument[indices], with the indices written in b, h, i
// (query row) or j (key), d. For grouped heads the head index is `h // (H // G)`.
struct Operand {
  std::string argument;
  std::vector<ExprPtr> indices;
  std::optional<RowMap> row;  // none: the elements themselves
};

// Of an operand that lies in pages, argument[table[b, j // rows], j % rows, ...] in any order of
// its dimensions: which of them is the page and which the row in it.
struct Pages {
  size_t page, row;
  std::string table;  // an argument of integers [B, entries]
  int64_t rows;
};
std::optional<Pages> pages_of(const Operand& operand);
// Its rows as they are read: changed, or out of their pages; nothing where they lie side by side.
std::optional<RowMap> rows_as_read(const Operand& operand);

// What makes weights of a row's scores x, over the kept keys:
//   softmax  exp(x) / sum of exp(x); beside the keys' there may be a sink, a logit without a value
//   sum      x / sum of x; a row whose sum is 0 gives 0, like one without a key
//   none     x itself
enum class Normaliser { softmax, sum, none };

// One more product of a score: q . k over a head dimension of its own. The keys have the heads of
// the term's k, of its q, or one for all; the queries have the term's, or one.
struct FurtherProduct {
  Operand q, k;
  int64_t D = 0;
};
// As many products as one score may hold, its first among them.
inline constexpr size_t kMostProducts = 4;

// One  normaliser(score(q k^T, ...), keep) v  term.
struct Term {
  Operand q, k, v;
  std::vector<FurtherProduct> more;
  ExprPtr score;  // over Kind::score, the products by number, and b, h, i, j
  ExprPtr keep;   // boolean over b, h, i, j; null when every key is kept
  Normaliser normaliser = Normaliser::softmax;
  // True when dropped entries were a large finite number and some row may keep no key: such a row
  // is a uniform softmax in the user's program, not zero.
  bool finite_mask = false;
  ExprPtr sink;  // of a softmax: one more logit of each row, over b, h, i; null when there is none
  ExprPtr factor;  // of the term in the output's sum, over b, h, i; null: 1
};

// q, k, v and those of further products, of a term or of one that changes.
template <class AnyTerm>
auto operands(AnyTerm& term) {
  std::vector<decltype(&term.q)> out = {&term.q, &term.k, &term.v};
  for (auto& m : term.more) out.insert(out.end(), {&m.q, &m.k});
  return out;
}

// A function that is no attention: a product of two matrices for each batch entry and head, and a
// function of each of its elements,
//
//   c[b, h, i, j] = value( sum_d a[b, h, i, d] b[b, h, d, j] ),
//
// of which all is returned (the output "o"), the sum of each row over j ("sums"), or both. Either
// side may lack b and h.
struct Product {
  Operand a, b;
  ExprPtr value;  // over Kind::score (the sum), b, h, i, j
};

// No product at all: rows divided by their root mean square.
//
//   s = x, or x + residual;   y[b, h, i, d] = s[d] rsqrt(mean over d of s^2 + eps) weight[d]
//
// of which y is returned (the output "y"), and s too where there is a residual ("h").
struct Norm {
  Operand x;
  std::optional<Operand> residual;
  Operand weight;  // over d alone
  ExprPtr eps;     // a number, or a scalar argument
  ExprPtr sum;     // s, over b, h, i, d
  RowMap row;      // y, as the function writes it
};

// Not what attention gives but the gradients of its q, k and v, for the gradient of its output (and
// of its log-sums, where it returns them): the form is the forward one, with more arguments. Those
// of a softmax take what the forward kernel has saved (Form::saves), too; nobody draws these, they
// follow from the others (Family::complete). From an output that was rounded, gradients of rows in
// which one key outweighs all others would be wrong: what they are made of is the difference of do
// . v and do . o, which nearly cancel there.
struct Gradients {
  // f32 [B, H, M, V], what the epilogue takes, before it is rounded
  static constexpr const char* kOutput = "forward.o";
  static constexpr const char* kLogSum = "forward.lse";      // f32 [B, H, M]
  static constexpr const char* kOfOutput = "forward.d_o";    // the gradient of the output
  static constexpr const char* kOfLogSum = "forward.d_lse";  // f32, in the function's own order
  static constexpr size_t kOperands = 3;  // whose gradients are the first outputs
  // The gradients of what the rows of q, k and v become, where they change: [b, h, row, column].
  static constexpr const char* kOfRows[] = {"rows.dq", "rows.dk", "rows.dv"};
  std::vector<std::string> dims;  // of the output, in the order in which the function returns it
  std::vector<std::string> log_sum_dims;  // of its log-sums; empty where it returns none
  ExprPtr slope;  // of the score, as it changes with q . k: over Kind::score, b, h, i, j
  // Of the epilogue, as it changes with what it takes: over Kind::output, b, h, i. Null: 1.
  ExprPtr of_epilogue;
  // Vectors beside the operands that the score, the sink or the epilogue reads at plain indices,
  // and tables of which the score reads an entry: what it changes by with the element that is read.
  // Their gradients are the outputs behind those of the operands.
  enum class Of { score, sink, epilogue };
  struct Learned {
    std::string argument;
    ExprPtr slope;
    Of of = Of::score;
    ExprPtr element;  // of a table: which of its entries the score of b, h, i, j reads; or null
  };
  std::vector<Learned> learned;
  // Where an operand's rows change before their product: from kOfRows to the operand's gradient.
  std::array<std::optional<RowMap>, kOperands> rows;
};

// What of training is asked for: nothing; the output, and what its gradients take (Form::saves);
// the gradients (Form::gradients).
enum class Training { none, forward, backward };
std::string word(Training training);  // "", "forward", "backward"
Training training_of(std::string_view word);

// By which rule an output may differ from what the form gives in fp64 (accept() of family.h).
enum class Rule {
  row,      // relative L2 error of a row: twice the larger of the user's own error on it and half
            // an ulp of the output's type
  log_sum,  // absolute: 1e-4 + 1e-5 |x|
  row_sum,  // relative to the norm of the row that is summed, whose numbers may cancel
  sum,      // absolute, for each element what the terms of its sum may be off by
};

struct Output {
  std::string name;  // what a program calls it
  std::string axes;  // the form's indices, outermost first; with an i it has rows; g: a key head
  Rule rule = Rule::row;
  bool returned =
      true;  // by the function; a program may give more (lse), which is held against too
  bool unrounded = false;  // in fp32, before the epilogue and before it is rounded
  // In the order of the user's function's, where it is not that of the axes; "": of one element.
  std::vector<std::string> dims;
  std::string of;  // of a gradient: the argument
  Size own;        // of the axis x, which is a dimension of that argument alone (a table's entries)
  bool has(char index) const { return axes.find(index) != std::string::npos; }
  bool has_rows() const { return has('i') && rule != Rule::sum; }  // that come one by one
};

// What a kernel appends to the name of an argument whose own name it uses for something else.
inline constexpr std::string_view kGiven = "_given";

struct Form {
  std::string name;
  // Of the output, and of q, k and v but for those whose own type is e4m3: what is multiplied.
  Dtype dtype = Dtype::bf16;
  std::vector<Argument> arguments;
  // B batch, H query heads, G key heads, M queries, N keys, D and Dv head dimensions. Of a product
  // M rows, N columns, and D, which may be a symbol, what is summed over.
  Size B, H, G, M, N, D, Dv;
  // Of one family these, and nothing of the others (family.h).
  std::vector<Term> terms;
  std::optional<Product> product;
  std::optional<Norm> norm;
  std::optional<Gradients> gradients;  // beside terms: of these
  bool saves = false;  // beside terms: the output is given as it is before it is rounded, too
  ExprPtr epilogue;    // over Kind::output, b, h, i, d
  std::vector<std::string> output_dims;  // the user's order, e.g. {"b", "h", "i", "d"}
  // What the function returns, in its order. Of attention a second one may be lse[b, h, i], the log
  // of the sum of the exponentials, or column_sums[b, h, j], the sum over the rows of the softmax's
  // weights of each key.
  std::vector<Output> outputs = {{"o", "bhid"}};
  // Numbers of heads are constants of a trace; of which others the function was seen to be the same
  // (more_heads.py): any, any with as many query heads to a key head, or none. Launches have these.
  enum class Heads { any, grouped, own } heads = Heads::any;
  // Python values that the trace made constants, "WINDOW = 1024 (a global)": another value of them
  // is another function.
  std::vector<std::string> built_in;
  std::vector<Note> notes;  // e.g. sizes that the user's code fixes, with the line
  // Where integers are made of reals, by int(), floor() or ceil(): what the form has of them may
  // differ from PyTorch where PyTorch's own roundings decide.
  std::vector<Span> roundings;

  Training training() const {
    return gradients ? Training::backward : saves ? Training::forward : Training::none;
  }
  const Argument* argument(const std::string& name) const;
  bool returns(const std::string& output) const;
  // What a kernel calls an operand ('q', 'k', 'v') of a term, or of its further product number
  // `product`: q, k, v; of a later product that reads another argument, or otherwise, q2, k2, v2.
  std::string operand_name(size_t term, char operand, size_t product = 0) const;
  // The user's name for a kernel's argument: the same, or without kGiven.
  std::string user_name(const std::string& kernel_name) const;
};

// "bf16", or "bf16 (q, k, v e4m3)".
std::string types_of(const Form& form);

// As `kernelwright capture --form` prints it.
std::string print(const Form& form);

// Whether keys and values lie in pages.
bool is_paged(const Form& form);

// Through which of the query heads an operand is read: h, h // n, or null where it has one head.
ExprPtr head_of(const Operand& operand);

// Whether gradients take what a forward kernel saves: where a weight depends on all scores of a
// row.
bool takes_saved(const Form& form);

// Whether the weights are those of a softmax.
bool has_softmax(const Form& form);

// Whether a head's number only chooses elements of arguments (slopes[h]) and is never computed
// with. Then the function means the same for any number of heads, as far as Form::heads says.
bool heads_are_alike(const Form& form);
// The same function of arguments with so many key heads, and as many query heads to each as before.
// Nothing where heads are not alike, or where an argument's heads are read at another index, too.
std::optional<Form> with_key_heads(const Form& form, int64_t key_heads);

}  // namespace kw::spec
