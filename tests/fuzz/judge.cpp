#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check/trial.h"
#include "gradcheck.h"
#include "graph_gradients.h"
#include "graph_places.h"
#include "graph_run.h"
#include "graph_text.h"
#include "operator/evaluate/exact.h"
#include "operator/recognise/recognise.h"
#include "tl/laws/laws.h"

namespace kw::fuzz {
namespace {

std::string first_code(const Diagnostics& d) {
  for (const Diagnostic& x : d.all())
    if (x.severity == Severity::error) return x.code;
  return "?";
}

std::map<std::string, int64_t> sizes_of(const spec::Form& form, const Function& f) {
  std::map<std::string, int64_t> out;
  for (const auto& [size, value] : {std::pair(&form.B, f.B), {&form.M, f.M}, {&form.N, f.N}})
    if (!size->name.empty()) out[size->name] = value;
  return out;
}

// From the user's order of dimensions to that of the output's axes.
Tensor in_axes(const Tensor& t, const spec::Output& output, const Function& f) {
  const std::map<std::string, int64_t> extents = {
      {"b", f.B}, {"h", f.H}, {"g", f.G}, {"i", f.M},
      {"j", f.N}, {"c", f.D}, {"d", f.V}, {"x", spec::value_of(output.own, {})}};
  std::vector<int64_t> own = strides_of(t.shape), shape, strides;
  std::vector<std::string> dims = output.dims;
  if (dims.empty())
    for (const char axis : output.axes) dims.emplace_back(1, axis);
  if (dims.size() < own.size()) own.erase(own.begin() + (f.rows_first ? 2 : 1));  // a single head
  for (const char axis : output.axes) {
    const std::string index(1, axis);
    const auto at = std::find(dims.begin(), dims.end(), index);
    shape.push_back(extents.at(index));
    strides.push_back(at == dims.end() ? 0 : own[size_t(at - dims.begin())]);
  }
  Tensor out(Dtype::f64, shape);
  for (int64_t k = 0; k < out.count(); ++k) {
    int64_t rest = k, from = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) from += rest % shape[d] * strides[d];
    out.values[k] = t.values[from];
  }
  return out;
}

// Of rows of so many columns.
Tensor row_errors(const Tensor& own, const Tensor& truth) {
  Tensor out(Dtype::f64, {truth.shape.begin(), truth.shape.end() - 1});
  const int64_t columns = truth.shape.back();
  for (int64_t r = 0; r < out.count(); ++r) {
    double norm = 0, off = 0;
    for (int64_t d = 0; d < columns; ++d) {
      const double x = truth.values[r * columns + d], y = own.values[r * columns + d];
      norm += x * x;
      off += (x - y) * (x - y);
    }
    out.values[r] = norm == 0 && off == 0 ? 0 : std::sqrt(off / norm);
  }
  return out;
}

std::map<std::string, int64_t> sizes_of_graph(const Function& f) {
  return {{"B", f.B}, {"M", f.M}, {"N", f.N}};
}

std::map<std::string, Tensor> arguments_of(const spec::Problem& problem) {
  std::map<std::string, Tensor> arguments = problem.tensors;
  for (const auto& [name, value] : problem.scalars) {
    Tensor t(Dtype::f64, {});
    t.values[0] = value;
    arguments[name] = t;
  }
  return arguments;
}

spec::GoldenCase case_of(const Function& f, const spec::Form& form) {
  spec::GoldenCase g;
  g.sizes = sizes_of(form, f);
  g.draws.seed = f.seed;
  g.draws.arguments = f.draws;
  g.heads.resize(f.H);
  std::iota(g.heads.begin(), g.heads.end(), 0);
  return g;
}

// What capture writes of one golden case, by running the graph.
std::optional<spec::Capture> capture_of(const Function& f, const spec::Form& form,
                                        Diagnostics& diagnostics) {
  spec::Capture c;
  c.form = form;
  spec::GoldenCase g = case_of(f, form);
  const auto problem = spec::make_problem(form, g.sizes, g.draws, diagnostics);
  if (!problem) return std::nullopt;
  spec::Output first = form.outputs[0];
  first.dims = form.output_dims;
  const auto output = [&](bool own_types) {
    return in_axes(run(f.graph, arguments_of(*problem), sizes_of_graph(f), own_types)[0], first, f);
  };
  g.truth = output(false);
  g.own_error = row_errors(output(true), g.truth);
  c.cases.push_back(std::move(g));
  return c;
}

std::optional<spec::Capture> capture_of_gradients(const Function& f, const spec::Form& form,
                                                  Diagnostics& diagnostics) {
  spec::Capture c;
  c.form = form;
  spec::GoldenCase g = case_of(f, form);
  std::vector<const char*> given = {spec::Gradients::kOfOutput};
  if (f.graph.outputs.size() > 1) given.push_back(spec::Gradients::kOfLogSum);
  for (const char* name : given)
    g.draws.arguments[name] = {Draw::Kind::normal, g.draws.arguments.size(), 1.0};
  const auto problem = spec::make_problem(form, g.sizes, g.draws, diagnostics);
  if (!problem) return std::nullopt;
  std::vector<Tensor> of_outputs;
  for (const char* name : given) of_outputs.push_back(problem->tensors.at(name));
  const auto all = [&](bool own_types) {
    return gradients(f.graph, arguments_of(*problem), sizes_of_graph(f), of_outputs, own_types);
  };
  const auto truths = all(false), owns = all(true);
  constexpr double kAllowed = 1e-4;  // of differences in fp64, some of which cancel
  const double off =
      gradcheck(f.graph, arguments_of(*problem), sizes_of_graph(f), of_outputs, truths, f.seed);
  if (!(off < kAllowed)) {
    diagnostics.error("fuzz.gradcheck", {},
                      fmt::format("the gradients of the graph's operators are off by {:.2g} of "
                                  "what its outputs change by",
                                  off));
    return std::nullopt;
  }
  for (const spec::Output& output : form.outputs) {
    const auto of = [&](const std::map<std::string, Tensor>& all) {
      return in_axes(all.at(output.of), output, f);
    };
    Tensor truth = of(truths);
    std::optional<Tensor> own_error;
    if (output.rule == spec::Rule::row) own_error = row_errors(of(owns), truth);
    if (&output != &form.outputs.front()) {
      g.others.push_back({std::move(truth), std::move(own_error), {}});
      continue;
    }
    g.truth = std::move(truth);
    g.own_error = std::move(*own_error);
  }
  c.cases.push_back(std::move(g));
  return c;
}

std::string told(const check::Counterexample& e) {
  return fmt::format("{} b {} h {} i {}: {} (error {:.3g}, allowed {:.3g})", e.output, e.b, e.h,
                     e.i, e.message, e.error, e.allowed);
}

Verdict ended(Verdict v, Outcome o, std::string code, std::string detail) {
  v.outcome = o;
  v.code = std::move(code);
  v.detail = std::move(detail);
  return v;
}

}  // namespace

const char* name(Outcome o) {
  constexpr const char* names[] = {"holds", "refused", "inconclusive", "WRONG"};
  return names[static_cast<int>(o)];
}

std::optional<spec::Form> form_of(const Function& f, Diagnostics& diagnostics) {
  const SourcePtr user = make_source("attention.py", python_of(f.graph, f.prelude, f.example));
  std::optional<spec::Graph> graph =
      spec::parse_graph(make_source("graph.json", json_of(f.graph)), user, diagnostics);
  if (!graph) return std::nullopt;
  return spec::recognise(std::move(*graph), diagnostics);
}

Verdict Judge::judge(const Function& f) const {
  const Kernel& kernel = kernels_[f.seed % kernels_.size()];
  const Verdict v{{}, "", "", kernel.target.name};
  Diagnostics d;
  const std::optional<spec::Form> form = form_of(f, d);
  if (!form) return ended(v, Outcome::refused, first_code(d), render(d));
  const auto capture = capture_of(f, *form, d);
  if (!capture) return ended(v, Outcome::wrong, "problem", render(d));
  return hold(kernel, *form, *capture, f, d);
}

Verdict Judge::judge_gradients(const Function& f) const {
  const Verdict v{{}, "", "", backward_.target.name};
  Diagnostics d;
  const std::optional<spec::Form> forward = form_of(f, d);
  const auto form = forward ? spec::gradients_of(*forward, d) : std::nullopt;
  if (!form) return ended(v, Outcome::refused, first_code(d), render(d));
  const auto capture = capture_of_gradients(f, *form, d);
  if (!capture) return ended(v, Outcome::wrong, "problem", render(d));
  return hold(backward_, *form, *capture, f, d);
}

Verdict Judge::hold(const Kernel& kernel, const spec::Form& form, const spec::Capture& capture,
                    const Function& f, Diagnostics& d) const {
  Verdict v{{}, "", "", kernel.target.name};
  const auto end = [&](Outcome o, std::string code, std::string detail) {
    return ended(v, o, std::move(code), std::move(detail));
  };
  if (!spec::check_goldens(capture, 1, d)) return end(Outcome::wrong, "form", render(d));
  const auto result = transfer::transfer(kernel.program, form, kernel.target, d);
  if (!result) return end(Outcome::refused, first_code(d), render(d));
  if (!tl::verify(result->program, d) && breaks_a_law(d))
    return end(Outcome::wrong, "law", render(d));

  check::Case c;
  c.golden = &capture.cases[0];
  c.sizes = c.golden->sizes;
  c.draws = c.golden->draws;
  c.grid = 1 + static_cast<int>(f.seed % 2);
  check::choose_heads(form, c, true);
  const check::Trial values = check::run_trial(result->program, capture, c);
  if (!values.valid) return end(Outcome::wrong, "binding", render(values.diagnostics));
  if (values.failure) return end(Outcome::wrong, "values", told(values.failure->what));
  if (const auto why = spec::not_exact(form)) return end(Outcome::inconclusive, *why, *why);
  const check::Trial exact = check::run_exact_trial(result->program, capture, c, 0);
  if (!exact.valid) return end(Outcome::wrong, "exact binding", render(exact.diagnostics));
  if (exact.failure)
    return end(
        exact.failure->opaque ? Outcome::inconclusive : Outcome::wrong,
        exact.failure->opaque ? "opaque: " + exact::opaque_names(exact.failure->opaque) : "exact",
        told(exact.failure->what));
  return v;
}

}  // namespace kw::fuzz
