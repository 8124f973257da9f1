#include "runtime/launch/pack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/launch/tensor_map.h"
#include "support/largest_size.h"

namespace kw::runtime {
namespace {

// One call of pack(): what is bound so far, and where complaints go.
class Packer {
 public:
  Packer(const LaunchSpec& spec, const Tensors& tensors, const Scalars& scalars,
         Diagnostics& diagnostics)
      : spec_(spec), tensors_(tensors), scalars_(scalars), diagnostics_(diagnostics) {}

  std::optional<Packed> run(int multiprocessors) {
    before_ = diagnostics_.all().size();
    bindings_ = spec_.constants;
    bindings_["SMS"] = int64_t{multiprocessors};
    check_names();
    if (failed()) return std::nullopt;
    for (const Argument& a : spec_.arguments)
      if (a.is_tensor()) bind_shape(a, tensors_.at(a.name));
    if (failed()) return std::nullopt;
    evaluate_values();
    if (failed()) return std::nullopt;
    check_requirements();
    if (failed()) return std::nullopt;
    packed_.bytes.assign(spec_.parameter_bytes, 0);
    for (const Argument& a : spec_.arguments) pack_argument(a);
    pack_grid();
    if (failed()) return std::nullopt;
    return std::move(packed_);
  }

 private:
  bool failed() const { return diagnostics_.all().size() != before_; }
  Diagnostic& fault(const char* code, std::string message) {
    return diagnostics_.error(code, {}, std::move(message));
  }

  // Every tensor and scalar that is needed is given, and none that is not.
  void check_names();
  void bind_shape(const Argument& argument, const TensorView& tensor);
  void bind_extent(const Argument& argument, size_t dim, int64_t extent);
  void evaluate_values();
  void check_requirements();
  void pack_argument(const Argument& argument);
  void pack_tensor(const Argument& argument, const TensorView& tensor);
  void pack_pointer(const Argument& argument, const TensorView& tensor);
  void check_span(const Argument& argument, const TensorView& tensor);
  void pack_scratch(const Argument& argument);
  void pack_size(const Argument& argument);
  void pack_scalar(const Argument& argument);
  void pack_grid();
  std::optional<Number> evaluate(const Expression& e, const std::string& whose) {
    std::string why;
    std::optional<Number> value = e.evaluate(bindings_, why);
    if (!value) fault("launch.expression", fmt::format("{} = {}: {}", whose, e.text(), why));
    return value;
  }
  std::optional<int64_t> integer(const Expression& e, const std::string& whose, int64_t low,
                                 int64_t high);
  template <class T>
  void store(int64_t offset, T value) {
    memcpy(packed_.bytes.data() + offset, &value, sizeof value);
  }

  const LaunchSpec& spec_;
  const Tensors& tensors_;
  const Scalars& scalars_;
  Diagnostics& diagnostics_;
  size_t before_ = 0;
  Bindings bindings_;
  std::map<std::string, std::string> bound_by_;  // size -> "q has M = 100 (dimension 2)"
  Packed packed_;
};

std::vector<std::string> tensor_names(const LaunchSpec& spec) {
  std::vector<std::string> names;
  for (const Argument& a : spec.arguments)
    if (a.is_tensor()) names.push_back(a.name);
  return names;
}

// Scalars that some part of the launch reads: those without a value, and names in expressions.
std::vector<std::string> readable_names(const LaunchSpec& spec) {
  std::vector<std::string> names;
  spec.grid.names(names);
  for (const auto& side : {spec.grid_y, spec.grid_z})
    if (side) side->names(names);
  for (const PrePass& p : spec.before) p.grid.names(names);
  for (const PrePass& p : spec.after) p.grid.names(names);
  for (const Requirement& r : spec.requirements) {
    r.left.names(names);
    r.right.names(names);
  }
  for (const Argument& a : spec.arguments) {
    if (a.kind == ArgumentKind::scalar && !a.value) names.push_back(a.name);
    if (a.value) a.value->names(names);
    if (a.bytes) a.bytes->names(names);
  }
  return names;
}

void Packer::check_names() {
  const std::vector<std::string> names = tensor_names(spec_);
  for (const std::string& name : names)
    if (!tensors_.contains(name))
      fault("launch.missing",
            fmt::format("tensor {} is missing; the kernel takes {}", name, fmt::join(names, ", ")));
  for (const auto& [name, tensor] : tensors_)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fault("launch.unknown",
            fmt::format("unknown tensor {}; the kernel takes {}", name, fmt::join(names, ", ")));
  const std::vector<std::string> readable = readable_names(spec_);
  std::vector<std::string> scalars;  // those that a caller has to give
  for (const Argument& a : spec_.arguments)
    if (a.kind == ArgumentKind::scalar && !a.value) scalars.push_back(a.name);
  for (const auto& [name, value] : scalars_) {
    if (std::find(readable.begin(), readable.end(), name) == readable.end())
      fault("launch.unknown",
            fmt::format(
                "unknown scalar {}; this kernel takes {}", name,
                scalars.empty() ? std::string("none") : fmt::to_string(fmt::join(scalars, ", "))));
    const Argument* argument = spec_.find(name);
    const bool integer = argument && !is_float(argument->dtype) && value == std::trunc(value) &&
                         std::abs(value) < 0x1p53;
    bindings_[name] = integer ? Number(static_cast<int64_t>(value)) : Number(value);
  }
  for (const Argument& a : spec_.arguments)
    if (a.kind == ArgumentKind::scalar && !a.value && !scalars_.contains(a.name))
      fault("launch.missing", fmt::format("scalar {} is missing", a.name));
}

void Packer::bind_shape(const Argument& argument, const TensorView& tensor) {
  if (tensor.dtype != argument.dtype)
    fault("launch.dtype", fmt::format("{} is {}, the kernel takes {}", argument.name,
                                      kw::name(tensor.dtype), kw::name(argument.dtype)));
  if (tensor.shape.size() != argument.dims.size() || tensor.strides.size() != tensor.shape.size()) {
    std::vector<std::string> dims;
    for (const Expression& dim : argument.dims) dims.push_back(dim.text());
    fault("launch.shape", fmt::format("{} has shape [{}], the kernel takes [{}]", argument.name,
                                      fmt::join(tensor.shape, ", "), fmt::join(dims, ", ")));
    return;
  }
  for (size_t dim = 0; dim < argument.dims.size(); ++dim)
    bind_extent(argument, dim, tensor.shape[dim]);
  if (!argument.written) return;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    if (tensor.strides[dim] == 0 && tensor.shape[dim] > 1)
      fault("launch.stride", fmt::format("{} is written, but its dimension {} has stride 0: {} "
                                         "elements would share one place",
                                         argument.name, dim, tensor.shape[dim]));
}

void Packer::bind_extent(const Argument& argument, size_t dim, int64_t extent) {
  const std::string text = argument.dims[dim].text();
  std::string why;
  const std::optional<Number> known = argument.dims[dim].evaluate(bindings_, why);
  if (!known) {
    if (extent > kLargestSize)
      fault(
          "launch.range",
          fmt::format("{} has {} in dimension {} ({}), and kernels are checked for sizes up to {}",
                      argument.name, extent, dim, text, kLargestSize));
    bindings_[text] = extent;
    bound_by_[text] = fmt::format("{} has {}", argument.name, extent);
  } else if (as_real(*known) != static_cast<double>(extent)) {
    const auto by = bound_by_.find(text);
    fault("launch.shape",
          fmt::format("{} has {} in dimension {} ({}), but {}", argument.name, extent, dim, text,
                      by != bound_by_.end() ? by->second
                                            : fmt::format("the kernel takes {}", as_real(*known))));
  }
}

void Packer::evaluate_values() {
  for (const Argument& a : spec_.arguments)
    if (a.value)
      if (const std::optional<Number> value = evaluate(*a.value, a.name))
        bindings_[a.name] = *value;
}

void Packer::check_requirements() {
  for (const Requirement& r : spec_.requirements) {
    const std::string text = fmt::format("{} {} {}", r.left.text(), r.comparison, r.right.text());
    const auto left = evaluate(r.left, text), right = evaluate(r.right, text);
    if (!left || !right) continue;
    const double a = as_real(*left), b = as_real(*right);
    const std::string& c = r.comparison;
    const bool holds = c == ">="   ? a >= b
                       : c == ">"  ? a > b
                       : c == "<=" ? a <= b
                       : c == "<"  ? a < b
                       : c == "==" ? a == b
                                   : a != b;
    if (!holds)
      fault("launch.requires",
            fmt::format("the kernel requires {}, and the two sides are {} and {}", text, a, b));
  }
}

std::optional<int64_t> Packer::integer(const Expression& e, const std::string& whose, int64_t low,
                                       int64_t high) {
  const std::optional<Number> value = evaluate(e, whose);
  if (!value) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(&*value);
  if (integer && *integer >= low && *integer <= high) return *integer;
  fault("launch.range", fmt::format("{} = {} is {}, not an integer from {} to {}", whose, e.text(),
                                    as_real(*value), low, high));
  return std::nullopt;
}

void Packer::pack_argument(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::tensor_map:
    case ArgumentKind::tensor:
    case ArgumentKind::pointer:
      return pack_tensor(argument, tensors_.at(argument.name));
    case ArgumentKind::stride:
      return store<int64_t>(argument.offset, tensors_.at(argument.of).strides[argument.dim]);
    case ArgumentKind::size:
      return pack_size(argument);
    case ArgumentKind::scalar:
      return pack_scalar(argument);
    case ArgumentKind::workspace:
      if (const auto size = integer(*argument.bytes, argument.name, 1, int64_t{1} << 40))
        packed_.workspaces.push_back({argument.name, argument.offset, *size});
      return;
    case ArgumentKind::scratch:
      return pack_scratch(argument);
  }
}

// Words, which are counted by ints; or a tensor whose rows follow each other.
void Packer::pack_scratch(const Argument& argument) {
  const int64_t most = argument.dims.empty() ? int64_t{4} << 31 : int64_t{1} << 40;
  const auto size = integer(*argument.bytes, argument.name, 1, most);
  if (!size) return;
  PackedWorkspace packed{argument.name, argument.offset, *size, false, {}};
  const int64_t rank = static_cast<int64_t>(argument.dims.size());
  TensorView rows{0, argument.dtype, std::vector<int64_t>(rank), std::vector<int64_t>(rank, 1)};
  for (int64_t dim = rank; dim-- > 0;) {
    const auto extent = integer(argument.dims[dim], argument.name, 1, INT32_MAX);
    if (!extent) return;
    rows.shape[dim] = *extent;
    if (dim + 1 < rank) rows.strides[dim] = rows.strides[dim + 1] * rows.shape[dim + 1];
  }
  if (argument.box_rows) {
    packed.map = tensor_map_geometry(argument, rows, diagnostics_);
    if (!packed.map) return;
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    store<int64_t>(packed.pointer() + 8 + 8 * dim, rows.strides[dim]);
    store<int32_t>(packed.pointer() + 8 + 8 * rank + 4 * dim,
                   static_cast<int32_t>(rows.shape[dim]));
  }
  packed_.workspaces.push_back(std::move(packed));
}

void Packer::pack_tensor(const Argument& argument, const TensorView& tensor) {
  PackedTensor packed{.name = argument.name, .offset = argument.offset};
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    if (tensor.shape[dim] < 1)
      return (void)fault("launch.shape", fmt::format("{} has {} in dimension {}: nothing to do",
                                                     argument.name, tensor.shape[dim], dim));
  if (argument.kind == ArgumentKind::tensor_map) {
    packed.address_alignment = 16;
    packed.map = tensor_map_geometry(argument, tensor, diagnostics_);
    if (!packed.map) return;
  } else if (argument.kind == ArgumentKind::pointer) {
    packed.address_alignment =
        std::max<int64_t>(argument.row_alignment, static_cast<int64_t>(bytes(tensor.dtype)));
    pack_pointer(argument, tensor);
  } else {
    const int64_t element = static_cast<int64_t>(bytes(tensor.dtype));
    packed.address_alignment = argument.row_alignment ? argument.row_alignment : element;
    std::vector<int64_t> strides = tensor.strides;
    if (argument.row_alignment) {
      const auto rows = row_strides(argument, tensor, 0, diagnostics_);
      if (!rows) return;
      for (size_t dim = 0; dim < rows->size(); ++dim) strides[dim] = (*rows)[dim] / element;
    }
    const int64_t rank = static_cast<int64_t>(tensor.shape.size());
    if (!argument.written && !argument.row_alignment) check_span(argument, tensor);
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (tensor.shape[dim] > std::numeric_limits<int32_t>::max())
        fault("launch.range", fmt::format("{} has {} in dimension {}, more than 32 bits hold",
                                          argument.name, tensor.shape[dim], dim));
      store<int64_t>(argument.offset + 8 + 8 * dim, strides[dim]);
      store<int32_t>(argument.offset + 8 + 8 * rank + 4 * dim,
                     static_cast<int32_t>(tensor.shape[dim]));
    }
  }
  check_address(packed, tensor.data, diagnostics_);
  packed_.tensors.push_back(std::move(packed));
}

// A kernel that is given an address alone, and some strides, takes the rest for granted.
void Packer::pack_pointer(const Argument& argument, const TensorView& tensor) {
  if (argument.row_alignment && !row_strides(argument, tensor, 0, diagnostics_)) return;
  int64_t dense = 1;
  for (size_t dim = tensor.shape.size(); dim-- > 0; dense *= tensor.shape[dim]) {
    const bool told =
        std::any_of(spec_.arguments.begin(), spec_.arguments.end(), [&](const Argument& a) {
          return a.kind == ArgumentKind::stride && a.of == argument.name &&
                 a.dim == static_cast<int64_t>(dim);
        });
    if (!told && tensor.shape[dim] > 1 && tensor.strides[dim] != dense)
      fault("launch.stride",
            fmt::format("{} has stride {} in dimension {}, and the kernel, which is not told, "
                        "takes it to be {}",
                        argument.name, tensor.strides[dim], dim, dense));
  }
}

// A kernel that reads elements has the distance of neighbours in 32 bits.
void Packer::check_span(const Argument& argument, const TensorView& tensor) {
  if (tensor.shape.empty()) return;
  const int64_t stride = tensor.strides.back(), size = static_cast<int64_t>(bytes(tensor.dtype));
  if (tensor.shape.back() > 1 && (stride < 0 || stride > 0xffffffff / size))
    fault("launch.range",
          fmt::format("the elements of {}'s last dimension are {} elements of {} bytes apart, "
                      "2^32 bytes or more",
                      argument.name, stride, size));
}

void Packer::pack_size(const Argument& argument) {
  const auto bound = bindings_.find(argument.name);
  if (bound == bindings_.end()) {
    fault("launch.expression", fmt::format("no tensor's shape says what {} is", argument.name));
    return;
  }
  const auto* value = std::get_if<int64_t>(&bound->second);
  std::vector<std::string> names;  // a number alone, of a struct that is not ours, is what it is
  if (argument.value) argument.value->names(names);
  if (value && *value < 1 && (!argument.value || !names.empty()))
    fault("launch.range", fmt::format("{} is {}, and a size is positive", argument.name, *value));
  else if (value && *value <= std::numeric_limits<int32_t>::max())
    store<int32_t>(argument.offset, static_cast<int32_t>(*value));
  else
    fault("launch.range", fmt::format("{} is {}, not an integer of 32 bits", argument.name,
                                      as_real(bound->second)));
}

void Packer::pack_scalar(const Argument& argument) {
  const double value = as_real(bindings_.at(argument.name));
  const double rounded = round_to(argument.dtype, value);
  if (!is_float(argument.dtype) && rounded != value)
    fault("launch.range", fmt::format("{} is {}, which is not a value of {}", argument.name, value,
                                      kw::name(argument.dtype)));
  switch (argument.dtype) {
    case Dtype::f64:
      return store<double>(argument.offset, value);
    case Dtype::f32:
      return store<float>(argument.offset, static_cast<float>(value));
    case Dtype::bf16:
      return store(argument.offset, bf16_bits(static_cast<float>(rounded)));
    case Dtype::e4m3:
      return store(argument.offset, e4m3_bits(static_cast<float>(rounded)));
    case Dtype::f16:
      return store(argument.offset, f16_bits(static_cast<float>(rounded)));
    case Dtype::i64:
      return store(argument.offset, static_cast<int64_t>(value));
    case Dtype::i32:
      return store(argument.offset, static_cast<int32_t>(value));
    case Dtype::u32:
      return store(argument.offset, static_cast<uint32_t>(value));
    case Dtype::u8:
    case Dtype::boolean:
      return store(argument.offset, static_cast<uint8_t>(value));
  }
}

void Packer::pack_grid() {
  const auto blocks = integer(spec_.grid, "grid", 1, std::numeric_limits<int32_t>::max());
  if (!blocks) return;
  packed_.grid = static_cast<uint32_t>(*blocks);
  // The limit of the second and third dimension (CUDA C++ Programming Guide, compute capabilities).
  const auto side = [&](const std::optional<Expression>& e, const char* whose) {
    return static_cast<uint32_t>(e ? integer(*e, whose, 1, 65535).value_or(1) : 1);
  };
  packed_.grid_y = side(spec_.grid_y, "grid_y");
  packed_.grid_z = side(spec_.grid_z, "grid_z");
  for (const PrePass& p : spec_.before) {
    const auto before =
        integer(p.grid, "the grid of " + p.entry, 1, std::numeric_limits<int32_t>::max());
    packed_.grid_before.push_back(before ? static_cast<uint32_t>(*before) : 0);
  }
  for (const PrePass& p : spec_.after) {
    const auto after =
        integer(p.grid, "the grid of " + p.entry, 1, std::numeric_limits<int32_t>::max());
    packed_.grid_after.push_back(after ? static_cast<uint32_t>(*after) : 0);
  }
  if (*blocks % spec_.cluster != 0)
    fault("launch.range", fmt::format("grid = {} is {}, no multiple of the {} CTAs of a cluster",
                                      spec_.grid.text(), *blocks, spec_.cluster));
}

}  // namespace

std::optional<Packed> pack(const LaunchSpec& spec, const Tensors& tensors, const Scalars& scalars,
                           int multiprocessors, Diagnostics& diagnostics) {
  return Packer(spec, tensors, scalars, diagnostics).run(multiprocessors);
}

bool check_address(const PackedTensor& tensor, uint64_t address, Diagnostics& diagnostics) {
  if (address != 0 && address % tensor.address_alignment == 0) return true;
  diagnostics.error("launch.alignment", {},
                    address == 0
                        ? fmt::format("{} has no memory (address 0)", tensor.name)
                        : fmt::format("{} is at address {:#x}, which is not a multiple of {} "
                                      "bytes",
                                      tensor.name, address, tensor.address_alignment));
  return false;
}

}  // namespace kw::runtime
