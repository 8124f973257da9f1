// The integers of a program as functions of its sizes.
//
// `let steps = ceil_div(K, BK)` and, far below, `if steps >> 8:` is a question about K. Here names
// stand for what they were declared as, calls for what the function returns, so every expression is
// one of sizes and of what no size decides: blocks' numbers, counters, indices, elements of data.
// These are its variables. Like expressions are one node, and all nodes are evaluated at once.
//
// A decision is a node in whose value integers may turn: a comparison, a quotient, a remainder, a
// shift to the right, bits that are masked, a minimum, the sign of a difference, which may be a
// factor of what is compared. What is real of sizes counts, too: `f32(K) > 16384.0`.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tl/program.h"
#include "tl/scope/scope.h"

namespace kw::check {

// Nothing where it cannot be told, or where it is beyond 64 bits.
struct Number {
  bool known = false, real = false;
  int64_t integer = 0;
  double value = 0;  // of a real
  bool operator==(const Number&) const = default;
};

// What a node does.
enum class Does {
  // clang-format off
  number, variable,
  add, subtract, multiply, divide,
  quotient, remainder, ceil_div, shift_right, shift_left, bits_and, bits_or, bits_xor,
  less, less_equal, greater, greater_equal, equal, unequal, order, least, greatest, absolute,
  both, either, negate, opposite, where,
  fma, f32, to_bf16, exp2, log2, tanh, reciprocal, rsqrt
  // clang-format on
};

class Integers {
 public:
  struct Node {
    Does does = Does::number;
    std::string text;       // a variable's name
    std::vector<int> args;  // numbers of nodes, which come before it
    Number number;
    bool real = false, size = false, data = false;  // of a variable: whether it is a size of the
                                                    // launch, an element of data
  };

  // The node of an expression at its place.
  int add(const tl::ExprPtr& e, const tl::Scope& scope);
  // What two integers are to each other: a loop makes a turn or none.
  int add_order(int a, int b);

  // What it is, where nothing that it is made of varies.
  std::optional<int64_t> constant(const tl::ExprPtr& e, const tl::Scope& scope);

  const std::vector<Node>& nodes() const { return nodes_; }
  // All nodes, with variables as said by number of node; or of what is there already those of a
  // list, in order.
  void evaluate(const std::map<int, int64_t>& variables, std::vector<Number>& out) const;
  void evaluate(const std::map<int, int64_t>& variables, const std::vector<int>& which,
                std::vector<Number>& out) const;
  // How many things a decision says (0: it is none), and one of them: a quotient, which bits are
  // left, whether one number is below another, whether it is at most that.
  static int answers(const Node& node);
  static std::optional<int64_t> answer(const Node& node, int which,
                                       const std::vector<Number>& values);

 private:
  // A scope as it was when a name was declared: those of its symbols that come before.
  struct Place {
    const tl::Scope* scope = nullptr;
    size_t before = 0;
  };
  using Locals = std::map<std::string, int>;  // of a function: its parameters and what it lets

  int node(Node n);
  int number(int64_t value);
  int real(double value);
  int variable(const std::string& name, bool real, bool size, bool data = false);
  int resolve(const tl::ExprPtr& e, Place at, const Locals* locals);
  int resolve_name(const std::string& name, Place at, const Locals* locals);
  int resolve_call(const tl::Expr& e, Place at, const Locals* locals);
  std::optional<int> inlined(const tl::Symbol& def, const std::vector<int>& args, Place at);

  std::vector<Node> nodes_;
  std::map<std::string, int> known_;           // by what the node says
  std::map<const tl::Expr*, int> of_symbols_;  // what names stand for, each once
  int depth_ = 0;
};

}  // namespace kw::check
