#include "driver/family.h"

#include <fmt/format.h>

#include "driver/proof/proof.h"
#include "operator/family.h"

namespace kw::driver {
namespace fs = std::filesystem;

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

bool Family::write_tuning_cases(const fs::path&, const spec::Capture& capture,
                                const transfer::Result&, const std::map<std::string, int64_t>&,
                                Diagnostics& diagnostics) const {
  diagnostics.error("tune.shape", {},
                    fmt::format("{} is {}, and attention is tuned", capture.form.name,
                                spec::Family::of(capture.form).what()));
  return false;
}

bool Family::write_self_test_cases(const fs::path&, const spec::Capture& capture,
                                   const transfer::Result&, const std::vector<int64_t>&,
                                   Diagnostics& diagnostics) const {
  diagnostics.error("self_test.probes", {},
                    fmt::format("{} is {}, and probes are of attention", capture.form.name,
                                spec::Family::of(capture.form).what()));
  return false;
}

bool write_proof(const fs::path& folder, const spec::Capture& capture,
                 const transfer::Result& transferred, Diagnostics& diagnostics) {
  return Family::of(capture.form).write_proof(folder, capture, transferred, diagnostics);
}

bool write_tuning_cases(const fs::path& folder, const spec::Capture& capture,
                        const transfer::Result& transferred,
                        const std::map<std::string, int64_t>& sizes, Diagnostics& diagnostics) {
  return Family::of(capture.form)
      .write_tuning_cases(folder, capture, transferred, sizes, diagnostics);
}

bool write_self_test_cases(const fs::path& folder, const spec::Capture& capture,
                           const transfer::Result& transferred, const std::vector<int64_t>& lengths,
                           Diagnostics& diagnostics) {
  return Family::of(capture.form)
      .write_self_test_cases(folder, capture, transferred, lengths, diagnostics);
}

}  // namespace kw::driver
