// Taking statements out of a kernel, and with them what only they needed.
//
// A rule says what goes: a running maximum, a store. What is left of it is found here: vectors that
// are only written, flags and arguments that nobody reads, parameters that always have the same
// value, conditions that are decided, blocks that are empty.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "tl/program.h"

namespace kw::transfer {

class Pruner {
 public:
  explicit Pruner(tl::Program& program) : program_(program) {}

  // Removes the statements for which it holds.
  void remove(const std::function<bool(const tl::Stmt&)>& test);
  // A toggle has this value from now on: conditions over it are decided.
  void decide(const std::string& toggle, bool value);
  // Parameters of steps for which every call has the same constant, or that no statement reads.
  void settle_parameters();
  // What this expression mentions, it does not any more.
  void suspect(const tl::ExprPtr& e);
  // Names that were mentioned by what is gone and have no reader any more, with all that writes
  // them.
  void prune();

 private:
  void substitute(std::vector<tl::Stmt>& block, const std::string& name, bool value);
  void fold(std::vector<tl::Stmt>& block);
  bool settle_parameter(tl::Stmt& step, size_t n);
  bool is_read(const std::string& name) const;
  bool erase(const std::string& name);
  void gone(const tl::Stmt& statement);

  tl::Program& program_;
  std::set<std::string> suspects_;  // mentioned by what is gone
};

// The vector or tile that a statement writes and does not read otherwise; "" for others.
std::string written_by(const tl::Stmt& statement);
// Whether the statement itself, without its block, mentions this name in an expression.
bool mentions(const tl::Stmt& statement, const std::string& name);

}  // namespace kw::transfer
