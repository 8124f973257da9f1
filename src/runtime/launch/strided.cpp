#include "runtime/launch/strided.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace kw::runtime {
namespace {

double drawn(const Draw& how, const Random& random, int64_t n) {
  switch (how.kind) {
    case Draw::Kind::normal:
      return random.normal(n) * how.scale;
    case Draw::Kind::uniform:
      return random.uniform(n) * how.scale;
    case Draw::Kind::integer:
      return static_cast<double>(random.integer(n, how.low, how.high));
    case Draw::Kind::constant:
      return how.value;
  }
  return 0;
}

// Element n of a tensor in row-major order, before it is rounded.
double content(const Contents& how, const Random& random, const std::vector<int64_t>& shape,
               int64_t n) {
  if (how.given) return how.given->values[n];
  if (how.window < 0) return drawn(how.draw, random, n) + how.mean;
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  return n / columns % rows == how.window + n % columns ? how.draw.value : 0;
}

template <class T>
void put(char* at, T value) {
  memcpy(at, &value, sizeof value);
}
template <class T>
T get(const char* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

// `value` is already rounded to the type.
void encode(char* at, Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::f64:
      return put(at, value);
    case Dtype::f32:
      return put(at, static_cast<float>(value));
    case Dtype::f16:
      return put(at, f16_bits(static_cast<float>(value)));
    case Dtype::bf16:
      return put(at, bf16_bits(static_cast<float>(value)));
    case Dtype::e4m3:
      return put(at, e4m3_bits(static_cast<float>(value)));
    case Dtype::i64:
      return put(at, static_cast<int64_t>(value));
    case Dtype::i32:
      return put(at, static_cast<int32_t>(value));
    case Dtype::u32:
      return put(at, static_cast<uint32_t>(value));
    case Dtype::u8:
    case Dtype::boolean:
      return put(at, static_cast<uint8_t>(value));
  }
}

}  // namespace

Strided Strided::of(Dtype dtype, std::vector<int64_t> shape, bool rows_before_heads) {
  std::vector<int> order;  // dimensions from the outermost in memory to the innermost
  for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int>(d));
  if (rows_before_heads && shape.size() == 4) std::swap(order[1], order[2]);
  Strided out{dtype, shape, std::vector<int64_t>(shape.size(), 1)};
  int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    out.strides[*d] = stride;
    stride *= shape[*d];
  }
  return out;
}

int64_t Strided::count() const { return element_count(shape); }

int64_t Strided::position(int64_t n) const {
  int64_t at = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    at += n % shape[d] * strides[d];
    n /= shape[d];
  }
  return at;
}

std::string draw_bytes(const Contents& how, uint64_t seed, const Strided& tensor) {
  const Random random(seed, how.draw.stream);
  const int64_t size = static_cast<int64_t>(bytes(tensor.dtype)), count = tensor.count();
  std::string out(tensor.bytes(), '\0');
  const auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      encode(out.data() + tensor.position(n) * size, tensor.dtype,
             drawn(tensor.dtype, content(how, random, tensor.shape, n)));
  };
  const int64_t warpgroups = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1,
                                                 std::max<int64_t>(count >> 16, 1));
  std::vector<std::thread> threads;
  for (int64_t w = 1; w < warpgroups; ++w)
    threads.emplace_back(fill, count * w / warpgroups, count * (w + 1) / warpgroups);
  fill(0, count / warpgroups);
  for (std::thread& thread : threads) thread.join();
  return out;
}

Tensor draw_tensor(const Contents& how, uint64_t seed, Dtype dtype, std::vector<int64_t> shape) {
  Tensor out(dtype, std::move(shape));
  const Random random(seed, how.draw.stream);
  for (int64_t n = 0; n < out.count(); ++n)
    out.values[n] = drawn(dtype, content(how, random, out.shape, n));
  return out;
}

double element(std::string_view all, Dtype dtype, int64_t position) {
  const char* at = all.data() + position * static_cast<int64_t>(bytes(dtype));
  switch (dtype) {
    case Dtype::f64:
      return get<double>(at);
    case Dtype::f32:
      return get<float>(at);
    case Dtype::f16:
      return f16_value(get<uint16_t>(at));
    case Dtype::bf16:
      return bf16_value(get<uint16_t>(at));
    case Dtype::e4m3:
      return e4m3_value(get<uint8_t>(at));
    case Dtype::i64:
      return static_cast<double>(get<int64_t>(at));
    case Dtype::i32:
      return get<int32_t>(at);
    case Dtype::u32:
      return get<uint32_t>(at);
    case Dtype::u8:
    case Dtype::boolean:
      return get<uint8_t>(at);
  }
  return 0;
}

}  // namespace kw::runtime
