#include "transfer/masks/sparse.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "transfer/editing/terms.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/key_ranges.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {

using spec::ExprPtr;
using spec::Kind;

namespace {

bool any_of_args(const ExprPtr& e, bool (*test)(const ExprPtr&)) {
  return std::any_of(e->args.begin(), e->args.end(), test);
}

// All sizes of that length, in the first head of the first batch entry.
Box sizes(const ExprPtr& keys, const ExprPtr& queries, double length) {
  Box box;
  for (const ExprPtr& size : {keys, queries})
    if (size->kind == Kind::size) box.names[size->name] = {length, length};
  for (const char* index : {"b", "h"}) box.names[index] = {0, 0};
  return box;
}

bool mentions_row_and_key(const ExprPtr& e) {
  return spec::mentions(e, Kind::index, "i") && spec::mentions(e, Kind::index, "j");
}

bool reads_at_the_key(const ExprPtr& e) {
  return (e->kind == Kind::read && spec::mentions(e, Kind::index, "j")) ||
         any_of_args(e, reads_at_the_key);
}

// A comparison or a read that tells by what data says of the key which row sees it.
bool tells_pairs_apart(const ExprPtr& e) {
  if (is(e, "and") || is(e, "or") || is(e, "not")) return any_of_args(e, tells_pairs_apart);
  return reads_at_the_key(e) && mentions_row_and_key(e);
}

// A range whose first key moves with the row: the number of keys of a row in the middle of many.
std::optional<double> width_of_window(const KeyBounds& range, Box box) {
  constexpr int kMiddle = 8192;
  const ExprPtr i = spec::leaf(Kind::index, spec::Type::integer, "i");
  const ExprPtr first = range.lower ? lowest(range.lower, {i, i}) : nullptr,
                end = range.upper ? highest(range.upper, {i, i}) : nullptr;
  if (!first || !end || !spec::mentions(first, Kind::index, "i")) return std::nullopt;
  box.names["i"] = {kMiddle, kMiddle};
  return transfer::range(end, box).high - transfer::range(first, box).low;
}

// Of the ranges: `window` where the only one is a wide window, `parts` where one of them is
// another.
Seen windows_of(const ExprPtr& keep, const ExprPtr& keys, const ExprPtr& queries) {
  constexpr double kWide = 512;
  const std::vector<KeyBounds> cover = key_ranges(keep, keys).cover;
  const Box box = sizes(keys, queries, 16384);
  for (const KeyBounds& range : cover) {
    const std::optional<double> width = width_of_window(range, box);
    if (!width || !std::isfinite(*width)) continue;
    return cover.size() == 1 && *width > kWide ? Seen::window : Seen::parts;
  }
  return Seen::other;
}

}  // namespace

bool reads_the_tile(const ExprPtr& e) {
  return (e->kind == Kind::read && has_coordinate(e)) || any_of_args(e, reads_the_tile);
}

bool ranges_visit_too_much(const ExprPtr& keep, const ExprPtr& keys, const ExprPtr& queries) {
  constexpr int kTiles = 16, kRows = 128, kLength = kTiles * kRows;
  const KeyRanges ranges = key_ranges(keep, keys);
  Box box = sizes(keys, queries, kLength);
  int visited = 0, left_out = 0;
  for (int i = 0; i < kLength; i += kRows) {
    const Rows rows{spec::integer(i), spec::integer(i + kRows - 1)};
    for (int j = 0; j < kLength; j += kRows) {
      const auto holds = [&](const KeyBounds& range) {
        const ExprPtr from = range.lower ? lowest(range.lower, rows) : nullptr,
                      below = range.upper ? highest(range.upper, rows) : nullptr;
        return (!from || transfer::range(from, box).low < j + kRows) &&
               (!below || transfer::range(below, box).high > j);
      };
      if (std::none_of(ranges.cover.begin(), ranges.cover.end(), holds)) continue;
      ++visited;
      box.names["i"] = {double(i), double(i + kRows - 1)};
      box.names["j"] = {double(j), double(j + kRows - 1)};
      left_out += kept(keep, box) == Kept::none;
    }
  }
  return left_out > 0 && 5 * left_out >= visited;
}

Seen what_a_row_sees(const ExprPtr& keep, const ExprPtr& keys, const ExprPtr& queries) {
  const bool data = reads_the_tile(keep);
  if (tells_pairs_apart(keep) || (!data && ranges_visit_too_much(keep, keys, queries)))
    return Seen::parts;
  return windows_of(keep, keys, queries);
}

}  // namespace kw::transfer
