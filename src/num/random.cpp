#include "num/random.h"

namespace kw {

Random::Random(uint64_t seed, uint64_t stream)
    : base_(mix(mix(seed + kGolden) + (stream + 1) * kGolden)) {}

Tensor draw(const Draw& how, uint64_t seed, Dtype dtype, std::vector<int64_t> shape) {
  Tensor out(dtype, std::move(shape));
  const Random random(seed, how.stream);
  for (int64_t n = 0; n < out.count(); ++n) {
    double value = how.value;
    switch (how.kind) {
      case Draw::Kind::normal:
        value = random.normal(n) * how.scale;
        break;
      case Draw::Kind::uniform:
        value = random.uniform(n) * how.scale;
        break;
      case Draw::Kind::integer:
        value = static_cast<double>(random.integer(n, how.low, how.high));
        break;
      case Draw::Kind::constant:
        break;
    }
    // As PyTorch does: what comes to 16 bits comes through 32.
    out.values[n] = round_to(dtype, is_float(dtype) ? static_cast<float>(value) : value);
  }
  return out;
}

}  // namespace kw
