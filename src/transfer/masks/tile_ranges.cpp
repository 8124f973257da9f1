#include "transfer/masks/tile_ranges.h"

#include <algorithm>

#include "operator/expr/linear.h"
#include "transfer/editing/terms.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;
using spec::Linear;
using spec::Type;

const WrittenRange kUnknown{};

bool depends(const ExprPtr& e, const char* index) { return spec::mentions(e, Kind::index, index); }

// The same for every entry of a tile.
bool is_one_value(const ExprPtr& e) { return !has_coordinate(e); }

WrittenTruth anything() { return {spec::boolean(true), spec::boolean(false)}; }

ExprPtr both(const ExprPtr& a, const ExprPtr& b) { return binary("and", a, b); }
ExprPtr either(const ExprPtr& a, const ExprPtr& b) { return binary("or", a, b); }
ExprPtr negated(const ExprPtr& a) { return spec::unary("not", a); }

WrittenTruth negated(const WrittenTruth& t) { return {negated(t.all), negated(t.some)}; }

// left <= right, each a sum of its own unknowns.
WrittenTruth at_most(const WrittenRange& left, const WrittenRange& right) {
  if (!left.known() || !right.known()) return anything();
  return {binary("<=", left.low, right.high), binary("<=", left.high, right.low)};
}

// That left's least is right's greatest and the other way round leaves one value for both.
WrittenTruth equal(const WrittenRange& left, const WrittenRange& right) {
  if (!left.known() || !right.known()) return anything();
  return {both(binary("<=", left.low, right.high), binary("<=", right.low, left.high)),
          both(binary("==", left.low, right.high), binary("==", left.high, right.low))};
}

// A sum, its positive terms or its negative ones with their signs turned.
ExprPtr part_of(const Linear& sum, bool positive) {
  Linear part;
  for (const Linear::Term& t : sum.terms)
    if ((t.factor > 0) == positive) part.terms.push_back({t.atom, positive ? t.factor : -t.factor});
  if ((sum.constant > 0) == positive) part.constant = positive ? sum.constant : -sum.constant;
  return spec::to_expr(part);
}

WrittenRange times(const WrittenRange& a, int64_t factor) {
  if (!a.known()) return kUnknown;
  const ExprPtr k = spec::integer(factor);
  const WrittenRange out{binary("*", a.low, k), binary("*", a.high, k)};
  return factor >= 0 ? out : WrittenRange{out.high, out.low};
}

WrittenRange plus(const WrittenRange& a, const WrittenRange& b) {
  if (!a.known() || !b.known()) return kUnknown;
  return {binary("+", a.low, b.low), binary("+", a.high, b.high)};
}

// Within one multiple of d the remainders are a range as well; beyond, they are any.
WrittenRange modulo(const WrittenRange& a, const ExprPtr& d) {
  const ExprPtr same = binary("==", binary("//", a.low, d), binary("//", a.high, d));
  return {spec::where(same, binary("%", a.low, d), spec::integer(0)),
          spec::where(same, binary("%", a.high, d), binary("-", d, spec::integer(1)))};
}

// a >> n, whose ends are among those of a by those of the count.
WrittenRange shifted(const WrittenRange& a, const WrittenRange& n) {
  const auto at = [&](const ExprPtr& x, const ExprPtr& by) { return binary(">>", x, by); };
  return {binary("min", at(a.low, n.low), at(a.low, n.high)),
          binary("max", at(a.high, n.low), at(a.high, n.high))};
}

// a & d, where d has no sign: of one value one, else at most all bits of d.
WrittenRange masked(const WrittenRange& a, const ExprPtr& d) {
  const ExprPtr same = binary("==", a.low, a.high), bits = binary("&", a.low, d);
  return {spec::where(same, bits, spec::integer(0)), spec::where(same, bits, d)};
}

// The number of values that x & e keeps: 64 where e is 63, the low bits; else nothing.
std::optional<int64_t> low_bits(const ExprPtr& e) {
  const int64_t next = e->integer + 1;
  if (e->kind != Kind::number || e->integer < 1 || (next & (next - 1)) != 0) return std::nullopt;
  return next;
}

}  // namespace

// The names of the value's ends; new ones, from the stem and what `e` depends on, unless it has
// some.
WrittenRange TileRanges::named(TileValue value, const std::string& stem, const spec::Expr& e) {
  const auto same = [&](const TileValue& other) {
    bool same = other.tensor == value.tensor && other.box.size() == value.box.size();
    for (size_t d = 0; same && d < value.box.size(); ++d)
      same = spec::equal(other.box[d].low, value.box[d].low) &&
             spec::equal(other.box[d].high, value.box[d].high);
    return same;
  };
  auto known = std::find_if(values_.begin(), values_.end(), same);
  if (known == values_.end()) {
    bool by_row = false, by_key = false;
    for (const ExprPtr& part : e.args) {
      by_row = by_row || depends(part, "i");
      by_key = by_key || depends(part, "j");
    }
    const std::string name = stem + (by_row ? by_key ? "_ij" : "_i" : "_j");
    value.least = name_(name + "_least");
    value.most = name_(name + "_most");
    known = values_.insert(values_.end(), std::move(value));
  }
  return {spec::leaf(Kind::argument, Type::integer, known->least),
          spec::leaf(Kind::argument, Type::integer, known->most)};
}

// The latest first: its ends may have earlier names.
ExprPtr TileRanges::without_names(ExprPtr e) const {
  for (size_t k = values_.size(); k-- > 0;) {
    const TileValue& value = values_[k];
    if (!value.tensor.empty()) continue;
    e = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::argument) return nullptr;
      return x->name == value.least  ? value.box[0].low
             : x->name == value.most ? value.box[0].high
                                     : nullptr;
    });
  }
  return e;
}

WrittenRange TileRanges::of_read(const spec::Expr& e) {
  if (e.type == Type::real) return kUnknown;
  TileValue read{e.name, {}, "", ""};
  for (const ExprPtr& index : e.args) {
    read.box.push_back(range(index));
    if (!read.box.back().known()) return kUnknown;
  }
  return named(std::move(read), e.name, e);
}

WrittenRange TileRanges::of_sum(const ExprPtr& e) {
  const Linear sum = spec::linear(e);
  const ExprPtr constant = spec::integer(sum.constant);
  std::optional<WrittenRange> out;
  for (const Linear::Term& t : sum.terms) {
    const WrittenRange part = times(range(t.atom), t.factor);
    out = out ? plus(*out, part) : part;
  }
  return out ? plus(*out, {constant, constant}) : WrittenRange{constant, constant};
}

WrittenRange TileRanges::of_binary(const spec::Expr& e) {
  const WrittenRange a = range(e.args[0]), b = range(e.args[1]);
  if (!a.known()) return kUnknown;
  if (e.name == "*" && e.args[0]->kind == Kind::number) return times(b, e.args[0]->integer);
  if ((e.name == "min" || e.name == "max") && b.known())
    return {binary(e.name, a.low, b.low), binary(e.name, a.high, b.high)};
  const ExprPtr& d = e.args[1];
  if (e.name == "*" && d->kind == Kind::number) return times(a, d->integer);
  const bool divides = is_one_value(d) && transfer::range(d, {}).low >= 1;
  if (e.name == "//" && divides) return {binary("//", a.low, d), binary("//", a.high, d)};
  const auto computed = [&](const WrittenRange& r, const char* stem) {
    return named({"", {r}, "", ""}, stem, e);
  };
  if (e.name == "%" && divides) return computed(modulo(a, d), "rest");
  if (e.name == ">>" && b.known() && transfer::range(d, {}).low >= 0)
    return computed(shifted(a, b), "shifted");
  if (e.name == "&") {  // its low bits are a remainder; others are among those of a mask
    if (const std::optional<int64_t> values = low_bits(d))
      return computed(modulo(a, spec::integer(*values)), "rest");
    if (is_one_value(d) && transfer::range(d, {}).low >= 0) return computed(masked(a, d), "bits");
  }
  return kUnknown;
}

// One side where the condition says so for the whole tile, else both. Of two numbers the greater is
// taken where some entry takes it, and the less unless every one does.
WrittenRange TileRanges::of_where(const spec::Expr& e) {
  const WrittenTruth c = truth(e.args[0]);
  const WrittenRange a = range(e.args[1]), b = range(e.args[2]);
  if (!a.known() || !b.known()) return kUnknown;
  if (e.args[1]->kind == Kind::number && e.args[2]->kind == Kind::number) {
    const ExprPtr &yes = e.args[1], &no = e.args[2];
    if (yes->integer > no->integer)
      return {spec::where(c.all, yes, no), spec::where(c.some, yes, no)};
    return {spec::where(c.some, yes, no), spec::where(c.all, yes, no)};
  }
  const auto end = [&](const char* op, const ExprPtr& x, const ExprPtr& y) {
    return spec::where(c.all, x, spec::where(c.some, binary(op, x, y), y));
  };
  return {end("min", a.low, b.low), end("max", a.high, b.high)};
}

WrittenRange TileRanges::range(const ExprPtr& e) {
  if (e->type == Type::real) return kUnknown;
  if (e->kind == Kind::index && e->name == "i") return i_;
  if (e->kind == Kind::index && e->name == "j") return j_;
  if (is_one_value(e)) return e->type == Type::boolean ? kUnknown : WrittenRange{e, e};
  if (e->kind == Kind::read) return of_read(*e);
  if (e->kind == Kind::unary && e->name == "abs") {
    const WrittenRange a = range(e->args[0]), b = times(a, -1);
    if (!a.known()) return kUnknown;
    return {binary("max", spec::integer(0), binary("max", a.low, b.low)),
            binary("max", a.high, b.high)};
  }
  if (e->kind == Kind::unary && e->name == "-") return times(range(e->args[0]), -1);
  if (e->kind == Kind::binary && (e->name == "+" || e->name == "-")) return of_sum(e);
  if (e->kind == Kind::binary) return of_binary(*e);
  if (e->kind == Kind::where) return of_where(*e);
  return kUnknown;
}

// What stands on both sides cancels, and each side is then a sum of positive multiples.
WrittenTruth TileRanges::compared(const spec::Expr& e) {
  const ExprPtr &a = e.args[0], &b = e.args[1];
  if (a->type != Type::integer || b->type != Type::integer) return anything();
  const Linear sum = spec::add(spec::linear(a), spec::linear(b), -1);
  const WrittenRange left = range(part_of(sum, true)), right = range(part_of(sum, false));
  if (e.name == "<=") return at_most(left, right);
  if (e.name == ">=") return at_most(right, left);
  if (e.name == "<") return negated(at_most(right, left));
  if (e.name == ">") return negated(at_most(left, right));
  return e.name == "==" ? equal(left, right) : negated(equal(left, right));
}

WrittenTruth TileRanges::truth(const ExprPtr& e) {
  if (e->type != Type::boolean) return anything();
  if (is_one_value(e)) return {e, e};
  if (e->kind == Kind::read) {
    const WrittenRange bits = of_read(*e);
    if (!bits.known()) return anything();
    const ExprPtr zero = spec::integer(0);
    return {binary(">", bits.high, zero), binary(">", bits.low, zero)};
  }
  if (e->kind == Kind::unary && e->name == "not") return negated(truth(e->args[0]));
  if (e->kind == Kind::where) {
    const WrittenTruth c = truth(e->args[0]), a = truth(e->args[1]), b = truth(e->args[2]);
    return {either(both(c.some, a.some), both(negated(c.all), b.some)),
            both(either(negated(c.some), a.all), either(c.all, b.all))};
  }
  if (e->kind != Kind::binary) return anything();
  if (e->name == "and" || e->name == "or") {
    const WrittenTruth a = truth(e->args[0]), b = truth(e->args[1]);
    return {binary(e->name, a.some, b.some), binary(e->name, a.all, b.all)};
  }
  return compared(*e);
}

}  // namespace kw::transfer
