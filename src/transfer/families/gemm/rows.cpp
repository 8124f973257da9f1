// Statements change where they stand, so that the kernel's text keeps its order: the declaration of
// the argument and of the ring, the copy, and the product.
#include "transfer/families/gemm/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "transfer/families/gemm/places.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

bool declares(const Stmt& s, const std::string& name) {
  return s.names().size() == 1 && s.names()[0].name == name;
}

// The statement with the sum along the rows of `b`; empty for one that says nothing of it.
std::string changed(const Stmt& s, const std::string& b, const std::string& ring) {
  const auto of = [&](tl::Hole hole) { return tl::print(s.expr(hole)); };
  if ((s.op == Op::arg_tensor || s.op == Op::arg_tiled) && declares(s, b)) {
    const std::vector<tl::Item>& dims = s.dims();
    return fmt::format("{}: {}in element[{}, {}, {}, {}]", b, s.op == Op::arg_tiled ? "tiled " : "",
                       dims[0].name, dims[1].name, dims[3].name, dims[2].name);
  }
  if (s.op == Op::ring && declares(s, ring))
    return fmt::format("tile {}: ring({}) of element[{}, {}]", ring, of(tl::Hole::stages),
                       of(tl::Hole::columns), of(tl::Hole::rows));
  if (s.op == Op::tma_load_tile && tl::base_name(s.tensor()) == b)
    return fmt::format("tma_load_tile {}[{}, {}, {}, {}] -> {}, arrive {}, {}", b,
                       of(tl::Hole::batch), of(tl::Hole::head), of(tl::Hole::column),
                       of(tl::Hole::row), of(tl::Hole::dst), of(tl::Hole::barrier), s.hint());
  if (copies_in(s.op) && tl::base_name(s.tensor()) == b)
    return fmt::format("{} {}[{}, {}, {}, {}] -> {} by {}", tl::word(s.op), b, of(tl::Hole::batch),
                       of(tl::Hole::head), of(tl::Hole::column), of(tl::Hole::row),
                       of(tl::Hole::dst), of(tl::Hole::by));
  if (s.op == Op::wgmma_add && tl::base_name(s.b()) == ring)
    return fmt::format("wgmma_add_transposed {} += {} @ {}.T", of(tl::Hole::acc), of(tl::Hole::a),
                       of(tl::Hole::b));
  if (s.op == Op::mma_add && tl::base_name(s.b()) == ring)
    return fmt::format("mma_add_transposed {} += {} @ {}.T", of(tl::Hole::acc), of(tl::Hole::a),
                       of(tl::Hole::b));
  return "";
}

}  // namespace

bool sums_along_rows(const spec::Operand& operand, const spec::Form& form) {
  const spec::Argument* given = form.argument(operand.argument);
  if (!given || given->stride_order.empty()) return false;
  const spec::ExprPtr& last = operand.indices[given->stride_order.back()];
  return last->kind == spec::Kind::index && last->name == "d";
}

bool sum_along_right_rows(tl::Program& program, const std::string& b, Diagnostics& diagnostics) {
  std::string ring;
  tl::walk(program.body, [&](const Stmt& s) {
    if (copies_in(s.op) && tl::base_name(s.tensor()) == b) ring = tl::base_name(s.dst());
  });
  std::map<Op, int> count;
  tl::walk(program.body, [&](Stmt& s) {
    const std::string text = changed(s, b, ring);
    std::optional<Stmt> own = text.empty() ? std::nullopt : tl::parse_statement(text, diagnostics);
    if (!own) return;
    ++count[s.op];
    s = std::move(*own);
  });
  // The declaration, the ring, the copy; and the product, wherever it is issued.
  return count.size() == 4 && std::all_of(count.begin(), count.end(), [](const auto& one) {
           return one.second == 1 || one.first == Op::wgmma_add;
         });
}

}  // namespace kw::transfer
