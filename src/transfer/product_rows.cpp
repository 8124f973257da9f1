// Statements change where they stand, so that the kernel's text keeps its order: the declaration of
// the argument and of the ring, the copy, and the product.
#include "transfer/product_rows.h"

#include <fmt/format.h>

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

bool declares(const Stmt& s, const std::string& name) {
  return s.items("d").size() == 1 && s.items("d")[0].name == name;
}

}  // namespace

bool brings_tile(const Stmt& s) { return s.op == Op::copy_tile_async || s.op == Op::copy_tile_in; }

namespace {

// The statement with the sum along the rows of `b`; empty for one that says nothing of it.
std::string changed(const Stmt& s, const std::string& b, const std::string& ring) {
  const auto of = [&](const char* hole) { return tl::print(s.expr(hole)); };
  if (s.op == Op::arg_tensor && declares(s, b)) {
    const std::vector<tl::Item>& dims = s.items("s");
    return fmt::format("{}: in element[{}, {}, {}, {}]", b, dims[0].name, dims[1].name,
                       dims[3].name, dims[2].name);
  }
  if (s.op == Op::ring && declares(s, ring))
    return fmt::format("tile {}: ring({}) of element[{}, {}]", ring, of("n"), of("c"), of("r"));
  if (brings_tile(s) && tl::base_name(s.expr("m")) == b)
    return fmt::format("{} {}[{}, {}, {}, {}] -> {} by {}", tl::word(s.op), b, of("b"), of("h"),
                       of("j"), of("r"), of("d"), of("k"));
  if (s.op == Op::gemm_add && tl::base_name(s.expr("b")) == ring)
    return fmt::format("gemm_add_transposed {} += {} @ {}.T", of("c"), of("a"), of("b"));
  return "";
}

}  // namespace

bool sum_along_right_rows(tl::Program& program, const std::string& b, Diagnostics& diagnostics) {
  std::string ring;
  tl::walk(program.body, [&](const Stmt& s) {
    if (brings_tile(s) && tl::base_name(s.expr("m")) == b) ring = tl::base_name(s.expr("d"));
  });
  int count = 0;
  tl::walk(program.body, [&](Stmt& s) {
    const std::string text = changed(s, b, ring);
    std::optional<Stmt> own = text.empty() ? std::nullopt : tl::parse_statement(text, diagnostics);
    if (!own) return;
    s = std::move(*own);
    ++count;
  });
  return count == 4;
}

}  // namespace kw::transfer
