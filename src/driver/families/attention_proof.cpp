// The cases that prove attention on a GPU.
//
// Golden cases have the shapes at which PyTorch computed truths and the errors of the user's own
// function, row by row: the accepted error of a row is twice the larger of that row's own error and
// half a unit in the last place. Large cases are sampled rows that the form gives in fp64; there
// the user's own error is not known row by row, and the median of it over all golden rows stands in
// for it. Probes (probes.h) show the weights themselves.
#include <fmt/format.h>

#include <set>

#include "driver/families/attention.h"
#include "driver/proof/probes.h"
#include "driver/proof/user_order.h"
#include "driver/tune/shape.h"

namespace kw::driver::families {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Rows = ProofWriter::Rows;

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

class Cases {
 public:
  Cases(const fs::path& folder, const spec::Capture& capture, const transfer::Result& transferred,
        bool signs, Diagnostics& diagnostics)
      : capture_(capture),
        transferred_(transferred),
        signs_(signs),
        diagnostics_(diagnostics),
        writer_(folder, capture, transferred, diagnostics) {}

  bool run() {
    bool written = add_goldens();
    for (const Shape& shape : kLarge)
      if (written) written = add_large(shape);
    for (const int64_t keys : kProbed)
      if (written) written = add_probes(keys);
    return written && writer_.write();
  }

  bool run_for_self_test(const std::vector<int64_t>& lengths) {
    bool written = true;
    for (const int64_t keys : lengths)
      if (written) written = add_probes(keys);
    if (written && !writer_.count())
      diagnostics_.error("self_test.probes", {},
                         "there is no probe of this function at these sizes");
    return written && writer_.count() && writer_.write();
  }

  bool run_for_tuning(const std::map<std::string, int64_t>& letters) {
    return add_goldens() && add_tuned(letters) && writer_.write();
  }

 private:
  bool add_goldens() {
    const size_t step = std::max<size_t>(1, capture_.cases.size() / kGoldenCases);
    for (size_t n = step / 2; n < capture_.cases.size(); n += step)
      if (!add_golden(capture_.cases[n])) return false;
    return true;
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
    const auto truth = spec::truth(capture_.form, *p);
    Rows rows;
    for (int64_t b = 0; b < truth->batches(); ++b)
      for (int64_t h : golden.heads.empty() ? std::vector<int64_t>{0} : golden.heads)
        for (int64_t i = 0; i < truth->rows(); ++i)
          writer_.add_row(rows, *truth, b, h, i,
                          same ? golden.own_error.at({b, h, i}) : writer_.typical_error());
    if (!add(*p, golden.draws, rows, "golden", false)) return false;
    writer_.last()["launches"] = kRepeated;
    return true;
  }

  bool add_large(const Shape& shape) {
    const spec::Form& form = capture_.form;
    std::map<std::string, int64_t> sizes = capture_.cases.front().sizes;
    spec::give(form.B, shape.B, sizes);
    spec::give(form.M, shape.M, sizes);
    spec::give(form.N, shape.N, sizes);
    spec::Draws draws = capture_.cases.front().draws;
    draws.seed += 1000 + shape.M;
    for (auto& [name, draw] : draws.arguments)
      if (const auto times = capture_.lengths.find(name); times != capture_.lengths.end())
        draw.high = times->second * std::max(shape.M, shape.N);
    bool same = true;
    std::optional<spec::Problem> p = problem(sizes, draws, same);
    if (!p) return false;
    const auto truth = spec::truth(form, *p);
    Rows rows;
    const Random pick(draws.seed, 99);
    std::set<std::vector<int64_t>> seen;
    for (int n = 0; n < kSampledRows; ++n) {
      const std::vector<int64_t> at = {pick.integer(3 * n, 0, truth->batches() - 1),
                                       pick.integer(3 * n + 1, 0, truth->heads() - 1),
                                       pick.integer(3 * n + 2, 0, truth->rows() - 1)};
      if (seen.insert(at).second)
        writer_.add_row(rows, *truth, at[0], at[1], at[2], writer_.typical_error());
    }
    if (!add(*p, draws, rows, "sampled", shape.timed)) return false;
    if (shape.timed) writer_.last()["flop"] = operations(*p);
    return true;
  }

  // Multiplications and additions over unmasked entries, of which 64 even rows are a sample.
  double operations(const spec::Problem& p) const {
    constexpr int64_t kRows = 64;
    spec::Evaluator truth(capture_.form, p);
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
    const auto take = [&](const Probe& probe) {
      Rows rows{probe.index, {{probe.output, probe.accepted}}};
      if (writer_.outputs().size() > 1) rows.outputs.push_back({probe.lse, probe.lse_accepted});
      if (capture_.form.saves) rows.outputs.push_back(rows.outputs[0]);
      if (!add(probe.problem, probe.draws, rows, "probe", false)) return false;
      Json& one = writer_.last();
      one["name"] = "probe " + probe.name;
      for (const transfer::Binding& b : transferred_.bindings) {
        const spec::Term& term = capture_.form.terms[0];
        if (b.user == term.v.argument) one["inputs"][b.argument] = to_json(probe.values);
        if (b.user == term.q.argument) {
          Json& scale = one["inputs"][b.argument]["scale"];
          scale = probe.query_scale * scale.get<double>();
        }
      }
      // Of every output with columns: what is saved unrounded is a window, too, of the same
      // weights.
      for (size_t n = 0; probe.window && n < writer_.outputs().size(); ++n)
        if (writer_.outputs()[n].rule == spec::Rule::row) one["goldens"][n]["rule"] = "window";
      return true;
    };
    return for_each_probe(capture_, transferred_, keys, take, diagnostics_);
  }

  // The case that is tuned for: inputs of the specification's kind at a size of its own.
  bool add_tuned(const std::map<std::string, int64_t>& letters) {
    std::optional<TunedShape> shape = tuned_shape(capture_, letters, diagnostics_);
    if (!shape) return false;
    writer_.add_timed(shape->problem, shape->draws, "tuned", "BSHD");
    Json& one = writer_.last();
    for (const auto& [letter, value] : letters) one["sizes"][letter] = value;
    const auto size = [&](const char* letter) { return one["sizes"][letter].get<int64_t>(); };
    const int64_t columns = capture_.form.D.constant + capture_.form.Dv.constant;
    one["flop"] = 2.0 * columns * size("B") * size("H") * size("M") * size("N") * shape->kept;
    one["name"] = fmt::format("B{} H{} {}x{}", size("B"), size("H"), size("M"), size("N"));
    return true;
  }

  // The layouts take turns.
  bool add(const spec::Problem& p, const spec::Draws& draws, const Rows& rows, const char* what,
           bool timed) {
    const auto size = [&](const spec::Size& s) { return spec::value_of(s, p.sizes); };
    const spec::Form& form = capture_.form;
    const char* layout = writer_.count() % 2 ? "BSHD" : "BHSD";
    if (!writer_.add(p, draws, rows,
                     fmt::format("{} B{} {}x{}", what, size(form.B), size(form.M), size(form.N)),
                     layout, timed))
      return false;
    // Values with their signs changed give outputs with their signs changed, to the bit.
    if (timed && signs_ && values_are_linear(form)) {
      Json outputs = {"o"};
      for (const spec::Output& o : writer_.outputs())
        if (o.unrounded) outputs.push_back(o.name);
      writer_.last()["signs"] = {{"input", "v"}, {"outputs", outputs}};
    }
    return true;
  }

  const spec::Capture& capture_;
  const transfer::Result& transferred_;
  const bool signs_;
  Diagnostics& diagnostics_;
  ProofWriter writer_;
};

}  // namespace

bool Attention::write_proof(const fs::path& folder, const spec::Capture& capture,
                            const transfer::Result& transferred, Diagnostics& diagnostics) const {
  return Cases(folder, capture, transferred, has_values_of_their_own(), diagnostics).run();
}

bool Attention::write_tuning_cases(const fs::path& folder, const spec::Capture& capture,
                                   const transfer::Result& transferred,
                                   const std::map<std::string, int64_t>& sizes,
                                   Diagnostics& diagnostics) const {
  return Cases(folder, capture, transferred, false, diagnostics).run_for_tuning(sizes);
}

bool Attention::write_self_test_cases(const fs::path& folder, const spec::Capture& capture,
                                      const transfer::Result& transferred,
                                      const std::vector<int64_t>& lengths,
                                      Diagnostics& diagnostics) const {
  return Cases(folder, capture, transferred, false, diagnostics).run_for_self_test(lengths);
}

}  // namespace kw::driver::families
