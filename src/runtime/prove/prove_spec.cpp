#include "runtime/prove/prove_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "num/npy.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

// Reads one case. JSON's own type errors are caught by the caller, which knows the case's name.
class CaseReader {
 public:
  CaseReader(const std::string& folder, const LaunchSpec& launch, const SourcePtr& source,
             Diagnostics& diagnostics)
      : folder_(folder), launch_(launch), source_(source), diagnostics_(diagnostics) {}

  ProveCase read(const Json& json) {
    case_.name = json.at("name").get<std::string>();
    case_.seed = json.at("seed").get<uint64_t>();
    for (const auto& [name, value] : json.at("sizes").items())
      case_.sizes[name] = value.get<int64_t>();
    const std::string layout = json.at("layout").get<std::string>();
    if (layout != "BHSD" && layout != "BSHD")
      fault(fmt::format("layout is '{}', neither BHSD nor BSHD", layout));
    case_.rows_before_heads = layout == "BSHD";
    if (json.contains("scalars"))
      for (const auto& [name, value] : json["scalars"].items())
        case_.scalars[name] = value.get<double>();
    case_.flop = json.value("flop", 0.0);
    case_.timed = json.value("timed", false);
    case_.launches = json.value("launches", 2);
    if (case_.launches < 1) fault(fmt::format("is launched {} times", case_.launches));
    read_inputs(json.at("inputs"));
    if (json.contains("signs")) read_signs(json["signs"]);
    check_sizes();
    for (const Json& golden : json.at("goldens")) read_golden(golden);
    return std::move(case_);
  }

 private:
  void fault(const std::string& message) {
    diagnostics_.error("prove.json", {source_, 0, 0},
                       fmt::format("case '{}': {}", case_.name, message));
  }
  void read_inputs(const Json& json);
  Contents read_contents(const std::string& name, const Json& json);
  void read_signs(const Json& json);
  void check_sizes();
  void read_golden(const Json& json);
  void check_golden(const Golden& golden, const Argument& output);

  const std::string& folder_;
  const LaunchSpec& launch_;
  const SourcePtr& source_;
  Diagnostics& diagnostics_;
  ProveCase case_;
};

Contents CaseReader::read_contents(const std::string& name, const Json& json) {
  Contents contents;
  Draw& draw = contents.draw;
  const std::string kind = json.at("kind").get<std::string>();
  if (kind == "given") {
    auto values = read_npy(folder_ + "/" + json.at("values").get<std::string>(), diagnostics_);
    if (!values) return contents;
    if (values->shape != shape_of(*launch_.find(name), launch_, case_.sizes))
      fault(fmt::format("{}'s values have shape [{}], and the sizes give it another", name,
                        fmt::join(values->shape, ", ")));
    contents.given = std::make_shared<const Tensor>(std::move(*values));
    return contents;
  }
  draw.stream = json.value("stream", uint64_t{0});
  if (kind == "normal" || kind == "uniform") {
    draw.kind = kind == "normal" ? Draw::Kind::normal : Draw::Kind::uniform;
    draw.scale = json.value("scale", 1.0);
    contents.mean = json.value("mean", 0.0);
  } else if (kind == "integer") {
    draw.kind = Draw::Kind::integer;
    draw.low = json.at("low").get<int64_t>();
    draw.high = json.at("high").get<int64_t>();
    if (draw.low > draw.high)
      fault(fmt::format("{} is drawn from {} to {}", name, draw.low, draw.high));
  } else if (kind == "constant" || kind == "window") {
    draw.kind = Draw::Kind::constant;
    draw.value = json.at("value").get<double>();
    if (kind == "window" && (contents.window = json.at("from").get<int64_t>()) < 0)
      fault(fmt::format("{}'s window begins at row {}", name, contents.window));
    if (kind == "window" && launch_.find(name)->dims.size() < 2)
      fault(fmt::format("{} is a window, and has {} dimensions", name,
                        launch_.find(name)->dims.size()));
  } else {
    fault(
        fmt::format("{} is drawn as '{}', none of normal, uniform, integer, constant, window, "
                    "given",
                    name, kind));
  }
  return contents;
}

// Signs are changed for each (batch entry, head), so the tensors have them as first dimensions.
void CaseReader::read_signs(const Json& json) {
  const auto good = [&](const std::string& name, bool written) {
    const Argument* a = launch_.find(name);
    if (a && a->is_tensor() && a->written == written && a->dims.size() >= 3) return true;
    fault(fmt::format("prove.json: `signs` names {}, which is not an {} of the kernel with heads",
                      name, written ? "output" : "input"));
    return false;
  };
  case_.signed_input = json.at("input").get<std::string>();
  case_.signed_outputs = json.at("outputs").get<std::vector<std::string>>();
  good(case_.signed_input, false);
  for (const std::string& output : case_.signed_outputs) good(output, true);
}

void CaseReader::read_inputs(const Json& json) {
  for (const auto& [name, how] : json.items()) {
    const Argument* argument = launch_.find(name);
    if (!argument || !argument->is_tensor() || argument->written)
      fault(fmt::format("prove.json: `inputs.{}` does not name an input of the kernel", name));
    else
      case_.inputs[name] = read_contents(name, how);
  }
  for (const Argument& a : launch_.arguments)
    if (a.is_tensor() && !a.written && !case_.inputs.contains(a.name))
      fault(fmt::format("nothing says how to draw {}", a.name));
}

void CaseReader::check_sizes() {
  for (const Argument& a : launch_.arguments)
    if (a.is_tensor() && shape_of(a, launch_, case_.sizes).empty()) {
      std::vector<std::string> dims;
      for (const Expression& dim : a.dims) dims.push_back(dim.text());
      fault(fmt::format("the sizes do not give {} a shape [{}]", a.name, fmt::join(dims, ", ")));
    }
}

void CaseReader::read_golden(const Json& json) {
  Golden golden{.output = json.at("output").get<std::string>(), .mask = json.value("mask", 0u)};
  const Argument* output = launch_.find(golden.output);
  if (!output || !output->is_tensor() || !output->written)
    return fault(
        fmt::format("there is a golden for {}, which the kernel does not write", golden.output));
  for (const auto& [field, tensor] : {std::pair<const char*, Tensor*>{"rows", &golden.rows},
                                      {"values", &golden.values},
                                      {"accepted", &golden.accepted}}) {
    auto read = read_npy(folder_ + "/" + json.at(field).get<std::string>(), diagnostics_);
    if (!read) return;
    *tensor = std::move(*read);
  }
  const std::string rule = json.value("rule", "rows");
  if (rule != "rows" && rule != "window")
    fault(fmt::format("{}'s rule is '{}', neither rows nor window", golden.output, rule));
  golden.window = rule == "window";
  check_golden(golden, *output);
  case_.goldens.push_back(std::move(golden));
}

// The three arrays belong together, and every index lies in the output.
void CaseReader::check_golden(const Golden& golden, const Argument& output) {
  const std::vector<int64_t> shape = shape_of(output, launch_, case_.sizes);
  if (shape.empty()) return;  // said already
  const int64_t rank = static_cast<int64_t>(shape.size());
  const std::vector<int64_t>& rows = golden.rows.shape;
  if (golden.rows.dtype != Dtype::i64 || rows.size() != 2 || rows[1] < rank - 1 || rows[1] > rank)
    return fault(fmt::format("{}'s rows have shape [{}] of {}; they are i64 [R, {}] or [R, {}]",
                             golden.output, fmt::join(rows, ", "), name(golden.rows.dtype),
                             rank - 1, rank));
  std::vector<int64_t> values = {rows[0]};
  if (rows[1] == rank - 1) values.push_back(shape.back());
  if (golden.values.shape != values)
    fault(fmt::format("{}'s values have shape [{}], its rows and the sizes say [{}]", golden.output,
                      fmt::join(golden.values.shape, ", "), fmt::join(values, ", ")));
  if (golden.accepted.shape != std::vector<int64_t>{rows[0]})
    fault(fmt::format("{}'s accepted errors have shape [{}], its rows say [{}]", golden.output,
                      fmt::join(golden.accepted.shape, ", "), rows[0]));
  if (golden.window && rows[1] != rank - 1)
    fault(fmt::format("{}'s golden is of elements, and its rule 'window' of rows", golden.output));
  for (int64_t r = 0; r < rows[0]; ++r)
    for (int64_t d = 0; d < rows[1]; ++d) {
      const double index = golden.rows.values[r * rows[1] + d];
      if (!(index >= 0 && index < static_cast<double>(shape[d])))
        return fault(fmt::format("{}'s row {} has index {} in a dimension of {}", golden.output, r,
                                 index, shape[d]));
    }
}

}  // namespace

std::vector<int64_t> shape_of(const Argument& argument, const LaunchSpec& launch,
                              const Bindings& sizes) {
  Bindings all = launch.constants;
  all.insert(sizes.begin(), sizes.end());
  std::vector<int64_t> shape;
  for (const Expression& dim : argument.dims) {
    std::string why;
    const std::optional<Number> value = dim.evaluate(all, why);
    const auto* extent = value ? std::get_if<int64_t>(&*value) : nullptr;
    if (!extent || *extent < 1) return {};
    shape.push_back(*extent);
  }
  return shape;
}

std::optional<ProveSpec> read_prove_spec(const std::string& folder, const LaunchSpec& launch,
                                         Diagnostics& diagnostics) {
  const SourcePtr source = read_source(folder + "/prove.json");
  if (!source) {
    diagnostics.error("prove.json", {}, fmt::format("{}/prove.json: {}", folder, strerror(errno)));
    return std::nullopt;
  }
  const size_t before = diagnostics.all().size();
  ProveSpec spec;
  try {
    const Json json = Json::parse(source->text);
    for (const Json& one : json.at("cases")) {
      const std::string name = one.value("name", "?");
      try {
        spec.cases.push_back(CaseReader(folder, launch, source, diagnostics).read(one));
      } catch (const Json::exception& error) {
        diagnostics.error("prove.json", {source, 0, 0},
                          fmt::format("case '{}': {}", name, error.what()));
      }
    }
    if (spec.cases.empty()) diagnostics.error("prove.json", {source, 0, 0}, "has no cases");
  } catch (const Json::parse_error& error) {
    const uint32_t at = static_cast<uint32_t>(error.byte > 0 ? error.byte - 1 : 0);
    diagnostics.error("prove.json", {source, at, at + 1}, "is not JSON from here on");
  } catch (const Json::exception& error) {
    diagnostics.error("prove.json", {source, 0, 0}, error.what());
  }
  if (diagnostics.all().size() != before) return std::nullopt;
  return spec;
}

}  // namespace kw::runtime
