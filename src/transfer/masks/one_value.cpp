#include "transfer/masks/one_value.h"

#include <algorithm>
#include <numeric>

#include "transfer/masks/coordinates.h"

namespace kw::transfer {
namespace {

using tl::Expr;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Scope;

// The innermost declaration of a name, and the scope that it stands in: what its value mentions is
// to be read there.
struct Declared {
  const tl::Symbol* symbol = nullptr;
  const Scope* scope = nullptr;
};

Declared declared(const std::string& name, const Scope& scope) {
  for (const Scope* s = &scope; s; s = s->outer())
    if (const tl::Symbol* symbol = s->find_here(name)) return {symbol, s};
  return {};
}

int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

}  // namespace

int64_t divisor_of(const ExprPtr& e, const Scope& scope) {
  const auto of = [&](size_t n) { return divisor_of(e->args[n], scope); };
  switch (e->kind) {
    case ExprKind::integer:
      return std::stoll(e->text);
    case ExprKind::name: {
      const auto [symbol, where] = declared(e->text, scope);
      if (!symbol || !symbol->value || !symbol->stmt) return 1;
      const bool fixed = symbol->stmt->op == tl::Op::let || symbol->stmt->op == tl::Op::param;
      return fixed && symbol->type.kind == tl::Type::integer ? divisor_of(symbol->value, *where)
                                                             : 1;
    }
    case ExprKind::binary:
      if (e->text == "*") return of(0) * of(1);
      if (e->text == "+" || e->text == "-") return std::gcd(of(0), of(1));
      return 1;
    case ExprKind::unary:
      return e->text == "-" ? of(0) : 1;
    case ExprKind::where:
      return std::gcd(of(1), of(2));
    case ExprKind::call:
      return e->text == "min" || e->text == "max" ? std::gcd(of(0), of(1)) : 1;
    default:
      return 1;
  }
}

std::optional<int64_t> TileValues::constant_of(const ExprPtr& e) const {
  if (has_coordinate(e)) return std::nullopt;
  const tl::Interval value = tl::interval_of(e, scope_);
  if (value.lo != value.hi) return std::nullopt;
  return value.lo;
}

std::optional<TileValues::Sum> TileValues::sum_of(const ExprPtr& e) const {
  if (const auto c = constant_of(e)) return Sum{0, 0, *c, 0};
  if (e->is_name("i")) return Sum{1, 0, 0, 0};
  if (e->is_name("j")) return Sum{0, 1, 0, 0};
  const bool binary = e->kind == ExprKind::binary;
  const auto times = [](const Sum& x, int64_t k) {
    return Sum{x.i * k, x.j * k, x.constant * k, x.divisor * k};
  };
  if (binary && (e->text == "+" || e->text == "-")) {
    const auto a = sum_of(e->args[0]), b = sum_of(e->args[1]);
    if (!a || !b) return std::nullopt;
    const Sum c = times(*b, e->text == "+" ? 1 : -1);
    return Sum{a->i + c.i, a->j + c.j, a->constant + c.constant, std::gcd(a->divisor, c.divisor)};
  }
  if (e->kind == ExprKind::unary && e->text == "-") {
    const auto a = sum_of(e->args[0]);
    return a ? std::optional(times(*a, -1)) : std::nullopt;
  }
  if (binary && e->text == "*")
    for (const size_t n : {0, 1})
      if (const auto k = constant_of(e->args[n])) {
        const auto a = sum_of(e->args[1 - n]);
        return a ? std::optional(times(*a, *k)) : std::nullopt;
      }
  if (binary && e->text == "%" && has_coordinate(e))
    if (const auto rest = sum_of_remainder(e->args[0], e->args[1])) return rest;
  if (!is_one(e)) return std::nullopt;
  return Sum{0, 0, 0, has_coordinate(e) ? 1 : divisor_of(e, scope_)};
}

// x % d, which is x - d * (x // d), where that quotient is one value.
std::optional<TileValues::Sum> TileValues::sum_of_remainder(const ExprPtr& x,
                                                            const ExprPtr& d) const {
  const auto by = constant_of(d);
  auto sum = sum_of(x);
  if (!by || *by <= 0 || !sum || !is_one_quotient(*sum, *by)) return std::nullopt;
  sum->divisor = std::gcd(sum->divisor, *by);
  return sum;
}

// floor(x / d) is one value where floor(x / g) is, for a g that divides d and all of x but its
// constant and the place within the tile. d == 0: the sign of x, which every g decides.
bool TileValues::is_one_quotient(const Sum& x, int64_t d) const {
  int64_t g = std::gcd(std::gcd(d, x.divisor), std::gcd(x.i * i_.divisor, x.j * j_.divisor));
  if (g == 0) return false;
  const int64_t row = x.i * (i_.count - 1), key = x.j * (j_.count - 1);
  const int64_t rest = floor_mod(x.constant, g);
  return rest + std::min<int64_t>(0, row) + std::min<int64_t>(0, key) >= 0 &&
         rest + std::max<int64_t>(0, row) + std::max<int64_t>(0, key) < g;
}

bool TileValues::is_one_quotient(const ExprPtr& x, int64_t d) const {
  const auto sum = sum_of(x);
  return sum && d > 0 && is_one_quotient(*sum, d);
}

// a < b is a - b < 0, and a <= b is a - b - 1 < 0.
bool TileValues::is_one_comparison(const Expr& e) const {
  if (e.text == "==" || e.text == "!=") return false;
  const bool turned = e.text == ">" || e.text == ">=", strict = e.text == "<" || e.text == ">";
  auto difference = sum_of(tl::binary("-", e.args[turned ? 1 : 0], e.args[turned ? 0 : 1]));
  if (!difference) return false;
  if (!strict) --difference->constant;
  return is_one_quotient(*difference, 0);
}

bool TileValues::is_one(const ExprPtr& e) const {
  if (!has_coordinate(e)) return true;
  if (e->args.empty()) return false;
  const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
  bool all = true;
  for (size_t n = first; n < e->args.size() && all; ++n) all = is_one(e->args[n]);
  if (all) return true;
  if (tl::is_comparison(*e)) return is_one_comparison(*e);
  if (e->kind != ExprKind::binary || e->args.size() != 2) return false;
  const auto by = constant_of(e->args[1]);
  if (!by) return false;
  if (e->text == "//") return is_one_quotient(e->args[0], *by);
  return e->text == ">>" && *by >= 0 && *by < 32 && is_one_quotient(e->args[0], int64_t{1} << *by);
}

void with_tile_values(const tl::Program& program, const Facts& facts, const tl::Stmt& map,
                      const std::function<void(const TileValues&)>& use) {
  tl::walk_scoped(program, [&](const tl::Stmt& s, const Scope& scope) {
    if (&s != &map) return;
    const tl::Symbol* tile = scope.find(facts.score);
    const tl::Interval rows = tl::interval_of(tile->shape.at(0), scope),
                       keys = tl::interval_of(tile->shape.at(1), scope);
    if (rows.lo != rows.hi || keys.lo != keys.hi) return;
    use(TileValues({rows.lo, divisor_of(map.i0(), scope)}, {keys.lo, divisor_of(map.j0(), scope)},
                   scope));
  });
}

}  // namespace kw::transfer
