// One run of a program in the exact reading, against the specification in the same algebra.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "check/family.h"
#include "check/packing.h"
#include "operator/evaluate/exact.h"
#include "operator/family.h"

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
    e.message = opaque
                    ? fmt::format(
                          "column {} is not the same formula, as far as it can be told: "
                          "{} on its path",
                          d, exact::opaque_names(opaque))
                    : fmt::format("column {} is not algebraically equal to the specification", d);
    trial_.failure = Failure{std::move(e), std::nullopt, opaque};
    return false;
  }

 private:
  const Case& case_;
  const exec::Outcome& run_;
  const Algebra& algebra_;
  Trial& trial_;
};

// Every output that the program gives, by rows and then those without.
void compare(const Form& form, const spec::Problem& named, const Case& c, const exec::Outcome& run,
             const Algebra& algebra, Trial& trial) {
  const std::vector<spec::Output> outputs = spec::outputs(form);
  const int64_t B = spec::value_of(form.B, named.sizes), M = spec::value_of(form.M, named.sizes),
                H = static_cast<int64_t>(c.heads.size());
  Comparison comparison(c, run, algebra, trial);
  // Elements of an output, of one row or of one head, from the at-th of what is wanted of the head.
  const auto same = [&](size_t n, const spec::ExactHead& want, int64_t b, int64_t h, int64_t i) {
    const spec::Output& output = outputs[n];
    const auto got = run.exact.find(output.name);
    const auto& [elements, unspecified] = want.outputs[n];
    if (got == run.exact.end() || output.has_rows() != (i >= 0)) return true;
    if (!unspecified.empty() && unspecified[i]) return true;
    const int64_t all = static_cast<int64_t>(elements.size()),
                  length = output.has_rows() ? all / M : all,
                  first = std::max<int64_t>(i, 0) * length;
    for (int64_t d = 0; d < length; ++d)
      if (!comparison.same(output.name.c_str(), got->second[(b * H + h) * all + first + d],
                           elements[first + d], b, h, i, d))
        return false;
    return true;
  };
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h) {
      const spec::ExactHead want =
          spec::Family::of(form).exact(form, named, algebra, b, c.heads[h]);
      for (int64_t i = 0; i < M; ++i) {
        ++trial.rows;
        for (size_t n = 0; n < outputs.size(); ++n)
          if (!same(n, want, b, h, i)) return;
      }
      for (size_t n = 0; n < outputs.size(); ++n)
        if (!same(n, want, b, h, -1)) return;
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
  compare(capture.form, drawn->named, c, run, *drawn->algebra, trial);
  return trial;
}

void locate_exact(const tl::Program& program, const spec::Capture& capture, const Case& c, int draw,
                  Counterexample& what) {
  Diagnostics ignored;
  const auto drawn = draw_case(program, capture.form, c, draw, ignored);
  if (!drawn) return;
  const auto locator =
      Family::of(capture.form).exact_locator(c, capture.form, drawn->named, drawn->launch);
  exec::run(program, drawn->launch, locator.get());
  const Difference found = locator->found();
  name_statement(program, found.statement, found.text, what);
}

}  // namespace kw::check
