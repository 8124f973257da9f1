// The driver's part of RMS normalisations. One text a function for all targets from Ampere on: what
// takes the time is memory. Cases that prove them are few rows and many, and one to time.
#include <fmt/format.h>

#include "driver/family.h"
#include "driver/proof/writer.h"
#include "support/files.h"

namespace kw::driver::families {
namespace fs = std::filesystem;
namespace {

struct Shape {
  int64_t B, M;
  bool timed;
};
constexpr Shape kShapes[] = {{1, 1, false}, {2, 127, false}, {1, 1000, false}, {3, 333, false}};
constexpr int64_t kSampledRows = 128, kTimedRows = 16;
constexpr int64_t kTimedElements = int64_t(1) << 25;  // of x

class RmsNorm : public Family {
 public:
  std::optional<std::vector<std::string>> texts(const spec::Form& form,
                                                const TargetLimits*) const override {
    return std::vector<std::string>{form.norm->residual ? "sm80/add_rms_norm.cu"
                                                        : "sm80/rms_norm.cu"};
  }
  std::optional<Shipped> sketch() const override { return std::nullopt; }
  bool asks_for_plain() const override { return false; }
  void set_dims(const spec::Form& form, transfer::Tiles& row) const override {
    row.dim = row.value_dim = form.D.constant;
  }

  // The first line of what `capture --form` prints, and the row.
  std::string summary(const spec::Form& form) const override {
    const std::string text = spec::print(form);
    return text.substr(0, text.find('\n')) + "; of " + spec::print(form.norm->sum);
  }

  bool write_proof(const fs::path& folder, const spec::Capture& capture,
                   const transfer::Result& transferred, Diagnostics& diagnostics) const override {
    ProofWriter writer(folder, capture, transferred, diagnostics);
    for (const Shape& shape : kShapes)
      if (!add(shape, capture, writer, diagnostics)) return false;
    const int64_t rows = kTimedElements / capture.form.D.constant;
    return add({1, rows, true}, capture, writer, diagnostics) && writer.write();
  }

 private:
  static bool add(const Shape& shape, const spec::Capture& capture, ProofWriter& writer,
                  Diagnostics& diagnostics) {
    const spec::Form& form = capture.form;
    std::map<std::string, int64_t> sizes = capture.cases.front().sizes;
    spec::give(form.B, shape.B, sizes);
    spec::give(form.M, shape.M, sizes);
    spec::Draws draws = capture.cases.front().draws;
    draws.seed += 1000 + shape.M;
    const auto problem = spec::make_problem(form, sizes, draws, diagnostics);
    if (!problem) return false;
    const auto truth = spec::truth(form, *problem);
    const int64_t B = truth->batches(), H = truth->heads(), M = truth->rows(), all = B * H * M,
                  count = std::min(all, shape.timed ? kTimedRows : kSampledRows);
    ProofWriter::Rows rows;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t at = n * all / count;
      writer.add_row(rows, *truth, at / (H * M), at / M % H, at % M, writer.typical_error());
    }
    return writer.add(*problem, draws, rows, fmt::format("{} rows of {}", all, form.D.constant),
                      "BHSD", shape.timed);
  }
};

}  // namespace

const Family& rms_norm() {
  static const RmsNorm family;
  return family;
}

}  // namespace kw::driver::families
