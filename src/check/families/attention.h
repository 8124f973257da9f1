// The check of attention; latent attention's is the same.
#pragma once
#include "check/family.h"
#include "check/packing.h"

namespace kw::check::families {

// Skipped and unmasked key blocks against the keep predicate. Counts them.
std::optional<Counterexample> check_blocks(const spec::Form& form, const spec::Problem& problem,
                                           const Case& c, const std::vector<Visit>& visits,
                                           int& blocks);

// [B, heads, rows, D] of an operand; `row` is the index that numbers rows, `heads` are the
// argument's own.
Tensor gather(const spec::Operand& operand, const spec::Problem& problem, const char* row,
              const std::vector<int64_t>& heads, int64_t B, int64_t rows, int64_t D);

class Attention : public Family {
 public:
  std::string undecided(const spec::Form& form) const override;
  void bind(const tl::Program& program, const spec::Form& form, const spec::Problem& problem,
            const Case& c, const std::vector<int64_t>& key_heads,
            exec::Launch& launch) const override;
  std::set<std::string> sharpened(const spec::Form& form) const override;
  proofs::Report indices(const tl::Program& program, const spec::Form& form,
                         const proofs::Solver& solver) const override;
  std::optional<Counterexample> coverage(const spec::Form& form, const spec::Problem& problem,
                                         const Case& c, const exec::Outcome& run,
                                         int& blocks) const override;
  bool can_locate(const tl::Program& program, const spec::Form& form,
                  const std::string& output) const override;
  void locate(const tl::Program& program, const spec::Capture& capture, const Case& c,
              Counterexample& what) const override;
  std::unique_ptr<Locator> exact_locator(const Case& c, const spec::Form& form,
                                         const spec::Problem& named,
                                         const exec::Launch& launch) const override;
};

}  // namespace kw::check::families
