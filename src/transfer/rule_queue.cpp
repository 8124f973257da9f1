// Blocks of the output that take different times are drawn from a queue.
//
//   for u, w in deal(blocks, CTAS):                  in threads of the loader, and in the workers
//     ->   for u, w in take(work, blocks):           in the threads
//          for u, w in take_warp(work, blocks):      in the workers
//   with `counter: workspace[2]`, `queue work: ring(1), takers 3 + 4 * WORKERS of each of CTAS`,
//   `work` in `init`, and a thread of the loader that does nothing but
//   `offer work, counter, blocks`
//
// When     not every block visits all keys (rule_keys), and the kernel deals its blocks out. Dealt
//          in turn, blocks of different length leave some clusters idle while others still have
//          several to go. Where all are alike dealing is about 1 % faster, and simpler.
// Effect   none: blocks are independent.
#include <fmt/format.h>

#include <set>

#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

Stmt* find(std::vector<Stmt>& body, Op op) {
  Stmt* found = nullptr;
  tl::walk(body, [&](Stmt& s) {
    if (!found && s.op == op) found = &s;
  });
  return found;
}

tl::Item item(tl::ExprPtr e) { return {"", "", std::move(e), {}}; }

// The arrivals of all warps of the workers at one barrier: what its declaration says.
std::string warps_of_workers(tl::Program& program) {
  Stmt* workers = find(program.body, Op::workers);
  const Stmt* arrive = workers ? find(workers->body, Op::arrive) : nullptr;
  std::string arrivals;
  if (arrive)
    for (const Stmt& s : program.find(Op::shared)->body)
      if (s.op == Op::barrier || s.op == Op::cluster_barrier)
        for (const tl::Item& d : s.items("d"))
          if (arrive->expr("b")->args.at(0)->is_name(d.name)) arrivals = tl::print(s.expr("a"));
  return arrivals;
}

// Turns a loop over dealt blocks into one that takes them.
void take_instead(Stmt& deal, const std::string& queue, bool by_worker) {
  const tl::Item count = deal.items("n").at(0);
  deal.op = by_worker ? Op::take_warp : Op::take;
  deal.fields = {{"u", deal.items("u")},
                 {"w", deal.items("w")},
                 {"q", {item(tl::name(queue))}},
                 {"n", {count}}};
}

}  // namespace

bool rule_queue(Edit& edit) {
  Stmt* deal = find(edit.program.body, Op::deal);
  if (!edit.blocks_differ || !deal) return true;
  const std::string count = tl::print(deal->expr("n")), ctas = tl::print(deal->expr("k")),
                    warps = warps_of_workers(edit.program);
  Stmt *loader = find(edit.program.body, Op::worker),
       *workers = find(edit.program.body, Op::workers), *init = find(edit.program.body, Op::init),
       *shared = find(edit.program.body, Op::shared);
  if (!loader || !workers || !init || !shared || warps.empty())
    return edit.refuse("transfer.kernel", {}, "this kernel has no place for a queue of blocks", "");
  std::set<std::string> busy;
  int takers = 0, free_warp = 0;
  for (const Stmt& s : loader->body)
    if (s.op == Op::thread) busy.insert(tl::print(s.expr("k")));
  while (busy.count(std::to_string(free_warp))) ++free_warp;
  if (free_warp > 3)
    return edit.refuse("transfer.kernel", {}, "every warp of this kernel's loader is busy", "");
  const std::string queue = edit.fresh({"work", "queue_of_blocks"}),
                    counter = edit.fresh({"counter", "drawn"});
  const auto take_all = [&](std::vector<Stmt>& body, bool by_worker) {
    tl::walk(body, [&](Stmt& s) {
      if (s.op != Op::deal) return;
      takers += by_worker ? 0 : 1;
      take_instead(s, queue, by_worker);
    });
  };
  take_all(loader->body, false);
  take_all(workers->body, true);
  init->items("a").push_back(item(tl::name(queue)));
  Stmt thread = loader->body.front();
  thread.items("k") = {item(tl::integer(free_warp))};
  thread.body.clear();
  std::vector<Stmt>& args = args_of(edit.program).body;
  return edit.insert({&thread.body, 0}, fmt::format("offer {}, {}, {}", queue, counter, count)) &&
         (loader->body.push_back(thread), true) &&
         edit.insert({&args, args.size()}, counter + ": workspace[2]") &&
         edit.insert({&shared->body, shared->body.size()},
                     fmt::format("queue {}: ring(1), takers {} + {} of each of {}", queue, takers,
                                 warps, ctas));
}

}  // namespace kw::transfer
