#include "propose/families/attention.h"

#include <set>

namespace kw::propose::families {

std::string Attention::operands(const spec::Form& form) const {
  std::string out;
  std::set<std::string> told;
  for (size_t t = 0; t < form.terms.size(); ++t) {
    const spec::Term& term = form.terms[t];
    for (const auto& [letter, operand] :
         {std::pair('q', &term.q), std::pair('k', &term.k), std::pair('v', &term.v)})
      if (const std::string name = form.operand_name(t, letter); told.insert(name).second)
        out += operand_text(name, *operand);
    for (size_t p = 0; p < term.more.size(); ++p)
      for (const char letter : {'q', 'k'})
        if (const std::string name = form.operand_name(t, letter, p + 1); told.insert(name).second)
          out += operand_text(name, letter == 'q' ? term.more[p].q : term.more[p].k);
  }
  if (form.terms.size() > 1)
    out += "  no lse: the sum of several terms has none, so its argument goes\n";
  return out;
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::propose::families
