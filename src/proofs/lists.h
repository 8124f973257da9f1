// What stands in a list of key blocks that a pass before the kernel has written.
//
// The pass asks of each key block whether some of its elements may be kept, by some group of rows,
// and whether all are; list_blocks (docs/tl/statements.md) says which words that gives. So of each
// word that a kernel reads there is something to say, whatever the data are:
//   - there is at least one key block; of `count`, the first `full` are those of which all is kept;
//     the number of a group of rows is between 1 and `count`;
//   - at a place below `full` stands a key block of which the pass has found that all is kept;
//   - a key block of which it has found that a group may keep something stands at one place, and
//     below the group's number;
//   - where all is kept of each block but the last, or nothing, `count` is `full` or one more.
// The least of some elements is at most each of them, the greatest at least, and of one element
// both are it: more is not said of what a pass has looked at.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proofs/solver/terms.h"
#include "proofs/visits.h"
#include "tl/program.h"

namespace kw::proofs {

class Lists {
 public:
  // `list` is the number of the list that a block of the kernel reads; `elements` are those that
  // the specification reads at row i and key j. `proved` says whether a statement about the sizes
  // and the block holds.
  Lists(const tl::Program& program, const std::map<std::string, Term>& sizes, const Blocks& blocks,
        Vocabulary& vocabulary, const std::string& list, std::vector<Vocabulary::Element> elements,
        const std::function<bool(const std::string&)>& proved);
  ~Lists();

  // Why nothing is known of the lists; "" where each block has one of its own, and room for it.
  const std::string& open() const;

  // What holds of the words that these terms read: of their size, and of which key blocks stand
  // where, for each block (list.place X) that a term asks about; with `whole`, why one that stands
  // at a place below `full` is whole, too.
  struct Facts {
    std::vector<std::string> sizes, found;
  };
  Facts facts(const std::vector<std::string>& terms, bool whole);

  // Where the list begins, as a term: the only one that may need more than 32 bits, since memory is
  // its limit.
  std::string address() const;

  // What the pass computes of integers.
  std::vector<Step> steps();

  // What must hold of the words that a term reads, for them to be words of its list.
  std::vector<std::string> inside(const std::string& term) const;

 private:
  class Pass;
  std::unique_ptr<Pass> pass_;
};

}  // namespace kw::proofs
