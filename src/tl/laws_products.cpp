// Products: shapes, and who may stand where. The transposition and the reshape between accumulator
// and operand are what goes wrong when kernels are written by machine: both show in the shapes.
// What happens between issue and wait is followed in laws_flow.cpp.
#include <algorithm>

#include "tl/laws_check.h"

namespace kw::tl {
namespace {

struct Extents {
  const Symbol &c, &a, &b;
  std::optional<int64_t> columns, k, b_rows, b_columns;
};

Extents extents(Check& check) {
  const Symbol &c = *check.find(check.stmt.expr("c")), &a = *check.find(check.stmt.expr("a")),
               &b = *check.find(check.stmt.expr("b"));
  return {
      c, a, b, check.extent(&c, 1), check.extent(&a, 1), check.extent(&b, 0), check.extent(&b, 1)};
}

void agree(Check& check, const char* label, const char* x_of, const Symbol& x,
           std::optional<int64_t> nx, const char* y_of, const Symbol& y, std::optional<int64_t> ny,
           const char* hint) {
  if (!nx || !ny || *nx == *ny) return;
  Diagnostic& d = check.broken(label, check.stmt.span,
                               fmt::format("{} of `{}` ({}) and {} of `{}` ({}) differ", x_of,
                                           x.name, *nx, y_of, y.name, *ny));
  d.notes.push_back({fmt::format("`{}` is declared here", x.name), x.span});
  d.notes.push_back({fmt::format("`{}` is declared here", y.name), y.span});
  d.hint = hint;
}

// KW_WGMMA lines of cuda/kw/ptx/wgmma.cuh.
bool is_width(int64_t n) { return n == 256 || (n >= 64 && n <= 192 && n % 16 == 0); }

void widths_exist(Check& check, const Extents& e) {
  if (e.columns && !is_width(*e.columns))
    check
        .broken("C4", check.stmt.expr("c")->span,
                fmt::format("`{}` has {} columns: the vocabulary multiplies 64, 80, 96, ... 192 or "
                            "256 wide",
                            e.c.name, *e.columns))
        .notes.push_back({fmt::format("`{}` is declared here", e.c.name), e.c.span});
}

}  // namespace

void law_gemm_async(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "columns", e.b, e.b_columns,
        "the tile is read transposed: a [64, K] @ b [N, K].T");
  agree(c, "C3", "columns", e.c, e.columns, "rows", e.b, e.b_rows,
        "the tile is read transposed: a [64, K] @ b [N, K].T");
  widths_exist(c, e);
  const std::optional<int64_t> rows = c.extent(&e.a, 0);
  if (rows && *rows != 64)
    c.broken("C1", c.stmt.expr("a")->span,
             fmt::format("`{}` has {} rows, a worker multiplies 64", e.a.name, *rows))
        .notes.push_back({fmt::format("`{}` is declared here", e.a.name), e.a.span});
}

void law_gemm_add_async(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "rows", e.b, e.b_rows,
        "the tile is read as it is: a [64, K] @ b [K, N]");
  agree(c, "C3", "columns", e.c, e.columns, "columns", e.b, e.b_columns,
        "the tile is read as it is: a [64, K] @ b [K, N]");
  widths_exist(c, e);
}

namespace {
void stands_in_plan(Check& c) {
  if (!c.inside(Op::plan))
    c.broken("C1", c.stmt.span, fmt::format("`{}` stands outside a plan", word(c.stmt.op))).hint =
        "a kernel says gemm_async or gemm_add_async";
}
}  // namespace
void law_gemm(Check& c) { stands_in_plan(c); }
void law_gemm_add(Check& c) { stands_in_plan(c); }

}  // namespace kw::tl
