// Terms as trees: what a solver is given as text, taken apart.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace kw::proofs {

struct Sexpr {
  std::string atom;          // of a leaf
  std::vector<Sexpr> parts;  // of any other, the operator first

  bool is(const char* op, size_t arguments) const {
    return parts.size() == arguments + 1 && parts[0].atom == op;
  }
};

Sexpr read_term(const std::string& text);
std::string print(const Sexpr& e);
std::string in_range(const std::string& x, const std::string& end);  // 0 <= x < end
std::vector<std::string> factors_of(const Sexpr& e);                 // of a product of products
bool is_literal(const std::string& text);                            // a number from 0 on

// Whether numbers and these symbols are all that it is made of.
bool mentions_only(const Sexpr& e, const std::set<std::string>& names, bool head = false);
std::string all_of(const std::vector<std::string>& terms);
// A symbol in a term, by another one.
std::string renamed(std::string text, const std::string& from, const std::string& to);

}  // namespace kw::proofs
