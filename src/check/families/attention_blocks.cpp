// Key blocks: what is skipped must keep nothing, what has no mask must keep everything.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/families/attention.h"

namespace kw::check::families {

namespace {

using RowTile = std::pair<int64_t, int64_t>;  // first row, rows
// Batch, head of the case, rows, and the accumulator: several terms may have one each.
using Key = std::tuple<int64_t, int64_t, RowTile, std::string>;
struct Ranges {
  std::map<int64_t, std::pair<int64_t, bool>> visited;  // first key -> (keys, masked)
  std::map<int64_t, size_t> times;                      // first key -> how often
  bool too_often = false;                               // more often than there are terms
};

// A key range, by its keep predicate, for all rows of a tile: the first entry that is not `wanted`.
struct Entry {
  int64_t i = -1, j = -1;
};
Entry find_other(spec::Evaluator& evaluator, bool wanted, int64_t b, int64_t h, RowTile rows,
                 int64_t first, int64_t last) {
  const int64_t end = std::min(rows.first + rows.second, evaluator.queries());
  std::vector<double> kept(std::max<int64_t>(std::min(last, evaluator.keys()) - first, 0));
  for (int64_t i = rows.first; i < end; ++i) {
    evaluator.keep(0, b, h, i, first, int64_t(kept.size()), kept.data());
    for (int64_t j = first; j < last; ++j)
      if ((j < evaluator.keys() && kept[j - first] != 0) != wanted) return {i, j};
  }
  return {};
}

Counterexample blame(const Case& c, const Key& key, Entry at, const std::string& message) {
  Counterexample e;
  e.sizes = c.sizes;
  e.heads = int64_t(c.heads.size());
  e.key_heads = c.key_heads;
  e.output = "key blocks";
  e.b = std::get<0>(key);
  e.h = c.heads[std::get<1>(key)];
  e.i = at.i;
  e.message = message;
  return e;
}

}  // namespace

std::optional<Counterexample> check_blocks(const spec::Form& form, const spec::Problem& problem,
                                           const Case& c, const std::vector<Visit>& visits,
                                           int& blocks) {
  std::map<Key, Ranges> tiles;
  for (const Visit& v : visits) {
    Ranges& r = tiles[{v.batch, v.head, {v.row, v.rows}, v.into}];
    const auto [seen, is_new] = r.visited.emplace(v.key, std::pair(v.keys, v.masked));
    if (!is_new) seen->second.second = seen->second.second && v.masked;
    r.too_often |= ++r.times[v.key] > form.terms.size();
  }
  spec::Evaluator evaluator(form, problem);
  // A predicate that does not read the head is the same for all of them.
  const bool by_head =
      form.terms[0].keep && spec::mentions(form.terms[0].keep, spec::Kind::index, "h");
  std::set<std::tuple<int64_t, RowTile, int64_t, int64_t, bool>> seen;
  for (const auto& [key, ranges] : tiles) {
    const auto& [b, h, rows, into] = key;
    const int64_t head = c.heads[h];
    if (ranges.too_often)
      return blame(
          c, key, {rows.first, 0},
          fmt::format("rows from {} multiply a key block {}", rows.first,
                      form.terms.size() == 1 ? "twice" : "more often than there are terms"));
    auto holds = [&, b = b, rows = rows](bool wanted, int64_t first, int64_t last) {
      if (!by_head && !seen.emplace(b, rows, first, last, wanted).second) return Entry{};
      ++blocks;
      return find_other(evaluator, wanted, b, head, rows, first, last);
    };
    int64_t next = 0;
    for (auto it = ranges.visited.begin();; ++it) {
      const bool last = it == ranges.visited.end();
      const int64_t first = last ? evaluator.keys() : it->first;
      if (next < first) {
        const Entry at = holds(false, next, first);
        if (at.i >= 0)
          return blame(c, key, at,
                       fmt::format("rows from {} skip keys {} to {}, and row {} keeps key "
                                   "{}",
                                   rows.first, next, first - 1, at.i, at.j));
      }
      if (last) break;
      next = first + it->second.first;
      if (it->second.second) continue;
      const Entry at = holds(true, first, next);
      if (at.i >= 0)
        return blame(c, key, at,
                     fmt::format("rows from {} take keys {} to {} without a mask, and row {} {}",
                                 rows.first, first, next - 1, at.i,
                                 at.j < evaluator.keys() ? fmt::format("drops key {}", at.j)
                                                         : "has no such keys"));
    }
  }
  return std::nullopt;
}

}  // namespace kw::check::families
