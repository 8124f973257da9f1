// Attention in the report; latent attention is shown alike.
#pragma once
#include "report/family.h"

namespace kw::report::families {

class Attention : public Family {
 public:
  Markup formula(const spec::Form& form) const override;
  bool has_mask() const override { return true; }
};

}  // namespace kw::report::families
