// What the driver asks of the family of an operator (operator/families.def): which text to start
// from, which sketch where there is none, how a person is told of it, and the cases that prove it.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "check/check.h"
#include "operator/capture/capture.h"
#include "support/targets.h"
#include "transfer/transfer.h"

namespace kw::driver {

// The sketch that the project has for a family, what its kernel is called, and what a block of BN
// has so many of.
struct Shipped {
  const char *file, *kernel, *columns;
};

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const spec::Form& form);

  // ---- to start from
  // The family's own texts below kernels/, the first to be tried first; nothing where the target's
  // general text is the family's. Those that do not exist are passed over.
  virtual std::optional<std::vector<std::string>> texts(const spec::Form& /*form*/,
                                                        const TargetLimits* /*limits*/) const {
    return std::nullopt;
  }
  virtual std::optional<Shipped> sketch() const = 0;
  // Why Hopper's copy engine is left alone by the sketch; "" where it is not.
  virtual std::string no_engine() const { return {}; }
  // Whether a sketch may do where no text of the corpus fits.
  virtual bool sketch_is_roomier() const { return false; }
  // The constants that a sketch of it is sized for.
  virtual std::map<std::string, int64_t> constants(const spec::Form& /*form*/) const { return {}; }
  // Whether a kernel of the user's own must compute what the rules start from (is_plain).
  virtual bool asks_for_plain() const { return true; }
  // Whether a text with a few spilled values (kParkedBytes) is better than the roomier one that is
  // next: where that one waits longer.
  virtual bool would_rather_spill() const { return false; }
  // Sets what a row of the tile database is looked up by.
  virtual void set_dims(const spec::Form& /*form*/, transfer::Tiles& /*row*/) const {}

  // ---- to say
  virtual std::string summary(const spec::Form& form) const = 0;
  // What the check counted beside cases and rows: "; 12 skipped or unmasked key blocks", or "".
  virtual std::string counted(const check::Report& /*report*/) const { return {}; }

  // ---- to prove (proof.h)
  virtual bool write_proof(const std::filesystem::path& folder, const spec::Capture& capture,
                           const transfer::Result& transferred, Diagnostics& diagnostics) const = 0;
  virtual bool write_tuning_cases(const std::filesystem::path& folder, const spec::Capture& capture,
                                  const transfer::Result& transferred,
                                  const std::map<std::string, int64_t>& sizes,
                                  Diagnostics& diagnostics) const;
  virtual bool write_self_test_cases(const std::filesystem::path& folder,
                                     const spec::Capture& capture,
                                     const transfer::Result& transferred,
                                     const std::vector<int64_t>& lengths,
                                     Diagnostics& diagnostics) const;
};

}  // namespace kw::driver
