// Scalars of a running program, and the names that hold them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "exec/tiles.h"
#include "tl/program.h"

namespace kw::exec {

enum class Type { none, integer, real, boolean, record };

struct Value {
  Type type = Type::none;  // none: after a fault
  double x = 0;            // integers of 32 bits and fp32 reals are exact in it
  const tl::Stmt* record = nullptr;
  std::vector<int64_t> fields;
  exact::Element e;  // a real's value in the exact reading; what a boolean there depends on

  static Value integer(int64_t v) { return {Type::integer, double(v), nullptr, {}, {}}; }
  static Value real(double v) { return {Type::real, v, nullptr, {}, {}}; }
  static Value real(const exact::Element& e) { return {Type::real, 0, nullptr, {}, e}; }
  static Value boolean(bool v) { return {Type::boolean, double(v), nullptr, {}, {}}; }
};

struct Scope;
using ScopePtr = std::shared_ptr<Scope>;

// A step is a piece of text that runs where it is called and sees the names where it is declared.
struct StepClosure {
  const tl::Stmt* step;
  std::weak_ptr<Scope> scope;
};

using Binding = std::variant<Value, Flag, std::shared_ptr<Tile>, std::shared_ptr<Row>, StepClosure>;

struct Scope {
  std::map<std::string, Binding> names;
  ScopePtr parent;

  explicit Scope(ScopePtr parent) : parent(std::move(parent)) {}
  Binding* find(const std::string& name) {
    for (Scope* s = this; s; s = s->parent.get())
      if (auto it = s->names.find(name); it != s->names.end()) return &it->second;
    return nullptr;
  }
};

// The hole's one word, whether the reader kept it as a name or as an expression.
std::string word_of(const tl::Stmt& s, tl::Hole hole);

}  // namespace kw::exec
