// Transfer of attention; of latent attention the rules are the same.
#pragma once
#include "transfer/family.h"

namespace kw::transfer::families {

class Attention : public Family {
 public:
  std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                                 const Target& target, Diagnostics& diagnostics) const override;
  std::optional<Result> begin(const tl::Program& source, const spec::Form& form,
                              const Target& target, Diagnostics& diagnostics) const override;
};

}  // namespace kw::transfer::families
