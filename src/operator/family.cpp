// The dispatch over families.def, and what is the same for all families.
#include "operator/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "num/compare.h"
#include "operator/evaluate/exact.h"
#include "operator/evaluate/exact_program.h"
#include "operator/recognise/recognise.h"

namespace kw::spec {

namespace families {
#define FAMILY(word) const Family& word();
#include "operator/families.def"
}  // namespace families

namespace {

using Entry = std::pair<FamilyName, const Family& (*)()>;
constexpr Entry kFamilies[] = {
#define FAMILY(word) {FamilyName::word, families::word},
#include "operator/families.def"
};

// A number that no kernel has, and the user's line that it stands in.
struct Strange {
  double value;
  Span span;
  std::optional<int64_t> integer;
};
std::optional<Strange> strange_number(const ExprPtr& e, Span around) {
  if (!e) return std::nullopt;
  if (e->span.known()) around = e->span;
  if (e->kind == Kind::number && e->type == Type::real && e->value != 0 && !std::isinf(e->value) &&
      !std::isnormal(static_cast<float>(e->value)))
    return Strange{e->value, around, std::nullopt};
  if (e->kind == Kind::number && e->type == Type::integer &&
      (e->integer > INT32_MAX || e->integer < -INT32_MAX))
    return Strange{double(e->integer), around, e->integer};
  for (const ExprPtr& a : e->args)
    if (const auto found = strange_number(a, around)) return found;
  return std::nullopt;
}

// The line that a number is written in, where one has it as it is.
Span written_at(const Graph& graph, double number, const Span& otherwise) {
  for (const Node& node : graph.nodes)
    for (const Value& v : node.args)
      if (v.is_number() && std::fabs(v.real) == std::fabs(number) && node.span.known())
        return node.span;
  return otherwise;
}

// 0 * inf, written out, makes every score NaN. Numbers beyond fp32's normal ones are others in
// fp64, where the goldens come from, and instructions differ about them. Kernels' integers have 32
// bits.
bool are_numbers(const Form& form, const Graph& graph, Diagnostics& diagnostics) {
  Form copy = form;
  std::optional<Strange> found;
  Family::of(form).each_expression(copy, [&](const ExprPtr& e, const Extents&) {
    if (!found) found = strange_number(e, graph.span);
  });
  if (!found) return true;
  if (found->integer) {
    diagnostics
        .error("spec.number", written_at(graph, found->value, found->span),
               fmt::format("the integer {}, written here or made of others, is beyond {}, the "
                           "largest that 32 bits hold, in which kernels compute",
                           *found->integer, INT32_MAX))
        .hint = "compare smaller integers: divide both sides, or say what the mask keeps otherwise";
    return false;
  }
  if (!std::isnan(found->value)) {
    diagnostics
        .error("spec.number", written_at(graph, found->value, found->span),
               fmt::format("the number {:.6g}, written here or made of others, is none of fp32's "
                           "normal numbers, which are 0 and those of 1.18e-38 to 3.40e+38",
                           found->value))
        .hint = "write a number of that range, or 0";
    return false;
  }
  diagnostics
      .error("spec.nan", found->span,
             "a number here is NaN whatever the inputs are: 0 times infinity, or infinity less "
             "infinity")
      .hint = "drop keys with torch.where(keep, scores, -torch.inf)";
  return false;
}

}  // namespace

FamilyName family_of(const Form& form) {
  for (const auto& [name, family] : kFamilies)
    if (family().is(form)) return name;
  return std::rbegin(kFamilies)->first;
}

const Family& Family::of(const Form& form) {
  return kFamilies[static_cast<size_t>(family_of(form))].second();
}

std::optional<Form> recognise(Graph graph, Diagnostics& diagnostics) {
  if (!open_composites(graph, diagnostics)) return std::nullopt;
  if (graph.outputs.empty()) {
    diagnostics.error("spec.not_attention", graph.span, "the function returns no tensor");
    return std::nullopt;
  }
  for (const auto& [name, family] : kFamilies) {
    std::optional<Form> form = family().recognise(graph, diagnostics);
    if (form) form->built_in = graph.built_in;
    if (form) form->heads = graph.heads;
    if (form && !are_numbers(*form, graph, diagnostics)) return std::nullopt;
    if (form || diagnostics.has_errors()) return form;
  }
  return std::nullopt;
}

std::string Family::no_output(const Form&, const std::string&) const { return {}; }

std::string types_of(const Form& form) {
  std::string narrow;
  for (const Argument& a : form.arguments)
    if (a.dtype == Dtype::e4m3) narrow += (narrow.empty() ? "" : ", ") + a.name;
  const std::string type(kw::name(form.dtype));
  return narrow.empty() ? type : fmt::format("{} ({} e4m3)", type, narrow);
}

std::string print(const Form& form) {
  std::string out = Family::of(form).print(form);
  for (const std::string& value : form.built_in) out += "  with    " + value + "\n";
  return out;
}
std::vector<Axis> axes(const Form& form) { return Family::of(form).axes(form); }
std::vector<Output> outputs(const Form& form) { return Family::of(form).outputs(form); }
bool takes_saved(const Form& form) {
  return !form.terms.empty() && form.terms[0].normaliser != Normaliser::none;
}
bool has_softmax(const Form& form) {
  return !form.terms.empty() && form.terms[0].normaliser == Normaliser::softmax;
}
bool heads_are_alike(const Form& form) { return Family::of(form).heads_are_alike(form); }
std::optional<Form> with_key_heads(const Form& form, int64_t key_heads) {
  return Family::of(form).with_key_heads(form, key_heads);
}
std::unique_ptr<Truth> truth(const Form& form, const Problem& problem) {
  return Family::of(form).truth(form, problem);
}

std::optional<std::string> not_exact(const Form& form) {
  std::optional<std::string> why;
  Form copy = form;
  Family::of(form).each_expression(copy, [&](const ExprPtr& e, const Extents&) {
    if (!why && !ExactProgram::supports(e))
      why = "an integer is computed from a real in " + print(e);
  });
  return why;
}

int64_t rows_of(const Held& held) {
  return held.length ? static_cast<int64_t>(held.want.size()) / held.length : 1;
}

Held row_of(const Held& held, int64_t row) {
  if (!held.length) return held;
  Held out;  // what all rows have, and of each its own
  out.rounding = held.rounding;
  out.scale = held.scale;
  out.noise = held.noise;
  out.unspecified = held.unspecified;
  out.want.assign(&held.want[row * held.length], &held.want[row * held.length] + held.length);
  if (!held.noises.empty()) out.noise = held.noises[row];
  if (!held.allowed.empty())
    out.allowed.assign(&held.allowed[row * held.length],
                       &held.allowed[row * held.length] + held.length);
  return out;
}

std::map<std::string, int64_t> strides_of(const Operand& operand, const Tensor& argument) {
  std::map<std::string, int64_t> out;
  int64_t stride = 1;
  for (size_t n = operand.indices.size(); n-- > 0;) {
    if (operand.indices[n]->kind == Kind::index) out[operand.indices[n]->name] = stride;
    stride *= argument.shape[n];
  }
  return out;
}

namespace {

// Beyond the largest number of its type an output is infinite, in PyTorch too: there the truth is
// what was given if that is.
double in_range(double want, double got, Dtype type) {
  return std::isinf(got) && std::isfinite(want) && round_to(type, want) == got ? got : want;
}

double error_of_row(const Held& held, const double* got, Dtype type, double allowed) {
  const int64_t length = static_cast<int64_t>(held.want.size());
  const double *want = held.want.data(), least = least_norm(type, length);
  std::vector<double> with_infinities;
  if (std::any_of(got, got + length, [](double x) { return std::isinf(x); })) {
    for (int64_t n = 0; n < length; ++n) with_infinities.push_back(in_range(want[n], got[n], type));
    want = with_infinities.data();
  }
  return row_error(got, want, length, least, held.noise / allowed);
}

// Where the function gives no number (a row of zeros that is divided by its norm), nor need the
// program.
bool no_number(double got, double want) { return std::isnan(got) && std::isnan(want); }

}  // namespace

Accepted accept(const Output& output, const Held& held, const double* got, double own_error,
                Dtype dtype) {
  const int64_t length = static_cast<int64_t>(held.want.size());
  const double rounding = kDeviations * held.rounding;
  Accepted out;
  switch (output.rule) {
    case Rule::row:
      if (output.unrounded) own_error = 0, dtype = Dtype::f32;
      // The user's own error is of rows that are alike; of what changed rows add here the deviation
      // is known.
      out.allowed = accepted_error(own_error, dtype) + rounding;
      out.error = error_of_row(held, got, dtype, out.allowed);
      break;
    case Rule::log_sum: {
      const double log_sum = held.want[0];
      out.error = std::fabs(*got - log_sum);
      out.allowed = 1e-4 + 1e-5 * std::fabs(log_sum) + rounding;
      if (std::isfinite(log_sum)) break;
      out.right = *got == log_sum || no_number(*got, log_sum);
      return out;
    }
    case Rule::row_sum: {
      const double sum = in_range(held.want[0], *got, Dtype::f32);
      out.error = *got == sum || no_number(*got, sum) ? 0 : std::fabs(*got - sum) / held.scale;
      out.allowed = accepted_error(0, dtype);
      break;
    }
    case Rule::sum:
      for (int64_t j = 0; j < length && out.right; ++j) {
        out = {std::fabs(got[j] - held.want[j]),
               held.allowed[j] + held.rounding * std::fabs(held.want[j]), true, j};
        out.right = out.error <= out.allowed || no_number(got[j], held.want[j]);
      }
      return out;
  }
  out.right = out.error <= out.allowed;
  return out;
}

std::vector<RowMap> Family::turned_rows(Form form) const {
  std::vector<RowMap> out;
  each_turned_row(form, [&](RowMap& map) { out.push_back(map); });
  return out;
}

}  // namespace kw::spec
