// Sums of dq in one order: blocks of keys add to a block of queries one after another, by their
// numbers.
//
//   tma_add dq_s[r][t] -> sum_dq[c.b, h, m * BM, r * DQ]
//     ->   wait turn_full[t]
//          arrive turn_free[t]
//          ... the same ...
//          tma_store_wait
//          pass_turn turns[c.b, h, m * BM] = c.n + 1
//   with `turns: scratch f32[B, H, P]`, zeros in the pre-pass, and another thread of the loader
//          for t, x in ...:
//              wait_free turn_free[t]
//              wait_turn turns[c.b, h, m * BM] == c.n
//              arrive turn_full[t]
//   let h = c.g * group + x // queries.count   ->   c.g * group + x % group
//   let m = queries.first + x % queries.count  ->   queries.first + x // group
//
// And where the first blocks of keys may not see a block of queries (windows):
//   def block_before(c: Block) -> Block: return max(0, c.n - 1), c.g, c.b
//   let before = query_blocks(block_before(c))
//   wait_turn ... == where(before.first <= m and m < before.first + before.count, c.n, 0)
//
// When     a launch is to give the same bits every time. Blocks of keys that see a block of queries
//          follow each other: the first finds the zero of the pre-pass, the others the number that
//          the block before has passed on.
// Why      the heads of a group inside, queries outside: of causal masks a block of keys has fewer
//          queries than the one before. Where its next head began before the other's, it would wait
//          for all of them.
// Effect   none but the order in which dq is added up.
#include <fmt/format.h>

#include <algorithm>

#include "tl/traits.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

bool refuse(Edit& edit, const std::string& what, const std::string& hint) {
  return edit.refuse("transfer.deterministic", edit.place(nullptr), what, hint);
}

// The thread that adds tiles to this scratch, and its loop; null where there is none.
struct Adding {
  Stmt *loader = nullptr, *thread = nullptr, *loop = nullptr;
};
Adding adding(Edit& edit, const std::string& sums) {
  Adding out;
  tl::walk(edit.program.body, [&](Stmt& loader) {
    if (loader.op != Op::warpgroup) return;
    for (Stmt& thread : loader.body)
      for (Stmt& loop : thread.body) {
        bool adds = false;
        tl::walk(loop.body, [&](const Stmt& s) {
          adds |= s.op == Op::tma_add && tl::base_name(s.tensor()) == sums;
        });
        if (thread.op == Op::thread && tl::is_loop(loop.op) && adds)
          out = {&loader, &thread, &loop};
      }
  });
  return out;
}

// x // queries.count is the head of a group and x % queries.count the block of queries: the other
// way.
void heads_inside(Edit& edit) {
  const auto counts = [](const tl::ExprPtr& e) { return e && tl::print(e) == "queries.count"; };
  tl::walk(edit.program.body, [&](Stmt& s) {
    if (s.op != Op::let) return;
    for (tl::Item& item : s.names())
      item.expr = tl::rewrite(item.expr, [&](const tl::ExprPtr& e) -> tl::ExprPtr {
        if (e->args.size() != 2 || !counts(e->args[1])) return nullptr;
        if (e->text == "//") return tl::binary("%", e->args[0], tl::name("group"));
        if (e->text == "%") return tl::binary("//", e->args[0], tl::name("group"));
        return nullptr;
      });
  });
}

bool declare(Edit& edit, const std::string& turns, const std::string& full,
             const std::string& free) {
  std::vector<Stmt>* rows = edit.rows();
  Stmt *delta = edit.written_of_row("delta"), *shared = edit.program.find(Op::shared),
       *init = edit.program.find(Op::init);
  if (!rows || !delta) return edit.refuse_kernel("has no pre-pass that writes delta");
  if (!shared || !init) return edit.refuse_kernel("has no barriers");
  for (const std::string& name : {full, free})
    init->barriers().push_back(tl::Item{.expr = tl::name(name)});
  return edit.insert({rows, size_t(delta - rows->data()) + 1},
                     fmt::format("write_value {}[b, h, r] = 0.0", turns)) &&
         edit.insert({&shared->body, shared->body.size()},
                     fmt::format("barrier {}, {}: ring(2), arrivals 1", full, free)) &&
         edit.insert(edit.behind_arguments(Op::arg_tensor),
                     fmt::format("{}: scratch f32[B, H, P]", turns));
}

// The first of them waits for what the pre-pass leaves.
bool number_of_neighbours(Edit& edit, std::string& number) {
  const std::string other = edit.fresh({"block_before"}), before = edit.local("before");
  number = fmt::format("where({0}.first <= m and m < {0}.first + {0}.count, c.n, 0)", before);
  std::vector<Stmt>& all = edit.program.body;
  const auto declares = [&](const Stmt& s) { return &s == edit.queries_def(); };
  const size_t at = size_t(std::find_if(all.begin(), all.end(), declares) - all.begin()) + 1;
  if (!edit.insert({&all, at}, fmt::format("def {}(c: Block) -> Block:\n"
                                           "    return max(0, c.n - 1), c.g, c.b",
                                           other)))
    return false;
  for (Stmt& kernel : all)
    for (size_t n = 0; kernel.op == Op::kernel && n < kernel.body.size(); ++n)
      if (kernel.body[n].op == Op::let && kernel.body[n].names().at(0).name == "queries")
        return edit.insert({&kernel.body, n + 1},
                           fmt::format("let {} = query_blocks({}(c))", before, other));
  return edit.refuse_kernel("does not count the blocks of queries of a block of keys");
}

}  // namespace

bool rule_turns(Edit& edit) {
  if (!edit.target.deterministic) return true;
  bool each = false;
  tl::walk(edit.program.body,
           [&](const Stmt& s) { each |= s.op == Op::add_each || s.op == Op::add_diagonals; });
  if (each)
    return refuse(edit, "the gradient of a table is added up in no order",
                  "without --deterministic it is made; or ask for no gradient of the table");
  if (edit.seen == Edit::Seen::scattered || edit.seen == Edit::Seen::listed)
    return refuse(edit,
                  edit.seen == Edit::Seen::listed
                      ? "which blocks of keys see a block of queries depends on data"
                      : "blocks of keys that see a block of queries may not follow each other",
                  "without --deterministic gradients are made");
  std::string number = "c.n";
  if (edit.seen == Edit::Seen::neighbours && !number_of_neighbours(edit, number)) return false;
  const Adding at = adding(edit, "sum_dq");  // behind what adds statements around it
  if (!at.loop) return edit.refuse_kernel("has no thread that adds tiles of dQ");
  const auto is_thread = [](const Stmt& s) { return s.op == Op::thread; };
  const int64_t threads = std::count_if(at.loader->body.begin(), at.loader->body.end(), is_thread);
  if (threads > 3)
    return refuse(edit, "no warp of the loader is left to ask whose turn it is",
                  "without --deterministic gradients are made");
  heads_inside(edit);
  const std::string turns = edit.fresh({"turns"}), full = edit.fresh({"turn_full"}),
                    free = edit.fresh({"turn_free"});
  // Each CTA of a cluster adds to columns of its own, and has turns of its own.
  const Stmt* cluster = edit.program.find(Op::cluster);
  const std::string place = fmt::format("{}[c.b, h, m * BM{}]", turns,
                                        cluster ? " + " + std::string(cluster->rank()) : "");
  std::vector<Stmt>& body = at.loop->body;
  const auto is_let = [](const Stmt& s) { return s.op == Op::let; };
  const size_t lets = size_t(std::find_if_not(body.begin(), body.end(), is_let) - body.begin());

  Stmt asks = *at.thread;
  asks.number() = tl::integer(threads);
  std::erase_if(asks.body, [](const Stmt& s) { return s.op == Op::tma_store_wait; });
  for (Stmt& s : asks.body)
    if (tl::is_loop(s.op)) {
      s.body.resize(lets);
      if (!edit.insert({&s.body, lets}, {fmt::format("wait_free {}[t]", free),
                                         fmt::format("wait_turn {} == {}", place, number),
                                         fmt::format("arrive {}[t]", full)}))
        return false;
    }
  if (!edit.insert({&body, body.size()},
                   {"tma_store_wait", fmt::format("pass_turn {} = c.n + 1", place)}) ||
      !edit.insert({&body, lets},
                   {fmt::format("wait {}[t]", full), fmt::format("arrive {}[t]", free)}))
    return false;
  at.loader->body.push_back(std::move(asks));
  return declare(edit, turns, full, free);
}

}  // namespace kw::transfer::bwd
