// Whether terms cancel in the formulas of a specification, and of a program: where the first has
// none that do, the second has lost what it should add (expanded.h).
#pragma once
#include <map>
#include <optional>
#include <string>

#include "operator/form.h"
#include "proofs/reals/expanded.h"
#include "tl/program.h"

namespace kw::proofs {

bool terms_cancel(const spec::Form& form);

// A program's numbers, vectors and tiles, each by what it is made of.
class Formulas {
 public:
  bool cancel(const tl::ExprPtr& e);
  // What it is, multiplied out.
  Arms arms(const tl::ExprPtr& e);
  // `sometimes`: or what it was before.
  void set(const std::string& name, const tl::ExprPtr& e, bool sometimes = false);
  void let(const std::string& name, const tl::ExprPtr& e);
  // It is a letter from now on.
  void forget(const std::string& name) { known_.erase(name); }

 private:
  tl::ExprPtr with_lets(const tl::ExprPtr& e) const;
  std::optional<double> whole(const tl::ExprPtr& e) const;
  Arms of_call(const tl::ExprPtr& e);

  Expanded expanded_;
  std::map<std::string, Arms> known_;
  std::map<std::string, tl::ExprPtr> lets_;
};

}  // namespace kw::proofs
