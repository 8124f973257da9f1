// Who watches a failing run for the first statement whose value differs.
#pragma once
#include <memory>
#include <string>

#include "check/trial.h"

namespace kw::check {

struct Difference {
  const tl::Stmt* statement = nullptr;  // null: none was found
  std::string text;
};

class Locator : public exec::Observer {
 public:
  virtual Difference found() const = 0;
};

// Of a large case only the row is watched that was found to be wrong. All must outlive it.
std::unique_ptr<Locator> make_locator(const Case& c, spec::Evaluator& truth,
                                      const Counterexample& wrong);

// Of a run in the exact reading.
std::unique_ptr<Locator> make_exact_locator(const Case& c, const spec::Form& form,
                                            const spec::Problem& named, const exec::Launch& launch);

}  // namespace kw::check
