#include "runtime/launch/launch_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

// Reads fields of one JSON object and reports what is wrong with them by their path. After a
// failure it answers with defaults, so that one reading reports every fault.
class Fields {
 public:
  Fields(const Json& json, std::string path, const SourcePtr& source, Diagnostics& diagnostics)
      : json_(json), path_(std::move(path)), source_(source), diagnostics_(diagnostics) {}

  void fault(const std::string& field, const std::string& message) const {
    diagnostics_.error("launch.json", {source_, 0, 0},
                       fmt::format("{}{}: {}", path_, field, message));
  }
  const Json* get(const std::string& field, bool required = true) const {
    const auto found = json_.find(field);
    if (found != json_.end()) return &*found;
    if (required) fault(field, "is missing");
    return nullptr;
  }
  std::string text(const std::string& field) const {
    const Json* value = get(field);
    if (value && value->is_string()) return value->get<std::string>();
    if (value) fault(field, "is " + value->dump() + ", not a string");
    return {};
  }
  int64_t integer(const std::string& field, int64_t low, int64_t high) const {
    const Json* value = get(field);
    if (!value) return low;
    if (value->is_number_integer() && value->get<int64_t>() >= low && value->get<int64_t>() <= high)
      return value->get<int64_t>();
    fault(field, fmt::format("is {}, not an integer from {} to {}", value->dump(), low, high));
    return low;
  }
  // One of `choices`; the first when it is not.
  std::string choice(const std::string& field, const std::vector<std::string>& choices) const {
    const std::string value = text(field);
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
    if (!value.empty())
      fault(field, fmt::format("is '{}', not one of {}", value, fmt::join(choices, ", ")));
    return choices[0];
  }
  std::optional<Expression> expression(const Json& json, const std::string& field) const {
    std::string why;
    std::optional<Expression> e = Expression::read(json, why);
    if (!e) fault(field, why);
    return e;
  }
  Dtype dtype() const {
    const std::string name = text("dtype");
    const std::optional<Dtype> dtype = dtype_named(name);
    if (!dtype && !name.empty()) fault("dtype", fmt::format("unknown type '{}'", name));
    return dtype.value_or(Dtype::f32);
  }
  void only(const std::vector<std::string>& known) const {
    for (const auto& [field, value] : json_.items())
      if (std::find(known.begin(), known.end(), field) == known.end())
        fault(field, "is not a field that is known here");
  }

 private:
  const Json& json_;
  std::string path_;
  const SourcePtr& source_;
  Diagnostics& diagnostics_;
};

void read_dims(const Fields& fields, Argument& argument) {
  const Json* dims = fields.get("dims");
  if (!dims || !dims->is_array()) {
    if (dims) fields.fault("dims", "is not a list of names and numbers");
    return;
  }
  for (const Json& dim : *dims)
    if (dim.is_string() || dim.is_number_integer()) {
      argument.dims.push_back(*fields.expression(dim, "dims"));
    } else {
      fields.fault("dims", "holds " + dim.dump() + ", neither a name nor a number");
    }
}

void read_access(const Fields& fields, Argument& argument) {
  argument.written = fields.choice("access", {"read", "write"}) == "write";
}

void read_tensor_map(const Fields& fields, Argument& argument, const SourcePtr& source,
                     Diagnostics& diagnostics) {
  argument.dtype = fields.dtype();
  read_dims(fields, argument);
  if (argument.dims.size() != 4)
    fields.fault("dims",
                 fmt::format("has {} entries; a tensor map is over batch, head, row, column",
                             argument.dims.size()));
  const int64_t promotion = fields.integer("l2_promotion", 0, 256);
  if (promotion != 0 && promotion != 64 && promotion != 128 && promotion != 256)
    fields.fault("l2_promotion", fmt::format("is {}, not 0, 64, 128 or 256", promotion));
  argument.l2_promotion = static_cast<int>(promotion);
  if (const Json* part = fields.get("part_of_rows", false)) {
    if (!part->is_boolean()) fields.fault("part_of_rows", "is not true or false");
    argument.part_of_rows = part->is_boolean() && part->get<bool>();
  }
  const Json* box = fields.get("box");
  if (!box || !box->is_object()) {
    if (box) fields.fault("box", "is not {\"rows\": R, \"columns\": C}");
    return;
  }
  const Fields inside(*box, argument.name + ".box.", source, diagnostics);
  inside.only({"rows", "columns"});
  // 256 is the limit of each side of a box (CUDA Driver API, cuTensorMapEncodeTiled).
  argument.box_rows = inside.integer("rows", 1, 256);
  argument.box_columns = inside.integer("columns", 1, 16384);
  const int64_t panel = 64 / static_cast<int64_t>(bytes(argument.dtype));
  if (argument.box_columns % panel != 0)
    inside.fault("columns", fmt::format("is {}; {} of {} make a panel of 64 bytes",
                                        argument.box_columns, panel, name(argument.dtype)));
  if (argument.part_of_rows && argument.box_columns != 2 * panel)
    inside.fault("columns", fmt::format("is {}; of rows that move in parts a box has {} of {}",
                                        argument.box_columns, 2 * panel, name(argument.dtype)));
}

std::optional<Argument> read_argument(const Json& json, size_t index, const SourcePtr& source,
                                      Diagnostics& diagnostics) {
  Fields fields(json, fmt::format("arguments[{}].", index), source, diagnostics);
  if (!json.is_object()) {
    fields.fault("", "is not an object");
    return std::nullopt;
  }
  Argument argument;
  argument.name = fields.text("name");
  argument.offset = fields.integer("offset", 0, largest_parameters);
  const std::string kind = fields.choice("kind", {"size", "tensor_map", "tensor", "pointer",
                                                  "stride", "scalar", "workspace", "scratch"});
  if (kind == "tensor_map") {
    fields.only({"name", "kind", "offset", "dtype", "dims", "box", "access", "l2_promotion",
                 "part_of_rows"});
    argument.kind = ArgumentKind::tensor_map;
    read_access(fields, argument);
    read_tensor_map(fields, argument, source, diagnostics);
  } else if (kind == "stride") {
    fields.only({"name", "kind", "offset", "of", "dim"});
    argument.kind = ArgumentKind::stride;
    argument.dtype = Dtype::i64;
    argument.of = fields.text("of");
    argument.dim = fields.integer("dim", 0, 7);
  } else if (kind == "tensor" || kind == "pointer") {
    fields.only({"name", "kind", "offset", "dtype", "dims", "access", "row_alignment"});
    argument.kind = kind == "tensor" ? ArgumentKind::tensor : ArgumentKind::pointer;
    argument.dtype = fields.dtype();
    read_access(fields, argument);
    read_dims(fields, argument);
    if (fields.get("row_alignment", false))
      argument.row_alignment = fields.integer("row_alignment", 16, 16);
  } else if (kind == "workspace" || kind == "scratch") {
    fields.only({"name", "kind", "offset", "bytes", "dtype", "dims", "box", "l2_promotion"});
    argument.kind = kind == "scratch" ? ArgumentKind::scratch : ArgumentKind::workspace;
    if (json.contains("box")) {
      read_tensor_map(fields, argument, source, diagnostics);
    } else if (json.contains("dims")) {
      argument.dtype = fields.dtype();
      read_dims(fields, argument);
    }
    if (const Json* size = fields.get("bytes")) argument.bytes = fields.expression(*size, "bytes");
  } else {
    fields.only({"name", "kind", "offset", "dtype", "value"});
    argument.kind = kind == "size" ? ArgumentKind::size : ArgumentKind::scalar;
    if (kind == "scalar") argument.dtype = fields.dtype();
    if (const Json* value = fields.get("value", false))
      argument.value = fields.expression(*value, "value");
  }
  return argument;
}

void read_requirements(const Fields& fields, LaunchSpec& spec) {
  const Json* list = fields.get("requires", false);
  if (!list) return;
  static const std::vector<std::string> comparisons = {">=", ">", "<=", "<", "==", "!="};
  for (const Json& item : *list) {
    if (!item.is_array() || item.size() != 3 || !item[0].is_string() ||
        std::find(comparisons.begin(), comparisons.end(), item[0].get<std::string>()) ==
            comparisons.end()) {
      fields.fault("requires",
                   "holds " + item.dump() + ", not [comparison, expression, expression]");
      continue;
    }
    const auto left = fields.expression(item[1], "requires");
    const auto right = fields.expression(item[2], "requires");
    if (left && right) spec.requirements.push_back({item[0], *left, *right});
  }
}

void read_constants(const Fields& fields, LaunchSpec& spec) {
  const Json* constants = fields.get("constants", false);
  if (!constants) return;
  if (!constants->is_object()) return fields.fault("constants", "is not an object");
  for (const auto& [name, value] : constants->items())
    if (value.is_number_integer())
      spec.constants[name] = value.get<int64_t>();
    else if (value.is_number())
      spec.constants[name] = value.get<double>();
    else
      fields.fault("constants." + name, "is " + value.dump() + ", not a number");
}

// The fields of the struct, in order of their offsets, must neither overlap nor reach past its end.
void check_layout(const LaunchSpec& spec, const SourcePtr& source, Diagnostics& diagnostics) {
  std::vector<const Argument*> order;
  for (const Argument& a : spec.arguments) order.push_back(&a);
  std::stable_sort(order.begin(), order.end(),
                   [](const Argument* a, const Argument* b) { return a->offset < b->offset; });
  const auto fault = [&](const std::string& message) {
    diagnostics.error("launch.layout", {source, 0, 0}, message);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const Argument& a = *order[i];
    const int64_t end = a.offset + a.size_in_struct();
    if (a.offset % a.alignment_in_struct() != 0)
      fault(fmt::format("{} is at offset {}, which is not a multiple of {}", a.name, a.offset,
                        a.alignment_in_struct()));
    if (i + 1 < order.size() && end > order[i + 1]->offset)
      fault(fmt::format("{} reaches to byte {}, but {} begins at {}", a.name, end,
                        order[i + 1]->name, order[i + 1]->offset));
    if (end > spec.parameter_bytes)
      fault(fmt::format("{} reaches to byte {} of {} parameter bytes", a.name, end,
                        spec.parameter_bytes));
  }
  for (const Argument& a : spec.arguments)
    if (spec.find(a.name) != &a) fault(fmt::format("two arguments are named {}", a.name));
}

// Every stride is that of a pointer's dimension.
void check_strides(const Fields& fields, const LaunchSpec& spec) {
  for (const Argument& a : spec.arguments) {
    if (a.kind != ArgumentKind::stride) continue;
    const Argument* tensor = spec.find(a.of);
    if (!tensor || tensor->kind != ArgumentKind::pointer)
      fields.fault("arguments." + a.name,
                   fmt::format("is a stride of {}, which is not a pointer", a.of));
    else if (a.dim >= static_cast<int64_t>(tensor->dims.size()))
      fields.fault("arguments." + a.name,
                   fmt::format("is the stride of dimension {} of {}, which has {}", a.dim, a.of,
                               tensor->dims.size()));
  }
}

void read_arguments(const Fields& fields, const SourcePtr& source, Diagnostics& diagnostics,
                    LaunchSpec& spec) {
  const Json* arguments = fields.get("arguments");
  if (!arguments) return;
  if (!arguments->is_array()) return fields.fault("arguments", "is not a list");
  for (size_t i = 0; i < arguments->size(); ++i)
    if (auto argument = read_argument((*arguments)[i], i, source, diagnostics))
      spec.arguments.push_back(std::move(*argument));
}

// Those before the kernel, or those behind it: `side` is "before" or "after".
void read_passes(const Fields& fields, const std::string& side, const SourcePtr& source,
                 Diagnostics& diagnostics, std::vector<PrePass>& passes) {
  const Json* given = fields.get(side, false);
  if (!given) return;
  if (!given->is_array()) return fields.fault(side, "is not a list");
  for (size_t n = 0; n < given->size(); ++n) {
    if (!(*given)[n].is_object()) return fields.fault(side, "holds what is not an object");
    const Fields inside((*given)[n], fmt::format("{}[{}].", side, n), source, diagnostics);
    inside.only({"entry", "threads", "grid"});
    PrePass& pass = passes.emplace_back();
    pass.entry = inside.text("entry");
    pass.threads = inside.integer("threads", 1, 1024);
    if (const Json* grid = inside.get("grid"))
      if (const auto e = inside.expression(*grid, "grid")) pass.grid = *e;
  }
}

}  // namespace

int64_t Argument::size_in_struct() const {
  const int64_t rank = static_cast<int64_t>(dims.size());
  switch (kind) {
    case ArgumentKind::tensor_map:
      return 128;
    case ArgumentKind::tensor:
      return (8 + 8 * rank + 4 * rank + 7) / 8 * 8;
    case ArgumentKind::size:
      return 4;
    case ArgumentKind::scalar:
      return static_cast<int64_t>(kw::bytes(dtype));
    case ArgumentKind::scratch:
      if (box_rows) return 192;  // a map, and the tensor, to a multiple of 64
      if (rank) return (8 + 8 * rank + 4 * rank + 7) / 8 * 8;
      return 8;
    case ArgumentKind::workspace:
    case ArgumentKind::pointer:
    case ArgumentKind::stride:
      return 8;
  }
  return 0;
}

int64_t Argument::alignment_in_struct() const {
  switch (kind) {
    case ArgumentKind::tensor_map:
      return 64;
    case ArgumentKind::tensor:
    case ArgumentKind::scratch:
      return box_rows ? 64 : 8;
    case ArgumentKind::workspace:
    case ArgumentKind::pointer:
    case ArgumentKind::stride:
      return 8;
    case ArgumentKind::size:
    case ArgumentKind::scalar:
      return size_in_struct();
  }
  return 1;
}

const Argument* LaunchSpec::find(std::string_view name) const {
  for (const Argument& a : arguments)
    if (a.name == name) return &a;
  return nullptr;
}

std::optional<LaunchSpec> read_launch_spec(const SourcePtr& source, Diagnostics& diagnostics) {
  Json json;
  try {
    json = Json::parse(source->text);
  } catch (const Json::parse_error& error) {
    const uint32_t at = static_cast<uint32_t>(error.byte > 0 ? error.byte - 1 : 0);
    diagnostics.error("launch.json", {source, at, at + 1}, "is not JSON from here on");
    return std::nullopt;
  } catch (const Json::out_of_range&) {
    diagnostics.error("launch.json", {source, 0, 0}, "has a number that no double holds");
    return std::nullopt;
  }
  const size_t before = diagnostics.all().size();
  const Fields fields(json, "", source, diagnostics);
  if (!json.is_object()) {
    fields.fault("the file", "is not an object");
    return std::nullopt;
  }
  fields.only({"entry", "target", "threads", "shared_bytes", "parameter_bytes", "cluster",
               "resident", "grid", "grid_y", "grid_z", "requires", "constants", "arguments",
               "before", "after"});
  LaunchSpec spec;
  spec.entry = fields.text("entry");
  spec.target = fields.text("target");
  spec.threads = fields.integer("threads", 1, 1024);
  spec.shared_bytes = fields.integer("shared_bytes", 0, 1 << 20);
  spec.parameter_bytes = fields.integer("parameter_bytes", 1, largest_parameters);
  spec.cluster = fields.integer("cluster", 1, largest_cluster);
  spec.resident = fields.integer("resident", 1, largest_resident);
  if (const Json* grid = fields.get("grid"))
    if (const auto e = fields.expression(*grid, "grid")) spec.grid = *e;
  if (const Json* grid = fields.get("grid_y", false))
    spec.grid_y = fields.expression(*grid, "grid_y");
  if (const Json* grid = fields.get("grid_z", false))
    spec.grid_z = fields.expression(*grid, "grid_z");
  read_requirements(fields, spec);
  read_constants(fields, spec);
  read_arguments(fields, source, diagnostics, spec);
  check_strides(fields, spec);
  read_passes(fields, "before", source, diagnostics, spec.before);
  read_passes(fields, "after", source, diagnostics, spec.after);
  if (diagnostics.all().size() == before) check_layout(spec, source, diagnostics);
  if (diagnostics.all().size() != before) return std::nullopt;
  return spec;
}

}  // namespace kw::runtime
