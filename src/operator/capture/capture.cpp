#include "operator/capture/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "num/compare.h"
#include "num/npy.h"
#include "operator/capture/disagreement.h"
#include "operator/evaluate/program.h"
#include "operator/recognise/recognise.h"
#include "operator/sums.h"

namespace kw::spec {
namespace {

using Json = nlohmann::json;

Draw read_draw(const Json& json) {
  Draw out;
  out.stream = json.at("stream");
  const std::string kind = json.at("kind");
  if (kind == "normal" || kind == "uniform") {
    out.kind = kind == "normal" ? Draw::Kind::normal : Draw::Kind::uniform;
    out.scale = json.at("scale");
  } else if (kind == "integer") {
    out.kind = Draw::Kind::integer;
    out.low = json.at("low");
    out.high = json.at("high");
  } else {
    out.kind = Draw::Kind::constant;
    out.value = json.at("value");
  }
  return out;
}

// Values in the order of `names` (of which each has its extent), rearranged to the order "bhid".
// Names that are missing have extent 1.
Tensor in_order(const double* values, const std::vector<std::string>& names,
                const std::map<std::string, int64_t>& extents, const std::string& order) {
  std::map<std::string, int64_t> stride;
  int64_t total = 1;
  for (size_t n = names.size(); n-- > 0;) {
    stride[names[n]] = total;
    total *= extents.at(names[n]);
  }
  std::vector<int64_t> shape, strides;
  for (char c : order) {
    const std::string name(1, c);
    const bool present = stride.count(name) != 0;
    shape.push_back(present ? extents.at(name) : 1);
    strides.push_back(present ? stride[name] : 0);
  }
  Tensor out(Dtype::f64, shape);
  for (int64_t n = 0; n < out.count(); ++n) {
    int64_t rest = n, offset = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    out.values[n] = values[offset];
  }
  return out;
}

class CaseReader {
 public:
  CaseReader(const Form& form, const Tensor& truths, const Tensor& errors)
      : form_(form), truths_(truths), errors_(errors) {}

  // False when the stored arrays are shorter than the cases say.
  bool read(const Json& json, GoldenCase& out) {
    out.draws.seed = json.at("seed");
    for (const Json& d : json.at("draws")) {
      const std::string name = d.at("name");
      out.draws.arguments[name] = read_draw(d);
      const Argument* a = form_.argument(name);
      for (size_t n = 0; a && n < a->dims.size(); ++n)
        if (!a->dims[n].name.empty()) out.sizes[a->dims[n].name] = d.at("shape").at(n);
    }
    const int64_t H = form_.H.constant;
    if (!form_.outputs[0].of.empty()) return read_gradients(json, out);
    std::map<std::string, int64_t> extents = {{"b", value_of(form_.B, out.sizes)},
                                              {"h", H},
                                              {"i", value_of(form_.M, out.sizes)},
                                              {"j", value_of(form_.N, out.sizes)},
                                              {"d", value_of(form_.Dv, out.sizes)}};
    if (!json.at("head_axis").is_null() && H > 1)
      out.heads = json.at("heads").get<std::vector<int64_t>>();
    if (out.heads.empty()) {
      out.heads.resize(H);
      std::iota(out.heads.begin(), out.heads.end(), 0);
    }
    out.rows = json.value("of_rows", out.rows);
    if (!out.rows.empty()) extents["i"] = static_cast<int64_t>(out.rows.size());
    const int64_t rows = product(json.at("rows")), stored = product(json.at("shape"));
    if (at_truth_ + stored > truths_.count() || at_error_ + rows > errors_.count()) return false;
    std::string axes = form_.outputs[0].axes;
    axes.resize(4, '-');  // sums alone have one column
    std::vector<std::string> row_names = form_.output_dims;
    std::erase(row_names, axes.substr(3));
    out.own_error = own_error(row_names, extents, rows);
    std::map<std::string, int64_t> held = extents;
    held["h"] = static_cast<int64_t>(out.heads.size());
    out.truth = in_order(&truths_.values[at_truth_], form_.output_dims, held, axes);
    at_truth_ += stored;
    at_error_ += rows;
    return out.truth.count() == stored && read_others(json, out, extents);
  }

 private:
  // Of each floating argument, in their order; those that the form has are kept.
  bool read_gradients(const Json& json, GoldenCase& out) {
    std::map<std::string, int64_t> extents = {{"b", value_of(form_.B, out.sizes)},
                                              {"i", value_of(form_.M, out.sizes)},
                                              {"j", value_of(form_.N, out.sizes)},
                                              {"c", form_.D.constant},
                                              {"d", form_.Dv.constant}};
    out.others.resize(form_.outputs.size() - 1);
    for (const Json& one : json.at("gradients")) {
      const double *values = truths_.values.data() + at_truth_,
                   *errors = errors_.values.data() + at_error_;
      const int64_t stored = product(one.at("shape")), rows = product(one.at("rows"));
      at_truth_ += stored;
      at_error_ += rows;
      if (at_truth_ > truths_.count() || at_error_ > errors_.count()) return false;
      const auto output =
          std::find_if(form_.outputs.begin(), form_.outputs.end(),
                       [&](const Output& o) { return o.of == one.at("of").get<std::string>(); });
      if (output == form_.outputs.end()) continue;
      if (output->rule == Rule::sum) {  // all of it, with a rule of its own
        extents["h"] = form_.H.constant;
        extents["x"] = value_of(output->own, out.sizes);
        extents[""] = 1;
        Tensor truth = in_order(values, output->dims, extents, output->axes);
        if (truth.count() != stored) return false;
        out.others[output - form_.outputs.begin() - 1] = {std::move(truth), std::nullopt, {}};
        continue;
      }
      const std::string head(1, output->axes[1]), row_axes = output->axes.substr(0, 3);
      const int64_t all = output->has('g') ? form_.G.constant : form_.H.constant;
      std::vector<int64_t> heads(all);
      std::iota(heads.begin(), heads.end(), 0);
      if (!one.at("heads").is_null()) heads = one["heads"].get<std::vector<int64_t>>();
      std::vector<std::string> row_dims = output->dims;
      std::erase(row_dims, output->axes.substr(3));
      extents[head] = static_cast<int64_t>(heads.size());
      Tensor truth = in_order(values, output->dims, extents, output->axes);
      extents[head] = all;
      Tensor error = in_order(errors, row_dims, extents, row_axes);
      if (truth.count() != stored || error.count() != rows) return false;
      if (output == form_.outputs.begin()) {
        out.heads = std::move(heads);
        out.truth = std::move(truth);
        out.own_error = std::move(error);
      } else {
        out.others[output - form_.outputs.begin() - 1] = {std::move(truth), std::move(error),
                                                          std::move(heads)};
      }
    }
    return true;
  }

  // Of a log-sum nothing is read; of row sums nothing is stored.
  bool read_others(const Json& json, GoldenCase& out,
                   const std::map<std::string, int64_t>& extents) {
    if (!out.rows.empty()) return true;
    const Json stored = json.value("others", Json::array());
    for (size_t n = 1; n < form_.outputs.size(); ++n) {
      const Output& output = form_.outputs[n];
      const bool kept = output.rule == Rule::row || output.rule == Rule::sum;
      if (n > stored.size() && kept) return false;
      if (n > stored.size()) continue;
      GoldenCase::Other& other = out.others.emplace_back();
      const int64_t count = product(stored[n - 1].at("shape"));
      if (at_truth_ + count > truths_.count()) return false;
      if (kept) {
        std::vector<std::string> dims;
        for (const char c : output.axes) dims.emplace_back(1, c);
        if (output.axes == form_.outputs[0].axes) dims = form_.output_dims;
        other.values = in_order(&truths_.values[at_truth_], dims, extents, output.axes);
        if (other.values->count() != count) return false;
      }
      at_truth_ += count;
    }
    return true;
  }

  static int64_t product(const Json& json) {
    return element_count(json.get<std::vector<int64_t>>());
  }

  // An output [B, M, H * D] has one error for all heads of a query, sums alone have one for all
  // rows of a batch entry.
  Tensor own_error(const std::vector<std::string>& names,
                   const std::map<std::string, int64_t>& extents, int64_t rows) const {
    const double* values = &errors_.values[at_error_];
    if (rows == extents.at("b") * extents.at("h") * extents.at("i"))
      return in_order(values, names, extents, "bhi");
    Tensor out(Dtype::f64, {extents.at("b"), extents.at("h"), extents.at("i")});
    const int64_t H = extents.at("h"), M = extents.at("i");
    const bool of_queries = rows == extents.at("b") * M;
    for (int64_t n = 0; n < out.count(); ++n)
      out.values[n] = values[of_queries ? n / (H * M) * M + n % M
                                        : n * rows / std::max<int64_t>(out.count(), 1)];
    return out;
  }

  const Form& form_;
  const Tensor &truths_, &errors_;
  int64_t at_truth_ = 0, at_error_ = 0;
};

bool read_cases(const std::filesystem::path& folder, Capture& capture, Diagnostics& diagnostics) {
  const std::optional<Tensor> truths = read_npy(folder / "truth.npy", diagnostics);
  const std::optional<Tensor> errors = read_npy(folder / "own_error.npy", diagnostics);
  const SourcePtr text = read_source((folder / "goldens.json").string());
  if (!truths || !errors) return false;
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("spec.capture", {}, fmt::format("{}: {}", folder.string(), why)).hint =
        "capture the spec again";
    return false;
  };
  if (!text) return refuse("it has no goldens.json");
  try {  // nlohmann::json says what is missing by an exception; it goes no further than here
    CaseReader reader(capture.form, *truths, *errors);
    const Json index = Json::parse(text->text);
    for (const Json& json : index.at("cases")) {
      capture.cases.emplace_back();
      for (const Json& d : json.at("draws"))
        if (const int64_t times = d.value("times_longest", 0))
          capture.lengths[d.at("name")] = times;
      if (!reader.read(json, capture.cases.back()))
        return refuse("the stored outputs do not have the sizes that goldens.json says");
    }
    for (const Json& json : index.value("far", Json::array())) {
      capture.far.emplace_back();
      if (!reader.read(json, capture.far.back()))
        return refuse(
            "the stored outputs of far cases do not have the sizes that goldens.json says");
    }
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  if (capture.cases.empty()) return refuse("goldens.json holds no cases");
  return true;
}

// What of the data proofs may take for seen.
void note_drawn_integers(Capture& capture) {
  for (Argument& a : capture.form.arguments) {
    if (!a.is_tensor || is_float(a.dtype)) continue;
    for (const GoldenCase& golden : capture.cases) {
      const auto how = golden.draws.arguments.find(a.name);
      if (how == golden.draws.arguments.end() || how->second.kind != Draw::Kind::integer) continue;
      const auto [low, high] = std::pair(how->second.low, how->second.high);
      if (!a.drawn) a.drawn = {low, high};
      a.drawn = {std::min((*a.drawn)[0], low), std::max((*a.drawn)[1], high)};
    }
  }
}

void note_rows_without_a_key(Capture& capture) {
  if (capture.form.terms.empty()) return;
  for (const GoldenCase& golden : capture.cases) {
    const std::vector<double>& v = golden.truth.values;
    if (std::none_of(v.begin(), v.end(), [](double x) { return std::isnan(x); })) continue;
    capture.form.notes.push_back(
        {"rows that keep no key are NaN in PyTorch, and 0 in the kernel, which is not held against "
         "it; a logsumexp is -inf",
         {}});
    return;
  }
}

}  // namespace

std::optional<Problem> problem_of(const Form& form, const GoldenCase& golden,
                                  Diagnostics& diagnostics) {
  return make_problem(form, golden.sizes, golden.draws, diagnostics);
}

Draws draws_for(const Capture& capture, const std::map<std::string, int64_t>& sizes,
                uint64_t seed) {
  Draws out = capture.cases.empty() ? Draws{} : capture.cases[0].draws;
  out.seed = seed;
  int64_t longest = 1;
  for (const Size* s : {&capture.form.M, &capture.form.N})
    longest = std::max(longest, value_of(*s, sizes));
  for (const auto& [name, times] : capture.lengths) out.arguments[name].high = times * longest;
  return out;
}

namespace {

// Sums of numbers which may cancel are held against the size of what they sum.
// `most`: the largest number of a gradient that is a sum, of which fp64 leaves something where
// terms of others cancel to nothing.
double golden_error(const Output& output, const Held& held, const double* golden, double most = 0) {
  if (output.rule == Rule::row_sum) return std::fabs(held.want[0] - *golden) / held.scale;
  if (output.rule == Rule::sum && !output.of.empty()) {
    const double off = std::fabs(held.want[0] - *golden);
    return off == 0 ? 0 : off / (std::fabs(held.want[0]) + 1e3 * held.allowed[0] + 1e-3 * most);
  }
  const auto length = static_cast<int64_t>(held.want.size());
  // A gradient's terms may cancel: its row is held against what fp32 would take of them, too.
  const bool cancels = !output.of.empty() && held.noise > 0 &&
                       std::any_of(golden, golden + length, [](double x) { return x != 0; });
  return row_error(held.want.data(), golden, length, 0, cancels ? 1e3 * held.noise : 0);
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (const double x : values)
    if (std::isfinite(x)) out = std::max(out, std::fabs(x));
  return out;
}

// Which of outputs() the function's n-th is.
size_t place_of(const std::vector<Output>& all, const Output& output) {
  size_t n = 0;
  while (all[n].name != output.name) ++n;
  return n;
}

// Of gradients. Of a row that keeps no key PyTorch's may be NaN, and the form's is 0.
bool is_zero(const Held& held) {
  return std::all_of(held.want.begin(), held.want.end(), [](double x) { return x == 0; });
}

// open: PyTorch's may be NaN.
bool is_undefined(const Held& held, const double* golden, bool open) {
  const auto infinite = [](double x) { return std::isinf(x); };
  const auto nan = [](double x) { return std::isnan(x); };
  const std::vector<double>& want = held.want;
  return std::any_of(want.begin(), want.end(), [](double x) { return !std::isfinite(x); }) ||
         std::any_of(golden, golden + want.size(), infinite) ||
         (!open && std::any_of(golden, golden + want.size(), nan));
}

bool check_first(const Capture& capture, size_t n, const GoldenCase& golden, Truth& truth,
                 size_t place, Diagnostics& diagnostics) {
  const bool of_gradients = !capture.form.outputs[0].of.empty();
  const std::vector<int64_t>& shape = golden.truth.shape;
  for (int64_t r = 0; r < shape[0] * shape[1] * shape[2]; ++r) {
    const int64_t b = r / (shape[1] * shape[2]), h = golden.heads[r / shape[2] % shape[1]],
                  i = golden.rows.empty() ? r % shape[2] : golden.rows[r % shape[2]];
    truth.row(b, h, i);
    const double* row = &golden.truth.values[r * shape[3]];
    const Held& held = truth.of(place);
    if (of_gradients && is_undefined(held, row, is_zero(held)))
      return refuse_undefined(capture, capture.form.outputs[0], n, b, h, i, diagnostics);
    if (truth.open_in_pytorch(row, shape[3])) continue;
    const double error = golden_error(capture.form.outputs[0], held, row);
    if (!(error <= kAllowed)) return disagrees(capture, n, b, h, i, error, diagnostics);
  }
  return true;
}

// The outputs of the function but the first, of the heads that are kept. Where rows add up, one
// that PyTorch makes NaN (it has no key) makes all sums of its head say nothing.
class Others {
 public:
  Others(const Capture& capture, size_t golden, Truth& truth, Diagnostics& diagnostics)
      : capture_(capture), golden_(golden), truth_(truth), diagnostics_(diagnostics) {
    const std::vector<Output> all = outputs(capture.form);
    first_ = place_of(all, capture.form.outputs[0]);
    const auto& others = capture.cases[golden].others;
    for (size_t n = 0; n < others.size(); ++n) {
      const Output& output = capture.form.outputs[n + 1];
      if (others[n].values)
        held_.push_back({output, place_of(all, output), others[n].values->values.data(),
                         largest(others[n].values->values), others[n].heads});
    }
  }

  bool agree() {
    const int64_t H = held_.empty() ? 0 : truth_.heads(), M = truth_.rows(),
                  group = truth_.heads() / capture_.form.G.constant;
    const auto heads = heads_of(truth_.batches(), H, capture_.form.G.constant,
                                [&](int64_t h) { return (h + 1) % group == 0; });
    const bool of_gradients = !capture_.form.outputs[0].of.empty();
    for (const HeadAt& at : heads) {
      const auto wanted = [&](const One& one) { return one.holds(at.g); };
      if (std::none_of(held_.begin(), held_.end(), wanted)) continue;
      truth_.begin_head();
      for (int64_t i = 0; i < M; ++i) {
        truth_.row(at.b, at.h, i);
        open_ |= of_gradients && is_zero(truth_.of(first_));
        for (One& one : held_)
          if (one.output.has_rows() && !agrees(one, truth_.of(one.place), at.b, at.h, i))
            return false;
      }
      for (One& one : held_)
        if (!one.output.has_rows() && wanted(one) && !agrees_where_complete(one, at)) return false;
    }
    return true;
  }

 private:
  struct One {
    const Output& output;
    size_t place;      // among the truth's
    const double* at;  // what PyTorch gave that was not looked at yet
    double most;       // of all that it gave
    const std::vector<int64_t>& key_heads;
    bool holds(int64_t key_head) const {
      return key_heads.empty() ||
             std::find(key_heads.begin(), key_heads.end(), key_head) != key_heads.end();
    }
  };

  // What has no rows of queries, when the last head that adds to it has ended.
  bool agrees_where_complete(One& one, const HeadAt& at) {
    const auto sum =
        sums_.add(one.place, block_of(one.output, at), truth_.of(one.place), add_share);
    for (int64_t r = 0; sum && r < rows_of(*sum); ++r)
      if (!agrees(one, row_of(*sum, r), at.b, at.h, -1)) return false;
    return true;
  }

  bool agrees(One& one, const Held& held, int64_t b, int64_t h, int64_t i) {
    const double* want = one.at;
    one.at += held.want.size();
    if (!one.output.of.empty() && is_undefined(held, want, open_))
      return refuse_undefined(capture_, one.output, golden_, b, h, i, diagnostics_);
    if (i < 0 && std::any_of(want, want + held.want.size(), [](double x) { return std::isnan(x); }))
      return true;
    const double error = golden_error(one.output, held, want, one.most);
    return error <= kAllowed || disagrees(capture_, golden_, b, h, i, error, diagnostics_);
  }

  const Capture& capture_;
  const size_t golden_;
  Truth& truth_;
  bool open_ = false;  // some row may keep no key
  size_t first_ = 0;   // the first output's place
  Diagnostics& diagnostics_;
  std::vector<One> held_;
  Sums<Held> sums_;
};

}  // namespace

bool check_goldens(const Capture& capture, int step, Diagnostics& diagnostics) {
  const std::vector<Output> all = outputs(capture.form);
  for (size_t n = 0; n < capture.cases.size(); n += step) {
    const std::optional<Problem> problem = problem_of(capture.form, capture.cases[n], diagnostics);
    if (!problem) return false;
    const std::unique_ptr<Truth> own = truth(capture.form, *problem);
    if (!check_first(capture, n, capture.cases[n], *own, place_of(all, capture.form.outputs[0]),
                     diagnostics))
      return false;
    if (!Others(capture, n, *own, diagnostics).agree()) return false;
  }
  for (size_t n = 0; n < capture.far.size(); ++n) {
    const std::optional<Problem> problem = problem_of(capture.form, capture.far[n], diagnostics);
    if (!problem) return false;
    const std::unique_ptr<Truth> own = truth(capture.form, *problem);
    if (!check_first(capture, capture.cases.size() + n, capture.far[n], *own,
                     place_of(all, capture.form.outputs[0]), diagnostics))
      return false;
  }
  return true;
}

std::optional<Capture> load_capture(const std::filesystem::path& folder, Diagnostics& diagnostics,
                                    SelfCheck check) {
  std::optional<Graph> graph = read_graph(folder, diagnostics);
  if (!graph) return std::nullopt;
  Capture out;
  out.source = graph->source;
  out.training = graph->training;
  std::optional<Form> form = form_of(std::move(*graph), diagnostics);
  if (!form) return std::nullopt;
  out.form = std::move(*form);
  if (!read_cases(folder, out, diagnostics)) return std::nullopt;
  note_drawn_integers(out);
  note_rows_without_a_key(out);
  if (check != SelfCheck::none && !check_goldens(out, check == SelfCheck::all ? 1 : 3, diagnostics))
    return std::nullopt;
  return out;
}

std::vector<std::string> capture_command(const CaptureRequest& request, const std::string& python) {
  std::vector<std::string> out = {python,       "-m",    "kernelwright.capture",
                                  request.spec, "--out", request.out.string()};
  if (!request.function.empty()) out.insert(out.end(), {"--function", request.function});
  if (!request.dtype.empty()) out.insert(out.end(), {"--dtype", request.dtype});
  if (request.training != Training::none)
    out.insert(out.end(), {"--training", word(request.training)});
  for (const auto& [B, M, N] : request.cases)
    out.insert(out.end(), {"--case", fmt::format("{},{},{}", B, M, N)});
  return out;
}

bool read_problems(const std::string& standard_output, Diagnostics& diagnostics) {
  const Json json = Json::parse(standard_output, nullptr, false);
  if (!json.is_object() || !json.contains("diagnostics")) return false;
  for (const Json& d : json["diagnostics"]) {
    Span span;
    if (d.contains("place") && d["place"].is_object()) {
      const Json& place = d["place"];
      const std::string file = place.value("file", "");
      Graph lines;  // for its line()
      lines.source =
          place.contains("text") ? make_source(file, place.value("text", "")) : read_source(file);
      if (lines.source) span = lines.line(place.value("line", 1), place.value("column", 1));
    }
    Diagnostic& added =
        diagnostics.error(d.value("code", "spec"), span, d.value("message", "(no message)"));
    added.hint = d.value("hint", "");
    if (d.contains("notes"))
      for (const Json& note : d["notes"]) added.notes.push_back({note.value("message", ""), {}});
  }
  return true;
}

}  // namespace kw::spec
