// Two changes of one text, put together line by line.
//
//   base     kernel.cu as the rules wrote it          a  b  c  d
//   mine     the same, edited by hand                 a  B  c  d
//   theirs   what the rules write into a new kernel   a  b  c  D  e
//   merged                                            a  B  c  D  e
//
// A line that only one side changed is that side's. Where both changed the same lines, or lines
// that touch, and not to the same text, nobody can say what was meant: that is a conflict, and
// there is no merged text. So no edit is ever lost: every one is in the text or in a conflict.
//
// S. Khanna, K. Kunal and B. C. Pierce, "A Formal Investigation of Diff3", 2007.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lower/patch.h"

namespace kw::lower {

struct LineRange {
  size_t begin = 0, end = 0;  // numbers count from 0
};

// Where a piece of each text stands.
struct Meeting {
  LineRange base, mine, theirs;
};

struct Merged {
  std::optional<std::string> text;  // nothing where there are conflicts
  std::vector<Meeting> conflicts;
  struct Replayed {
    LineRange base, mine;
    size_t at = 0;         // its first line in the merged text
    bool already = false;  // theirs has the very same change
  };
  std::vector<Replayed> replayed;  // every change of mine that is in no conflict
};

Merged merge(const std::string& base, const std::string& mine, const std::string& theirs);

}  // namespace kw::lower
