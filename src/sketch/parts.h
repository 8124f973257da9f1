// A sized plan by what its statements are for: what both schedules are written from. Internal.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "sketch/budget.h"
#include "sketch/plan.h"

namespace kw::sketch {

struct Copied {
  const tl::Stmt* copy;
  std::string tensor, tile;
  bool of_keys;
};

struct Parts {
  const tl::Program& program;
  Plan plan;
  Machine machine;
  Sizes sizes;
  Placed placed;
  int64_t resident = 1;             // CTAs on a multiprocessor
  std::vector<Copied> copies;       // but for those of a step
  std::vector<Copied> step_copies;  // of a cut plan (cut.h): in the range that sums up the scores
  const tl::Stmt *clear = nullptr, *steps = nullptr;  // the fill before that range, the range
  // Of the loop. `softmax`: from the first product to the to_operand.
  const tl::Stmt *scores = nullptr, *to_operand = nullptr, *values = nullptr;
  std::vector<const tl::Stmt*> softmax, rescale;
  const tl::Stmt* online_max = nullptr;
  // Of the end.
  const tl::Stmt *store = nullptr, *out = nullptr;
  // Names of the counters: rows of a block, the warpgroup, the block of keys.
  std::string part, me, block;

  const Copied* copied(const std::string& tile) const;
};

// Reports what schedule() does.
std::optional<Parts> take_apart(const tl::Program& sized, const Machine& machine,
                                Diagnostics& diagnostics);

// Lines of a program in the making.
class Text {
 public:
  void line(int depth, const std::string& text);
  void add(const tl::Stmt& s, int depth) { out_ += tl::print(s, depth); }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
};

// A statement as the kernel says it: counters of the grid are fields of its block, `c.h`.
tl::Stmt in_kernel(const Parts& parts, const tl::Stmt& s);
std::string in_kernel(const Parts& parts, const tl::ExprPtr& e);

// What stands before the functions: arguments and tiles, `rings` of them in two slots, and how many
// CTAs share a multiprocessor.
void head(const Parts& parts, const std::set<std::string>& rings, Text& text);

// The kernel's first line, and what its block of the output is.
void kernel(const Parts& parts, Text& text);

// The blocks of keys, from the last to the first.
void key_loops(const Parts& parts, Text& text);

// Whether a copy begins at a column, `k[b, g, j0, 0]`.
bool is_from_column(const tl::Stmt& copy);

// The records Block and Keys, and the functions that count them.
//   F1  blocks are counted rows first, then as the grid says: neighbours share keys.
//   F2  a block of keys needs no mask where the plan's mask keeps every key before the end and the
//       block ends before it; under any other mask, all blocks are partial.
void functions(const Parts& parts, Text& text);

// The step that makes exponentials of scores, with the mask under `if partial`.
void softmax_step(const Parts& parts, int depth, const std::string& more, Text& text);

// What has been summed up is multiplied only where a reference was raised.
void rescale(const Parts& parts, int depth, Text& text);

std::optional<tl::Program> schedule_alike(const Parts& parts, Diagnostics& diagnostics);
std::optional<tl::Program> schedule_cut(const Parts& parts, Diagnostics& diagnostics);
std::optional<tl::Program> schedule_engine(const Parts& parts, Diagnostics& diagnostics);

}  // namespace kw::sketch
