// What transfer asks of the family of an operator (operator/families.def): its rules. A family has
// its places, its tiles and its rules in families/<word>/, one file a rule under rules/.
#pragma once
#include "transfer/transfer.h"

namespace kw::transfer {

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const spec::Form& form);

  // transfer() and begin() of transfer.h.
  virtual std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                                         const Target& target, Diagnostics& diagnostics) const = 0;
  virtual std::optional<Result> begin(const tl::Program& source, const spec::Form& form,
                                      const Target& target, Diagnostics& diagnostics) const = 0;
};

}  // namespace kw::transfer
