// The first thing that went wrong in a run. What follows a fault may be its consequence, so later
// ones are dropped, and the machine stops after the statement.
#pragma once
#include <string>

#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::exec {

class Faults {
 public:
  std::string agent;  // who is running; named in the message

  // Returns the diagnostic, for notes and a hint; when there was a fault before, a scratch one.
  Diagnostic& raise(const std::string& code, const tl::Stmt* at, const std::string& message);
  bool any() const { return any_; }
  const Diagnostic& first() const { return first_; }

 private:
  bool any_ = false;
  Diagnostic first_, scratch_;
};

// "`wait k_full[t]`": a statement as a message cites it.
std::string cite(const tl::Stmt& s);

}  // namespace kw::exec
