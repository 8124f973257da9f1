// Schedules for a plan that was cut (cut.h): the scores in steps of some columns of both operands,
// a part of the output's columns for each CTA. For GPUs whose warps copy and multiply for
// themselves; as schedule_alike.cpp otherwise.
//
// With asynchronous copies (cp.async) everything has two slots but the values:
//   S1  while a step is multiplied, the next one's columns come into the other slot; under the last
//       one, the block's values; under the product with these, the next block's first step.
//   S2  a step waits for all copies: there is never more than the next one's under way.
//   S3  all warps meet after each wait, before the next copies overwrite what was multiplied.
// Without them there is one slot for each tile, and
//   S4  all warps meet before a step's copies and after them. The values come once the last block's
//       have been multiplied, which the meetings of the steps ensure, and all meet before they are.
// In both:
//   S5  the warpgroup's warps meet between the store into the tile that the output leaves through
//   and
//       the copy from there: nobody else uses it.
#include <fmt/format.h>

#include "sketch/parts.h"
#include "tl/laws/laws.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class CutPlan {
 public:
  explicit CutPlan(const Parts& parts) : p_(parts) {
    asynchronous_ = p_.machine.style == Style::copies;
    step_ = p_.steps->index();
    for (const Copied& c : p_.step_copies)
      if (asynchronous_) rings_.insert(c.tile);
  }

  std::string run() {
    head(p_, rings_, out_);
    functions(p_, out_);
    kernel(p_, out_);
    softmax_step(p_, 1, "", out_);
    advance();
    if (asynchronous_) {
      step_copies(1, "keys.count - 1", "0");
      out_.line(1, "cp_async_commit");
    }
    for (const Stmt* s : p_.plan.before)
      if (s->op != Op::let) out_.add(in_kernel(p_, *s), 1);
    key_loops(p_, out_);
    end();
    return out_.text();
  }

 private:
  static tl::ExprPtr value(const std::string& text) {
    Diagnostics none;
    return tl::parse_expr(text, none);
  }

  // The expression in the block of keys `block`, at the step `step`.
  std::string at(const tl::ExprPtr& e, const std::string& block, const std::string& step) const {
    const tl::ExprPtr there =
        tl::replace(e, {{tl::name(p_.block), value(block)}, {tl::name(step_), value(step)}});
    return in_kernel(p_, tl::rewrite(there, [](const tl::ExprPtr& x) -> tl::ExprPtr {
                       const bool none = x->kind == tl::ExprKind::binary && x->text == "*" &&
                                         tl::print(x->args[0]) == "0";
                       return none ? tl::integer(0) : nullptr;
                     }));
  }

  std::string slot(const std::string& step) const {
    return asynchronous_ ? fmt::format("[{}]", step) : "";
  }

  void copy(const Copied& c, int depth, const std::string& block, const std::string& step) {
    out_.line(
        depth,
        fmt::format("{} {} -> {}{} by {}", asynchronous_ ? "cp_async_tile" : "copy_tile_in",
                    at(c.copy->src(), block, step), in_kernel(p_, c.copy->dst()),
                    rings_.contains(c.tile) ? slot(step) : "", c.of_keys ? "WARPGROUPS" : "1"));
  }

  void step_copies(int depth, const std::string& block, const std::string& step) {
    for (const Copied& c : p_.step_copies) copy(c, depth, block, step);
  }

  void values(int depth) {
    for (const Copied& c : p_.copies) copy(c, depth, p_.block, step_);
  }

  void product(int depth, const std::string& step) {
    const auto side = [&](tl::Hole hole) {
      return in_kernel(p_, p_.scores->expr(hole)) + slot(step);
    };
    out_.line(depth, fmt::format("mma_add_transposed {} += {} @ {}.T", tl::print(p_.scores->acc()),
                                 side(tl::Hole::a), side(tl::Hole::b)));
  }

  void meet(int depth) {  // S2, S3
    out_.line(depth, "cp_async_wait 0");
    out_.line(depth, "sync_block");
  }

  void advance() {
    out_.line(1, fmt::format("step advance({}: i32, partial: bool):", p_.block));
    out_.add(in_kernel(p_, *p_.clear), 2);
    const std::string count = tl::print(p_.steps->end());
    asynchronous_ ? steps_under_way(count) : steps_in_turn(count);
    out_.line(2, fmt::format("softmax({}, partial)", p_.block));
    out_.add(in_kernel(p_, *p_.to_operand), 2);
    rescale(p_, 2, out_);
    if (asynchronous_) {
      meet(2);
      out_.line(2, fmt::format("if {} > 0:", p_.block));
      step_copies(3, p_.block + " - 1", "0");
      out_.line(2, "cp_async_commit");
    } else {
      out_.line(2, "sync_block");
    }
    out_.add(in_kernel(p_, *p_.values), 2);
  }

  void steps_under_way(const std::string& count) {  // S1
    out_.line(2, fmt::format("for {} in range({} - 1):", step_, count));
    meet(3);
    step_copies(3, p_.block, step_ + " + 1");
    out_.line(3, "cp_async_commit");
    product(3, step_);
    meet(2);
    values(2);
    out_.line(2, "cp_async_commit");
    product(2, count + " - 1");
  }

  void steps_in_turn(const std::string& count) {  // S4
    out_.line(2, fmt::format("for {} in range({}):", step_, count));
    out_.line(3, "sync_block");
    step_copies(3, p_.block, step_);
    out_.line(3, "sync_block");
    product(3, step_);
    values(2);
  }

  void end() {
    for (const Stmt* s : p_.plan.after) {
      if (s != p_.out) {
        out_.add(in_kernel(p_, *s), 1);
        continue;
      }
      out_.line(1, "sync_warpgroup " + p_.me);  // S5
      out_.line(1, fmt::format("copy_tile_out {} -> {} by 1", in_kernel(p_, s->src()),
                               in_kernel(p_, s->dst())));
    }
  }

  const Parts& p_;
  std::string step_;
  bool asynchronous_;
  std::set<std::string> rings_;
  Text out_;
};

}  // namespace

std::optional<tl::Program> schedule_cut(const Parts& parts, Diagnostics& diagnostics) {
  const std::string text = CutPlan(parts).run();
  auto program = tl::parse(make_source("<scheduled>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

}  // namespace kw::sketch
