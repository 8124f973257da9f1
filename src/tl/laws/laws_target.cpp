// A breach is told once a law: a kernel written for another GPU breaks it in every line.
#include "tl/laws/laws_target.h"

#include <fmt/format.h>

#include <set>

#include "support/targets.h"
#include "tl/laws/laws.h"
#include "tl/traits.h"

namespace kw::tl {
namespace {

// What stands in a statement's place on a GPU that lacks its instructions: of every statement that
// needs more than the oldest.
struct Instead {
  Op op;
  std::string_view
      text;  // {rows} and {tile}: the target's copies of whole rows and of part of them
};
constexpr std::string_view kNothing = "nothing", kSync = "sync_block",
                           kAlike = "a kernel whose warpgroups are alike",
                           kGrid = "one CTA for each block of the output, by block_index";
constexpr Instead kInstead[] = {
    {Op::arg_tiled, "an argument without `tiled`, which {rows} reads"},
    {Op::kernel, kAlike},
    {Op::warpgroup, kAlike},
    {Op::warpgroups, kAlike},
    {Op::registers_up, kAlike},
    {Op::cluster, kGrid},
    {Op::queue, kGrid},
    {Op::schedule_tiles, kGrid},
    {Op::dynamic_tiles, kGrid},
    {Op::dynamic_tiles_warp, kGrid},
    {Op::barrier, kSync},
    {Op::cluster_barrier, kSync},
    {Op::init, kNothing},
    {Op::sync_cluster, kSync},
    {Op::wait, kSync},
    {Op::wait_free, kSync},
    {Op::arrive, kSync},
    {Op::wgmma_wait, kNothing},
    {Op::wgmma_wait_group, kNothing},
    {Op::fence_async, kNothing},
    {Op::tma_store_wait_read, kNothing},
    {Op::tma_store_wait, kNothing},
    {Op::tma_send, kNothing},
    {Op::wait_turn, kSync},
    {Op::pass_turn, kSync},
    {Op::tma_load, "{rows}"},
    {Op::tma_load_multicast, "{rows}"},
    {Op::tma_load_pages, "keys and values that are not in pages"},
    {Op::tma_load_tile, "{tile}"},
    {Op::tma_load_rows, "cp_async_rows"},
    {Op::tma_add, "add_tile"},
    {Op::tma_store, "copy_out"},
    {Op::tma_store_tile, "copy_tile_out"},
    {Op::wgmma, "mma"},
    {Op::wgmma_add, "mma_add"},
    {Op::wgmma_add_columns, "mma_add_columns"},
    {Op::wgmma_add_rows, "mma_add"},
    {Op::wgmma_add_transposed, "mma_add_transposed"},
    {Op::wgmma_add_transposed_a, "mma_add"},
    {Op::cp_async, "copy_in, and a sync_block after it"},
    {Op::cp_async_tile, "copy_tile_in, and a sync_block after it"},
    {Op::cp_async_rows, "a read of the tensor"},
    {Op::cp_async_commit, kNothing},
    {Op::cp_async_wait, kNothing},
    {Op::upcast, "operands of 16 bits"},
};

constexpr const Instead* instead_of(Op op) {
  for (const Instead& i : kInstead)
    if (i.op == op) return &i;
  return nullptr;
}
constexpr bool each_has_an_alternative() {
  for (int n = 0; n < kOps; ++n)
    if ((traits(Op(n)).needs != Needs::any) != (instead_of(Op(n)) != nullptr)) return false;
  return true;
}
static_assert(each_has_an_alternative(), "kInstead: a statement of newer GPUs lacks its place");

class ForTarget {
 public:
  ForTarget(std::string_view target, Diagnostics& diagnostics)
      : name_(target), limits_(find_target(target)), diagnostics_(diagnostics) {}

  bool judge(const Program& program) {
    if (limits_) walk(program.body, [&](const Stmt& s) { judge(s); });
    return told_.empty();
  }

 private:
  void judge(const Stmt& s) {
    if (s.op == Op::element && s.type() != "f16" && !limits_->ampere)
      broken("C1", s, fmt::format("the element type is {}", s.type()), "element f16");
    const bool narrow = s.has(Hole::access) ? s.access().front().type == "e4m3"
                                            : s.has(Hole::type) && s.type() == "e4m3";
    if (narrow && !limits_->fp8)
      broken("C4", s, fmt::format("`{}` is of e4m3", print_head(s)), "operands of 16 bits");
    instructions(s);
  }

  // Those of the statement itself.
  void instructions(const Stmt& s) {
    const Needs needs = traits(s.op).needs;
    if (needs == Needs::ampere && !limits_->ampere)
      broken("C2", s, fmt::format("`{}` is a copy under way", word(s.op)), instead(s.op));
    if (needs == Needs::fp8 && !limits_->fp8)
      broken("C4", s, fmt::format("`{}` converts e4m3", word(s.op)), instead(s.op));
    if (needs == Needs::hopper && !limits_->hopper)
      broken("C3", s, fmt::format("`{}` is Hopper's own", word(s.op)), instead(s.op));
  }

  std::string instead(Op op) const {
    const bool async = limits_->ampere;
    return fmt::format(fmt::runtime(instead_of(op)->text),
                       fmt::arg("rows", async ? "cp_async" : "copy_in"),
                       fmt::arg("tile", async ? "cp_async_tile" : "copy_tile_in"));
  }

  void broken(const char* label, const Stmt& s, const std::string& what,
              const std::string& instead) {
    const std::string code = fmt::format("target.{}", label);
    if (!told_.insert(code).second) return;
    diagnostics_.error(code, s.span, fmt::format("{}, and {} has none", what, name_)).hint =
        fmt::format("use {}; the law: {}", instead, law(code)->text);
  }

  const std::string name_;
  const TargetLimits* limits_;
  Diagnostics& diagnostics_;
  std::set<std::string> told_;
};

}  // namespace

bool verify_for(const Program& program, std::string_view target, Diagnostics& diagnostics) {
  return ForTarget(target, diagnostics).judge(program);
}

}  // namespace kw::tl
