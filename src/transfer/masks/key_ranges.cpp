#include "transfer/masks/key_ranges.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "transfer/editing/terms.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;

struct Part {
  KeyBounds keys;
  bool whole;  // a key inside is kept, not only: a kept key is inside
};
using Parts = std::vector<Part>;

constexpr size_t kParts = 12;  // beyond, those that are no single range are taken for all keys

bool is_all(const KeyBounds& k) { return !k.lower && !k.upper; }

// Provably no key in any row.
bool is_empty(const KeyBounds& k) {
  const ExprPtr lower = k.lower ? k.lower : spec::integer(0);
  return k.upper && at_most(k.upper, lower);
}

KeyBounds both(const KeyBounds& a, const KeyBounds& b) {
  const auto tighter = [](const ExprPtr& x, const ExprPtr& y, auto choose) {
    return !x ? y : !y ? x : choose(x, y);
  };
  return {tighter(a.lower, b.lower, larger), tighter(a.upper, b.upper, smaller)};
}

// The smallest range around both.
KeyBounds hull(const KeyBounds& a, const KeyBounds& b) {
  return {a.lower && b.lower ? smaller(a.lower, b.lower) : nullptr,
          a.upper && b.upper ? larger(a.upper, b.upper) : nullptr};
}

// Whether every key of a is one of b, in every row.
bool lies_in(const KeyBounds& a, const KeyBounds& b) {
  return (!b.lower || (a.lower && at_most(b.lower, a.lower))) &&
         (!b.upper || (a.upper && at_most(a.upper, b.upper)));
}

std::optional<KeyBounds> one_of(const KeyBounds& a, const KeyBounds& b) {
  return lies_in(a, b) ? b : lies_in(b, a) ? a : union_of(a, b);
}

// Ranges that are provably one, as one.
void join(Parts& parts) {
  for (size_t a = 0; a < parts.size(); ++a)
    for (size_t b = a + 1; b < parts.size();) {
      const std::optional<KeyBounds> one =
          parts[a].whole == parts[b].whole ? one_of(parts[a].keys, parts[b].keys) : std::nullopt;
      if (!one) {
        ++b;
        continue;
      }
      parts[a].keys = *one;
      parts.erase(parts.begin() + b);
      b = a + 1;
    }
}

Parts parts_of(const ExprPtr& keep, const ExprPtr& keys) {
  if (const auto exact = key_bounds(keep, keys)) return {{*exact, true}};
  const ExprPtr e = as_comparisons(keep);
  if (!is(e, "and") && !is(e, "or")) return {{{}, false}};
  const Parts a = parts_of(e->args[0], keys), b = parts_of(e->args[1], keys);
  Parts out;
  if (is(e, "or")) {
    out = a;
    out.insert(out.end(), b.begin(), b.end());
  } else {
    for (const Part& x : a)
      for (const Part& y : b) {
        const Part part{both(x.keys, y.keys), x.whole && y.whole};
        if (!is_empty(part.keys)) out.push_back(part);
      }
  }
  join(out);
  if (out.size() > kParts) return {{{}, false}};
  return out;
}

// How many keys lie between two ranges in some rows of a long sequence, where every number that is
// read is a small one.
double keys_between(const KeyBounds& a, const KeyBounds& b) {
  constexpr int64_t kLength = 8192, kValue = 512;
  double sum = 0;
  for (int64_t i = kLength / 8; i < kLength; i += kLength / 4) {
    const auto value = [&](const ExprPtr& e, int64_t otherwise) {
      if (!e) return double(otherwise);
      spec::Scope scope;
      scope.read = [](const std::string&, const std::vector<int64_t>&) { return double(kValue); };
      spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
        if (x->kind == spec::Kind::size) scope.indices[x->name] = kLength;
        if (x->kind == spec::Kind::index) scope.indices[x->name] = x->name == "i" ? i : 0;
        if (x->kind == spec::Kind::argument) scope.scalars[x->name] = double(kValue);
        return nullptr;
      });
      return std::clamp(spec::evaluate(e, scope), 0.0, double(kLength));
    };
    const double from_a = value(a.lower, 0), to_a = value(a.upper, kLength),
                 from_b = value(b.lower, 0), to_b = value(b.upper, kLength);
    if (from_a < to_a && from_b < to_b)
      sum += std::max(0.0, std::max(from_a, from_b) - std::min(to_a, to_b));
  }
  return sum;
}

// The two closest of several ranges become the one around them. Closest in an example: which two
// they are for other lengths changes how many key blocks are visited in vain, and nothing else.
void merge_two(std::vector<KeyBounds>& cover) {
  size_t a = 0, b = 1;
  double least = std::numeric_limits<double>::infinity();
  for (size_t x = 0; x < cover.size(); ++x)
    for (size_t y = x + 1; y < cover.size(); ++y)
      if (const double keys = keys_between(cover[x], cover[y]); keys < least)
        least = keys, a = x, b = y;
  cover[a] = hull(cover[a], cover[b]);
  cover.erase(cover.begin() + b);
}

}  // namespace

KeyBounds KeyRanges::around() const {
  return std::accumulate(cover.begin() + 1, cover.end(), cover.at(0), hull);
}

KeyRanges key_ranges(const ExprPtr& keep, const ExprPtr& keys) {
  const Parts parts = parts_of(keep, keys);
  KeyRanges out;
  Parts cover = parts;
  for (const Part& p : parts)
    if (p.whole) out.whole.push_back(p.keys);
  for (Part& p : cover) p.whole = false;
  join(cover);
  for (const Part& p : cover) {
    if (is_all(p.keys)) {
      out.cover = {{}};
      return out;
    }
    out.cover.push_back(p.keys);
  }
  if (out.cover.empty()) out.cover = {{nullptr, spec::integer(0)}};
  for (; out.cover.size() > 2; ++out.merged) merge_two(out.cover);
  if (out.cover.size() == 2 && !out.cover[1].lower) std::swap(out.cover[0], out.cover[1]);
  return out;
}

}  // namespace kw::transfer
