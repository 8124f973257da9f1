// What a proposer is told of the family of an operator (operator/families.def).
#pragma once
#include <string>

#include "operator/form.h"
#include "propose/prompt.h"

namespace kw::propose {

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const spec::Form& form);

  // What a function without the user's names is called.
  virtual std::string nameless() const = 0;
  // What the letters of its formula mean.
  virtual const std::string& letters(const Templates& templates) const = 0;
  // Which argument each operand of the kernel is, a line each, and what a program's outputs are
  // beyond o and what is known of them.
  virtual std::string operands(const spec::Form& form) const = 0;
};

// "  q is v0[b, h, i, d]"
std::string operand_text(const std::string& kernel, const spec::Operand& operand);

}  // namespace kw::propose
