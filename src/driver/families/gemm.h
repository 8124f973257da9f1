// The driver's part of products of matrices.
#pragma once
#include "driver/family.h"

namespace kw::driver::families {

class Gemm : public Family {
 public:
  std::optional<std::vector<std::string>> texts(const spec::Form&,
                                                const TargetLimits* limits) const override;
  std::optional<Shipped> sketch() const override {
    return Shipped{"sketches/product.tl", "gemm", "column"};
  }
  bool asks_for_plain() const override { return false; }
  std::string summary(const spec::Form& form) const override;
  bool write_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                   const transfer::Result& transferred, Diagnostics& diagnostics) const override;
};

}  // namespace kw::driver::families
