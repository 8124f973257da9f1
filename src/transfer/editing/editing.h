// A transfer under way: the program that is being changed, and the steps that every rule takes.
// Families derive from it what their own rules have found out.
#pragma once
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "transfer/transfer.h"

namespace kw::transfer {

// Before a statement of a block.
struct Place {
  std::vector<tl::Stmt>* block;
  size_t at;
};

class Editing {
 public:
  Editing(const tl::Program& source, const spec::Form& form, const Target& target,
          Diagnostics& diagnostics);
  virtual ~Editing() = default;

  const spec::Form& form;
  const spec::Term& term;  // the first, which is the only one
  const Target target;
  Diagnostics& diagnostics;
  Result result;
  tl::Program& program;  // result's

  // The user's line for an expression: its own place or a part's, else the queries' argument.
  Span place(const spec::ExprPtr& e) const;
  // Refuses: always false.
  virtual bool refuse(std::string code, const Span& where, std::string message, std::string hint);
  bool condition(const std::string& holds, std::string why);

  // The first candidate that no name of the program equals, else the first with a number.
  std::string fresh(std::initializer_list<std::string> candidates);
  // The name for a local of a function, or a new one where the module has that name: a local may be
  // called as a local elsewhere.
  std::string local(const std::string& name);

  // Behind the last of the arguments of this kind, or before all.
  Place behind_arguments(tl::Op kind);
  // Puts the statement of this TL text at a place (before what stands there).
  bool insert(Place place, const std::string& text);
  // The same for several, one after the other.
  bool insert(Place place, const std::vector<std::string>& texts);
  // Replaces the statements of a block by these.
  bool replace(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts);

  // A leaf with the name of a value that is computed once for each block, in a `let`. The same
  // value gets the same name.
  spec::ExprPtr hoist(const spec::ExprPtr& value, std::initializer_list<std::string> candidates);
  // The name that hoist() gave a value; "" if it gave none.
  std::string hoisted(const spec::ExprPtr& value) const;

 private:
  // Puts the `let` where a block begins.
  virtual bool declare(const std::string& name, const spec::ExprPtr& value) = 0;

  struct Hoisted {
    spec::ExprPtr value;
    std::string name;
  };
  std::set<std::string> names_;
  std::vector<Hoisted> hoisted_;
};

// What to call one element: slopes -> slope; "" for what is no plural (bias, mass, axis, radius).
std::string singular(const std::string& name);

}  // namespace kw::transfer
