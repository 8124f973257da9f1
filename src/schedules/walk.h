// The executor's walk over a program without its arithmetic: what each agent does, written down.
//
// Scalars, loops, branches, steps, functions and places in shared memory are the executor's own
// functions; statements that move or compute tiles only say what they touch. Nobody waits: every
// agent is walked alone from its beginning to its end. A warpgroup is walked once for each of its
// four warps, which are agents of their own here: that is where a sync_warpgroup that is missing
// shows.
//
// What an agent works on is given, not computed: a sequence of *blocks*, each a block of some real
// launch of this program with sizes of its own. So a sequence may hold blocks of one and of four
// key blocks, as a causal mask has them, whatever order they come in; blocks that the queue hands
// out are arbitrary input.
//
// What concerns one agent alone is decided here: registers that a product in flight still owns, and
// register tiles that are read before they are written.
#pragma once
#include <memory>
#include <optional>

#include "exec/machine.h"
#include "schedules/model.h"

namespace kw::exec::schedule {

// A launch with its declarations bound, and one block of it.
struct Sized {
  Launch launch;
  std::unique_ptr<Machine> machine;
  int64_t end = 0;  // the first number past the blocks
};
struct Block {
  std::shared_ptr<Sized> sized;
  int64_t w = 0;
  int64_t length = 0;  // events of the shortest walk, for ordering
  std::string words;   // "N 128, block 0"
};

// `if raised`: which arm.
struct Arms {
  enum { never, always, mixed } which = mixed;
  uint64_t seed = 1;
};

struct Walked {
  std::vector<Stream> streams;
  std::optional<Diagnostic> fault;  // of the walk: a name, a bound, a register in flight
};

class Walker {
 public:
  // `first` declares the shared memory that all instances have in common.
  Walker(const tl::Program& program, const Block& first);

  // Of all actors; of one warp a warpgroup only, where the others say the same (`one_warp`).
  Walked walk(const std::vector<Block>& sequence, Arms arms, bool one_warp = false);

  // For a reading of time: also what every statement computes, as events of its own.
  bool measure = false;
  // The body of a loop over key blocks once, and its `lap` with the number of turns in `count`: how
  // often a block goes round, without going round.
  bool brief = false;

  Tables& tables() { return tables_; }
  std::optional<Diagnostic> fault() const { return fault_; }
  bool loops_over_blocks() const { return loops_; }

 private:
  friend class Pen;
  std::vector<std::unique_ptr<ThreadBlock>> make_blocks(Machine& m);
  void add_strands(const ThreadBlock& block);
  void add_actors(Machine& m);

  const tl::Program& program_;
  Tables tables_;
  std::optional<Diagnostic> fault_;
  bool loops_ = false;
  std::map<std::pair<int, std::string>, int> rings_, strands_;  // (CTA, name), the first member's
  std::map<std::string, int> arrays_;
  std::set<std::string> transposed_;  // tiles that some warpgroup stores transposed
};

}  // namespace kw::exec::schedule
