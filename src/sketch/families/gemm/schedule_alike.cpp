// A product where warps copy and multiply for themselves (sm_75 to sm_90, without TMA).
//
// All warpgroups are alike, and a CTA has one tile of the output, or a run of tiles across
// where a rule gives it whole rows. With asynchronous copies:
//   R1  steps are copied STAGES - 1 ahead of the one that is multiplied, each as a group of its
//       own, also where nothing is left to copy: so the wait for a step always leaves as many
//       groups under way.
//   R2  all warps meet after that wait: then the step is everybody's, and the slot that is filled
//       next has been read.
// Without them there is one slot, and
//   R3  all warps meet before the copies of a step and after them.
// In both:
//   R4  the left side of a step is loaded into registers once, the right side read by the product.
//   R5  before a tile's first copies all warps meet (the tile before may still be read), and a
//       warpgroup's warps before its output is copied out.
#include <fmt/format.h>

#include "sketch/families/gemm/schedule.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class AlikeProduct {
 public:
  explicit AlikeProduct(const SizedProduct& p)
      : p_(p), asynchronous_(p.machine.style == Style::copies) {}

  std::string run() {
    head();
    blocks();
    const std::string& me = p_.me;
    out_.line(0,
              fmt::format("kernel {}, threads 128 * WARPGROUPS, resident RESIDENT, warpgroups {}:",
                          p_.product.plan.plan->name(), me));
    out_.line(1, "let c = block_of(block_index(blocks))");
    out_.line(1, fmt::format("let steps = {}", tl::print(p_.product.plan.loop->extent())));
    const tl::Item& row = p_.product.first_row->names().at(0);
    out_.line(1, fmt::format("let {} = {}", row.name,
                             tl::print(tl::replace(
                                 row.expr, {{tl::name(p_.m), tl::field(tl::name("c"), "m")}}))));
    operand_ = fresh_name(p_.program, "a_r");
    out_.line(1, fmt::format("operand {}: element[ROWS, BK]", operand_));
    for (const Stmt* s : p_.product.plan.declared) out_.add(*s, 1);
    if (asynchronous_) fetch();
    out_.line(1, fmt::format("for {} in range_down(c.last, c.first):", p_.n));
    out_.line(2, "sync_block");  // R5
    if (asynchronous_) begin();
    out_.add(*p_.product.fill, 2);
    out_.line(2, fmt::format("for {} in range_down(steps - 1, 0):", p_.step));
    step();
    out_.add(*p_.product.store, 2);
    out_.line(2, "sync_warpgroup " + me);
    out_.line(2, fmt::format("copy_tile_out {} -> {} by 1", tl::print(p_.product.out->src()),
                             place(*p_.product.out, tl::Hole::dst)));
    return out_.text();
  }

 private:
  void head() {
    for (const Stmt& s : p_.program.body) {
      if (s.op == Op::level || s.op == Op::plan) continue;
      if (s.op == Op::element && !p_.program.find(Op::include))
        out_.line(0, "include \"kw/kw.cuh\"");
      if (s.op == Op::args)
        out_.line(0, fmt::format("param RESIDENT = {}", product_resident(p_.machine, p_.sizes)));
      if (s.op == Op::shared)
        shared();
      else
        out_.add(s, 0);
    }
  }

  void shared() {  // Y2
    const char* ring = asynchronous_ ? "ring(STAGES) of " : "";
    out_.line(0, "shared:");
    out_.line(1, fmt::format("tile {}[WARPGROUPS]: {}element[ROWS, BK]", p_.product.a_s, ring));
    out_.line(1, fmt::format("tile {}: {}element[BK, BN]", p_.product.b_s,
                             asynchronous_ ? ring : "ring(1) of "));
    out_.line(1, fmt::format("tile {}[WARPGROUPS]: element[ROWS, BN]", p_.o_s));
  }

  void blocks() {  // Y1
    const auto& extents = p_.product.plan.extents;
    const std::string heads = tl::print(extents[2]);
    out_.line(0, "record Block: m, first, last, h, b");
    out_.line(0, "def block_of(w: index) -> Block:");
    out_.line(1, "let u = w // rows, n = u % columns");
    out_.line(1,
              fmt::format("return w % rows, n, n, u // columns % {0}, u // columns // {0}", heads));
  }

  std::string place(const Stmt& copy, tl::Hole hole) const {
    return kernel_place(p_, copy.expr(hole), p_.n);
  }

  // The copies of step `k` into their slots.
  void copies(int depth, const char* word, bool slots) {
    const auto slot = [&](bool has) { return has ? fmt::format("[{}]", p_.step) : ""; };
    out_.line(depth,
              fmt::format("{} {} -> {}[{}]{} by 1", word, place(*p_.product.left, tl::Hole::src),
                          p_.product.a_s, p_.me, slot(slots)));
    out_.line(depth,
              fmt::format("{} {} -> {}{} by WARPGROUPS", word,
                          place(*p_.product.right, tl::Hole::src), p_.product.b_s, slot(true)));
  }

  void fetch() {
    out_.line(1, fmt::format("step fetch({}: i32, {}: i32):", p_.n, p_.step));
    copies(2, "cp_async_tile", true);
  }

  void begin() {  // R1
    out_.line(2, fmt::format("fetch({}, steps - 1)", p_.n));
    out_.line(2, "cp_async_commit");
    for (int64_t ahead = 2; ahead < p_.sizes.stages; ++ahead) {
      out_.line(2, fmt::format("if steps > {}:", ahead - 1));
      out_.line(3, fmt::format("fetch({}, steps - {})", p_.n, ahead));
      out_.line(2, "cp_async_commit");
    }
  }

  void step() {
    const std::string& k = p_.step;
    if (asynchronous_) {
      out_.line(3, fmt::format("cp_async_wait {}", p_.sizes.stages - 2));
      out_.line(3, "sync_block");  // R2
      out_.line(3, fmt::format("if {} > {}:", k, p_.sizes.stages - 2));
      out_.line(4, fmt::format("fetch({}, {} - {})", p_.n, k, p_.sizes.stages - 1));
      out_.line(3, "cp_async_commit");
    } else {
      out_.line(3, "sync_block");  // R3
      copies(3, "copy_tile_in", false);
      out_.line(3, "sync_block");
    }
    out_.line(3, fmt::format("load {}[{}]{} -> {}", p_.product.a_s, p_.me,
                             asynchronous_ ? fmt::format("[{}]", k) : "", operand_));  // R4
    out_.line(
        3, fmt::format("mma_add {} += {} @ {}[{}]", p_.product.acc, operand_, p_.product.b_s, k));
  }

  const SizedProduct& p_;
  bool asynchronous_;
  std::string operand_;
  Text out_;
};

}  // namespace

std::string product_alike(const SizedProduct& p) { return AlikeProduct(p).run(); }

}  // namespace kw::sketch
