#include "operator/expr/places.h"

#include <algorithm>

namespace kw::spec {

ExprPtr replace(const ExprPtr& e, const ExprPtr& what, const ExprPtr& by) {
  return rewrite(e, [&](const ExprPtr& x) { return equal(x, what) ? by : nullptr; });
}

std::vector<ExprPtr> places_of(const ExprPtr& e, const std::string& argument) {
  std::vector<ExprPtr> out;
  rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    const auto is_it = [&](const ExprPtr& other) { return equal(other, x); };
    if (x->kind == Kind::read && x->name == argument && std::none_of(out.begin(), out.end(), is_it))
      out.push_back(x);
    return nullptr;
  });
  return out;
}

}  // namespace kw::spec
