// What the names of a program stand for, as terms: sizes, data, lets, functions, blocks of the
// output.
//
// Whoever walks a program for the solver builds on this: the walk decides which statements it looks
// at, and this evaluates what stands in them.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proofs/solver/terms.h"
#include "tl/program.h"

namespace kw::proofs {

// A name's value: a term, or a record of them.
struct Value {
  Term term;
  std::map<std::string, Term> fields;
};

// What is known at a statement: its names, and the conditions under which it is reached.
struct Scope {
  std::map<std::string, Value> names;
  std::vector<std::string> premises;
};

// The words of one list of key blocks that a pass before the kernel writes (lists.h): how many,
// how many of them whole, for each group of rows its number, then the key blocks.
struct ListWords {
  std::string scratch, stride;  // its name, and the term of how many words lie between two lists
  int64_t groups = 0;
  std::set<std::string> sizes;  // the arguments that say how long and how many they are
};

// What a block of the output is of: rows of queries, or, where gradients of keys are the output,
// of keys. A program's record of it has these fields beside b.
struct Blocks {
  std::string row, head;    // the block of rows, and the head
  std::string rows, heads;  // the letters of how many there are
  std::string tile;         // the parameter that says how many rows a block has
  std::string columns;      // the letter of the other side, whose blocks turns visit
  bool of_keys = false;
};
const Blocks& blocks_of_queries();  // m and h of M and H
const Blocks& blocks_of_keys();     // n and g of N and G

// A turn of a loop over pairs of a head and a block of queries, `range(heads * count - 1, 0)`.
namespace pairs {
inline constexpr char kHead[] = "turn.head", kPlace[] = "turn.place", kFirst[] = "turn.first";
}

bool is_zero(const tl::ExprPtr& e);            // the number 0
bool is_minus_infinity(const tl::ExprPtr& e);  // -inf

// What a pass over rows sums or writes of a row, or null; dot_row as a sum has it.
tl::ExprPtr value_of_row(const tl::Stmt& s);

// A size of the form that the program computes (N: size = S * R) and does not take.
struct ComputedSize {
  std::string letter;
  Term term;
  Span span;
};

class Names {
 public:
  // `sizes` gives terms for the letters of the program (B, H, G, M, N, D).
  Names(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& blocks,
        Vocabulary& vocabulary)
      : program_(program), sizes_(sizes), sides_(blocks), vocabulary_(vocabulary) {}
  virtual ~Names() = default;

 protected:
  // Parameters, arguments, records and functions.
  Scope module();

  // Terms are texts, in which a name stands for all that it is made of: of sixty lets that each
  // double the one before no text is short enough, and the term is unknown.
  Term eval(const tl::ExprPtr& e, const Scope& scope);
  // A function of the program is what its body says of the arguments.
  Value called(const tl::Expr& e, const Scope& scope);
  // Least or greatest of the elements of a box of a tensor: known where a pass looks at them.
  virtual Term extreme(const tl::Expr& e, const Scope&) {
    return Term::unknown("the function " + e.text);
  }
  // Told of what may need more bits than what it is made of, or has a least value by what it is,
  // but in an address in a scratch.
  virtual void computed(const Term&, const Scope&, int64_t /*least*/) {}

  void let(const tl::Stmt& s, Scope& scope);
  // A step's names in a call of it; null, and open, where there is no such step.
  const tl::Stmt* enter(const tl::Stmt& call, Scope& scope);
  // What a step is, for the calls of it.
  void declare_step(const tl::Stmt& s) { steps_[s.name()] = &s; }
  // Of gradients: the index of a loop over pairs, `x` from `begin` on; what x // count and x %
  // count are is known from here on by two symbols; of one head a group `x` becomes the second.
  // False where `begin` is no such number of pairs.
  bool bind_pairs(Term& x, const Term& begin);
  // How many heads and blocks of queries the loops are over.
  struct Pairs {
    std::string heads, count;  // the first as `H // G` is
    bool alone = false;        // one head, which nothing is multiplied by
    std::string last() const;  // heads * count - 1
  };
  // A name from 0 to below `end`: of a loop, or (of_all) of the whole kernel.
  void bind_below(const std::string& name, const Term& end, Scope& scope,
                  std::vector<std::string>& premises);
  void bind_role(const std::string& me, Scope& scope);
  // Whether a condition says which agent, and nothing else.
  bool is_of_agents(const Term& condition) const;
  Term named(const std::string& name, const Scope& scope) const;
  // The same names, and those of an element: i, j and its diagonal d.
  void bind_element(Scope& scope);
  // Of a loop over blocks of the output: which one it is, and of which use of the queue.
  void bind_block(const tl::Stmt& loop, Scope& scope);
  // A flag is true or false as the data are: whether a condition asks one, and whether it may be
  // true, which it may not where the rest of a conjunction, without its flags, is false.
  void declare_flags(const tl::Stmt& s);
  bool on_flag(const tl::ExprPtr& e) const;
  bool possible(const tl::ExprPtr& e, const Scope& scope);
  // The type of a tensor's elements, or of those of a list; "" for what is none.
  std::string type_of(const std::string& tensor) const;
  // What a tensor is to the user.
  std::string user_of(const std::string& tensor) const;
  // Whether it gives a block of the output: its m, h and b.
  bool is_block_function(const tl::Stmt& def) const;
  const tl::Stmt* function_of(const std::string& name) const;

  static bool takes_exponential(const tl::ExprPtr& value);

  // Why the walk is no picture of the program; the first reason stays.
  void open(const std::string& why) {
    if (open_.empty()) open_ = why;
  }

  const tl::Program& program_;
  const std::map<std::string, Term>& sizes_;
  const Blocks& sides_;
  Vocabulary& vocabulary_;
  std::optional<Pairs> pairs_;
  std::vector<std::string> of_all_;  // premises of the kernel: the block lies in the output
  std::map<std::string, std::vector<std::string>> extents_;  // of the user's tensors, as terms
  std::vector<ComputedSize> computed_sizes_;
  std::optional<ListWords> words_;
  std::string list_;  // the number of the list that is read, as a term
  std::string open_;

 private:
  Term formula(const tl::ExprPtr& e, const Scope& scope);
  void may_widen(const Term& t, const Scope& scope, int64_t least = INT32_MIN);
  Term chosen(const tl::Expr& e, const Scope& scope);
  void is_of(const std::string& type, const Term& t, const Scope& scope);
  // What an argument's elements are, and what it is to the user.
  struct Data {
    std::string user, type;
  };

  void of_module(const tl::Stmt& s, Scope& scope);
  void argument(const tl::Stmt& s, Scope& scope);
  Term field(const tl::Expr& e, const Scope& scope);
  Term element(const tl::Expr& e, const Scope& scope);
  void find_list(const tl::Stmt& pass, const Scope& scope);
  Term word_of_list(const Term& at);
  bool is_block(const tl::Expr& e) const;
  void block(const std::string& name, Scope& scope);

  std::optional<Term> heads_a_group(const Term& a, const Term& b) const;
  std::optional<Term> of_pair(const std::string& op, const Term& x, const Term& by);
  bool find_pairs(const Term& begin);
  Term as_pair(const Term& x, Scope& scope);

  bool address_ = false;
  std::map<std::string, std::string> turns_;  // which symbols a number of pairs has, by its own
  std::set<std::string> agents_;              // symbols
  std::set<std::string> others_;              // symbols of turns that are not this one
  std::string head_by_;                       // how turns tell their head: `//` or `%`
  std::map<std::string, std::vector<std::string>> records_;
  std::map<std::string, const tl::Stmt*> functions_, steps_;
  std::set<std::string> flags_;
  std::map<std::string, Data> data_;
  std::vector<std::pair<std::string, std::vector<std::string>>> dims_;
  std::set<std::string> scratch_;  // what passes before the kernel write
};

}  // namespace kw::proofs
