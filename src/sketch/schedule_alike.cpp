// Schedules for GPUs whose warps copy and multiply for themselves (sm_75 to sm_90, without TMA).
//
// All warpgroups are alike. With asynchronous copies (cp.async):
//   A1  what the first product reads is copied a block of keys ahead, into the slot that is free;
//       what the second reads is copied while the first multiplies and the softmax runs.
//   A2  each of the two is a group of its own, so that the wait before the second product leaves
//       the next block's keys under way.
//   A3  all warps meet after each wait: a copy is everybody's only then, and before it nobody may
//       still read what the next copies overwrite.
//   A4  the first block of keys comes in one group with the query rows.
// Without them there is one slot for each tile, and
//   A5  all warps meet before the copies (nobody reads the slots) and after them.
// In both:
//   A6  the warpgroup's warps meet before the output goes where they have read their query rows,
//   and
//       before it is copied from there.
#include <fmt/format.h>

#include "sketch/families/gemm/schedule.h"
#include "sketch/parts.h"
#include "tl/analysis/effects.h"
#include "tl/laws/laws.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class Alike {
 public:
  explicit Alike(const Parts& parts) : p_(parts) {
    ahead_ = tl::base_name(p_.scores->b());
    asynchronous_ = p_.machine.style == Style::copies;
  }

  std::string run() {
    head(p_, asynchronous_ ? std::set<std::string>{ahead_} : std::set<std::string>{}, out_);
    functions(p_, out_);
    kernel(p_, out_);
    softmax_step(p_, 1, "", out_);
    advance();
    begin();
    key_loops(p_, out_);
    end();
    return out_.text();
  }

 private:
  // A copy of the block of keys `block` into its tile.
  void copy(const Copied& c, int depth, const std::string& block) {
    const auto at = [&](const tl::ExprPtr& e) {
      return in_kernel(p_, tl::replace(e, {{tl::name(p_.block), value(block)}}));
    };
    const std::string slot =
        asynchronous_ && c.tile == ahead_ ? fmt::format("[{}]", block) : std::string();
    out_.line(depth,
              fmt::format("{} {} -> {}{} by {}", word(c), at(c.copy->src()),
                          in_kernel(p_, c.copy->dst()), slot, c.of_keys ? "WARPGROUPS" : "1"));
  }

  std::string word(const Copied& c) const {
    if (is_from_column(*c.copy)) return asynchronous_ ? "cp_async_tile" : "copy_tile_in";
    return asynchronous_ ? "cp_async" : "copy_in";
  }

  static tl::ExprPtr value(const std::string& text) {
    Diagnostics none;
    return tl::parse_expr(text, none);
  }

  void copies(bool ahead, int depth, const std::string& block) {
    for (const Copied& c : p_.copies)
      if (c.of_keys && (c.tile == ahead_) == ahead) copy(c, depth, block);
  }

  void scores(int depth) {
    Stmt s = in_kernel(p_, *p_.scores);
    if (asynchronous_) s.b() = tl::index(s.b(), {tl::name(p_.block)});
    out_.add(s, depth);
    out_.line(depth, fmt::format("softmax({}, partial)", p_.block));
    out_.add(in_kernel(p_, *p_.to_operand), depth);
    rescale(p_, depth, out_);
  }

  void advance() {
    const std::string& n = p_.block;
    out_.line(1, fmt::format("step advance({}: i32, partial: bool):", n));
    if (!asynchronous_) {
      out_.line(2, "sync_block");  // A5
      copies(true, 2, n);
      copies(false, 2, n);
      out_.line(2, "sync_block");
      scores(2);
    } else {
      out_.line(2, "cp_async_wait 0");
      out_.line(2, "sync_block");  // A3
      copies(false, 2, n);
      out_.line(2, "cp_async_commit");  // A2
      out_.line(2, fmt::format("if {} > 0:", n));
      copies(true, 3, fmt::format("{} - 1", n));  // A1
      out_.line(2, "cp_async_commit");
      scores(2);
      out_.line(2, "cp_async_wait 1");
      out_.line(2, "sync_block");
    }
    out_.add(in_kernel(p_, *p_.values), 2);
  }

  void begin() {
    for (const Copied& c : p_.copies)
      if (!c.of_keys) copy(c, 1, p_.block);
    if (asynchronous_) {
      copies(true, 1, "keys.count - 1");  // A4
      out_.line(1, "cp_async_commit");
    }
    for (const Stmt* s : p_.plan.before)
      if (s->op != Op::let && s->op != Op::copy) out_.add(in_kernel(p_, *s), 1);
  }

  void end() {
    for (const Stmt* s : p_.plan.after) {
      if (s == p_.store) out_.line(1, "sync_warpgroup " + p_.me);  // A6
      if (s == p_.out) {
        out_.line(1, "sync_warpgroup " + p_.me);
        out_.line(1, fmt::format("copy_out {} -> {} by 1", in_kernel(p_, s->src()),
                                 in_kernel(p_, s->dst())));
        continue;
      }
      out_.add(in_kernel(p_, *s), 1);
    }
  }

  const Parts& p_;
  std::string ahead_;
  bool asynchronous_;
  Text out_;
};

}  // namespace

std::optional<tl::Program> schedule_alike(const Parts& parts, Diagnostics& diagnostics) {
  const std::string text = Alike(parts).run();
  auto program = tl::parse(make_source("<scheduled>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

std::optional<tl::Program> schedule(const tl::Program& sized, const Machine& machine,
                                    Diagnostics& diagnostics) {
  if (is_product(sized)) return schedule_product(sized, machine, diagnostics);
  const auto parts = take_apart(sized, machine, diagnostics);
  if (!parts) return std::nullopt;
  if (parts->steps) return schedule_cut(*parts, diagnostics);
  return machine.style == Style::engine ? schedule_engine(*parts, diagnostics)
                                        : schedule_alike(*parts, diagnostics);
}

}  // namespace kw::sketch
