// A product on Hopper (sm_90a): a warpgroup that only loads, by the copy engine, and consumers
// whose products are asynchronous.
//
//   H1  both sides of a step complete one barrier, STAGES steps are in shared memory, and a slot is
//       free when every warp that reads it has said so.
//   H2  a product is issued before the one before it is waited for: the tensor cores always have
//       one to go on with, and the slot of the older one is given back then.
//   H3  one thread loads, another stores the output's tile, which is a slot of its own: the next
//       tile's loads and products run under the store.
//   H4  tiles are dealt out in turn, in groups of GROUP rows of tiles, column by column: what
//   thread
//       blocks read at one time are about as many rows of the left side as columns of the right,
//       which the second-level cache holds.
#include <fmt/format.h>

#include "sketch/families/gemm/schedule.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

constexpr int64_t kGroupRows = 2048;  // of the left side

class EngineProduct {
 public:
  explicit EngineProduct(const SizedProduct& p) : p_(p) {}

  std::string run() {
    head();
    blocks();
    out_.line(0, fmt::format("kernel {}, threads 128 * (MATH + WARPGROUPS):",
                             p_.product.plan.plan->name()));
    out_.line(1, fmt::format("let steps = {}", tl::print(p_.product.plan.loop->extent())));
    out_.line(1, "init full, free, o_full, o_free");
    loader();
    warpgroups();
    return out_.text();
  }

 private:
  void head() {
    for (Stmt s : p_.program.body) {
      if (s.op == Op::level || s.op == Op::plan) continue;
      if (s.op == Op::element && !p_.program.find(Op::include))
        out_.line(0, "include \"kw/kw.cuh\"");
      if (s.op == Op::args) {
        const EngineRegisters registers = engine_registers(p_.sizes.warpgroups);
        out_.line(
            0, fmt::format("param GROUP = {}", kGroupRows / (p_.sizes.rows * p_.sizes.warpgroups)));
        out_.line(0, "param LOAD = 0, MATH = 1");
        out_.line(0, fmt::format("param LOADER_REGISTERS = {}, WARPGROUP_REGISTERS = {}",
                                 registers.loader, registers.warpgroup));
        for (Stmt& a : s.body)
          if (a.op == Op::arg_tensor && a.dims().size() == 4) a.op = Op::arg_tiled;
      }
      if (s.op == Op::shared)
        shared();
      else
        out_.add(s, 0);
    }
  }

  void shared() {  // Y2, H1
    out_.line(0, "shared:");
    out_.line(
        1, fmt::format("tile {}[WARPGROUPS]: ring(STAGES) of element[ROWS, BK]", p_.product.a_s));
    out_.line(1, fmt::format("tile {}: ring(STAGES) of element[BK, BN]", p_.product.b_s));
    out_.line(1, fmt::format("tile {}[WARPGROUPS]: ring(1) of element[ROWS, BN]", p_.o_s));
    out_.line(1, "barrier full: ring(STAGES), arrivals WARPGROUPS + 1");
    out_.line(1, "barrier free: ring(STAGES), arrivals 4 * WARPGROUPS");
    out_.line(1, "barrier o_full: ring(1), arrivals 4 * WARPGROUPS");
    out_.line(1, "barrier o_free: ring(1), arrivals 1");
  }

  void blocks() {  // Y1, H4
    const std::string heads = tl::print(p_.product.plan.extents[2]);
    out_.line(0, "record Block: m, n, h, b");
    out_.line(0, "def block_of(w: index) -> Block:");
    out_.line(1, "let of_one = rows * columns, u = w % of_one, v = w // of_one");
    out_.line(1, "let top = u // (GROUP * columns) * GROUP, r = u % (GROUP * columns)");
    out_.line(1, "let height = max(min(rows - top, GROUP), 1)");
    out_.line(1, fmt::format("return top + r % height, r // height, v % {0}, v // {0}", heads));
  }

  // A place for warpgroup `r`: its first row is spelled out, as nobody else's is.
  std::string place(const Stmt& copy, tl::Hole hole) const {
    const tl::Item& row = p_.product.first_row->names().at(0);
    const tl::ExprPtr first = tl::replace(
        row.expr,
        {{tl::name(p_.m), tl::field(tl::name("c"), "m")}, {tl::name(p_.me), tl::name("r")}});
    return kernel_place(p_, copy.expr(hole), "c.n", {{tl::name(row.name), first}});
  }

  void static_tiles(int depth) {
    out_.line(depth, "for u, w in static_tiles(blocks, 1):");
    out_.line(depth + 1, "let c = block_of(w)");
  }

  void loader() {  // H3
    const std::string& k = p_.step;
    out_.line(1, "warpgroup LOAD, registers LOADER_REGISTERS:");
    out_.line(2, "thread 0:");
    out_.line(3, "var t = 0");
    static_tiles(3);
    out_.line(4, fmt::format("for t, {} in range_down_rolled(steps - 1, 0):", k));
    out_.line(5, "wait_free free[t]");
    out_.line(5, "for r in range(WARPGROUPS):");
    out_.line(6, fmt::format("tma_load_tile {} -> {}[r][t], arrive full[t], evict_normal",
                             place(*p_.product.left, tl::Hole::src), p_.product.a_s));
    out_.line(5, fmt::format("tma_load_tile {} -> {}[t], arrive full[t], evict_normal",
                             place(*p_.product.right, tl::Hole::src), p_.product.b_s));
    out_.line(2, "thread 1:");
    static_tiles(3);
    out_.line(4, "wait o_full[u]");
    out_.line(4, "for r in range(WARPGROUPS):");
    out_.line(5, fmt::format("tma_store_tile {}[r][u] -> {}", p_.o_s,
                             place(*p_.product.out, tl::Hole::dst)));
    out_.line(4, "tma_store_wait_read");
    out_.line(4, "arrive o_free[u]");
    out_.line(3, "tma_store_wait");
  }

  std::string product(const char* use) const {
    return fmt::format("wgmma_add {} += {}[{}][{}] @ {}[{}]", p_.product.acc, p_.product.a_s, p_.me,
                       use, p_.product.b_s, use);
  }

  void warpgroups() {  // H2
    out_.line(1, fmt::format("warpgroups {} from MATH, registers WARPGROUP_REGISTERS:", p_.me));
    for (const Stmt* s : p_.product.plan.declared) out_.add(*s, 2);
    out_.line(2, "var t = 0");
    static_tiles(2);
    out_.add(*p_.product.fill, 3);
    out_.line(3, "wait full[t]");
    out_.line(3, product("t"));
    out_.line(3, fmt::format("for t, {} in range_down_rolled(steps - 2, 0):", p_.step));
    out_.line(4, "wait full[t + 1]");
    out_.line(4, product("t + 1"));
    out_.line(4, "wgmma_wait_group 1");
    out_.line(4, "arrive free[t]");
    out_.line(3, fmt::format("wgmma_wait 0: {}", p_.product.acc));
    out_.line(3, "arrive free[t]");
    out_.line(3, "count t");
    out_.line(3, "wait_free o_free[u]");
    out_.line(3,
              fmt::format("store {} -> {}[u]", p_.product.acc, tl::print(p_.product.store->dst())));
    out_.line(3, "fence_async");
    out_.line(3, "arrive o_full[u]");
  }

  const SizedProduct& p_;
  Text out_;
};

}  // namespace

std::string product_engine(const SizedProduct& p) { return EngineProduct(p).run(); }

}  // namespace kw::sketch
