// One run of a program in the exact reading, against the specification in the same algebra.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "check/family.h"
#include "check/packing.h"
#include "check/planted.h"
#include "operator/evaluate/exact.h"
#include "operator/sums.h"

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

// Outputs without rows: what heads add up to (operator/sums.h).
class SumsOfHeads {
 public:
  SumsOfHeads(const Form& form, const std::vector<spec::Output>& outputs, const exec::Outcome& run,
              Comparison& comparison, const Algebra& algebra)
      : form_(form), outputs_(outputs), run_(run), comparison_(comparison), algebra_(algebra) {}

  // False: an element of what this head completes differs.
  bool add(const spec::ExactHead& head, const spec::HeadAt& at) {
    for (size_t n = 0; n < outputs_.size(); ++n) {
      const spec::Output& output = outputs_[n];
      if (output.has_rows()) continue;
      const spec::Block block = spec::block_of(output, at);
      const auto add = [&](std::vector<Element>& to, const std::vector<Element>& share) {
        for (size_t d = 0; d < to.size(); ++d) to[d] = algebra_.add(to[d], share[d]);
      };
      const auto sum = sums_.add(n, block, head.outputs[n].elements, add);
      if (!sum) continue;
      const auto got = run_.exact.find(output.name);
      const int64_t length = int64_t(sum->size()), columns = columns_of(output, length);
      const bool in_rows = columns < length;
      for (int64_t d = 0; got != run_.exact.end() && d < length; ++d)
        if (!comparison_.same(output.name.c_str(), got->second[block.number * length + d],
                              (*sum)[d], at.b, at.h, in_rows ? d / columns : -1, d % columns))
          return false;
    }
    return true;
  }

 private:
  // Of an output whose last axis is a constant of the kernel: rows of so many.
  int64_t columns_of(const spec::Output& output, int64_t length) const {
    for (const spec::Axis& a : spec::axes(form_))
      if (a.of_kernel && a.index == output.axes.substr(output.axes.size() - 1))
        return a.size.constant;
    return length;
  }

  const Form& form_;
  const std::vector<spec::Output>& outputs_;
  const exec::Outcome& run_;
  Comparison& comparison_;
  const Algebra& algebra_;
  spec::Sums<std::vector<Element>> sums_;
};

// Every output that the program gives, by rows and then those without.
void compare(const Form& form, const spec::Problem& named, const Case& c, const exec::Outcome& run,
             const Algebra& algebra, Trial& trial) {
  const std::vector<spec::Output> outputs = spec::outputs(form);
  const int64_t B = spec::value_of(form.B, named.sizes), M = spec::value_of(form.M, named.sizes),
                H = static_cast<int64_t>(c.heads.size());
  Comparison comparison(c, run, algebra, trial);
  // Elements of one row of an output.
  const auto same = [&](size_t n, const spec::ExactHead& want, int64_t b, int64_t h, int64_t i) {
    const spec::Output& output = outputs[n];
    const auto got = run.exact.find(output.name);
    const auto& [elements, unspecified] = want.outputs[n];
    if (got == run.exact.end() || !output.has_rows()) return true;
    if (!unspecified.empty() && unspecified[i]) return true;
    const int64_t all = static_cast<int64_t>(elements.size()), length = all / M;
    for (int64_t d = 0; d < length; ++d)
      if (!comparison.same(output.name.c_str(), got->second[(b * H + h) * all + i * length + d],
                           elements[i * length + d], b, h, i, d))
        return false;
    return true;
  };
  SumsOfHeads sums(form, outputs, run, comparison, algebra);
  const auto heads =
      spec::heads_of(B, H, c.key_heads, [&](int64_t h) { return ends_group(form, c, h); });
  for (const spec::HeadAt& at : heads) {
    const spec::ExactHead want =
        spec::Family::of(form).exact(form, named, algebra, at.b, c.heads[at.h]);
    for (int64_t i = 0; i < M; ++i) {
      ++trial.rows;
      for (size_t n = 0; n < outputs.size(); ++n)
        if (!same(n, want, at.b, at.h, i)) return;
    }
    if (!sums.add(want, at)) return;
  }
}

// One draw of a case, ready to run. The launch refers to the algebra.
struct Drawn {
  spec::Problem named;
  std::unique_ptr<Algebra> algebra;
  exec::Launch launch;
};

std::optional<Drawn> draw_case(const tl::Program& program, const Form& form, const Case& c,
                               int draw, bool general, int levels, Diagnostics& diagnostics) {
  std::optional<spec::Problem> problem = problem_of(form, c, diagnostics);
  if (!problem) return std::nullopt;
  Drawn d{spec::named(form, std::move(*problem)),
          std::make_unique<Algebra>(draw % Algebra::kChains, c.draws.seed * 64 + draw, levels),
          {}};
  if (general) d.algebra->draw_integers();
  std::optional<exec::Launch> launch = bind(program, form, d.named, c, diagnostics);
  if (!launch) return std::nullopt;
  d.launch = std::move(*launch);
  d.launch.algebra = d.algebra.get();
  d.launch.seed = draw;
  return d;
}

// How many exponentials stand one in another, where `output` of them are in the output.
int nested(const spec::ExprPtr& e, int output) {
  if (!e) return 0;
  if (e->kind == spec::Kind::output) return output;
  int most = 0;
  for (const spec::ExprPtr& a : e->args) most = std::max(most, nested(a, output));
  static const std::set<std::string> exponentials = {"exp", "exp2", "tanh", "sigmoid", "**"};
  return most + int(exponentials.count(e->name));
}

// The algebra's levels that a form's exponentials need, the softmax's own among them.
int levels_of(const Form& form) {
  int most = 1;
  for (const spec::Term& term : form.terms) {
    const int own = term.normaliser == spec::Normaliser::softmax ? 1 : 0;
    most = std::max({most, nested(term.score, 0) + own, nested(term.sink, 0) + own});
  }
  Form copy = form;
  const int output = most;
  spec::Family::of(form).each_expression(copy, [&](spec::ExprPtr& e, const spec::Extents&) {
    most = std::max(most, nested(e, output));
  });
  return std::min(most + 1, exact::kLevels);
}

Trial run_with(int levels, const tl::Program& program, const spec::Capture& capture, const Case& c,
               int draw, bool general) {
  Trial trial;
  trial.valid = false;
  const auto drawn = draw_case(program, capture.form, c, draw, general, levels, trial.diagnostics);
  if (!drawn) return trial;
  exec::Outcome run = exec::run(program, drawn->launch);
  trial.ran = std::move(run.ran);
  unpack(c, spec::value_of(capture.form.M, drawn->named.sizes), run);
  if (!ran(c, capture.form, run, trial)) return trial;
  compare(capture.form, drawn->named, c, run, *drawn->algebra, trial);
  return trial;
}

}  // namespace

Trial run_exact_trial(const tl::Program& program, const spec::Capture& capture, const Case& c,
                      int draw, bool general) {
  const int levels = levels_of(capture.form);
  Trial trial = run_with(levels, program, capture, c, draw, general);
  // The program nests them deeper than the function.
  if (levels < exact::kLevels && (trial.opaque & exact::Opaque::nested))
    trial = run_with(exact::kLevels, program, capture, c, draw, general);
  return trial;
}

void locate_exact(const tl::Program& program, const spec::Capture& capture, const Case& c, int draw,
                  Counterexample& what) {
  Diagnostics ignored;
  const auto drawn = draw_case(program, capture.form, c, draw, false, exact::kLevels, ignored);
  if (!drawn) return;
  const auto locator =
      Family::of(capture.form).exact_locator(c, capture.form, drawn->named, drawn->launch);
  exec::run(program, drawn->launch, locator.get());
  const Difference found = locator->found();
  name_statement(program, found.statement, found.text, what);
}

}  // namespace kw::check
