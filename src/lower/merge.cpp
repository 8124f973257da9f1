// Both differences from the base are walked at once. Differences that touch in the base are one
// region; what neither side changed around it says which lines of each side belong to it.
#include "lower/merge.h"

#include <algorithm>

namespace kw::lower {
namespace {

using Differences = std::vector<Difference>;

std::string joined(const Lines& lines, const LineRange& range) {
  std::string out;
  for (size_t k = range.begin; k < range.end; ++k) out += lines[k];
  return out;
}

// One side's changes, taken in order; `shift` is how far its lines are ahead of the base's behind
// the last of them.
struct Side {
  Differences changes;
  size_t next = 0;
  ptrdiff_t shift = 0;

  bool has_next() const { return next < changes.size(); }
  // Whether the next change begins in the base's lines up to `end`, or right behind them.
  bool reaches(size_t end) const { return has_next() && changes[next].from <= end; }
  size_t take() {
    const Difference& d = changes[next++];
    shift = static_cast<ptrdiff_t>(d.to_end) - static_cast<ptrdiff_t>(d.from_end);
    return d.from_end;
  }
  size_t line(size_t base) const {
    return static_cast<size_t>(static_cast<ptrdiff_t>(base) + shift);
  }
};

// The side's lines for the base's [begin, end), with every change of it that touches them taken;
// `end` grows with those.
bool take_all(Side& side, size_t& end) {
  bool any = false;
  for (; side.reaches(end); any = true) end = std::max(end, side.take());
  return any;
}

}  // namespace

Merged merge(const std::string& base_text, const std::string& mine_text,
             const std::string& theirs_text) {
  const Lines base = split_lines(base_text), my_lines = split_lines(mine_text),
              their_lines = split_lines(theirs_text);
  Side mine{differences(base, my_lines)}, theirs{differences(base, their_lines)};
  Merged out;
  std::string text;
  size_t at = 0, written = 0;  // lines of the base that are done; lines of the merged text
  const auto write = [&](const Lines& lines, const LineRange& range) {
    text += joined(lines, range);
    written += range.end - range.begin;
  };
  while (mine.has_next() || theirs.has_next()) {
    size_t begin = base.size();
    if (mine.has_next()) begin = std::min(begin, mine.changes[mine.next].from);
    if (theirs.has_next()) begin = std::min(begin, theirs.changes[theirs.next].from);
    write(base, {at, begin});
    const size_t my_begin = mine.line(begin), their_begin = theirs.line(begin);
    size_t end = begin;
    bool i_changed = false, they_changed = false;
    for (bool more = true; more;) {
      const bool i_did = take_all(mine, end), they_did = take_all(theirs, end);
      i_changed = i_changed || i_did;
      they_changed = they_changed || they_did;
      more = i_did || they_did;
    }
    const LineRange of_mine{my_begin, mine.line(end)}, of_theirs{their_begin, theirs.line(end)};
    const bool same = joined(my_lines, of_mine) == joined(their_lines, of_theirs);
    if (i_changed && they_changed && !same) {
      out.conflicts.push_back({{begin, end}, of_mine, of_theirs});
    } else {
      if (i_changed) out.replayed.push_back({{begin, end}, of_mine, written, they_changed});
      write(i_changed ? my_lines : their_lines, i_changed ? of_mine : of_theirs);
    }
    at = end;
  }
  write(base, {at, base.size()});
  if (out.conflicts.empty()) out.text = std::move(text);
  return out;
}

}  // namespace kw::lower
