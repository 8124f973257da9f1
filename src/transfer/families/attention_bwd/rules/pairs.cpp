// The gradients of biases of pairs: of what a score reads at its own query and key.
//
//   round_sums sum_dq ...   ->   round_sums sum_dq ...
//                                sum_tiles pairs * 1.0 by w -> d_bias
//
// with `pairs: scratch element[B, H, T, W]`, zeros in the pre-pass, and in the loader
//
//   thread 3:
//       var t = 0
//       for t, x in ...:
//           wait ds_full[t]
//           for r in range(WARPGROUPS):
//               tma_add ds_s[r][t] -> pairs[c.b, h, (m * ceil_div(N, BN) + c.n) * BM, r * 64]
//           tma_store_wait_read
//           arrive pairs_free[t]
//       tma_store_wait
//
// for whose `pairs_free` the step waits as for `ds_free`.
//
// When     the form's gradients have them. Such a bias changes each score by a multiple of its own
//          element, so its gradient is that of the score, whose tiles lie in shared memory as
//          operands of the product for dQ: the copy engine takes them from there, and a pass behind
//          the kernel sums over batch entries and heads that the bias lacks.
// Why      zeros, and additions to them: of blocks that the mask drops nobody says anything.
// Effect   a score's gradient is rounded to the operands' type before it is summed, as it is for
//          dQ. Sums come in one order. There are as many elements as scores, in the scratch too.
#include <fmt/format.h>

#include <algorithm>

#include "operator/expr/fold.h"
#include "tl/traits.h"
#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

// Where a step's gradients lie as elements, and the barriers that hand a slot over and back.
struct Handed {
  tl::ExprPtr tile;  // ds_s[me][t]
  std::string full, free;
};
std::optional<Handed> handed_over(const std::vector<Stmt>& step, const std::string& tile) {
  Handed out;
  for (const Stmt& s : step) {
    if (s.op == Op::wait_free) out.free = tl::base_name(s.barrier());
    if (s.op == Op::store_transposed && tl::base_name(s.src()) == tile) out.tile = s.dst();
    if (!out.tile || out.free.empty() || s.op != Op::arrive) continue;
    out.full = tl::base_name(s.barrier());
    return out;
  }
  return std::nullopt;
}

// The thread gives slots back at a barrier of its own, `given`, for which the step waits too.
bool gives_back(Edit& edit, std::vector<Stmt>& step, const std::string& free,
                const std::string& given) {
  Stmt *shared = edit.program.find(Op::shared), *init = edit.program.find(Op::init);
  const auto waits = std::find_if(step.begin(), step.end(), [&](const Stmt& s) {
    return s.op == Op::wait_free && tl::base_name(s.barrier()) == free;
  });
  std::string slots;
  for (const Stmt& s : shared ? shared->body : std::vector<Stmt>{})
    if (s.op == Op::barrier || s.op == Op::cluster_barrier)
      for (const tl::Item& d : s.names())
        if (d.name == free) slots = tl::print(s.stages());
  if (!init || slots.empty() || waits == step.end())
    return edit.refuse_kernel("declares no barrier " + free);
  const std::string use = tl::print(waits->barrier()->args.at(1));
  init->barriers().push_back(tl::Item{.expr = tl::name(given)});
  return edit.insert({&step, size_t(waits - step.begin()) + 1},
                     fmt::format("wait_free {}[{}]", given, use)) &&
         edit.insert({&shared->body, shared->body.size()},
                     fmt::format("barrier {}: ring({}), arrivals 1", given, slots));
}

// Its loop is that of the thread that loads tiles of queries. In a cluster each CTA has columns of
// its own of a block of keys.
bool add_thread(Edit& edit, const Handed& slot, const std::string& given,
                const std::string& pairs) {
  const auto is_thread = [](const Stmt& s) { return s.op == Op::thread; };
  bool added = false;
  tl::walk(edit.program.body, [&](Stmt& loader) {
    const auto first = std::find_if(loader.body.begin(), loader.body.end(), is_thread);
    if (loader.op != Op::warpgroup || first == loader.body.end() || added) return;
    const auto loop = std::find_if(first->body.begin(), first->body.end(), [](const Stmt& s) {
      return tl::is_loop(s.op) && !s.body.empty() && s.body[0].op == Op::let;
    });
    if (loop == first->body.end()) return;
    const Stmt* cluster = edit.program.find(Op::cluster);
    const bool of_all = tl::mentions(slot.tile, "me");
    const std::string use = tl::print(slot.tile->args.back()),
                      tile = fmt::format("{}{}[{}]", tl::base_name(slot.tile), of_all ? "[r]" : "",
                                         use),
                      column = of_all     ? "r * 64"
                               : !cluster ? "0"
                                          : fmt::format("{} * 64", cluster->rank()),
                      adds = fmt::format(
                          "tma_add {} -> {}[c.b, h, (m * ceil_div(N, BN) + c.n) * BM, {}]", tile,
                          pairs, column);
    Stmt own = *loop;
    std::erase_if(own.body, [](const Stmt& s) { return s.op != Op::let; });
    const size_t lets = own.body.size();
    auto thread = tl::parse_statement(
        fmt::format("thread {}:\n    var {} = 0\n    tma_store_wait",
                    std::count_if(loader.body.begin(), loader.body.end(), is_thread), use),
        edit.diagnostics);
    if (!thread || !edit.insert({&own.body, lets},
                                {fmt::format("wait {}[{}]", slot.full, use),
                                 of_all ? "for r in range(WARPGROUPS):\n    " + adds : adds,
                                 "tma_store_wait_read", fmt::format("arrive {}[{}]", given, use)}))
      return;
    thread->body.insert(thread->body.begin() + 1, std::move(own));
    loader.body.push_back(std::move(*thread));
    added = true;
  });
  return added || edit.refuse_kernel("has no loop of the loader over blocks of queries");
}

// The scratch, for all such biases one: each has the gradients of the same scores.
bool declare(Edit& edit, const std::string& pairs) {
  const std::string rows = edit.fresh({"T", "R", "L", "U", "V"}),
                    columns = edit.fresh({"W", "E", "X", "Y", "Z"});
  Stmt* before = edit.program.find(Op::rows);
  if (!before) return edit.refuse_kernel("has no pre-pass over rows");
  std::vector<Stmt>& top = edit.program.body;
  size_t last = 0;
  for (size_t n = 0; n < top.size(); ++n)
    if (top[n].op == Op::param) last = n + 1;
  return edit.insert({&before->body, before->body.size()},
                     fmt::format("for b, h, r in each_row({0}, {1}):\n"
                                 "    write_row {0}[b, h, r] over j < {2} = 0.0",
                                 pairs, before->index(), columns)) &&
         edit.insert(edit.behind_arguments(Op::arg_size),
                     fmt::format("{}: size = ceil_div(M, BM) * BM * ceil_div(N, BN)", rows)) &&
         edit.insert(edit.behind_arguments(Op::arg_tensor),
                     fmt::format("{}: scratch element[B, H, {}, {}]", pairs, rows, columns)) &&
         edit.insert({&top, last}, fmt::format("param {} = BN", columns));
}

bool give(Edit& edit, const std::string& pairs, const spec::Output& output, double factor) {
  Stmt* after = edit.program.find(Op::after);
  if (!after) return edit.refuse_kernel("has no pass behind it");
  return edit.insert({&after->body, after->body.size()},
                     fmt::format("sum_tiles {} * {} by {} -> {}", pairs,
                                 tl::print(tl::real(factor)), after->index(), output.name)) &&
         edit.add_gradient(output, "N");
}

}  // namespace

bool rule_pairs(Edit& edit) {
  std::string pairs;
  for (size_t n = 0; n < edit.learned.size(); ++n) {
    const spec::Output& output = edit.form.outputs[spec::Gradients::kOperands + n];
    if (!output.has('i')) continue;
    if (declaration_of_argument(edit.program, output.name))
      return edit.refuse_kernel("has an argument " + output.name + ", which a gradient is called");
    if (pairs.empty()) {
      const auto at = edit.places();
      const auto slot = handed_over(*at->step, at->d_score);
      if (!slot) return edit.refuse_kernel("hands no tiles of dS over");
      pairs = edit.fresh({"pairs", "pairs_of_scores"});
      const std::string given = edit.fresh({"pairs_free"});
      if (!add_thread(edit, *slot, given, pairs) ||
          !gives_back(edit, *edit.places()->step, slot->free, given) || !declare(edit, pairs))
        return false;
    }
    if (!give(edit, pairs, output, *spec::constant(edit.learned[n].slope))) return false;
  }
  return true;
}

}  // namespace kw::transfer::bwd
