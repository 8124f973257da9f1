// Attention, as a proposer is told of it; latent attention's operands say what it is.
#pragma once
#include "propose/family.h"

namespace kw::propose::families {

class Attention : public Family {
 public:
  std::string nameless() const override { return "attention"; }
  const std::string& letters(const Templates& templates) const override {
    return templates.attention;
  }
  std::string operands(const spec::Form& form) const override;
};

}  // namespace kw::propose::families
