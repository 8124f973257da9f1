// What the report shows of the family of an operator (operator/families.def).
#pragma once
#include "operator/form.h"
#include "report/html.h"

namespace kw::report {

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const spec::Form& form);

  // The lines of formula(): what is computed.
  virtual Markup formula(const spec::Form& form) const = 0;
  // Whether pairs of rows and columns are kept or dropped, which draw_masks() pictures.
  virtual bool has_mask() const { return false; }
};

// ---- for the families
std::string with_signs(std::string text);  // of an expression: ≤ for <=
Markup line(const char* what, const Markup& words);
std::string read_of(const spec::Operand& operand);  // "q[b, h, i, d]"

}  // namespace kw::report
