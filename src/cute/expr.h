// Writes scalar expressions of TL as C++ beside CuTe tensors.
//
// Integers are ints and reals floats. `//` and `%` are C's `/` and `%` where intervals prove that
// both sides are not negative, tl::floor_div and tl::floor_mod elsewhere. In a map the element of a
// tile is `s(vr, vc)`, where vr and vc count the thread's rows and columns of it.
#pragma once
#include <string>
#include <vector>

#include "tl/scope/scope.h"

namespace kw::cute {

// The map whose body is being written.
struct MapBody {
  std::string target;                    // s of s[i, j], m of m[i]; empty where a vector is set
  std::vector<std::string> coordinates;  // the names i, j or d where they are at hand
};

class ExprWriter {
 public:
  explicit ExprWriter(const tl::Scope& scope) : scope_(scope) {}

  const MapBody* map = nullptr;
  std::string problem;  // why there is no spelling; empty while there is

  std::string expr(const tl::ExprPtr& e, int low = 0);
  std::string list(const std::vector<tl::ExprPtr>& all);
  // A shared tile, a slot of a ring or one tile of an array: `k_s(_, _, unsigned(n) % 2)`.
  std::string tile(const tl::ExprPtr& e);

 private:
  void fail(std::string what);
  std::string name(const std::string& n);
  std::string index(const tl::Expr& e);
  std::string element(const tl::Expr& e) const;
  std::string call(const tl::Expr& e);
  std::pair<std::string, int> binary(const tl::Expr& e);
  std::pair<std::string, int> spell(const tl::Expr& e);

  const tl::Scope& scope_;
  int comparisons_ = 0;  // around what is being written
};

// What a type of TL is called in the text.
std::string type_name(const std::string& tl_type);

}  // namespace kw::cute
