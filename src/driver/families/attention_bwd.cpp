// The driver's part of the gradients of attention: the texts that give them.
#include <fmt/format.h>

#include "driver/families/attention.h"
#include "driver/families/attention_bwd_proof.h"

namespace kw::driver::families {
namespace fs = std::filesystem;
namespace {

class AttentionBwd : public Attention {
 public:
  std::optional<std::vector<std::string>> texts(const spec::Form& form,
                                                const TargetLimits* target) const override {
    if (target && target->folder == "sm80")
      return std::vector<std::string>{"sm80/attention_bwd.cu"};
    const int64_t d = form.D.constant, of_values = form.Dv.constant;
    if (d == 64 && of_values == d)
      return std::vector<std::string>{"sm90/attention_bwd_narrow.cu", "sm90/attention_bwd.cu"};
    const char* name = d != of_values || d == 96 ? "attention_bwd_mla"
                       : d > 128                 ? "attention_bwd_wide"
                                                 : "attention_bwd";
    return std::vector<std::string>{fmt::format("sm90/{}.cu", name)};
  }
  std::optional<Shipped> sketch() const override { return std::nullopt; }
  bool asks_for_plain() const override { return false; }
  bool would_rather_spill() const override { return true; }

  std::string summary(const spec::Form& form) const override {
    return Attention::summary(form) + "; gradients of " + form.outputs[0].of + ", " +
           form.outputs[1].of + " and " + form.outputs[2].of;
  }
  std::string counted(const check::Report&) const override { return {}; }

  bool write_proof(const fs::path& folder, const spec::Capture& capture,
                   const transfer::Result& transferred, Diagnostics& diagnostics) const override {
    return write_gradient_cases(folder, capture, transferred, diagnostics);
  }
  bool write_tuning_cases(const fs::path& folder, const spec::Capture& capture,
                          const transfer::Result& transferred,
                          const std::map<std::string, int64_t>& sizes,
                          Diagnostics& diagnostics) const override {
    return Family::write_tuning_cases(folder, capture, transferred, sizes, diagnostics);
  }
  bool write_self_test_cases(const fs::path& folder, const spec::Capture& capture,
                             const transfer::Result& transferred,
                             const std::vector<int64_t>& lengths,
                             Diagnostics& diagnostics) const override {
    return Family::write_self_test_cases(folder, capture, transferred, lengths, diagnostics);
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::driver::families
