// The product of the output's gradient and the values begins later: where maps of the scores need
// more registers than the text leaves.
//
//   wait do_full[t]                            ->   wgmma_wait 0: s
//   fill_columns dp = delta_s[t]                    ...
//   wgmma_add_transposed dp += ...                  map s[i, j] = exp2(...)
//   wgmma_wait 1: s                                 wait do_full[t]
//   ...                                             fill_columns dp = delta_s[t]
//   map s[i, j] = exp2(...)                         wgmma_add_transposed dp += ...
//
// and where warpgroups are alike, what copies the next block stands behind the last one's dQ:
//
//   if x > 0:                                  ->   if not first and me == 0:
//       load(x - 1)                                     add_dq(x + 1)
//   cp_async_commit                                 if x > 0:
//   if not first and me == 0:                           load(x - 1)
//       add_dq(x + 1)                               cp_async_commit
//
// When     the compiler lacked registers. The tile of these gradients, 32 registers of a thread, is
//          then not there while the scores become weights; nothing covers the product but the other
//          consumer.
// Effect   none.
#include <algorithm>

#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

// The fill and the product, which follow each other, by the place of the fill.
bool is_product_at(const std::vector<Stmt>& step, size_t n, const std::string& tile) {
  return n + 1 < step.size() && step[n].op == Op::fill_columns &&
         step[n].dst()->is_name(tile.c_str()) && tl::is(step[n + 1].op, tl::Family::contract);
}

// Where it goes at the latest: before what reads its tile first, or before the weights become an
// operand.
size_t latest(const std::vector<Stmt>& step, const Edit::Places& at) {
  for (size_t n = at.fill; n <= at.weights; ++n) {
    const std::string text = tl::print_head(step[n]);
    const bool maps = tl::is(step[n].op, tl::Family::map) && step[n].has(tl::Hole::target) &&
                      step[n].op != Op::fill && step[n].target()->is_name(at.d_score.c_str());
    if (maps || text == "wgmma_wait 0: " + at.d_score) return n;
  }
  return at.weights + 1;
}

// What asks for the next block's copies, its commit, and a branch that follows them: that first.
void copy_behind_branch(std::vector<Stmt>& step) {
  for (size_t n = 1; n + 1 < step.size(); ++n)
    if (step[n].op == Op::cp_async_commit && step[n - 1].op == Op::if_ &&
        step[n + 1].op == Op::if_) {
      std::rotate(step.begin() + std::ptrdiff_t(n) - 1, step.begin() + std::ptrdiff_t(n) + 1,
                  step.begin() + std::ptrdiff_t(n) + 2);
      return;
    }
}

// A wait that left the product in flight leaves nothing now.
bool leave_nothing(std::vector<Stmt>& block, size_t until, Diagnostics& diagnostics) {
  for (size_t n = 0; n < std::min(until, block.size()); ++n) {
    if (!leave_nothing(block[n].body, block[n].body.size(), diagnostics)) return false;
    const std::string text = tl::print_head(block[n]), one = "wgmma_wait 1: ";
    if (text.rfind(one, 0) != 0) continue;
    auto all = tl::parse_statement("wgmma_wait 0: " + text.substr(one.size()), diagnostics);
    if (!all) return false;
    block[n] = std::move(*all);
  }
  return true;
}

}  // namespace

bool rule_late(Edit& edit) {
  if (edit.has_many_queries()) return true;  // another kernel has more room
  edit.result.roomier = edit.target.tried == 0;
  if (edit.target.tried == 0) return true;
  if (edit.target.tried > 1)
    return edit.refuse("transfer.tiles", edit.place(nullptr),
                       "with its product as late as it can be the kernel still lacks registers",
                       "a score that computes less for each of its elements");
  const auto places = edit.places();
  std::vector<Stmt>& step = *places->step;
  size_t from = 0;
  while (from < places->mask && !is_product_at(step, from, places->d_score)) ++from;
  if (from == places->mask)
    return edit.refuse("transfer.kernel", {},
                       "this kernel's product for the gradients of weights "
                       "does not begin with a fill_columns",
                       "");
  const size_t to = latest(step, *places);
  if (!leave_nothing(step, places->weights, edit.diagnostics)) return false;
  copy_behind_branch(step);
  const bool waits = from > 0 && step[from - 1].op == Op::wait;  // for what it multiplies
  std::rotate(step.begin() + std::ptrdiff_t(from - waits), step.begin() + std::ptrdiff_t(from) + 2,
              step.begin() + std::ptrdiff_t(to));
  return true;
}

}  // namespace kw::transfer::bwd
