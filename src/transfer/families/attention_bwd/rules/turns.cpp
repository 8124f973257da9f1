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
//
// Where a warpgroup adds from its registers (wide heads), in a round of its own behind the
// products, not beside the next round's: one loop in the place of a step and its first turn, and
// two threads
//
//   add_tile dq_r -> sum_dq[c.b, h, m * BM, ...]
//     ->   wait turn_full[t]
//          ... the same ...
//          arrive added[t]
//                                              for t, x in ...:
//                                                  wait added[t]
//                                                  pass_turn turns[c.b, h, m * BM] = c.n + 1
//                                                  arrive turn_free[t]
//
// And of all:
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
#include <functional>

#include "tl/traits.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

bool refuse(Edit& edit, const std::string& what, const std::string& hint) {
  return edit.refuse("transfer.deterministic", edit.place(nullptr), what, hint);
}

// The loop of the thread that adds tiles to this scratch, and its loader; null where there is none.
struct Adding {
  Stmt *loader = nullptr, *loop = nullptr;
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
        if (thread.op == Op::thread && tl::is_loop(loop.op) && adds) out = {&loader, &loop};
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

bool declare(Edit& edit, const std::string& turns, const std::string& full, const std::string& free,
             const std::string& added = "") {
  std::vector<Stmt>* rows = edit.rows();
  Stmt *delta = edit.written_of_row("delta"), *shared = edit.program.find(Op::shared),
       *init = edit.program.find(Op::init);
  if (!rows || !delta) return edit.refuse_kernel("has no pre-pass that writes delta");
  if (!shared || !init) return edit.refuse_kernel("has no barriers");
  for (const std::string& name : {full, free, added})
    if (!name.empty()) init->barriers().push_back(tl::Item{.expr = tl::name(name)});
  if (!added.empty() && !edit.insert({&shared->body, shared->body.size()},
                                     fmt::format("barrier {}: ring(2), arrivals 4", added)))
    return false;
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

// A turn's place; each CTA of a cluster adds to columns of its own, and has turns of its own.
std::string place_of(Edit& edit, const std::string& turns) {
  const Stmt* cluster = edit.program.find(Op::cluster);
  return fmt::format("{}[c.b, h, m * BM{}]", turns,
                     cluster ? " + " + std::string(cluster->rank()) : "");
}

int64_t threads_of(const Stmt& loader) {
  return std::count_if(loader.body.begin(), loader.body.end(),
                       [](const Stmt& s) { return s.op == Op::thread; });
}

bool no_warp_is_left(Edit& edit) {
  return refuse(edit, "no warp of the loader is left to ask whose turn it is",
                "without --deterministic gradients are made");
}

// Where a warpgroup adds from registers, and its steps: `add` of a round's sums, `advance` of a
// round, which adds those of the round before.
struct AddingWarpgroup {
  Stmt *block = nullptr, *add = nullptr, *advance = nullptr, *loop = nullptr;
  tl::ExprPtr first;  // round
};

bool contains(const Stmt& s, const std::function<bool(const Stmt&)>& is) {
  bool found = is(s);
  tl::walk(s.body, [&](const Stmt& inner) { found |= is(inner); });
  return found;
}
bool calls(const Stmt& s, const Stmt& step) {
  return contains(s, [&](const Stmt& x) { return x.op == Op::call && x.name() == step.name(); });
}

AddingWarpgroup adding_warpgroup(Edit& edit, const std::string& sums) {
  AddingWarpgroup out;
  Stmt* warpgroups = edit.program.find(Op::warpgroups);
  if (!warpgroups) return out;
  for (Stmt& block : warpgroups->body) {
    if (block.op != Op::if_) continue;
    for (Stmt& s : block.body) {
      const auto adds = [&](const Stmt& x) {
        return x.op == Op::add_tile && tl::base_name(x.tensor()) == sums;
      };
      if (s.op == Op::step && !out.add && contains(s, adds))
        out.block = &block, out.add = &s;
      else if (s.op == Op::step && out.add && calls(s, *out.add))
        out.advance = &s;
      else if (out.advance && s.op == Op::call && s.name() == out.advance->name())
        out.first = s.arguments().at(0).expr;
      else if (out.advance && tl::is_loop(s.op) && calls(s, *out.advance))
        out.loop = &s;
    }
  }
  return out;
}

// Its steps become one loop, in which each round adds its own sums.
bool add_in_each_round(Edit& edit, const AddingWarpgroup& at, const std::string& full,
                       const std::string& added) {
  Stmt loop = *at.loop;
  const std::string t = loop.counter();
  if (at.advance->params().at(0).name != loop.index() ||
      at.add->params().at(0).name != loop.index())
    return edit.refuse_kernel("counts rounds by other names in its loop");
  loop.begin() = at.first;
  loop.body = at.advance->body;
  std::erase_if(loop.body, [&](const Stmt& s) { return calls(s, *at.add); });
  const auto is_let = [](const Stmt& s) { return s.op == Op::let; };
  const auto tile = std::find_if_not(at.add->body.begin(), at.add->body.end(), is_let);
  loop.body.insert(loop.body.begin(), at.add->body.begin(), tile);
  if (!edit.insert({&loop.body, loop.body.size()}, fmt::format("wait {}[{}]", full, t)))
    return false;
  loop.body.push_back(*tile);
  if (!edit.insert({&loop.body, loop.body.size()}, fmt::format("arrive {}[{}]", added, t)))
    return false;
  std::vector<Stmt> body;
  for (Stmt& s : at.block->body) {
    const bool of_first = s.op == Op::count && s.counter() == t;
    const bool called =
        s.op == Op::call && (s.name() == at.add->name() || s.name() == at.advance->name());
    if (&s == at.loop) body.push_back(loop);
    if (&s != at.add && &s != at.advance && &s != at.loop && !of_first && !called)
      body.push_back(std::move(s));
  }
  at.block->body = std::move(body);
  return true;
}

// A thread of the loader that does this in each round of a loop, whose names are those of its lets.
bool insert_thread(Edit& edit, Stmt& loader, Stmt loop, const std::vector<std::string>& does) {
  std::vector<Stmt> thread;
  std::erase_if(loop.body, [](const Stmt& s) { return s.op != Op::let; });
  if (!edit.insert({&thread, 0}, {fmt::format("thread {}:\n    var {} = 0", threads_of(loader),
                                              loop.counter())}) ||
      !edit.insert({&loop.body, loop.body.size()}, does))
    return false;
  thread[0].body.push_back(std::move(loop));
  loader.body.push_back(std::move(thread[0]));
  return true;
}

// And the one that asks whose turn it is.
bool insert_asking(Edit& edit, Stmt& loader, const Stmt& loop, const std::string& full,
                   const std::string& free, const std::string& place, const std::string& number) {
  const std::string t = loop.counter();
  return insert_thread(
      edit, loader, loop,
      {fmt::format("wait_free {}[{}]", free, t), fmt::format("wait_turn {} == {}", place, number),
       fmt::format("arrive {}[{}]", full, t)});
}

bool turns_of_registers(Edit& edit, const std::string& number) {
  const AddingWarpgroup at = adding_warpgroup(edit, "sum_dq");
  Stmt* const loader = edit.program.find(Op::warpgroup);
  if (!at.loop || !at.first || !loader)
    return edit.refuse_kernel("has no thread that adds tiles of dQ");
  if (threads_of(*loader) > 2) return no_warp_is_left(edit);
  heads_inside(edit);
  const std::string turns = edit.fresh({"turns"}), full = edit.fresh({"turn_full"}),
                    free = edit.fresh({"turn_free"}), added = edit.fresh({"added"}),
                    place = place_of(edit, turns), t = at.loop->counter();
  Stmt* const block = at.block;
  if (!add_in_each_round(edit, at, full, added)) return false;
  const auto loop = std::find_if(block->body.begin(), block->body.end(),
                                 [](const Stmt& s) { return tl::is_loop(s.op); });
  return insert_asking(edit, *loader, *loop, full, free, place, number) &&
         insert_thread(
             edit, *loader, *loop,
             {fmt::format("wait {}[{}]", added, t), fmt::format("pass_turn {} = c.n + 1", place),
              fmt::format("arrive {}[{}]", free, t)}) &&
         declare(edit, turns, full, free, added);
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
  if (!at.loop) return turns_of_registers(edit, number);
  if (threads_of(*at.loader) > 3) return no_warp_is_left(edit);
  heads_inside(edit);
  const std::string turns = edit.fresh({"turns"}), full = edit.fresh({"turn_full"}),
                    free = edit.fresh({"turn_free"});
  const std::string place = place_of(edit, turns);
  std::vector<Stmt>& body = at.loop->body;
  const auto is_let = [](const Stmt& s) { return s.op == Op::let; };
  const size_t lets = size_t(std::find_if_not(body.begin(), body.end(), is_let) - body.begin());

  const Stmt loop = *at.loop;
  if (!edit.insert({&body, body.size()},
                   {"tma_store_wait", fmt::format("pass_turn {} = c.n + 1", place)}) ||
      !edit.insert({&body, lets},
                   {fmt::format("wait {}[t]", full), fmt::format("arrive {}[t]", free)}))
    return false;
  return insert_asking(edit, *at.loader, loop, full, free, place, number) &&
         declare(edit, turns, full, free);
}

}  // namespace kw::transfer::bwd
