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

// The wait, the fill and the product, which follow each other, by the place of the fill.
bool is_product_at(const std::vector<Stmt>& step, size_t n, const std::string& tile) {
  return n > 0 && n + 1 < step.size() && step[n - 1].op == Op::wait &&
         step[n].op == Op::fill_columns && step[n].dst()->is_name(tile.c_str()) &&
         tl::is(step[n + 1].op, tl::Family::contract);
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
                       "does not begin with a wait and a fill_columns",
                       "");
  // Where the score's derivative waits for it, there; else before the weights become an operand.
  const auto waits = std::find_if(step.begin(), step.end(), [&](const Stmt& s) {
    return tl::print_head(s) == "wgmma_wait 0: " + places->d_score;
  });
  const size_t to = waits != step.end() ? size_t(waits - step.begin()) : places->weights + 1;
  if (!leave_nothing(step, places->weights, edit.diagnostics)) return false;
  std::rotate(step.begin() + std::ptrdiff_t(from) - 1, step.begin() + std::ptrdiff_t(from) + 2,
              step.begin() + std::ptrdiff_t(to));
  return true;
}

}  // namespace kw::transfer::bwd
