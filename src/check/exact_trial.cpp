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

// Outputs of key heads: what the heads of a group add up to.
class KeyHeads {
 public:
  KeyHeads(const Form& form, const std::vector<spec::Output>& outputs, const Case& c,
           const exec::Outcome& run, Comparison& comparison, const Algebra& algebra)
      : form_(form),
        outputs_(outputs),
        case_(c),
        run_(run),
        comparison_(comparison),
        algebra_(algebra),
        sums_(outputs.size()) {}

  // False: an element of the group that this head ends differs.
  bool add(const spec::ExactHead& head, int64_t b, int64_t h) {
    const bool last = ends_group(form_, case_, h);
    for (size_t n = 0; n < outputs_.size(); ++n) {
      if (!outputs_[n].is_of_key_heads()) continue;
      const std::vector<Element>& elements = head.outputs[n].elements;
      std::vector<Element>& sum = sums_[n];
      sum.resize(elements.size());
      for (size_t d = 0; d < sum.size(); ++d) sum[d] = algebra_.add(sum[d], elements[d]);
      if (!last) continue;
      const auto got = run_.exact.find(outputs_[n].name);
      const int64_t length = int64_t(sum.size()), columns = columns_of(outputs_[n]);
      for (int64_t d = 0; got != run_.exact.end() && d < length; ++d)
        if (!comparison_.same(outputs_[n].name.c_str(), got->second[at_ * length + d], sum[d], b, h,
                              d / columns, d % columns))
          return false;
      sum.clear();
    }
    at_ += last;
    return true;
  }

 private:
  int64_t columns_of(const spec::Output& output) const {
    for (const spec::Axis& a : spec::axes(form_))
      if (a.index == output.axes.substr(output.axes.size() - 1)) return a.size.constant;
    return 1;
  }

  const Form& form_;
  const std::vector<spec::Output>& outputs_;
  const Case& case_;
  const exec::Outcome& run_;
  Comparison& comparison_;
  const Algebra& algebra_;
  std::vector<std::vector<Element>> sums_;
  int64_t at_ = 0;  // how many groups have ended
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
    if (got == run.exact.end() || output.has_rows() != (i >= 0) || output.is_of_key_heads())
      return true;
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
  KeyHeads of_keys(form, outputs, c, run, comparison, algebra);
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
      if (!of_keys.add(want, b, h)) return;
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
