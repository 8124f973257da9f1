#include "judge.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "check/trial.h"
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

// The user's order of dimensions to b, h, i, d.
Tensor in_order(const Tensor& t, const Function& f) {
  Tensor out(Dtype::f64, {f.B, f.H, f.M, f.V});
  if (!f.rows_first) {
    out.values = t.values;
    return out;
  }
  double* to = out.values.data();
  for (int64_t b = 0; b < f.B; ++b)
    for (int64_t h = 0; h < f.H; ++h)
      for (int64_t i = 0; i < f.M; ++i)
        for (int64_t d = 0; d < f.V; ++d) *to++ = t.values[((b * f.M + i) * f.H + h) * f.V + d];
  return out;
}

Tensor row_errors(const Tensor& own, const Tensor& truth, const Function& f) {
  Tensor out(Dtype::f64, {f.B, f.H, f.M});
  for (int64_t r = 0; r < out.count(); ++r) {
    double norm = 0, off = 0;
    for (int64_t d = 0; d < f.V; ++d) {
      const double x = truth.values[r * f.V + d], y = own.values[r * f.V + d];
      norm += x * x;
      off += (x - y) * (x - y);
    }
    out.values[r] = norm == 0 && off == 0 ? 0 : std::sqrt(off / norm);
  }
  return out;
}

// What capture writes of one golden case, by running the graph.
std::optional<spec::Capture> capture_of(const Function& f, const spec::Form& form,
                                        Diagnostics& diagnostics) {
  spec::Capture c;
  c.form = form;
  spec::GoldenCase g;
  g.sizes = sizes_of(form, f);
  g.draws.seed = f.seed;
  g.draws.arguments = f.draws;
  g.heads.resize(f.H);
  std::iota(g.heads.begin(), g.heads.end(), 0);
  const auto problem = spec::make_problem(form, g.sizes, g.draws, diagnostics);
  if (!problem) return std::nullopt;
  std::map<std::string, Tensor> arguments = problem->tensors;
  for (const auto& [name, value] : problem->scalars) {
    Tensor t(Dtype::f64, {});
    t.values[0] = value;
    arguments[name] = t;
  }
  const std::map<std::string, int64_t> sizes = {{"B", f.B}, {"M", f.M}, {"N", f.N}};
  g.truth = in_order(run(f.graph, arguments, sizes, false)[0], f);
  g.own_error = row_errors(in_order(run(f.graph, arguments, sizes, true)[0], f), g.truth, f);
  c.cases.push_back(std::move(g));
  return c;
}

std::string told(const check::Counterexample& e) {
  return fmt::format("{} b {} h {} i {}: {} (error {:.3g}, allowed {:.3g})", e.output, e.b, e.h,
                     e.i, e.message, e.error, e.allowed);
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
  Verdict v;
  v.target = kernel.target.name;
  Diagnostics d;
  const auto end = [&](Outcome o, std::string code, std::string detail) {
    v.outcome = o;
    v.code = std::move(code);
    v.detail = std::move(detail);
    return v;
  };
  const std::optional<spec::Form> form = form_of(f, d);
  if (!form) return end(Outcome::refused, first_code(d), render(d));
  const auto capture = capture_of(f, *form, d);
  if (!capture) return end(Outcome::wrong, "problem", render(d));
  if (!spec::check_goldens(*capture, 1, d)) return end(Outcome::wrong, "form", render(d));
  const auto result = transfer::transfer(kernel.program, *form, kernel.target, d);
  if (!result) return end(Outcome::refused, first_code(d), render(d));
  if (!tl::verify(result->program, d) && breaks_a_law(d))
    return end(Outcome::wrong, "law", render(d));

  check::Case c;
  c.golden = &capture->cases[0];
  c.sizes = c.golden->sizes;
  c.draws = c.golden->draws;
  c.grid = 1 + static_cast<int>(f.seed % 2);
  check::choose_heads(*form, c, true);
  const check::Trial values = check::run_trial(result->program, *capture, c);
  if (!values.valid) return end(Outcome::wrong, "binding", render(values.diagnostics));
  if (values.failure) return end(Outcome::wrong, "values", told(values.failure->what));
  if (const auto why = spec::not_exact(*form)) return end(Outcome::inconclusive, *why, *why);
  const check::Trial exact = check::run_exact_trial(result->program, *capture, c, 0);
  if (!exact.valid) return end(Outcome::wrong, "exact binding", render(exact.diagnostics));
  if (exact.failure)
    return end(
        exact.failure->opaque ? Outcome::inconclusive : Outcome::wrong,
        exact.failure->opaque ? "opaque: " + exact::opaque_names(exact.failure->opaque) : "exact",
        told(exact.failure->what));
  return v;
}

}  // namespace kw::fuzz
