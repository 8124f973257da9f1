// Writes the cases of a proof, prove.json and its arrays, of any operator: sizes by its axes,
// inputs by its bindings, goldens by its outputs and their rules. Which cases is its family's
// (families/).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/capture/capture.h"
#include "operator/family.h"
#include "runtime/launch/strided.h"
#include "transfer/transfer.h"

namespace kw::driver {

// How a tensor is filled, as prove.json says it.
nlohmann::json to_json(const runtime::Contents& contents);

class ProofWriter {
 public:
  ProofWriter(const std::filesystem::path& folder, const spec::Capture& capture,
              const transfer::Result& transferred, Diagnostics& diagnostics);

  // Rows of every output that is proved: which (batch, head, row), what they are, and what is
  // accepted of each.
  struct Rows {
    struct Of {
      std::vector<double> values, accepted;
    };
    std::vector<double> index;
    std::vector<Of> outputs;
  };
  // Evaluates a row; the user's own function errs by `own` on it.
  void add_row(Rows& rows, spec::Truth& truth, int64_t b, int64_t h, int64_t i, double own) const;

  // The outputs that are proved: those with rows that a kernel of this function has.
  const std::vector<spec::Output>& outputs() const { return outputs_; }
  // The median of the user's own errors over all golden rows.
  double typical_error() const { return typical_error_; }

  // A case; `name` and `layout` as prove.json has them. False where a file cannot be written.
  bool add(const spec::Problem& problem, const spec::Draws& draws, const Rows& rows,
           const std::string& name, const char* layout, bool timed);
  // One without goldens.
  void add_timed(const spec::Problem& problem, const spec::Draws& draws, const std::string& name,
                 const char* layout);

  // One whose goldens, and inputs that are no draws, are added to it next.
  void add_case(const spec::Problem& problem, const spec::Draws& draws, const std::string& name,
                const char* layout);
  // Of the last case: at each line of `index`, which has `indices` numbers, a row of the output, or
  // where these are all of its dimensions an element; and what is accepted of it.
  bool add_golden(const std::string& output, int64_t indices, std::vector<double> index,
                  std::vector<double> values, std::vector<double> accepted);
  // Of the last case: what the kernel's argument holds.
  bool add_given(const std::string& argument, const Tensor& values);

  // The case that was added last, and how many there are.
  nlohmann::json& last() { return cases_.back(); }
  size_t count() const { return cases_.size(); }
  bool write() const;  // prove.json

 private:
  nlohmann::json case_of(const spec::Problem& p, const spec::Draws& draws, const std::string& name,
                         const char* layout, bool timed) const;
  void name_own_sizes(const transfer::Binding& b, const spec::Problem& p,
                      nlohmann::json& sizes) const;
  std::vector<double> kernel_rows(std::vector<double> index) const;
  bool save(const std::string& name, Dtype dtype, std::vector<int64_t> shape,
            std::vector<double> values);

  const std::filesystem::path folder_;
  const spec::Capture& capture_;
  const transfer::Result& transferred_;
  Diagnostics& diagnostics_;
  std::vector<spec::Output> outputs_;
  std::vector<size_t> places_;  // of them among spec::outputs()
  double typical_error_ = 0;
  nlohmann::json cases_ = nlohmann::json::array();
};

}  // namespace kw::driver
