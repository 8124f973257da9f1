#include "num/npy.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/files.h"

namespace kw {
namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

struct Descr {
  Dtype type;
  const char* text;
};
constexpr Descr kDescrs[] = {{Dtype::f64, "<f8"},    {Dtype::f32, "<f4"},  {Dtype::f16, "<f2"},
                             {Dtype::bf16, "<u2"},   {Dtype::e4m3, "|u1"}, {Dtype::i64, "<i8"},
                             {Dtype::i32, "<i4"},    {Dtype::u32, "<u4"},  {Dtype::u8, "|u1"},
                             {Dtype::boolean, "|b1"}};

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double decode(Dtype t, const char* at) {
  switch (t) {
    case Dtype::f64:
      return load<double>(at);
    case Dtype::f32:
      return load<float>(at);
    case Dtype::f16:
      return f16_value(load<uint16_t>(at));
    case Dtype::bf16:
      return bf16_value(load<uint16_t>(at));
    case Dtype::e4m3:
      return e4m3_value(load<uint8_t>(at));
    case Dtype::i64:
      return static_cast<double>(load<int64_t>(at));
    case Dtype::i32:
      return load<int32_t>(at);
    case Dtype::u32:
      return load<uint32_t>(at);
    case Dtype::u8:
      return load<uint8_t>(at);
    case Dtype::boolean:
      return load<uint8_t>(at) != 0;
  }
  return 0;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void encode(Dtype t, double x, std::string& out) {
  switch (t) {
    case Dtype::f64:
      return append(out, x);
    case Dtype::f32:
      return append(out, static_cast<float>(x));
    case Dtype::f16:
      return append(out, f16_bits(static_cast<float>(x)));
    case Dtype::bf16:
      return append(out, bf16_bits(static_cast<float>(x)));
    case Dtype::e4m3:
      return append(out, e4m3_bits(static_cast<float>(x)));
    case Dtype::i64:
      return append(out, static_cast<int64_t>(x));
    case Dtype::i32:
      return append(out, static_cast<int32_t>(x));
    case Dtype::u32:
      return append(out, static_cast<uint32_t>(x));
    case Dtype::u8:
      return append(out, static_cast<uint8_t>(x));
    case Dtype::boolean:
      return append(out, static_cast<uint8_t>(x != 0));
  }
}

// What stands between two marks; empty when one is missing.
std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const size_t begin = text.find(open);
  if (begin == std::string::npos) return {};
  const size_t end = text.find(close, begin + open.size());
  if (end == std::string::npos) return {};
  return text.substr(begin + open.size(), end - begin - open.size());
}

struct Header {
  Dtype dtype;
  std::vector<int64_t> shape;
  size_t data;  // where the elements begin
};

// Returns what is wrong, or the empty string.
std::string read_header(const std::string& bytes, Header& header) {
  if (bytes.size() < 10 || bytes.compare(0, 8, kMagic) != 0)
    return "this is not a .npy file of version 1.0";
  const size_t length = load<uint16_t>(bytes.data() + 8);
  header.data = 10 + length;
  if (bytes.size() < header.data) return "the file ends inside its header";
  const std::string text = bytes.substr(10, length);
  const std::string descr = between(text, "'descr': '", "'");
  const size_t has_shape = text.find("'shape': (");
  if (descr.empty() || has_shape == std::string::npos)
    return "the header has no 'descr' or no 'shape': " + text;
  if (text.find("'fortran_order': True") != std::string::npos)
    return "the array is in Fortran order; only C order is read";
  bool known = false;
  for (const Descr& d : kDescrs)
    if (descr == d.text) {
      header.dtype = d.type;
      known = true;
    }
  if (!known) return "element type '" + descr + "' is not one that is read here";
  std::istringstream dims(between(text, "'shape': (", ")"));
  for (std::string d; std::getline(dims, d, ',');)
    if (d.find_first_not_of(' ') != std::string::npos) {
      char* end = nullptr;
      header.shape.push_back(std::strtoll(d.c_str(), &end, 10));
      if (*end != '\0' || header.shape.back() < 0) return "its shape is not a list of sizes";
    }
  int64_t count = 1;
  for (const int64_t d : header.shape)
    if (__builtin_mul_overflow(count, d, &count) || count > int64_t{1} << 48)
      return "its shape asks for more elements than any file has";
  return {};
}

}  // namespace

std::optional<Tensor> parse_npy(const std::string& bytes, const std::string& name,
                                Diagnostics& diagnostics, std::optional<Dtype> as) {
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("npy", {}, fmt::format("{}: {}", name, why));
    return std::nullopt;
  };
  Header header;
  if (const std::string why = read_header(bytes, header); !why.empty()) return refuse(why);
  if (header.dtype == Dtype::bf16 && as != Dtype::bf16)
    return refuse("its elements are <u2, which is read as bf16 only where that is asked for");
  if (header.dtype == Dtype::u8 && as == Dtype::e4m3) header.dtype = Dtype::e4m3;
  const int64_t count = element_count(header.shape);
  const size_t size = kw::bytes(header.dtype);
  if (bytes.size() != header.data + count * size)
    return refuse(fmt::format("the shape asks for {} bytes of elements, the file has {}",
                              count * size, bytes.size() - header.data));
  Tensor out(header.dtype, header.shape);
  for (int64_t n = 0; n < count; ++n)
    out.values[n] = decode(header.dtype, bytes.data() + header.data + n * size);
  return out;
}

std::optional<Tensor> read_npy(const std::filesystem::path& path, Diagnostics& diagnostics,
                               std::optional<Dtype> as) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    diagnostics.error("npy", {}, fmt::format("{}: the file cannot be opened", path.string()));
    return std::nullopt;
  }
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_npy(bytes, path.string(), diagnostics, as);
}

bool write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string dims;
  for (int64_t d : tensor.shape) dims += fmt::format("{},", d);
  if (tensor.rank() > 1) dims.pop_back();  // a tuple of one keeps its comma
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   kDescrs[static_cast<size_t>(tensor.dtype)].text, dims);
  // The elements begin at a multiple of 64 bytes; the header ends with a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  append(out, static_cast<uint16_t>(header.size()));
  out += header;
  out.reserve(out.size() + tensor.count() * bytes(tensor.dtype));
  for (double x : tensor.values) encode(tensor.dtype, x, out);
  return write_file(path, out);
}

}  // namespace kw
