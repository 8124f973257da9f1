// Blocks of the output that take different times are drawn from a queue.
//
//   for u, w in static_tiles(blocks, CTAS):                  in threads of the loader, and in the
//   warpgroups
//     ->   for u, w in dynamic_tiles(work, blocks):           in the threads
//          for u, w in dynamic_tiles_warp(work, blocks):      in the warpgroups
//   with `counter: workspace[2]`, `queue work: ring(1), takers 3 + 4 * WARPGROUPS of each of CTAS`,
//   `work` in `init`, and a thread of the loader that does nothing but
//   `schedule_tiles work, counter, blocks`
//
// When     not every block visits all keys (rule_keys), and the kernel deals its blocks out. Dealt
//          in turn, blocks of different length leave some clusters idle while others still have
//          several to go. Where all are alike dealing is about 1 % faster, and simpler.
// Effect   none: blocks are independent.
#include <fmt/format.h>

#include <set>

#include "transfer/families/attention/rules/rules.h"

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

// The arrivals of all warps of the warpgroups at one barrier: what its declaration says.
std::string warps_of_warpgroups(tl::Program& program) {
  Stmt* warpgroups = find(program.body, Op::warpgroups);
  const Stmt* arrive = warpgroups ? find(warpgroups->body, Op::arrive) : nullptr;
  std::string arrivals;
  if (arrive)
    for (const Stmt& s : program.find(Op::shared)->body)
      if (s.op == Op::barrier || s.op == Op::cluster_barrier)
        for (const tl::Item& d : s.names())
          if (arrive->barrier()->args.at(0)->is_name(d.name)) arrivals = tl::print(s.arrivals());
  return arrivals;
}

// Turns a loop over dealt blocks into one that takes them.
void take_instead(Stmt& static_tiles, const std::string& queue, bool by_warpgroup) {
  const tl::Item count = item(static_tiles.count());
  static_tiles.op = by_warpgroup ? Op::dynamic_tiles_warp : Op::dynamic_tiles;
  static_tiles.fields = {{tl::Hole::use, static_tiles.items(tl::Hole::use)},
                         {tl::Hole::index, static_tiles.items(tl::Hole::index)},
                         {tl::Hole::queue, {item(tl::name(queue))}},
                         {tl::Hole::count, {count}}};
}

}  // namespace

bool rule_queue(Edit& edit) {
  Stmt* static_tiles = find(edit.program.body, Op::static_tiles);
  if (!edit.blocks_differ || !static_tiles) return true;
  const std::string count = tl::print(static_tiles->count()),
                    ctas = tl::print(static_tiles->ctas()),
                    warps = warps_of_warpgroups(edit.program);
  Stmt *loader = find(edit.program.body, Op::warpgroup),
       *warpgroups = find(edit.program.body, Op::warpgroups),
       *init = find(edit.program.body, Op::init), *shared = find(edit.program.body, Op::shared);
  if (!loader || !warpgroups || !init || !shared || warps.empty())
    return edit.refuse("transfer.kernel", {}, "this kernel has no place for a queue of blocks", "");
  std::set<std::string> busy;
  int takers = 0, free_warp = 0;
  for (const Stmt& s : loader->body)
    if (s.op == Op::thread) busy.insert(tl::print(s.number()));
  while (busy.count(std::to_string(free_warp))) ++free_warp;
  if (free_warp > 3)
    return edit.refuse("transfer.kernel", {}, "every warp of this kernel's loader is busy", "");
  const std::string queue = edit.fresh({"work", "queue_of_blocks"}),
                    counter = edit.fresh({"counter", "drawn"});
  const auto take_all = [&](std::vector<Stmt>& body, bool by_warpgroup) {
    tl::walk(body, [&](Stmt& s) {
      if (s.op != Op::static_tiles) return;
      takers += by_warpgroup ? 0 : 1;
      take_instead(s, queue, by_warpgroup);
    });
  };
  take_all(loader->body, false);
  take_all(warpgroups->body, true);
  init->barriers().push_back(item(tl::name(queue)));
  Stmt thread = loader->body.front();
  thread.items(tl::Hole::number) = {item(tl::integer(free_warp))};
  thread.body.clear();
  std::vector<Stmt>& args = args_of(edit.program).body;
  return edit.insert({&thread.body, 0},
                     fmt::format("schedule_tiles {}, {}, {}", queue, counter, count)) &&
         (loader->body.push_back(thread), true) &&
         edit.insert({&args, args.size()}, counter + ": workspace[2]") &&
         edit.insert({&shared->body, shared->body.size()},
                     fmt::format("queue {}: ring(1), takers {} + {} of each of {}", queue, takers,
                                 warps, ctas));
}

}  // namespace kw::transfer
