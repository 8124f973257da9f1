// One run of a program in the exact reading, against the specification in the same algebra.
#include <fmt/format.h>

#include <algorithm>

#include "check/trial.h"
#include "spec/exact.h"

namespace kw::check {

using exact::Algebra;
using exact::Element;
using spec::Form;

namespace {

// Compares one output, an element at a time, in the order of rows.
class Comparison {
 public:
  Comparison(const Case& c, const exec::Outcome& run, const Algebra& algebra, Trial& trial)
      : case_(c), run_(run), algebra_(algebra), trial_(trial) {}

  // False: this element differs, and nothing further is of interest.
  bool same(const char* output, const Element& got, const Element& want, int64_t b, int64_t h,
            int64_t i, int64_t d) {
    const Algebra::Truth t = algebra_.equal(got, want);
    const uint8_t opaque = t.opaque | run_.branches;
    trial_.opaque |= opaque;
    if (t.holds) {
      trial_.error_bound = std::max(trial_.error_bound, algebra_.error_bound(got, want));
      return true;
    }
    Counterexample e = blame(case_, output, b, h, i);
    e.exact = true;
    e.columns = {d};
    e.message = opaque ? fmt::format("column {} is not the same formula, as far as it can be told: "
                                     "{} on its path",
                                     d, exact::opaque_names(opaque))
                       : fmt::format("column {} is another formula than the specification's", d);
    trial_.failure = Failure{std::move(e), std::nullopt, opaque};
    return false;
  }

 private:
  const Case& case_;
  const exec::Outcome& run_;
  const Algebra& algebra_;
  Trial& trial_;
};

void compare(const Form& form, const spec::Problem& named, const Case& c,
             const exec::Outcome& run, const Algebra& algebra, Trial& trial) {
  const Tensor& shape = run.outputs.at("o");
  const std::vector<Element>& o = run.exact.at("o");
  const auto lse = run.exact.find("lse");
  const int64_t H = shape.shape[1], M = shape.shape[2], Dv = shape.shape[3];
  Comparison comparison(c, run, algebra, trial);
  for (int64_t b = 0; b < shape.shape[0]; ++b)
    for (int64_t h = 0; h < H; ++h) {
      const spec::ExactRows want = spec::exact_rows(form, named, algebra, b, c.heads[h]);
      for (int64_t i = 0; i < M; ++i) {
        const int64_t row = (b * H + h) * M + i;
        ++trial.rows;
        for (int64_t d = 0; d < Dv; ++d)
          if (!comparison.same("o", o[row * Dv + d], want.output[i * Dv + d], b, h, i, d)) return;
        if (lse == run.exact.end() || want.uniform[i]) continue;
        if (!comparison.same("lse", lse->second[row], want.lse[i], b, h, i, 0)) return;
      }
    }
}

}  // namespace

Trial run_exact_trial(const tl::Program& program, const spec::Capture& capture, const Case& c,
                      int draw) {
  Trial trial;
  trial.valid = false;
  const Form& form = capture.form;
  std::optional<spec::Problem> problem =
      spec::make_problem(form, c.sizes, c.draws, trial.diagnostics);
  if (!problem) return trial;
  const spec::Problem named = spec::named(form, std::move(*problem));
  std::optional<exec::Launch> launch = bind(program, form, named, c, trial.diagnostics);
  if (!launch) return trial;
  const Algebra algebra(draw % Algebra::kChains, c.draws.seed * 64 + draw);
  launch->algebra = &algebra;
  launch->seed = draw;
  const exec::Outcome run = exec::run(program, *launch);
  if (!ran(c, run, trial)) return trial;
  compare(form, named, c, run, algebra, trial);
  return trial;
}

}  // namespace kw::check
