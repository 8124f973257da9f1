// What a Hopper kernel has beside what the others have: warpgroups with parts of their own,
// clusters, barriers in shared memory, the copy engine, products that are under way, the queue of
// blocks.
//
// A barrier is counted by use as in TL: `wait k_full[t]` is shared.k_full.wait(t). Tiles lie as the
// copy engine writes them; instructions of single warps take them through tl::for_warps.
#include <cctype>
#include <set>

#include "cute/printer.h"
#include "tl/scope/intervals.h"

namespace kw::cute {
using namespace tl;

Printer::Use Printer::use(const Stmt& s, const Scope& scope, const ExprPtr& e) {
  return {"shared." + print(e->args[0]), text(s, scope, e->args[1])};
}

bool Printer::needs_extended_shapes() const {
  static const std::set<int64_t> plain = {8, 16, 32, 64, 96, 128, 192, 256};
  bool needs = false;
  walk_scoped(program_, [&](const Stmt& s, const Scope& scope) {
    if (s.op != Op::wgmma && s.op != Op::wgmma_add) return;
    const Symbol* c = scope.find(base_name(s.acc()));
    needs = needs || !plain.count(interval_of(c->shape[1], scope).lo);
  });
  return needs;
}

bool Printer::hopper_shared(const Stmt& s, const Scope& scope) {
  const auto size = [&](const ExprPtr& x) { return "(" + text(s, scope, x) + ")"; };
  const bool cluster = s.op == Op::cluster_barrier, queue = s.op == Op::queue;
  if (!hopper_ || (!cluster && !queue && s.op != Op::barrier)) return false;
  line("// " + print_head(s));
  std::string names;
  for (const Item& d : s.names()) names += (names.empty() ? "" : ", ") + d.name;
  line(fmt::format("tl::{}<{}, {}{}> {};", queue ? "Queue" : "Barriers", size(s.stages()),
                   size(s.arrivals()), cluster || queue ? ", " + size(s.ctas()) : "", names));
  return true;
}

bool Printer::hopper_control(const Stmt& s, const Scope& scope) {
  const auto e = [&](const ExprPtr& x) { return text(s, scope, x); };
  const auto open = [&](const std::string& head) {
    line(head + " {");
    braces(s, scope);
    return true;
  };
  switch (s.op) {
    case Op::warpgroup:
      line(fmt::format("if (warpgroup_here == {}) {{", e(s.number())));
      line(fmt::format("  cutlass::arch::warpgroup_reg_dealloc<{}>();", e(s.registers())));
      braces(s, scope);
      return true;
    case Op::warpgroups:
      line("else {");
      line(fmt::format("  cutlass::arch::warpgroup_reg_alloc<{}>();", e(s.registers())));
      line(fmt::format("  const int {} = warpgroup_here - {};", s.me(), e(s.first())));
      braces(s, scope);
      return true;
    case Op::thread:
      return open(fmt::format("if (tl::is_thread({}))", e(s.number())));
    case Op::range_down_rolled:
      line("#pragma unroll 1");
      [[fallthrough]];
    case Op::range_down_counted:
      return open(fmt::format("for (int {0} = {1}; {0} >= {2}; --{0}, ++{3})", s.index(),
                              e(s.begin()), text(s, scope, s.end(), 5), s.counter()));
    case Op::static_tiles:
      return open(
          fmt::format("for (int {0} = 0, {1} = int(blockIdx.x) / ({2}); {1} < {3}; ++{0}, "
                      "{1} += int(gridDim.x) / ({2}))",
                      s.use(), s.index(), e(s.ctas()), e(s.count())));
    case Op::dynamic_tiles:
    case Op::dynamic_tiles_warp:
      return open(
          fmt::format("for (int {0} = 0, {1}; ({1} = tl::{2}(shared.{3}, {0})) < {4}; ++{0})",
                      s.use(), s.index(), word(s.op), print(s.queue()), e(s.count())));
    default:
      return false;
  }
}

bool Printer::hopper_statement(const Stmt& s, const Scope& scope) {
  const auto e = [&](const ExprPtr& x) { return text(s, scope, x); };
  const auto name = [&](const ExprPtr& x) { return print(x); };
  const auto t = [&](const ExprPtr& x) { return tile(s, scope, x); };
  const auto wait = [&](const char* what) {
    const Use b = use(s, scope, s.barrier());
    line(fmt::format("{}.{}({});", b.ring, what, b.count));
  };
  switch (s.op) {
    case Op::cluster:
      line(fmt::format("const int {} = block_rank_in_cluster();", s.rank()));
      return true;
    case Op::var:
      for (const Item& d : s.names())
        line(fmt::format("int {} = {};", d.name, text(s, scope, d.expr)));
      return true;
    case Op::count:
      line(fmt::format("++{};", s.counter()));
      return true;
    case Op::init: {
      std::string all;
      for (const Item& a : s.barriers())
        all += (all.empty() ? "shared." : ", shared.") + print(a.expr);
      line(fmt::format("tl::init({});", all));
      return true;
    }
    case Op::sync_cluster:
      line("tl::sync_cluster();");
      return true;
    case Op::wait:
    case Op::wait_free:
    case Op::arrive:
      wait(word(s.op).data());
      return true;
    case Op::order_arrive:
    case Op::order_wait:
      line(fmt::format("tl::{}({});", word(s.op), e(s.warpgroup())));
      return true;
    case Op::schedule_tiles:
      line(fmt::format("tl::schedule_tiles(shared.{}, {}, {});", name(s.queue()), e(s.workspace()),
                       e(s.count())));
      return true;
    case Op::tma_load:
    case Op::tma_load_multicast: {
      const Use full = use(s, scope, s.barrier());
      std::string hint = s.hint();
      for (char& c : hint) c = char(std::toupper(c));
      line(fmt::format("tl::{}{}({}, {}, {}, {}.at({}), TMA::CacheHintSm90::{});", word(s.op),
                       s.op == Op::tma_load_multicast ? "<" + e(s.ctas()) + ">" : "", e(s.tensor()),
                       coordinates(s, scope), t(s.dst()), full.ring, full.count, hint));
      return true;
    }
    case Op::tma_store:
      line(fmt::format("tl::tma_store({}, {}, {});", t(s.src()), e(s.tensor()),
                       coordinates(s, scope)));
      return true;
    case Op::tma_store_wait_read:
      line("tma_store_wait<0>();");
      return true;
    case Op::tma_store_wait:
    case Op::fence_async:
      line(fmt::format("tl::{}();", word(s.op)));
      return true;
    case Op::wgmma:
      if (is_operand(scope, s.a()))
        line(fmt::format("tl::gemm_async_registers({}_mma, {}_mma, {});", name(s.acc()),
                         name(s.a()), t(s.b())));
      else
        line(fmt::format("tl::wgmma({}_mma, {}, {});", name(s.acc()), t(s.a()), t(s.b())));
      return true;
    case Op::wgmma_add:
      line(fmt::format("tl::wgmma_add({}_mma, {}_mma, {});", name(s.acc()), name(s.a()), t(s.b())));
      return true;
    case Op::wgmma_wait:
      line(fmt::format("tl::wgmma_wait<{}>({}_mma);", e(s.pending()), name(s.acc())));
      return true;
    default:
      return false;
  }
}

}  // namespace kw::cute
