#include "operator/sums.h"

namespace kw::spec {
namespace {

void add_each(std::vector<double>& to, const std::vector<double>& share) {
  for (size_t n = 0; n < to.size(); ++n) to[n] += share[n];
}

}  // namespace

std::vector<HeadAt> heads_of(int64_t B, int64_t H, int64_t G,
                             const std::function<bool(int64_t)>& ends_group) {
  std::vector<HeadAt> out;
  for (int64_t b = 0; b < B; ++b) {
    int64_t g = 0;
    for (int64_t h = 0; h < H; ++h) {
      out.push_back({b, B, h, H, g, G, ends_group(h)});
      g += out.back().ends_group;
    }
  }
  return out;
}

Block block_of(const Output& output, const HeadAt& at) {
  Block out{0, true};
  if (output.has('b'))
    out.number = at.b;
  else
    out.complete = at.b + 1 == at.B;
  if (output.has('h')) return {out.number * at.H + at.h, out.complete};
  if (output.has('g')) return {out.number * at.G + at.g, out.complete && at.ends_group};
  return {out.number, out.complete && at.h + 1 == at.H};
}

void add_share(Held& sum, const Held& share) {
  add_each(sum.want, share.want);
  add_each(sum.noises, share.noises);
  add_each(sum.allowed, share.allowed);
}

}  // namespace kw::spec
