// Schedules for Hopper (sm_90a): a warpgroup that only loads, by the copy engine, and consumers
// whose products are asynchronous.
//
//   E1  tensors that are copied are the engine's; each tile has a ring, with a barrier that its
//       copies complete and one that its readers do.
//   E2  one thread loads the rows and what the first product reads, another what the second reads,
//       so that neither waits for the other; a third stores.
//   E3  the scores of the next block of keys are issued before the product with this one's values:
//       the tensor cores run under the softmax. A slot is given back when its product is done.
//   E4  the output leaves through the slot where its rows came (or a tile of its own), after the
//       warpgroup's warps have met; the thread that stores gives the slot back.
//   E5  blocks of the output are dealt out in turn, so the next one's loads run under this one's
//       end.
#include <fmt/format.h>

#include <algorithm>

#include "sketch/parts.h"
#include "tl/analysis/effects.h"
#include "tl/laws/laws.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class Engine {
 public:
  explicit Engine(const Parts& parts) : p_(parts) {
    k_ = tl::base_name(p_.scores->b());
    v_ = tl::base_name(p_.values->b());
    q_ = tl::base_name(p_.scores->a());
    acc_ = tl::base_name(p_.values->acc());
    s_ = tl::base_name(p_.scores->acc());
    for (const Stmt* s : p_.plan.before)
      if (s->op == Op::let && tl::mentions(s->names().at(0).expr, p_.part)) rows_ = s;
  }

  std::string run() {
    head();
    functions(p_, out_);
    out_.line(0,
              fmt::format("kernel {}, threads 128 * (MATH + WARPGROUPS):", p_.plan.plan->name()));
    out_.line(1, "cluster cta of CTAS");
    out_.line(1, "init q_full, o_full, q_free, k_full, v_full, k_free, v_free");
    out_.line(1, "sync_cluster");
    loader();
    warpgroups();
    out_.line(1, "sync_cluster");
    return out_.text();
  }

 private:
  void head() {
    for (Stmt s : p_.program.body) {
      if (s.op == Op::level || s.op == Op::plan) continue;
      if (s.op == Op::element) out_.line(0, "include \"kw/kw.cuh\"");
      if (s.op == Op::args) constants();
      if (s.op == Op::shared) {
        shared(s);
        continue;
      }
      if (s.op == Op::args)
        for (Stmt& a : s.body)
          if (a.op == Op::arg_tensor && a.dims().size() == 4) a.op = Op::arg_tiled;  // E1
      out_.add(s, 0);
    }
  }

  void constants() {
    out_.line(0, "param CTAS = 1, Q_SLOTS = 1, STAGES = 2");
    out_.line(0, "param LOAD = 0, MATH = 1");
    out_.line(0, fmt::format("param LOADER_REGISTERS = 24, WARPGROUP_REGISTERS = {}",
                             p_.sizes.warpgroups > 2 ? 160 : 240));
  }

  void shared(const Stmt& tiles) {
    out_.line(0, "shared:");
    for (const Stmt& s : tiles.body) {
      const tl::Item& d = s.names().at(0);
      const std::string name = d.expr ? fmt::format("{}[{}]", d.name, tl::print(d.expr)) : d.name;
      out_.line(1,
                fmt::format("tile {}: ring({}) of {}[{}, {}]", name, d.expr ? "Q_SLOTS" : "STAGES",
                            s.type(), tl::print(s.rows()), tl::print(s.columns())));
    }
    out_.line(1, "barrier q_full: ring(Q_SLOTS), arrivals WARPGROUPS");
    out_.line(1, "barrier o_full: ring(Q_SLOTS), arrivals 4 * WARPGROUPS");
    out_.line(1, "barrier q_free: ring(Q_SLOTS), arrivals 1");
    out_.line(1, "barrier k_full, v_full: ring(STAGES), arrivals 1");
    out_.line(1, "barrier k_free, v_free: ring(STAGES), arrivals 4 * WARPGROUPS");
  }

  // The block of the output and its keys, for whoever needs them.
  void block(int depth, bool keys, bool lets) {
    out_.line(depth, "let c = block_of(w)");
    if (keys) out_.line(depth, "let keys = key_blocks(c, c.m * BM, BM)");
    if (!lets) return;
    for (const Stmt* s : p_.plan.before)
      if (s->op == Op::let && s != rows_) out_.add(in_kernel(p_, *s), depth);
  }

  // The tensor's place in a copy, where the first row is that of warpgroup `r`.
  std::string place(const tl::ExprPtr& e) const {
    const tl::Item& let = rows_->names().at(0);
    const tl::ExprPtr first = tl::replace(let.expr, {{tl::name(p_.me), tl::name("r")}});
    return in_kernel(p_, tl::replace(e, {{tl::name(let.name), first}}));
  }

  void static_tiles(int depth) { out_.line(depth, "for u, w in static_tiles(blocks, CTAS):"); }

  void keys(int depth, const Copied& c, const char* ring) {
    const std::string& n = p_.block;
    out_.line(depth, fmt::format("for t, {} in range_down_rolled(keys.count - 1, 0):", n));
    out_.line(depth + 1, fmt::format("wait_free {}_free[t]", ring));
    out_.line(depth + 1, fmt::format("tma_load {} -> {}[t], arrive {}_full[t], evict_last",
                                     in_kernel(p_, c.copy->src()), c.tile, ring));
  }

  void loader() {  // E2
    out_.line(1, "warpgroup LOAD, registers LOADER_REGISTERS:");
    out_.line(2, "thread 0:");
    out_.line(3, "var t = 0");
    static_tiles(3);
    block(4, true, true);
    out_.line(4, "wait_free q_free[u]");
    out_.line(4, "for r in range(WARPGROUPS):");
    out_.line(5, fmt::format("tma_load {} -> {}[r][u], arrive q_full[u], evict_first",
                             place(p_.copied(q_)->copy->src()), q_));
    keys(4, *p_.copied(k_), "k");
    out_.line(2, "thread 1:");
    out_.line(3, "var t = 0");
    static_tiles(3);
    block(4, true, true);
    keys(4, *p_.copied(v_), "v");
    out_.line(2, "thread 2:");
    static_tiles(3);
    block(4, false, false);
    out_.line(4, "wait o_full[u]");
    out_.line(4, "for r in range(WARPGROUPS):");
    out_.line(5, fmt::format("tma_store {}[r][u] -> {}", tl::base_name(p_.out->src()),
                             place(p_.out->dst())));
    out_.line(4, "tma_store_wait_read");
    out_.line(4, "arrive q_free[u]");
    out_.line(3, "tma_store_wait");
  }

  std::string scores(const char* use) const {
    return fmt::format("wgmma {} = {}[{}][u] @ {}[{}].T", s_, q_, p_.me, k_, use);
  }
  std::string values() const {
    return fmt::format("wgmma_add {} += {} @ {}[t]", acc_, tl::print(p_.values->a()), v_);
  }

  void warpgroups() {
    out_.line(1, fmt::format("warpgroups {} from MATH, registers WARPGROUP_REGISTERS:", p_.me));
    for (const Stmt* s : p_.plan.declared) out_.add(*s, 2);
    out_.line(2, "var t = 0");
    static_tiles(2);
    block(3, true, false);
    out_.add(in_kernel(p_, *rows_), 3);
    softmax_step(p_, 3, "", out_);
    advance();
    for (const Stmt* s : p_.plan.before)
      if (s->op != Op::let && s->op != Op::copy) out_.add(in_kernel(p_, *s), 3);
    for (const std::string& text :
         {std::string("wait q_full[u]"), std::string("wait k_full[t]"), scores("t"),
          "wgmma_wait 0: " + s_, std::string("arrive k_free[t]"),
          std::string("softmax(keys.count - 1, true)"), tl::print_head(*p_.to_operand)})
      out_.line(3, text);
    const std::string& n = p_.block;
    out_.line(3, fmt::format("for t, {} in range_down_counted(keys.count - 2, keys.full):", n));
    out_.line(4, fmt::format("advance({}, true)", n));
    out_.line(3, fmt::format(
                     "for t, {} in range_down_counted(min(keys.count - 1, keys.full) - 1, 0):", n));
    out_.line(4, fmt::format("advance({}, false)", n));
    end();
  }

  void advance() {  // E3
    out_.line(3, fmt::format("step advance({}: i32, partial: bool):", p_.block));
    for (const std::string& text :
         {std::string("wait k_full[t + 1]"), scores("t + 1"), std::string("wait v_full[t]"),
          values(), "wgmma_wait 1: " + s_, std::string("arrive k_free[t + 1]"),
          fmt::format("softmax({}, partial)", p_.block), "wgmma_wait 0: " + acc_,
          std::string("arrive v_free[t]"), tl::print_head(*p_.to_operand)})
      out_.line(4, text);
    rescale(p_, 4, out_);
  }

  void end() {
    out_.line(3, "wait v_full[t]");
    out_.line(3, values());
    bool waited = false;
    for (const Stmt* s : p_.plan.after) {
      const bool touches = tl::reads(*s, acc_) || tl::writes(*s, acc_);
      if (touches && !waited) {
        out_.line(3, "wgmma_wait 0: " + acc_);
        out_.line(3, "arrive v_free[t]");
        out_.line(3, "count t");
        waited = true;
      }
      if (s == p_.store) {  // E4
        out_.line(3, "sync_warpgroup " + p_.me);
        out_.line(3, fmt::format("store {} -> {}[u]", acc_, tl::print(s->dst())));
        out_.line(3, "fence_async");
        out_.line(3, "arrive o_full[u]");
      } else if (s != p_.out) {
        out_.add(in_kernel(p_, *s), 3);
      }
    }
  }

  const Parts& p_;
  std::string q_, k_, v_, s_, acc_;
  const Stmt* rows_ = nullptr;  // the let of a warpgroup's first row
  Text out_;
};

}  // namespace

std::optional<tl::Program> schedule_engine(const Parts& parts, Diagnostics& diagnostics) {
  const std::string text = Engine(parts).run();
  auto program = tl::parse(make_source("<scheduled>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

}  // namespace kw::sketch
