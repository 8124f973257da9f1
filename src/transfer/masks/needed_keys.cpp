#include "transfer/masks/needed_keys.h"

#include <algorithm>
#include <limits>

#include "operator/expr/linear.h"
#include "transfer/editing/terms.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;
using spec::Type;

ExprPtr zero() { return spec::integer(0); }

// The smaller of e and end - 1; an end that is itself the smaller of two is taken apart, for what e
// is known to be at most.
ExprPtr at_most_last(const ExprPtr& end, const ExprPtr& e) {
  if (end->kind == Kind::binary && end->name == "min")
    return at_most_last(end->args[0], at_most_last(end->args[1], e));
  return smaller(e, binary("-", end, spec::integer(1)));
}

// The fewest rows for which anybody asks for key blocks.
int64_t fewest_rows(const Edit& edit) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const tl::ExprPtr& rows : rows_asked_for(edit.program, edit.facts))
    fewest = std::min(fewest, constant(edit.program, rows).value_or(1));
  return fewest;
}

// The rows from i0 on, as many as that name says.
Rows rows_from_i0(const std::string& count) {
  const ExprPtr i0 = spec::leaf(Kind::index, Type::integer, "i0");
  return {i0, binary("-", binary("+", i0, size(count)), spec::integer(1))};
}

// a - b is less than that, with what is no more in a than in b left out: of a window around a
// place, the place for the first row and for the last.
bool is_narrower(const ExprPtr& a, const ExprPtr& b, const Box& box, int64_t than) {
  spec::Linear width = spec::add(spec::linear(a), spec::linear(b), -1);
  const auto cancel = [&] {
    for (const auto& more : width.terms)
      for (const auto& less : width.terms)
        if (more.factor == 1 && less.factor == -1 && at_most(more.atom, less.atom)) {
          const spec::Linear rest = spec::add(width, spec::linear(more.atom), -1);
          width = spec::add(rest, spec::linear(less.atom));
          return true;
        }
    return false;
  };
  while (cancel()) continue;
  return range(spec::to_expr(width), box).high < double(than);
}

// e with the choices made that `box` decides.
ExprPtr settled(const ExprPtr& e, const Box& box) {
  bool any = false;
  const ExprPtr chosen = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::where) return nullptr;
    const Interval condition = range(x->args[0], box);
    any = any || condition.is(1) || condition.is(0);
    return condition.is(1) ? x->args[1] : condition.is(0) ? x->args[2] : nullptr;
  });
  if (!any) return e;
  return spec::rewrite(chosen, [](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::binary) return nullptr;
    if (x->name == "max") return larger(x->args[0], x->args[1]);
    return x->name == "min" ? smaller(x->args[0], x->args[1]) : nullptr;
  });
}

// The spans in which every row keeps everything, of those that may have a whole key block where
// there are as many rows as `box` says.
std::vector<KeySpan> whole_spans(const KeyRanges& kept, const ExprPtr& keys, const Rows& rows,
                                 const Box& box, int64_t tile) {
  std::vector<KeySpan> out;
  for (const KeyBounds& k : kept.whole) {
    ExprPtr below = k.upper ? lowest(k.upper, rows) : keys,
            from = k.lower ? highest(k.lower, rows) : zero();
    if (below && from) below = settled(below, box), from = settled(from, box);
    if (!below || !from || is_narrower(below, from, box, tile)) continue;
    const KeySpan span{larger(zero(), from), larger(zero(), smaller(keys, below))};
    if (!at_most(span.below, span.from)) out.push_back(span);
  }
  // Two are compared where the kernel runs, which costs little, and more are not worth it.
  if (out.size() > 2) out.resize(2);
  return out;
}

// The keys between two ranges, of which the first begins at key 0, for some rows.
std::optional<KeySpan> hole_between(const KeyRanges& kept, const Rows& rows) {
  if (kept.cover.size() != 2 || kept.cover[0].lower || !kept.cover[1].lower) return std::nullopt;
  const ExprPtr from = highest(kept.cover[0].upper, rows),
                below = lowest(kept.cover[1].lower, rows);
  if (!from || !below || at_most(below, from)) return std::nullopt;
  return KeySpan{from, below};
}

}  // namespace

Needed needed_keys(const Edit& edit, const KeyRanges& kept, const std::string& count) {
  const ExprPtr keys = size(edit.facts.keys);
  const Rows rows = rows_from_i0(count);
  const KeyBounds around = kept.around();
  const ExprPtr end = around.upper ? highest(around.upper, rows) : nullptr,
                from = around.lower ? lowest(around.lower, rows) : nullptr;
  Box box;
  box.names[count] = {double(fewest_rows(edit)), kInfinity};
  const int64_t tile = constant(edit.program, edit.facts.key_tile).value_or(1);
  Needed out{end ? smaller(keys, end) : keys, from, whole_spans(kept, keys, rows, box, tile), {}};
  const ExprPtr least = end ? lowest(around.upper, rows) : keys;  // of the ends of single rows
  if (out.first && (!least || range(out.first, {}).high <= 0)) out.first = nullptr;
  if (out.first) {
    const ExprPtr first = at_most_last(least, larger(zero(), out.first));
    out.first = larger(zero(), at_most_last(keys, first));
    std::erase_if(out.whole, [](const KeySpan& s) { return is_zero(s.from); });
  } else {
    out.hole = hole_between(kept, rows_from_i0(tl::print(edit.facts.row_tile)));
  }
  return out;
}

}  // namespace kw::transfer
