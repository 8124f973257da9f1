// The cases that prove a product of matrices on a GPU: around tiles and steps, and one to time.
// Inputs are drawn in the kernel's order of dimensions; a side that the user gives in that order,
// as is required of it, is the same tensor. Rows are sampled; sums are single numbers, each with an
// absolute error.
#include <fmt/format.h>

#include "driver/families/gemm.h"
#include "driver/proof/writer.h"

namespace kw::driver::families {
namespace fs = std::filesystem;
namespace {

struct Shape {
  int64_t B, M, N, K;
  bool timed;
};
// Sizes that the copies can take: multiples of 8.
constexpr Shape kShapes[] = {{1, 1, 8, 8, false},        {2, 127, 136, 72, false},
                             {1, 129, 128, 64, false},   {3, 200, 264, 200, false},
                             {1, 333, 520, 1000, false}, {1, 4096, 4096, 4096, true}};
constexpr int64_t kSampledRows = 128, kTimedRows = 16;

bool add(const Shape& shape, const spec::Capture& capture, ProofWriter& writer,
         Diagnostics& diagnostics) {
  const spec::Form& form = capture.form;
  std::map<std::string, int64_t> sizes = capture.cases.front().sizes;
  const std::pair<const spec::Size*, int64_t> wanted[] = {
      {&form.B, shape.B}, {&form.M, shape.M}, {&form.N, shape.N}, {&form.D, shape.K}};
  for (const auto& [size, value] : wanted) spec::give(*size, value, sizes);
  spec::Draws draws = capture.cases.front().draws;
  draws.seed += 1000 + shape.M;
  const auto problem = spec::make_problem(form, sizes, draws, diagnostics);
  if (!problem) return false;
  const auto truth = spec::truth(form, *problem);
  const int64_t B = truth->batches(), H = truth->heads(), M = truth->rows(),
                N = spec::value_of(form.N, problem->sizes),
                K = spec::value_of(form.D, problem->sizes), all = B * H * M,
                count = std::min(all, shape.timed ? kTimedRows : kSampledRows);
  ProofWriter::Rows rows;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t at = n * all / count;
    writer.add_row(rows, *truth, at / (H * M), at / M % H, at % M, writer.typical_error());
  }
  if (!writer.add(*problem, draws, rows, fmt::format("B{} {}x{}x{}", B, M, N, K), "BHSD",
                  shape.timed))
    return false;
  if (shape.timed) writer.last()["flop"] = 2.0 * double(B * H * M) * double(N) * double(K);
  return true;
}

}  // namespace

bool Gemm::write_proof(const fs::path& folder, const spec::Capture& capture,
                       const transfer::Result& transferred, Diagnostics& diagnostics) const {
  ProofWriter writer(folder, capture, transferred, diagnostics);
  for (const Shape& shape : kShapes)
    if (!add(shape, capture, writer, diagnostics)) return false;
  return writer.write();
}

}  // namespace kw::driver::families
