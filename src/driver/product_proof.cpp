// Golden cases of the capture, ragged larger ones, and one to time. Inputs are drawn in the
// kernel's order of dimensions; a side that the user gives in that order, as is required of it, is
// the same tensor. Rows are sampled; sums are single numbers, each with an absolute error, as in
// check/product_trial.cpp.
#include "driver/product_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "num/compare.h"
#include "num/npy.h"
#include "spec/evaluate_product.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

struct Shape {
  int64_t B, M, N, K;
  bool timed;
};
// Sizes that the copies can take (multiples of 8), around tiles and steps, and one to time.
constexpr Shape kShapes[] = {{1, 1, 8, 8, false},        {2, 127, 136, 72, false},
                             {1, 129, 128, 64, false},   {3, 200, 264, 200, false},
                             {1, 333, 520, 1000, false}, {1, 4096, 4096, 4096, true}};
constexpr int64_t kSampledRows = 128;

Json to_json(const Draw& d) {
  const char* kind = d.kind == Draw::Kind::normal    ? "normal"
                     : d.kind == Draw::Kind::uniform ? "uniform"
                     : d.kind == Draw::Kind::integer ? "integer"
                                                     : "constant";
  return {{"kind", kind}, {"stream", d.stream}, {"scale", d.scale},
          {"low", d.low}, {"high", d.high},     {"value", d.value}};
}

class ProductProof {
 public:
  ProductProof(const fs::path& folder, const spec::Capture& capture,
               const transfer::Result& transferred, Diagnostics& diagnostics)
      : folder_(folder), capture_(capture), transferred_(transferred), diagnostics_(diagnostics) {}

  bool run() {
    fs::create_directories(folder_ / "prove");
    for (const Shape& shape : kShapes)
      if (!add(shape)) return false;
    return write_file(folder_ / "prove.json", Json{{"cases", cases_}}.dump(1));
  }

 private:
  bool add(const Shape& shape) {
    const spec::Form& form = capture_.form;
    std::map<std::string, int64_t> sizes = capture_.cases.front().sizes;
    const std::pair<const spec::Size*, int64_t> wanted[] = {
        {&form.B, shape.B}, {&form.M, shape.M}, {&form.N, shape.N}, {&form.D, shape.K}};
    for (const auto& [size, value] : wanted)
      if (!size->name.empty()) sizes[size->name] = value;
    spec::Draws draws = capture_.cases.front().draws;
    draws.seed += 1000 + shape.M;
    const auto problem = spec::make_problem(form, sizes, draws, diagnostics_);
    if (!problem) return false;
    return write(*problem, draws, shape.timed);
  }

  bool save(const std::string& name, Dtype dtype, std::vector<int64_t> shape,
            std::vector<double> values) {
    Tensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.values = std::move(values);
    if (write_npy(folder_ / name, t)) return true;
    diagnostics_.error("driver.write", {},
                       fmt::format("cannot write {}", (folder_ / name).string()));
    return false;
  }

  bool write(const spec::Problem& p, const spec::Draws& draws, bool timed) {
    const spec::Form& form = capture_.form;
    spec::ProductEvaluator truth(form, p);
    const int64_t B = truth.batches(), H = truth.heads(), M = truth.rows(), N = truth.columns(),
                  K = spec::value_of(form.D, p.sizes), all = B * H * M,
                  count = std::min(all, timed ? int64_t(16) : kSampledRows);
    const double accepted = accepted_error(typical_error(), form.dtype),
                 of_sums = accepted_error(0, form.dtype);
    std::vector<double> rows, values, errors, sums, sum_errors;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t at = n * all / count, b = at / (H * M), h = at / M % H, i = at % M;
      rows.insert(rows.end(), {double(b), double(h), double(i)});
      values.resize(values.size() + N);
      double* row = &values[values.size() - N];
      sums.push_back(truth.row(b, h, i, row));
      double squares = 0;
      for (int64_t j = 0; j < N; ++j) squares += row[j] * row[j];
      errors.push_back(accepted);
      sum_errors.push_back(of_sums * std::max(std::sqrt(squares), least_norm(form.dtype, N)));
    }
    Json one = {{"name", fmt::format("B{} {}x{}x{}", B, M, N, K)},
                {"seed", draws.seed},
                {"sizes", {{"B", B}, {"H", H}, {"M", M}, {"N", N}, {"K", K}}},
                {"layout", "BHSD"},
                {"scalars", Json::object()},
                {"inputs", Json::object()},
                {"goldens", Json::array()},
                {"timed", timed}};
    name_sizes_and_inputs(p, draws, one);
    if (timed) one["flop"] = 2.0 * double(B * H * M) * double(N) * double(K);
    const std::string stem = fmt::format("prove/{}", cases_.size());
    if (!save(stem + ".rows.npy", Dtype::i64, {count, 3}, rows)) return false;
    const auto golden = [&](const char* output, std::vector<int64_t> shape, std::vector<double> is,
                            std::vector<double> bounds) {
      const std::string name = fmt::format("{}.{}", stem, output);
      one["goldens"].push_back({{"output", output},
                                {"rows", stem + ".rows.npy"},
                                {"values", name + ".npy"},
                                {"accepted", name + ".accepted.npy"}});
      return save(name + ".npy", Dtype::f64, std::move(shape), std::move(is)) &&
             save(name + ".accepted.npy", Dtype::f64, {count}, std::move(bounds));
    };
    if (form.product->returns_matrix && !golden("o", {count, N}, values, errors)) return false;
    if (form.product->returns_sums && !golden("sums", {count}, sums, sum_errors)) return false;
    cases_.push_back(std::move(one));
    return true;
  }

  // A tensor's letters have the sizes of the user's dimensions, or 1 where there is none.
  void name_sizes_and_inputs(const spec::Problem& p, const spec::Draws& draws, Json& one) const {
    for (const transfer::Binding& b : transferred_.bindings) {
      const auto draw = draws.arguments.find(b.user);
      if (draw == draws.arguments.end()) continue;
      const auto tensor = p.tensors.find(b.user);
      if (tensor == p.tensors.end()) {
        one["scalars"][b.argument] = p.scalars.at(b.user);
        continue;
      }
      one["inputs"][b.argument] = to_json(draw->second);
      tl::walk(transferred_.program.body, [&](const tl::Stmt& s) {
        if (s.op != tl::Op::arg_tensor && s.op != tl::Op::arg_tiled) return;
        for (const tl::Item& d : s.items("d"))
          for (size_t k = 0; d.name == b.argument && k < b.dims.size(); ++k)
            one["sizes"][s.items("s")[k].name] =
                b.dims[k] < 0 ? 1 : tensor->second.shape[b.dims[k]];
      });
    }
  }

  double typical_error() const {
    std::vector<double> all;
    for (const spec::GoldenCase& c : capture_.cases)
      for (const double e : c.own_error.values)
        if (std::isfinite(e)) all.push_back(e);
    if (all.empty()) return 0;
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
  }

  const fs::path folder_;
  const spec::Capture& capture_;
  const transfer::Result& transferred_;
  Diagnostics& diagnostics_;
  Json cases_ = Json::array();
};

}  // namespace

bool write_product_proof(const fs::path& folder, const spec::Capture& capture,
                         const transfer::Result& transferred, Diagnostics& diagnostics) {
  return ProductProof(folder, capture, transferred, diagnostics).run();
}

}  // namespace kw::driver
