// Places are found by what statements do, never by their names, but for `columns` and the fields of
// a block: what a tile is called is nowhere else to be read.
#include "transfer/families/gemm/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tl/traits.h"

namespace kw::transfer {

using tl::Op;
using tl::Stmt;

bool copies_in(Op op) { return tl::is(op, tl::Family::copy_in) && tl::traits(op).part_of_rows; }
bool copies_out(Op op) { return tl::is(op, tl::Family::copy_out) && tl::traits(op).part_of_rows; }

void same_place(const tl::ExprPtr& a, const tl::ExprPtr& b,
                std::map<std::string, tl::ExprPtr>& is) {
  if (a->kind != tl::ExprKind::index || b->kind != tl::ExprKind::index) return;
  same_place(a->args[0], b->args[0], is);
  if (a->args[1]->kind == tl::ExprKind::name) is[a->args[1]->text] = b->args[1];
}

const Stmt* find(const tl::Program& program, const std::function<bool(const Stmt&)>& test) {
  const Stmt* found = nullptr;
  tl::walk(program.body, [&](const Stmt& s) {
    if (!found && test(s)) found = &s;
  });
  return found;
}

Found place_of(std::vector<Stmt>& block, const std::function<bool(const Stmt&)>& test) {
  for (size_t n = 0; n < block.size(); ++n) {
    if (test(block[n])) return {&block, n};
    if (const Found inner = place_of(block[n].body, test); inner.block) return inner;
  }
  return {};
}

bool knows_its_tile(const tl::Program& program) {
  const auto names = [](const Stmt& s, const char* name) {
    return std::any_of(s.names().begin(), s.names().end(),
                       [&](const tl::Item& d) { return d.name == name; });
  };
  const Stmt* columns = find(program, [&](const Stmt& s) {
    return s.op == Op::arg_size && names(s, "columns") && s.names()[0].expr;
  });
  const Stmt* tile = find(program, [&](const Stmt& s) {
    return s.op == Op::record && names(s, "m") && names(s, "n") && names(s, "h") && names(s, "b");
  });
  return columns && tile;
}

std::string rows_of(const tl::Program& program, const std::string& acc) {
  const Stmt* declared = find(program, [&](const Stmt& s) {
    return s.op == Op::accumulator && std::any_of(s.names().begin(), s.names().end(),
                                                  [&](const tl::Item& d) { return d.name == acc; });
  });
  return declared ? tl::print(declared->rows()) : "ROWS";
}

std::vector<std::string> lines_of(const PartOfRows& p) {
  return {fmt::format("lane_sum {}: real[{}]", p.lane_sum, p.width),
          fmt::format("fill {} = 0.0", p.lane_sum),
          fmt::format("row_sum {} += {}", p.lane_sum, p.acc),
          fmt::format("row {} = total({}): real[{}]", p.total, p.lane_sum, p.width),
          fmt::format("store_part {} -> {}[(c.b * {} + c.h) * columns + c.n], rows {} of {}",
                      p.total, p.parts, p.heads, p.row, p.rows)};
}

namespace {

const Stmt* inside(const Stmt& block, Op op) {
  const Stmt* found = nullptr;
  tl::walk(block.body, [&](const Stmt& s) {
    if (s.op == op) found = &s;
  });
  return found;
}

using Names = std::set<std::string>;

// Whether everything that the statement declares is gone.
bool declares_nothing(const Stmt& s, const Names& gone) {
  const bool tile = s.op == Op::ring || s.op == Op::tile || s.op == Op::barrier;
  if (!tile && !tl::is(s.op, tl::Family::tensor)) return false;
  return std::all_of(s.names().begin(), s.names().end(),
                     [&](const tl::Item& d) { return gone.count(d.name) > 0; });
}

void take_out(std::vector<Stmt>& block, const Names& gone) {
  std::erase_if(block, [&](const Stmt& s) {
    const bool waits = s.op == Op::wait || s.op == Op::wait_free || s.op == Op::arrive;
    const bool stores = s.op == Op::fence_async || s.op == Op::sync_warpgroup || copies_out(s.op);
    return stores || declares_nothing(s, gone) || (waits && gone.count(tl::base_name(s.barrier())));
  });
  for (Stmt& s : block) {
    if (s.op == Op::init)
      std::erase_if(s.barriers(),
                    [&](const tl::Item& d) { return gone.count(tl::base_name(d.expr)) > 0; });
    take_out(s.body, gone);
  }
}

}  // namespace

void store_nothing(tl::Program& program, const std::string& o, const std::string& o_tile) {
  const Found thread = place_of(program.body, [](const Stmt& s) {
    return s.op == Op::thread && inside(s, Op::tma_store_tile);
  });
  Names gone = {o, o_tile};
  if (thread.block) {
    for (const Op op : {Op::wait, Op::arrive})
      if (const Stmt* s = inside((*thread.block)[thread.at], op))
        gone.insert(tl::base_name(s->barrier()));
    thread.block->erase(thread.block->begin() + thread.at);
  }
  take_out(program.body, gone);
}

}  // namespace kw::transfer
