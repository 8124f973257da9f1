// The form's expressions are printed as `capture --form` prints them, with the signs of a formula
// where a keyboard has two characters. What there is to print is the family's (family.h).
#include "report/formula.h"

#include <utility>

#include "operator/family.h"
#include "report/family.h"

namespace kw::report {

namespace families {
#define FAMILY(word) const Family& word();
#include "operator/families.def"
}  // namespace families

const Family& Family::of(const spec::Form& form) {
  switch (spec::family_of(form)) {
#define FAMILY(word)           \
  case spec::FamilyName::word: \
    return families::word();
#include "operator/families.def"
  }
  return families::attention();
}

std::string with_signs(std::string text) {
  const std::pair<const char*, const char*> signs[] = {{"<=", "≤"}, {">=", "≥"},    {"!=", "≠"},
                                                       {"==", "="}, {" * ", " · "}, {" - ", " − "}};
  for (const auto& [from, to] : signs)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += std::string(to).size())
      text.replace(at, std::string(from).size(), to);
  return text;
}

Markup line(const char* what, const Markup& words) {
  return html("<div><dt>{}</dt><dd>{}</dd></div>\n", what, words);
}

std::string read_of(const spec::Operand& o) {
  std::string at;
  for (const spec::ExprPtr& e : o.indices) at += (at.empty() ? "" : ", ") + spec::print(e);
  return fmt::format("{}[{}]", o.argument, at);
}

Markup formula(const spec::Form& form) {
  Markup lines = Family::of(form).formula(form);
  for (const Note& note : form.notes) lines += line("note", html("{}", note.message));
  return html("<dl class=\"formula\">\n{}</dl>\n", lines);
}

}  // namespace kw::report
