// Writes expressions in the CUDA spelling.
//
// `//` and `%` become C's `/` and `%` where intervals prove that these floor, kw::floor_div and
// kw::floor_mod elsewhere, and shifts C's where the count is proved to be one of an int's bits, so
// the choice is canonical and readers can insist on it. `&&` within
// `||` gets the parentheses that compilers ask for.
#pragma once
#include <string>

#include "tl/scope/scope.h"
#include "tl/syntax/reader.h"

namespace kw::tl {

// A map whose body is being written: `target[i, j]` or, for row vectors, `target[i]`.
struct MapBody {
  std::string target;
  bool rows = false;                     // map_rows
  std::vector<std::string> coordinates;  // map_at, map_real: i and j; set_columns: j; ...
  Lambda lambda;                         // the names of the parameters
};

class CudaWriter {
 public:
  explicit CudaWriter(const Scope* scope) : names(scope) {}

  Scope names;               // the scope, and what the statement itself declared so far
  bool inside_args = false;  // arguments are bare names among themselves
  const MapBody* map = nullptr;
  std::string problem;  // why the CUDA spelling does not exist; empty while it does

  bool failed() const { return !problem.empty(); }
  void fail(std::string what);

  std::string expr(const ExprPtr& e, int low = 0);
  std::string list(const std::vector<ExprPtr>& all);
  std::string name(const std::string& n);

 private:
  std::pair<std::string, int> spell(const Expr& e);
  std::pair<std::string, int> binary(const Expr& e);
  std::string index(const Expr& e);
  std::string call(const Expr& e);
  int comparisons_ = 0;  // around what is being written
  // The parameter that an element node stands for, or nothing.
  std::string parameter(const Expr& e) const;
};

// Vectors and operands in a map body in the order of their first mention, but for the map's own
// target.
std::vector<std::string> vectors_of(const ExprPtr& body, const std::string& target,
                                    const Scope& scope);

}  // namespace kw::tl
