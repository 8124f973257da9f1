#include "driver/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/probes.h"
#include "driver/product_proof.h"
#include "driver/tune_shape.h"
#include "driver/user_order.h"
#include "num/npy.h"
#include "support/files.h"
#include "transfer/facts.h"
#include "transfer/pack.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr int kGoldenCases = 6;
constexpr int kSampledRows = 256;

struct Shape {
  int64_t B, M, N;
  bool timed;
};
// Ragged on both sides of whole tiles, and one long enough to time.
constexpr Shape kLarge[] = {
    {2, 1000, 777, false}, {1, 333, 1111, false}, {3, 513, 257, false}, {2, 4096, 4096, true}};

constexpr int64_t kProbed[] = {512, 4096};  // keys
constexpr int kRepeated = 20;               // launches that must give the same bits

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

Json to_json(const runtime::Contents& contents) {
  const Draw& d = contents.draw;
  if (contents.window >= 0)
    return {{"kind", "window"}, {"from", contents.window}, {"value", d.value}};
  return {{"kind", kind_name(d.kind)}, {"stream", d.stream}, {"scale", d.scale},
          {"mean", contents.mean},     {"low", d.low},       {"high", d.high},
          {"value", d.value}};
}

class ProofWriter {
 public:
  ProofWriter(const fs::path& folder, const spec::Capture& capture,
              const transfer::Result& transferred, Diagnostics& diagnostics)
      : folder_(folder), capture_(capture), transferred_(transferred), diagnostics_(diagnostics) {}

  bool run() {
    bool written = add_goldens();
    for (const Shape& shape : kLarge)
      if (written) written = add_large(shape);
    for (const int64_t keys : kProbed)
      if (written) written = add_probes(keys);
    return written && write_cases();
  }

  bool run_for_self_test(const std::vector<int64_t>& lengths) {
    bool written = true;
    for (const int64_t keys : lengths)
      if (written) written = add_probes(keys);
    if (written && cases_.empty())
      diagnostics_.error("self_test.probes", {},
                         "there is no probe of this function at these sizes");
    return written && !cases_.empty() && write_cases();
  }

  bool run_for_tuning(const std::map<std::string, int64_t>& letters) {
    return add_goldens() && add_tuned(letters) && write_cases();
  }

 private:
  void read_own_errors() {
    std::vector<double> all;
    for (const spec::GoldenCase& c : capture_.cases)
      for (double e : c.own_error.values)
        if (std::isfinite(e)) all.push_back(e);
    if (all.empty()) return;
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    typical_error_ = all[all.size() / 2];
  }

  bool write_cases() { return write_file(folder_ / "prove.json", Json{{"cases", cases_}}.dump(1)); }

  bool add_goldens() {
    read_own_errors();
    const size_t step = std::max<size_t>(1, capture_.cases.size() / kGoldenCases);
    for (size_t n = step / 2; n < capture_.cases.size(); n += step)
      if (!add_golden(capture_.cases[n])) return false;
    return true;
  }

  double accepted(double own) const {
    return 2 * std::max(std::isfinite(own) ? own : 0, half_ulp(capture_.form.dtype));
  }

  // The problem with its tensors as the GPU will draw them; true in `same` when that is also how
  // PyTorch drew them.
  std::optional<spec::Problem> problem(const std::map<std::string, int64_t>& sizes,
                                       const spec::Draws& draws, bool& same) {
    std::optional<spec::Problem> p = spec::make_problem(capture_.form, sizes, draws, diagnostics_);
    if (!p) return p;
    same = true;
    for (auto& [name, tensor] : p->tensors)
      if (to_user_order(tensor, name, transferred_)) same = false;
    return p;
  }

  bool add_golden(const spec::GoldenCase& golden) {
    bool same = true;
    std::optional<spec::Problem> p = problem(golden.sizes, golden.draws, same);
    if (!p) return false;
    spec::Evaluator truth(capture_.form, *p);
    Rows rows;
    for (int64_t b = 0; b < truth.batches(); ++b)
      for (int64_t h : golden.heads.empty() ? std::vector<int64_t>{0} : golden.heads)
        for (int64_t i = 0; i < truth.queries(); ++i)
          rows.add(truth, b, h, i,
                   accepted(same ? golden.own_error.at({b, h, i}) : typical_error_));
    if (!write_case(*p, golden.draws, rows, "golden", false)) return false;
    cases_.back()["launches"] = kRepeated;
    return true;
  }

  bool add_large(const Shape& shape) {
    const spec::Form& form = capture_.form;
    std::map<std::string, int64_t> sizes = capture_.cases.front().sizes;
    if (!form.B.name.empty()) sizes[form.B.name] = shape.B;
    if (!form.M.name.empty()) sizes[form.M.name] = shape.M;
    if (!form.N.name.empty()) sizes[form.N.name] = shape.N;
    spec::Draws draws = capture_.cases.front().draws;
    draws.seed += 1000 + shape.M;
    for (auto& [name, draw] : draws.arguments)
      if (const auto times = capture_.lengths.find(name); times != capture_.lengths.end())
        draw.high = times->second * std::max(shape.M, shape.N);
    bool same = true;
    std::optional<spec::Problem> p = problem(sizes, draws, same);
    if (!p) return false;
    spec::Evaluator truth(form, *p);
    Rows rows;
    const Random pick(draws.seed, 99);
    std::set<std::vector<int64_t>> seen;
    for (int n = 0; n < kSampledRows; ++n) {
      const std::vector<int64_t> at = {pick.integer(3 * n, 0, truth.batches() - 1),
                                       pick.integer(3 * n + 1, 0, truth.heads() - 1),
                                       pick.integer(3 * n + 2, 0, truth.queries() - 1)};
      if (seen.insert(at).second) rows.add(truth, at[0], at[1], at[2], accepted(typical_error_));
    }
    if (!write_case(*p, draws, rows, "sampled", shape.timed)) return false;
    if (shape.timed) cases_.back()["flop"] = operations(truth);
    return true;
  }

  // Multiplications and additions over unmasked entries, of which 64 even rows are a sample.
  double operations(spec::Evaluator& truth) const {
    constexpr int64_t kRows = 64;
    int64_t kept = 0;
    for (int64_t n = 0; n < kRows; ++n)
      for (int64_t j = 0; j < truth.keys(); ++j)
        kept += truth.keep(0, n % truth.batches(), n % truth.heads(),
                           (2 * n + 1) * truth.queries() / (2 * kRows), j);
    int64_t columns = capture_.form.D.constant + capture_.form.Dv.constant;
    for (const spec::FurtherProduct& m : capture_.form.terms[0].more) columns += m.D;
    return 2.0 * columns * static_cast<double>(truth.batches() * truth.heads() * truth.queries()) *
           static_cast<double>(kept) / kRows;
  }

  bool add_probes(int64_t keys) {
    if (!can_probe(capture_.form, keys)) return true;
    const auto add = [&](const Probe& probe) {
      const Rows rows{probe.index, probe.output, probe.lse, probe.accepted, probe.lse_accepted};
      if (!write_case(probe.problem, probe.draws, rows, "probe", false)) return false;
      Json& one = cases_.back();
      one["name"] = "probe " + probe.name;
      for (const transfer::Binding& b : transferred_.bindings) {
        const spec::Term& term = capture_.form.terms[0];
        if (b.user == term.v.argument) one["inputs"][b.argument] = to_json(probe.values);
        if (b.user == term.q.argument) {
          Json& scale = one["inputs"][b.argument]["scale"];
          scale = probe.query_scale * scale.get<double>();
        }
      }
      if (probe.window) one["goldens"][0]["rule"] = "window";
      return true;
    };
    return for_each_probe(capture_, transferred_, keys, add, diagnostics_);
  }

  // The case that is tuned for: inputs of the specification's kind at a size of its own.
  bool add_tuned(const std::map<std::string, int64_t>& letters) {
    std::optional<TunedShape> shape = tuned_shape(capture_, letters, diagnostics_);
    if (!shape) return false;
    Json one = case_of(shape->problem, shape->draws, "tuned", true);
    for (const auto& [letter, value] : letters) one["sizes"][letter] = value;
    const auto size = [&](const char* letter) { return one["sizes"][letter].get<int64_t>(); };
    const int64_t columns = capture_.form.D.constant + capture_.form.Dv.constant;
    one["flop"] = 2.0 * columns * size("B") * size("H") * size("M") * size("N") * shape->kept;
    one["name"] = fmt::format("B{} H{} {}x{}", size("B"), size("H"), size("M"), size("N"));
    one["layout"] = "BSHD";
    cases_.push_back(std::move(one));
    return true;
  }

  // Weights without a softmax have no log-sum-exp, nor has a sum of several.
  bool gives_lse() const {
    const std::vector<spec::Term>& terms = capture_.form.terms;
    return terms.size() == 1 && terms[0].normaliser == spec::Normaliser::softmax;
  }

  struct Rows {
    std::vector<double> index, output, lse, accepted, lse_accepted;
    void add(spec::Evaluator& truth, int64_t b, int64_t h, int64_t i, double bound) {
      const int64_t D = truth.value_dim();
      output.resize(output.size() + D);
      lse.push_back(truth.row(b, h, i, &output[output.size() - D]));
      for (int64_t x : {b, h, i}) index.push_back(x);
      accepted.push_back(bound + spec::kDeviations * truth.output_deviation());
      // In fp32: rounding of a number up to about ten, and of the sum it is the logarithm of.
      lse_accepted.push_back(1e-4 + spec::kDeviations * truth.lse_deviation());
    }
  };

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

  // Query heads that are rows of one head of the kernel's; 1 where it packs none.
  int64_t group() const {
    for (const transfer::Binding& b : transferred_.bindings)
      if (b.group > 1) return b.group;
    return 1;
  }

  // (batch, head, query) as the kernel's outputs have them. Of packed heads there is one query.
  std::vector<double> kernel_rows(std::vector<double> index) const {
    if (group() == 1) return index;
    for (size_t n = 0; n + 2 < index.size(); n += 3) {
      const auto head = static_cast<int64_t>(index[n + 1]);
      index[n + 1] = static_cast<double>(head / group());
      index[n + 2] = static_cast<double>(head % group());
    }
    return index;
  }

  bool write_case(const spec::Problem& p, const spec::Draws& draws, const Rows& rows,
                  const char* what, bool timed) {
    const int64_t count = rows.accepted.size(), D = spec::value_of(capture_.form.Dv, p.sizes);
    const std::string stem = fmt::format("prove/{}", cases_.size());
    fs::create_directories(folder_ / "prove");
    const bool saved = save(stem + ".rows.npy", Dtype::i64, {count, 3}, kernel_rows(rows.index)) &&
                       save(stem + ".o.npy", Dtype::f64, {count, D}, rows.output) &&
                       save(stem + ".o.accepted.npy", Dtype::f64, {count}, rows.accepted) &&
                       (!gives_lse() ||
                        (save(stem + ".lse.npy", Dtype::f64, {count}, rows.lse) &&
                         save(stem + ".lse.accepted.npy", Dtype::f64, {count}, rows.lse_accepted)));
    if (!saved) return false;
    const auto golden = [&](const char* output, const std::string& name) {
      return Json{{"output", output},
                  {"rows", stem + ".rows.npy"},
                  {"values", stem + "." + name + ".npy"},
                  {"accepted", stem + "." + name + ".accepted.npy"}};
    };
    cases_.push_back(case_of(p, draws, what, timed));
    // Values with their signs changed give outputs with their signs changed, to the bit.
    if (timed && values_are_linear(capture_.form) && !transfer::values_are_of_keys(capture_.form))
      cases_.back()["signs"] = {{"input", "v"}, {"outputs", {"o"}}};
    cases_.back()["goldens"] = Json::array({golden("o", "o")});
    if (gives_lse()) cases_.back()["goldens"].push_back(golden("lse", "lse"));
    return true;
  }

  // A size that only an argument has, such as the entries of a table: by the kernel's letter, which
  // may be the user's name of another size.
  void name_own_sizes(const transfer::Binding& b, const spec::Problem& p, Json& sizes) const {
    const auto tensor = p.tensors.find(b.user);
    const tl::Stmt* declared = transfer::declaration_of_argument(transferred_.program, b.argument);
    if (tensor == p.tensors.end() || !declared) return;
    if (declared->op != tl::Op::arg_tensor && declared->op != tl::Op::arg_tiled) return;
    const std::vector<tl::Item>& letters = declared->items("s");
    for (size_t k = 0; k < letters.size() && k < b.dims.size(); ++k)
      if (letters[k].name.empty())
        continue;
      else if (b.dims[k] < 0)
        sizes.emplace(letters[k].name, 1);
      else
        sizes[letters[k].name] = b.group > 1 && k == 2 ? b.group : tensor->second.shape[b.dims[k]];
  }

  // A case without goldens; the layouts take turns.
  Json case_of(const spec::Problem& p, const spec::Draws& draws, const char* what, bool timed) {
    const spec::Form& form = capture_.form;
    Json sizes = p.sizes;
    for (const transfer::Binding& b : transferred_.bindings) name_own_sizes(b, p, sizes);
    for (const auto& [letter, size] :
         {std::pair{"B", form.B}, {"H", form.H}, {"G", form.G}, {"M", form.M}, {"N", form.N}})
      sizes[letter] = spec::value_of(size, p.sizes);
    Json inputs = Json::object(), scalars = Json::object();
    for (const transfer::Binding& b : transferred_.bindings) {
      const auto draw = draws.arguments.find(b.user);
      if (draw == draws.arguments.end()) continue;
      if (p.scalars.count(b.user))
        scalars[b.argument] = p.scalars.at(b.user);
      else
        inputs[b.argument] = to_json(runtime::Contents{draw->second});
    }
    return {{"name", fmt::format("{} B{} {}x{}", what, sizes["B"].get<int64_t>(),
                                 sizes["M"].get<int64_t>(), sizes["N"].get<int64_t>())},
            {"seed", draws.seed},
            {"sizes", sizes},
            {"layout", cases_.size() % 2 ? "BSHD" : "BHSD"},
            {"scalars", scalars},
            {"inputs", inputs},
            {"goldens", Json::array()},
            {"timed", timed}};
  }

  const fs::path folder_;
  const spec::Capture& capture_;
  const transfer::Result& transferred_;
  Diagnostics& diagnostics_;
  double typical_error_ = 0;
  Json cases_ = Json::array();
};

}  // namespace

bool write_proof(const fs::path& folder, const spec::Capture& capture,
                 const transfer::Result& transferred, Diagnostics& diagnostics) {
  if (capture.form.product) return write_product_proof(folder, capture, transferred, diagnostics);
  return ProofWriter(folder, capture, transferred, diagnostics).run();
}

bool write_tuning_cases(const fs::path& folder, const spec::Capture& capture,
                        const transfer::Result& transferred,
                        const std::map<std::string, int64_t>& sizes, Diagnostics& diagnostics) {
  return ProofWriter(folder, capture, transferred, diagnostics).run_for_tuning(sizes);
}

bool write_self_test_cases(const fs::path& folder, const spec::Capture& capture,
                           const transfer::Result& transferred, const std::vector<int64_t>& lengths,
                           Diagnostics& diagnostics) {
  return ProofWriter(folder, capture, transferred, diagnostics).run_for_self_test(lengths);
}

}  // namespace kw::driver
