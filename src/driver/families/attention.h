// The driver's part of attention; latent attention is a special case of it.
#pragma once
#include "driver/family.h"
#include "driver/proof/writer.h"

namespace kw::driver::families {

class Attention : public Family {
 public:
  std::optional<std::vector<std::string>> texts(const spec::Form& form,
                                                const TargetLimits* limits) const override;
  std::optional<Shipped> sketch() const override {
    return Shipped{"sketches/attention.tl", "attention_fwd", "key"};
  }
  std::map<std::string, int64_t> constants(const spec::Form& form) const override;
  void set_dims(const spec::Form& form, transfer::Tiles& row) const override;
  std::string summary(const spec::Form& form) const override;
  std::string counted(const check::Report& report) const override;
  bool write_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                   const transfer::Result& transferred, Diagnostics& diagnostics) const override;
  bool write_tuning_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                          const transfer::Result& transferred,
                          const std::map<std::string, int64_t>& sizes,
                          Diagnostics& diagnostics) const override;
  bool write_self_test_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                             const transfer::Result& transferred,
                             const std::vector<int64_t>& lengths,
                             Diagnostics& diagnostics) const override;

 protected:
  // Whether values with their signs changed change nothing but the output's signs.
  virtual bool has_values_of_their_own() const { return true; }
};

}  // namespace kw::driver::families
