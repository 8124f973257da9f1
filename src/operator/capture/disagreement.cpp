// Where a form and the goldens disagree: what of the user's function explains it, at its line; or
// it is our own fault.
#include "operator/capture/disagreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operator/evaluate/program.h"
#include "operator/family.h"

namespace kw::spec {
namespace {

// The form's integers are exact, PyTorch's are what its roundings make of a real.
bool refuse_rounding(const Capture& capture, size_t golden, Diagnostics& diagnostics) {
  diagnostics
      .error("spec.rounding", capture.form.roundings.front(),
             fmt::format("an integer is made of a real here, and PyTorch has another one than fp64 "
                         "in the order as written, in golden case {}",
                         golden))
      .hint =
      "which integer it is depends on how the real was rounded; compute them beforehand and pass "
      "a table of ints: table[i - j]";
  return false;
}

// PyTorch counts negative indices from the end, a form does not.
bool refuse_index(const Capture& capture, size_t golden, int64_t b, int64_t h, int64_t i,
                  Diagnostics& diagnostics) {
  const auto& cases = capture.cases;
  const GoldenCase& at = golden < cases.size() ? cases[golden] : capture.far[golden - cases.size()];
  const std::optional<Problem> problem = problem_of(capture.form, at, diagnostics);
  if (!problem) return false;
  const int64_t keys = value_of(capture.form.N, at.sizes);
  ExprPtr found;
  int64_t index = 0;
  const auto look = [&](const ExprPtr& read) {
    if (read->kind != Kind::read) return;
    const std::vector<int64_t>& shape = problem->tensors.at(read->name).shape;
    for (size_t d = 0; d < read->args.size() && !found; ++d) {
      Program program(read->args[d], *problem);
      for (int64_t j = 0; j < keys && !found; ++j) {
        index = static_cast<int64_t>(program.run(Program::at(b, h, i, j)));
        if (index < 0 || index >= shape[d]) found = read;
      }
    }
  };
  for (const Term& t : capture.form.terms)
    for (const ExprPtr& e : {t.score, t.keep})
      if (e)
        rewrite(e, [&](const ExprPtr& part) -> ExprPtr {
          look(part);
          return nullptr;
        });
  if (!found) return false;
  diagnostics
      .error("spec.index", found->span,
             fmt::format("{} is read at {} here, in golden case {}, which PyTorch counts from the "
                         "end",
                         print(found), index, golden))
      .hint = "a kernel reads at indices from 0 on: add the dimension's size to negative ones";
  return true;
}

// What a mask does that a form cannot say exactly, of the first term that has such a one.
bool refuse_mask(const Capture& capture, size_t golden, double error, Diagnostics& diagnostics) {
  for (const Term& t : capture.form.terms) {
    // Where a score meets a bound exactly, PyTorch's roundings decide whether it counts.
    const bool of_scores = t.keep && mentions(t.keep, Kind::score);
    if (!of_scores && !(t.finite_mask && std::isfinite(error))) continue;
    diagnostics
        .error("spec.mask", place_of(t.keep),
               fmt::format("{} in golden case {} a row {}differs by {:.2g}",
                           of_scores ? "whether a score counts depends on the score here, and so "
                                       "on how it was rounded:"
                                     : "scores are dropped by a finite number here, which still "
                                       "counts:",
                           golden, of_scores ? "" : "without them ", error))
        .hint = of_scores ? "mask by positions or by data" : "drop them with -torch.inf";
    return true;
  }
  return false;
}

}  // namespace

bool disagrees(const Capture& capture, size_t n, int64_t b, int64_t h, int64_t i, double error,
               Diagnostics& diagnostics) {
  if (!capture.form.roundings.empty()) return refuse_rounding(capture, n, diagnostics);
  // In gradients what is read outside is no longer seen as such: it may be a key's sum by then.
  const bool may_be_outside =
      capture.form.training() == Training::backward || (!std::isfinite(error) && i >= 0);
  if (may_be_outside && refuse_index(capture, n, b, h, std::max<int64_t>(i, 0), diagnostics))
    return false;
  if (refuse_mask(capture, n, error, diagnostics)) return false;
  diagnostics
      .error("internal.form", {},
             fmt::format("the form of {} ({}) does not compute what PyTorch does: golden case {}, "
                         "b {}, h {}, i {}: relative error {:.2g}, allowed {:.0g}\n{}",
                         capture.form.name, Family::of(capture.form).what(), n, b, h, i, error,
                         kAllowed, print(capture.form)))
      .hint = "this is a fault of kernelwright, not of the spec: please report it";
  return false;
}

bool refuse_undefined(const Capture& capture, const Output& output, size_t golden, int64_t b,
                      int64_t h, int64_t i, Diagnostics& diagnostics) {
  if (refuse_index(capture, golden, b, h, std::max<int64_t>(i, 0), diagnostics)) return false;
  const auto& terms = capture.form.terms;
  diagnostics
      .error(
          "spec.gradient", terms.empty() ? Span{} : place_of(terms.front().score),
          fmt::format("the gradient of {} has a derivative that is infinite or no number in "
                      "golden case {}, in a row that keeps keys; what PyTorch makes of it there, "
                      "0 or NaN, a kernel does not",
                      output.of, golden))
      .hint =
      "a root's derivative is 1 / 0 at 0, and so is a power's below 1: compute it of a larger "
      "number, as in (x + 1e-6).sqrt()";
  return false;
}

}  // namespace kw::spec
