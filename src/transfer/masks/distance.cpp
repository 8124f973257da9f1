#include "transfer/masks/distance.h"

#include <algorithm>
#include <vector>

#include "transfer/masks/coordinates.h"

namespace kw::transfer {
namespace {

using tl::ExprKind;
using tl::ExprPtr;

struct Addend {
  bool negative;
  ExprPtr value;
};

void addends(const ExprPtr& e, bool negative, std::vector<Addend>& out) {
  const bool minus = e->text == "-";
  if (e->kind == ExprKind::binary && (minus || e->text == "+")) {
    addends(e->args[0], negative, out);
    addends(e->args[1], negative != minus, out);
  } else if (e->kind == ExprKind::unary && minus) {
    addends(e->args[0], !negative, out);
  } else {
    out.push_back({negative, e});
  }
}

// Takes j and -i, or -j and i, out of a sum: the sign of the distance, or 0.
int take_distance(std::vector<Addend>& sum) {
  for (size_t j = 0; j < sum.size(); ++j)
    for (size_t i = 0; i < sum.size(); ++i) {
      const bool negative = sum[j].negative;
      if (!sum[j].value->is_name("j") || !sum[i].value->is_name("i") || sum[i].negative == negative)
        continue;
      sum.erase(sum.begin() + std::max(i, j));
      sum.erase(sum.begin() + std::min(i, j));
      return negative ? -1 : 1;
    }
  return 0;
}

// A sum in which j and -i stand, or -j and i; null for another. Sums of reals keep their order:
// there only j - i and i - j themselves.
ExprPtr of_sum(const ExprPtr& e, bool real) {
  std::vector<Addend> sum;
  addends(e, false, sum);
  const int sign = !real || sum.size() == 2 ? take_distance(sum) : 0;
  if (!sign) return nullptr;
  ExprPtr d = tl::name(kDistance);
  if (real) d = tl::call("f32", {d});
  ExprPtr out = sign < 0 ? tl::unary("-", d) : d;
  for (const Addend& a : sum) {
    const ExprPtr value = over_distance(a.value, real);
    if (!value) return nullptr;
    out = tl::binary(a.negative ? "-" : "+", out, value);
  }
  return out;
}

}  // namespace

ExprPtr over_distance(const ExprPtr& e, bool real) {
  if (tl::mentions(e, kDistance)) return nullptr;
  if (!has_coordinate(e)) return e;
  if (tl::is_comparison(*e)) {  // i < j: i - j < 0
    const ExprPtr apart = of_sum(tl::binary("-", e->args[0], e->args[1]), real);
    if (apart) return tl::binary(e->text, apart, real ? tl::real(0) : tl::integer(0));
  }
  if (const ExprPtr sum = of_sum(e, real)) return sum;
  if (e->args.empty()) return nullptr;
  tl::Expr out = *e;
  const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
  for (size_t n = first; n < out.args.size(); ++n) {
    out.args[n] = over_distance(out.args[n], real);
    if (!out.args[n]) return nullptr;
  }
  return std::make_shared<const tl::Expr>(std::move(out));
}

}  // namespace kw::transfer
