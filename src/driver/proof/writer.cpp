#include "driver/proof/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "num/compare.h"
#include "num/npy.h"
#include "support/files.h"
#include "transfer/editing/declarations.h"

namespace kw::driver {
namespace fs = std::filesystem;

using Json = nlohmann::json;
using spec::Rule;

namespace {

const char* kind_name(Draw::Kind kind) {
  switch (kind) {
    case Draw::Kind::normal:
      return "normal";
    case Draw::Kind::uniform:
      return "uniform";
    case Draw::Kind::integer:
      return "integer";
    case Draw::Kind::constant:
      return "constant";
  }
  return "";
}

double median_own_error(const spec::Capture& capture) {
  std::vector<double> all;
  for (const spec::GoldenCase& c : capture.cases)
    for (double e : c.own_error.values)
      if (std::isfinite(e)) all.push_back(e);
  if (all.empty()) return 0;
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  return all[all.size() / 2];
}

// What a golden's error may be: of its row's norm, or of a single number itself.
double bound(const spec::Output& output, const spec::Held& held, double own, Dtype dtype) {
  const double rounding = spec::kDeviations * held.rounding;
  switch (output.rule) {
    case Rule::row:
      if (output.unrounded) {
        const double norm = std::sqrt(
            std::inner_product(held.want.begin(), held.want.end(), held.want.begin(), 0.0));
        return accepted_error(0, Dtype::f32) + rounding + (norm > 0 ? held.noise / norm : 0);
      }
      return accepted_error(own, dtype) + rounding;
    case Rule::log_sum:  // in fp32: a number up to about ten, and the sum it is the logarithm of
      return 1e-4 + rounding;
    case Rule::row_sum:
      return accepted_error(0, dtype) * held.scale;
    case Rule::sum:
      break;  // has no rows
  }
  return 0;
}

}  // namespace

Json to_json(const runtime::Contents& contents) {
  const Draw& d = contents.draw;
  if (contents.window >= 0)
    return {{"kind", "window"}, {"from", contents.window}, {"value", d.value}};
  return {{"kind", kind_name(d.kind)}, {"stream", d.stream}, {"scale", d.scale},
          {"mean", contents.mean},     {"low", d.low},       {"high", d.high},
          {"value", d.value}};
}

ProofWriter::ProofWriter(const fs::path& folder, const spec::Capture& capture,
                         const transfer::Result& transferred, Diagnostics& diagnostics)
    : folder_(folder),
      capture_(capture),
      transferred_(transferred),
      diagnostics_(diagnostics),
      typical_error_(median_own_error(capture)) {
  const std::vector<spec::Output> all = spec::outputs(capture.form);
  // Weights without a softmax have no log-sum-exp.
  const auto& terms = capture.form.terms;
  const bool no_log = !terms.empty() && !spec::has_softmax(capture.form) && !capture.form.saves;
  for (size_t n = 0; n < all.size(); ++n) {
    if (!all[n].has_rows() || (all[n].rule == Rule::log_sum && no_log)) continue;
    outputs_.push_back(all[n]);
    places_.push_back(n);
  }
}

void ProofWriter::add_row(Rows& rows, spec::Truth& truth, int64_t b, int64_t h, int64_t i,
                          double own) const {
  truth.row(b, h, i);
  for (int64_t x : {b, h, i}) rows.index.push_back(static_cast<double>(x));
  rows.outputs.resize(outputs_.size());
  for (size_t n = 0; n < outputs_.size(); ++n) {
    const spec::Held& held = truth.of(places_[n]);
    auto& [values, accepted] = rows.outputs[n];
    values.insert(values.end(), held.want.begin(), held.want.end());
    accepted.push_back(bound(outputs_[n], held, n == 0 ? own : 0, capture_.form.dtype));
  }
}

bool ProofWriter::write() const {
  return write_file(folder_ / "prove.json", Json{{"cases", cases_}}.dump(1));
}

bool ProofWriter::save(const std::string& name, Dtype dtype, std::vector<int64_t> shape,
                       std::vector<double> values) {
  Tensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.values = std::move(values);
  if (write_npy(folder_ / name, t)) return true;
  diagnostics_.error("driver.write", {}, fmt::format("cannot write {}", (folder_ / name).string()));
  return false;
}

// (batch, head, row) as the kernel's outputs have them. Of heads that are packed into rows of one
// head there is one row each.
std::vector<double> ProofWriter::kernel_rows(std::vector<double> index) const {
  int64_t group = 1;
  for (const transfer::Binding& b : transferred_.bindings)
    if (group == 1) group = b.group;
  if (group == 1) return index;
  for (size_t n = 0; n + 2 < index.size(); n += 3) {
    const auto head = static_cast<int64_t>(index[n + 1]);
    index[n + 1] = static_cast<double>(head / group);
    index[n + 2] = static_cast<double>(head % group);
  }
  return index;
}

bool ProofWriter::add(const spec::Problem& p, const spec::Draws& draws, const Rows& rows,
                      const std::string& name, const char* layout, bool timed) {
  const int64_t count = static_cast<int64_t>(rows.index.size() / 3);
  const std::string stem = fmt::format("prove/{}", cases_.size());
  fs::create_directories(folder_ / "prove");
  if (!save(stem + ".rows.npy", Dtype::i64, {count, 3}, kernel_rows(rows.index))) return false;
  Json one = case_of(p, draws, name, layout, timed);
  for (size_t n = 0; n < outputs_.size(); ++n) {
    const auto& [values, accepted] = rows.outputs[n];
    const std::string file = fmt::format("{}.{}", stem, outputs_[n].name);
    std::vector<int64_t> shape = {count};
    if (outputs_[n].rule == Rule::row)
      shape.push_back(count ? static_cast<int64_t>(values.size()) / count : 0);
    if (!save(file + ".npy", Dtype::f64, shape, values) ||
        !save(file + ".accepted.npy", Dtype::f64, {count}, accepted))
      return false;
    one["goldens"].push_back({{"output", outputs_[n].name},
                              {"rows", stem + ".rows.npy"},
                              {"values", file + ".npy"},
                              {"accepted", file + ".accepted.npy"}});
  }
  cases_.push_back(std::move(one));
  return true;
}

void ProofWriter::add_timed(const spec::Problem& p, const spec::Draws& draws,
                            const std::string& name, const char* layout) {
  cases_.push_back(case_of(p, draws, name, layout, true));
}

void ProofWriter::add_case(const spec::Problem& p, const spec::Draws& draws,
                           const std::string& name, const char* layout) {
  cases_.push_back(case_of(p, draws, name, layout, false));
}

bool ProofWriter::add_golden(const std::string& output, int64_t indices, std::vector<double> index,
                             std::vector<double> values, std::vector<double> accepted) {
  const int64_t count = static_cast<int64_t>(accepted.size());
  const std::string file = fmt::format("prove/{}.{}", cases_.size() - 1, output);
  std::vector<int64_t> shape = {count};
  if (static_cast<int64_t>(values.size()) > count)
    shape.push_back(static_cast<int64_t>(values.size()) / count);
  fs::create_directories(folder_ / "prove");
  last()["goldens"].push_back({{"output", output},
                               {"rows", file + ".rows.npy"},
                               {"values", file + ".npy"},
                               {"accepted", file + ".accepted.npy"}});
  return save(file + ".rows.npy", Dtype::i64, {count, indices}, std::move(index)) &&
         save(file + ".npy", Dtype::f64, shape, std::move(values)) &&
         save(file + ".accepted.npy", Dtype::f64, {count}, std::move(accepted));
}

bool ProofWriter::add_given(const std::string& argument, const Tensor& values) {
  const std::string file = fmt::format("prove/{}.{}.given.npy", cases_.size() - 1, argument);
  fs::create_directories(folder_ / "prove");
  last()["inputs"][argument] = {{"kind", "given"}, {"values", file}};
  return save(file, values.dtype, values.shape, values.values);
}

// A size that only an argument has, such as the entries of a table: by the kernel's letter, which
// may be the user's name of another size.
void ProofWriter::name_own_sizes(const transfer::Binding& b, const spec::Problem& p,
                                 Json& sizes) const {
  const auto tensor = p.tensors.find(b.user);
  const tl::Stmt* declared = transfer::declaration_of_argument(transferred_.program, b.argument);
  if (tensor == p.tensors.end() || !declared) return;
  if (declared->op != tl::Op::arg_tensor && declared->op != tl::Op::arg_tiled) return;
  const std::vector<tl::Item>& letters = declared->dims();
  for (size_t k = 0; k < letters.size() && k < b.dims.size(); ++k)
    if (letters[k].name.empty())
      continue;
    else if (b.dims[k] < 0)
      sizes.emplace(letters[k].name, 1);
    else
      sizes[letters[k].name] = b.group > 1 && k == 2 ? b.group : tensor->second.shape[b.dims[k]];
}

Json ProofWriter::case_of(const spec::Problem& p, const spec::Draws& draws, const std::string& name,
                          const char* layout, bool timed) const {
  Json sizes = p.sizes;
  for (const transfer::Binding& b : transferred_.bindings) name_own_sizes(b, p, sizes);
  for (const spec::Axis& axis : spec::axes(capture_.form))
    if (!axis.of_kernel) sizes[axis.letter] = spec::value_of(axis.size, p.sizes);
  Json inputs = Json::object(), scalars = Json::object();
  for (const transfer::Binding& b : transferred_.bindings) {
    const auto draw = draws.arguments.find(b.user);
    if (draw == draws.arguments.end()) continue;
    if (p.scalars.count(b.user))
      scalars[b.argument] = p.scalars.at(b.user);
    else
      inputs[b.argument] = to_json(runtime::Contents{draw->second});
  }
  return {
      {"name", name},       {"seed", draws.seed}, {"sizes", sizes},           {"layout", layout},
      {"scalars", scalars}, {"inputs", inputs},   {"goldens", Json::array()}, {"timed", timed}};
}

}  // namespace kw::driver
