// The dispatch over families.def.
#include "transfer/transfer.h"

#include "operator/family.h"
#include "transfer/family.h"

namespace kw::transfer {

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

std::optional<Result> begin(const tl::Program& source, const spec::Form& form, const Target& target,
                            Diagnostics& diagnostics) {
  return Family::of(form).begin(source, form, target, diagnostics);
}

std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                               const Target& target, Diagnostics& diagnostics) {
  return Family::of(form).transfer(source, form, target, diagnostics);
}

}  // namespace kw::transfer
