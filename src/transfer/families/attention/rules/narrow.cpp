// Operands of FP8 (e4m3) are copied as they are, and become elements in shared memory.
//
//   k: in element[B, G, N, D]                  ->   k: in e4m3[B, G, N, D]
//   tile k_s: ring(2) of element[BN, D]        ->   tile k_s: element[BN, D]
//                                                   tile k_raw: e4m3[BN, D]
//   cp_async k[...] -> k_s[n - 1] by WARPGROUPS ->   cp_async k[...] -> k_raw by WARPGROUPS
//   cp_async_wait 0                              ->   cp_async_wait 0
//                                                   upcast k_raw -> k_s by WARPGROUPS
//   sync_block                                      sync_block
//   mma s = q_s[me] @ k_s[n].T                ->   mma s = q_s[me] @ k_s.T
//
// The copy that is under way needs the second slot no more: it fills the tile of e4m3, half as
// large, whose last contents each thread has converted itself. What is copied once, before the loop
// (the queries), is waited for and converted there.
//
// When     an argument of the form is e4m3, and no pre-pass makes rows of it (rule rows, which does
//          so for kernels whose copies are Hopper's own).
// Effect   none: both element types have all values of e4m3.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

// The first statement for which it holds, within its block.
Place place_of(std::vector<Stmt>& block, const std::function<bool(const Stmt&)>& test) {
  for (size_t n = 0; n < block.size(); ++n) {
    if (test(block[n])) return {&block, n};
    if (const Place inner = place_of(block[n].body, test); inner.block) return inner;
  }
  return {nullptr, 0};
}

bool reads_tile(const Stmt& s, const std::string& tile) {
  return (s.op == Op::mma || s.op == Op::mma_add) &&
         (tl::base_name(s.a()) == tile || tl::base_name(s.b()) == tile);
}

class Narrower {
 public:
  Narrower(Edit& edit, std::string argument, std::string user)
      : edit_(edit), argument_(std::move(argument)), user_(std::move(user)) {}

  bool apply() {
    tl::Program& p = edit_.program;
    const Place copy = place_of(p.body, [&](const Stmt& s) { return copies(s); });
    if (!copy.block) return refuse("this kernel's copies convert no e4m3");
    tile_ = tl::base_name((*copy.block)[copy.at].dst());
    if (is_narrow()) return true;
    raw_ = edit_.fresh({argument_ + "_raw", argument_ + "_narrow"});
    by_ = tl::print((*copy.block)[copy.at].by());
    return declare_argument() && declare_tiles() && convert() && copy_to_raw(p.body);
  }

 private:
  bool is_narrow() const {
    const Place at = place_of(edit_.program.body, [&](const Stmt& s) {
      return s.op == Op::tile && s.names().size() == 1 && s.names()[0].name == tile_;
    });
    return at.block && (*at.block)[at.at].type() == "e4m3";
  }

  bool refuse(const std::string& why) {
    const spec::Argument* given = edit_.form.argument(user_);
    return edit_.refuse(
        "transfer.dtype", given ? given->span : Span{},
        fmt::format("{} is e4m3, and {}", user_, why),
        "kernels take e4m3 that copy it with cp_async, or with tma_load, by a pre-pass");
  }

  bool copies(const Stmt& s) const {
    return s.op == Op::cp_async && tl::base_name(s.tensor()) == argument_;
  }

  // Out of `k, v: in element[...]`, where others may stay.
  bool declare_argument() {
    std::vector<Stmt>& args = args_of(edit_.program).body;
    for (size_t at = 0; at < args.size(); ++at) {
      if (args[at].op != Op::arg_tensor) continue;
      std::vector<tl::Item>& names = args[at].names();
      const auto found = std::find_if(names.begin(), names.end(),
                                      [&](const tl::Item& d) { return d.name == argument_; });
      if (found == names.end()) continue;
      std::string dims;
      for (const tl::Item& d : args[at].dims()) dims += (dims.empty() ? "" : ", ") + d.name;
      names.erase(found);
      const bool alone = names.empty();
      if (alone) args.erase(args.begin() + at);
      return edit_.insert({&args, alone ? at : at + 1},
                          fmt::format("{}: in e4m3[{}]", argument_, dims));
    }
    return refuse("this kernel has no argument of it");
  }

  bool declare_tiles() {
    const Place at = place_of(edit_.program.body, [&](const Stmt& s) {
      return (s.op == Op::tile || s.op == Op::ring) && s.names().size() == 1 &&
             s.names()[0].name == tile_;
    });
    if (!at.block) return refuse("the tile of its copy is declared with others");
    const Stmt was = (*at.block)[at.at];
    const tl::ExprPtr count = was.names()[0].expr;
    const std::string members = count ? fmt::format("[{}]", tl::print(count)) : "",
                      box =
                          fmt::format("[{}, {}]", tl::print(was.rows()), tl::print(was.columns()));
    is_array_ = count != nullptr, is_ring_ = was.op == Op::ring;
    at.block->erase(at.block->begin() + at.at);
    return edit_.insert(at, {fmt::format("tile {}{}: element{}", tile_, members, box),
                             fmt::format("tile {}{}: e4m3{}", raw_, members, box)});
  }

  // q_s[me][n] -> q_s[me], k_s[n] -> k_s: there is one slot.
  tl::ExprPtr one_slot(const tl::ExprPtr& e) const { return is_ring_ ? e->args[0] : e; }

  static std::string index_of(const tl::ExprPtr& e) {
    return e->kind == tl::ExprKind::index ? fmt::format("[{}]", tl::print(e->args[1])) : "";
  }

  // Before the sync that the product's warps come to, or, of a tile that no loop copies, where it
  // was copied.
  bool convert() {
    tl::Program& p = edit_.program;
    const Place product = place_of(p.body, [&](const Stmt& s) { return reads_tile(s, tile_); });
    if (!product.block) return refuse("no product reads its tile");
    const Place inside = place_of(*product.block, [&](const Stmt& s) { return copies(s); });
    for (Stmt& s : *product.block)
      if (reads_tile(s, tile_))
        for (tl::ExprPtr* side : {&s.a(), &s.b()})
          if (tl::base_name(*side) == tile_) *side = one_slot(*side);
    if (!inside.block) return convert_once();
    size_t sync = product.at;
    while (sync > 0 && (*product.block)[sync].op != Op::sync_block) --sync;
    if (sync == 0 || (*product.block)[sync - 1].op != Op::cp_async_wait)
      return refuse("no cp_async_wait and sync_block stand before the product that reads it");
    return edit_.insert({product.block, sync},
                        fmt::format("upcast {} -> {} by {}", raw_, tile_, by_));
  }

  bool convert_once() {
    const Place copy = place_of(edit_.program.body, [&](const Stmt& s) { return copies(s); });
    size_t at = copy.at;
    while (at < copy.block->size() && (*copy.block)[at].op != Op::cp_async_commit) ++at;
    if (at == copy.block->size()) return refuse("its copy is never committed");
    const tl::ExprPtr to = one_slot((*copy.block)[copy.at].dst());
    const std::string place = is_array_ ? index_of(to) : "";
    return edit_.insert({copy.block, at + 1},
                        {"cp_async_wait 0",
                         fmt::format("upcast {}{} -> {}{} by {}", raw_, place, tile_, place, by_)});
  }

  bool copy_to_raw(std::vector<Stmt>& body) {
    for (Stmt& s : body) {
      if (copies(s)) {
        const std::string place = is_array_ ? index_of(one_slot(s.dst())) : "";
        const tl::ExprPtr to = tl::parse_expr(raw_ + place, edit_.diagnostics);
        if (!to) return false;
        s.dst() = to;
      }
      if (!copy_to_raw(s.body)) return false;
    }
    return true;
  }

  Edit& edit_;
  const std::string argument_, user_;
  std::string tile_, raw_, by_;
  bool is_array_ = false, is_ring_ = false;
};

// Whether a pre-pass writes what the kernel copies: rule rows put a scratch in the argument's
// place.
bool is_scratch(const tl::Program& program, const std::string& name) {
  bool found = false;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::arg_tensor && s.op != Op::arg_tiled) return;
    for (const tl::Item& d : s.names())
      found = found || (d.name == name && s.access().at(0).name == "scratch");
  });
  return found;
}

}  // namespace

bool rule_narrow(Edit& edit) {
  const Facts& f = edit.facts;
  const std::pair<std::string, const spec::Operand*> operands[] = {
      {f.q, &edit.term.q}, {f.k, &edit.term.k}, {f.v, &edit.term.v}};
  for (const auto& [argument, operand] : operands) {
    const spec::Argument* given = edit.form.argument(operand->argument);
    if (!given || given->dtype != Dtype::e4m3 || is_scratch(edit.program, argument)) continue;
    if (!Narrower(edit, argument, operand->argument).apply()) return false;
  }
  return true;
}

}  // namespace kw::transfer
