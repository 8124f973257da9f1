#include "exec/exact.h"

#include <algorithm>

#include "num/random.h"

namespace kw::exec {

using exact::Algebra;
using exact::Element;

namespace {

constexpr uint64_t kDrawn = uint64_t(1) << 63;  // names of what the reading leaves to chance

uint8_t opaque_of(const Operand& o, int k) {
  if (!o.e) return 0;
  return o.type == Type::real || o.type == Type::boolean ? o.e[k].opaque[0] : 0;
}

Element real_at(const Algebra& algebra, const Operand& o, int k) {
  return o.type == Type::real ? o.e[k] : algebra.integer(static_cast<int64_t>(o.x[k]));
}

Element real_result(const Algebra& A, Fn fn, const Operand in[3], int k) {
  const auto arg = [&](int n) { return real_at(A, in[n], k); };
  switch (fn) {
    case Fn::add:
      return A.add(arg(0), arg(1));
    case Fn::sub:
      return A.sub(arg(0), arg(1));
    case Fn::mul:
      return A.mul(arg(0), arg(1));
    case Fn::divide:
      return A.div(arg(0), arg(1));
    case Fn::min:
      return A.min(arg(0), arg(1));
    case Fn::max:
      return A.max(arg(0), arg(1));
    case Fn::negate:
      return A.negate(arg(0));
    case Fn::abs:
      return A.max(arg(0), A.negate(arg(0)));
    case Fn::exp2:
      return A.exp2(arg(0));
    case Fn::log2:
      return A.log2(arg(0));
    case Fn::tanh:
      return A.tanh(arg(0));
    case Fn::reciprocal:
      return A.reciprocal(arg(0));
    case Fn::rsqrt:
      return A.rsqrt(arg(0));
    case Fn::to_drawn:
      return in[0].type == Type::integer ? A.of_integer(static_cast<int64_t>(in[0].x[k])) : arg(0);
    case Fn::to_bf16:  // roundings are the values reading's to see
      return arg(0);
    case Fn::fma:
      return A.add(A.mul(arg(0), arg(1)), arg(2));
    case Fn::where: {
      Element e = arg(in[0].x[k] != 0 ? 1 : 2);
      for (uint8_t& bits : e.opaque) bits |= opaque_of(in[0], k);
      return e;
    }
    default:
      return arg(0);  // to_real
  }
}

// A comparison of which one side is real.
Algebra::Truth compared(const Algebra& A, Fn fn, const Element& a, const Element& b) {
  Algebra::Truth t{};
  switch (fn) {
    case Fn::equal:
      return A.equal(a, b);
    case Fn::differ:
      t = A.equal(a, b);
      t.holds = !t.holds;
      return t;
    case Fn::less:
      return A.less(a, b);
    case Fn::greater:
      return A.less(b, a);
    case Fn::less_equal:
    case Fn::greater_equal:
      // What is undefined compares false with everything.
      if (a.kind == exact::Kind::undefined || b.kind == exact::Kind::undefined) return A.less(a, b);
      t = fn == Fn::less_equal ? A.less(b, a) : A.less(a, b);
      t.holds = !t.holds;
      return t;
    default:
      return t;
  }
}

}  // namespace

void exact_apply(const Algebra& algebra, Fn fn, Type result, int n, const Operand in[3], double* x,
                 Element* e) {
  if (result == Type::real) {
    for (int k = 0; k < n; ++k) e[k] = real_result(algebra, fn, in, k);
    return;
  }
  const bool reals = in[0].type == Type::real || in[1].type == Type::real;
  if (reals && result == Type::boolean) {
    for (int k = 0; k < n; ++k) {
      const Algebra::Truth t =
          compared(algebra, fn, real_at(algebra, in[0], k), real_at(algebra, in[1], k));
      x[k] = t.holds;
      e[k].opaque[0] = t.opaque;
    }
    return;
  }
  apply(fn, result, n, in[0].x, in[1].x, in[2].x, x);
  for (int k = 0; k < n; ++k)
    e[k].opaque[0] = opaque_of(in[0], k) | opaque_of(in[1], k) | opaque_of(in[2], k);
}

Value exact_argument(Machine& m, const std::string& name, const Value& value) {
  if (m.launch.named.count(name)) return Value::real(m.algebra->draw(uint64_t(value.x)));
  if (m.launch.scalars.count(name)) return Value::real(m.algebra->constant(value.x));
  if (value.type == Type::integer) return Value::real(m.algebra->integer(int64_t(value.x)));
  return value;
}

void exact_input(Machine& m, Global& g) {
  g.exact.reserve(g.data.values.size());
  for (double name : g.data.values) g.exact.push_back(m.algebra->draw(uint64_t(name)));
}

void exact_total(Machine& m, const Row& from, Row& to) {
  for (int r = 0; r < to.rows; ++r) {
    to.e[r] = from.e[size_t(r) * from.lanes];
    for (int q = 1; q < from.lanes; ++q)
      to.e[r] = m.algebra->add(to.e[r], from.e[size_t(r) * from.lanes + q]);
  }
}

void exact_row_sum(Machine& m, const Tile& tile, Row& sum) {
  for (int r = 0; r < tile.rows; ++r)
    for (int c = 0; c < tile.columns; ++c) {
      Element& lane = sum.e[4 * size_t(r) + c / 2 % 4];
      lane = m.algebra->add(lane, tile.e[size_t(r) * tile.columns + c]);
    }
}

// ---- references
namespace {

Element any_reference(Machine& m) {
  return m.algebra->draw(kDrawn | m.launch.seed << 40 | m.drawn++);
}

bool by_chance(Machine& m) { return Random(m.launch.seed, kDrawn).word(m.drawn++) & 1; }

bool has_scores(const Tile& t, int r) {
  const Element* e = &t.e[size_t(r) * t.columns];
  return std::any_of(e, e + t.columns,
                     [](const Element& x) { return x.kind != exact::Kind::minus_infinity; });
}

}  // namespace

void exact_row_max(Machine& m, const Tile& tile, Row& reference) {
  for (int r = 0; r < tile.rows; ++r)
    if (has_scores(tile, r)) reference.e[r] = any_reference(m);
}

bool exact_raise(Machine& m, const Tile& scores, const Element& scale, Row& reference,
                 Row& factor) {
  // Whole tiles stay as they are, or no `if not raised:` would ever run.
  const bool quiet = by_chance(m);
  bool raised = false;
  for (int r = 0; r < scores.rows; ++r) {
    factor.e[r] = m.algebra->integer(1);
    if (!has_scores(scores, r)) continue;
    const Element old = reference.e[r];
    if (old.kind != exact::Kind::minus_infinity && (quiet || by_chance(m))) continue;
    reference.e[r] = any_reference(m);
    factor.e[r] = m.algebra->exp2(m.algebra->mul(m.algebra->sub(old, reference.e[r]), scale));
    raised = true;
  }
  return raised || by_chance(m);
}

void exact_add(Machine& m, const Row& more, Row& sum) {
  for (size_t n = 0; n < sum.e.size(); ++n) sum.e[n] = m.algebra->add(sum.e[n], more.e[n]);
}

bool exact_exceeds(Machine& m, const Row& reference) {
  const auto none = [](const Element& x) { return x.kind == exact::Kind::minus_infinity; };
  return std::any_of(reference.e.begin(), reference.e.end(), none) || by_chance(m);
}

}  // namespace kw::exec
