// One run of a program in the exact reading, against the specification in the same algebra.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "check/locator.h"
#include "check/packing.h"
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
    e.message = opaque ? fmt::format(
                             "column {} is not the same formula, as far as it can be told: "
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

void compare(const Form& form, const spec::Problem& named, const Case& c, const exec::Outcome& run,
             const Algebra& algebra, Trial& trial) {
  const Tensor& shape = run.outputs.at("o");
  const std::vector<Element>& o = run.exact.at("o");
  const auto lse = run.exact.find("lse");
  const auto sums = form.returns_column_sums ? run.exact.find(kColumnSums) : run.exact.end();
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
      for (int64_t j = 0; sums != run.exact.end() && j < int64_t(want.columns.size()); ++j)
        if (!comparison.same(kColumnSums, sums->second[(b * H + h) * want.columns.size() + j],
                             want.columns[j], b, h, -1, j))
          return;
    }
}

// One draw of a case, ready to run. The launch refers to the algebra.
struct Drawn {
  spec::Problem named;
  std::unique_ptr<Algebra> algebra;
  exec::Launch launch;
};

std::optional<Drawn> draw_case(const tl::Program& program, const Form& form, const Case& c,
                               int draw, Diagnostics& diagnostics) {
  std::optional<spec::Problem> problem = spec::make_problem(form, c.sizes, c.draws, diagnostics);
  if (!problem) return std::nullopt;
  Drawn d{spec::named(form, std::move(*problem)),
          std::make_unique<Algebra>(draw % Algebra::kChains, c.draws.seed * 64 + draw),
          {}};
  std::optional<exec::Launch> launch = bind(program, form, d.named, c, diagnostics);
  if (!launch) return std::nullopt;
  d.launch = std::move(*launch);
  d.launch.algebra = d.algebra.get();
  d.launch.seed = draw;
  return d;
}

}  // namespace

Trial run_exact_trial(const tl::Program& program, const spec::Capture& capture, const Case& c,
                      int draw) {
  Trial trial;
  trial.valid = false;
  const auto drawn = draw_case(program, capture.form, c, draw, trial.diagnostics);
  if (!drawn) return trial;
  exec::Outcome run = exec::run(program, drawn->launch);
  unpack(c, spec::value_of(capture.form.M, drawn->named.sizes), run);
  if (!ran(c, capture.form, run, trial)) return trial;
  if (capture.form.product) {
    Comparison comparison(c, run, *drawn->algebra, trial);
    const SameElement same = [&](auto&&... at) { return comparison.same(at...); };
    judge_exact_product(capture.form, drawn->named, c, run, *drawn->algebra, same, trial);
    return trial;
  }
  compare(capture.form, drawn->named, c, run, *drawn->algebra, trial);
  return trial;
}

void locate_exact(const tl::Program& program, const spec::Capture& capture, const Case& c, int draw,
                  Counterexample& what) {
  Diagnostics ignored;
  const auto drawn = draw_case(program, capture.form, c, draw, ignored);
  if (!drawn) return;
  const auto locator = make_exact_locator(c, capture.form, drawn->named, drawn->launch);
  exec::run(program, drawn->launch, locator.get());
  const Difference found = locator->found();
  name_statement(program, found.statement, found.text, what);
}

}  // namespace kw::check
