#include "num/random.h"

#include <algorithm>
#include <thread>

namespace kw {

Random::Random(uint64_t seed, uint64_t stream)
    : base_(mix(mix(seed + kGolden) + (stream + 1) * kGolden)) {}

namespace {

double value_of(const Draw& how, const Random& random, int64_t n) {
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
  return how.value;
}

}  // namespace

double drawn(Dtype t, double x) {
  return round_to(t, t == Dtype::e4m3 ? std::clamp(x, -448.0, 448.0) : x);
}

Tensor draw(const Draw& how, uint64_t seed, Dtype dtype, std::vector<int64_t> shape,
            const std::optional<Slices>& only) {
  Tensor out(dtype, std::move(shape));
  const Random random(seed, how.stream);
  const bool real = is_float(dtype);
  const auto fill = [&](int64_t from, int64_t to) {
    for (int64_t n = from; n < to; ++n) {
      const double value = value_of(how, random, n);
      // As PyTorch does: what comes to 16 bits comes through 32.
      out.values[n] = drawn(dtype, real ? static_cast<float>(value) : value);
    }
  };
  if (only) {
    int64_t inner = 1;
    for (size_t d = only->dim + 1; d < out.shape.size(); ++d) inner *= out.shape[d];
    const int64_t extent = out.shape[only->dim], all = out.count();
    for (int64_t first = 0; first < all; first += extent * inner)
      for (const int64_t at : only->at) fill(first + at * inner, first + (at + 1) * inner);
    return out;
  }
  constexpr int64_t kPerThread = 1 << 20;  // fewer are drawn before a thread has begun
  const int64_t most = std::max(1u, std::thread::hardware_concurrency());
  const int64_t threads = std::clamp<int64_t>(out.count() / kPerThread, 1, most);
  std::vector<std::thread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back(fill, out.count() * t / threads, out.count() * (t + 1) / threads);
  fill(0, out.count() / threads);
  for (std::thread& t : others) t.join();
  return out;
}

}  // namespace kw
