// Products: shapes, and who may stand where. The transposition and the to_operand between
// accumulator and operand are what goes wrong when kernels are written by machine: both show in the
// shapes. What happens between issue and wait is followed in laws_flow.cpp.
#include <algorithm>

#include "tl/laws/laws_check.h"
#include "tl/scope/panels.h"

namespace kw::tl {
namespace {

struct Extents {
  const Symbol &c, &a, &b;
  std::optional<int64_t> columns, k, b_rows, b_columns;
};

Extents extents(Check& check) {
  const Symbol &c = *check.find(check.stmt.acc()), &a = *check.find(check.stmt.a()),
               &b = *check.find(check.stmt.b());
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
bool is_width(int64_t n) { return n == 256 || (n >= 16 && n <= 192 && n % 16 == 0); }

void widths_exist(Check& check, const Extents& e) {
  if (e.columns && !is_width(*e.columns))
    check
        .broken("C4", check.stmt.acc()->span,
                fmt::format("`{}` has {} columns: the vocabulary multiplies 16, 32, 48, ... 192 or "
                            "256 wide",
                            e.c.name, *e.columns))
        .notes.push_back({fmt::format("`{}` is declared here", e.c.name), e.c.span});
}

void left_has_64_rows(Check& c, const Extents& e) {
  const std::optional<int64_t> rows = c.extent(&e.a, 0);
  if (rows && *rows != 64)
    c.broken("C1", c.stmt.a()->span,
             fmt::format("`{}` has {} rows, a warpgroup multiplies 64", e.a.name, *rows))
        .notes.push_back({fmt::format("`{}` is declared here", e.a.name), e.a.span});
}

// Some columns of a tile of `all`: whole panels, or half of one.
void are_panels(Check& c, const char* label, int64_t some, int64_t all) {
  const int64_t panel = panel_columns(all);
  if (some <= all && (some % panel == 0 || some * 2 == panel)) return;
  const Symbol &to = *c.find(c.stmt.acc()), &from = *c.find(c.stmt.b());
  c.broken(label, c.stmt.span,
           fmt::format("`{}` has {} columns, `{}` {} in panels of {}", to.name, some, from.name,
                       all, panel))
      .notes.push_back({fmt::format("`{}` is declared here", from.name), from.span});
}

}  // namespace

void law_wgmma(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "columns", e.b, e.b_columns,
        "the tile is read transposed: a [64, K] @ b [N, K].T");
  agree(c, "C3", "columns", e.c, e.columns, "rows", e.b, e.b_rows,
        "the tile is read transposed: a [64, K] @ b [N, K].T");
  widths_exist(c, e);
  left_has_64_rows(c, e);
}

void law_wgmma_add(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "rows", e.b, e.b_rows,
        "the tile is read as it is: a [64, K] @ b [K, N]");
  agree(c, "C3", "columns", e.c, e.columns, "columns", e.b, e.b_columns,
        "the tile is read as it is: a [64, K] @ b [K, N]");
  widths_exist(c, e);
  left_has_64_rows(c, e);
}
void law_wgmma_add_transposed(Check& c) { law_wgmma(c); }

void law_wgmma_add_transposed_a(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "rows", e.a, c.extent(&e.a, 0), "rows", e.b, e.b_rows,
        "the left tile is read transposed: a [K, 64].T @ b [K, N]");
  agree(c, "C3", "columns", e.c, e.columns, "columns", e.b, e.b_columns,
        "the right tile is read as it is: a [K, 64].T @ b [K, N]");
  widths_exist(c, e);
  if (e.k && *e.k != 64)
    c.broken("C1", c.stmt.a()->span,
             fmt::format("`{}` has {} columns, a warpgroup multiplies 64 rows", e.a.name, *e.k))
        .notes.push_back({fmt::format("`{}` is declared here", e.a.name), e.a.span});
}

void law_wgmma_add_columns(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "rows", e.b, e.b_rows,
        "the tile is read as it is: a [64, K] @ b [K, C]");
  const std::optional<int64_t> rows = c.extent(&e.a, 0);
  if (rows && *rows != 64)
    c.broken("C1", c.stmt.a()->span,
             fmt::format("`{}` has {} rows, a warpgroup multiplies 64", e.a.name, *rows))
        .notes.push_back({fmt::format("`{}` is declared here", e.a.name), e.a.span});
  if (e.columns && e.b_columns) are_panels(c, "C3", *e.columns, *e.b_columns);
  widths_exist(c, e);
}

void law_wgmma_add_rows(Check& c) {
  const Extents e = extents(c);
  agree(c, "C2", "columns", e.a, e.k, "rows", e.b, e.b_rows,
        "64 rows of the left tile are read: a [R, K] @ b [K, N]");
  agree(c, "C3", "columns", e.c, e.columns, "columns", e.b, e.b_columns,
        "the right tile is read as it is: a [R, K] @ b [K, N]");
  widths_exist(c, e);
  const std::optional<int64_t> rows = c.extent(&e.a, 0);
  if (rows && *rows % 64 != 0)
    c.broken("C1", c.stmt.a()->span,
             fmt::format("`{}` has {} rows, which are not shared out by 64", e.a.name, *rows))
        .notes.push_back({fmt::format("`{}` is declared here", e.a.name), e.a.span});
}

namespace {
// Each warp multiplies for itself, and the operands must fit, in a sized plan too. Where warpgroups
// also have wgmma, it is what may stand under a branch on a flag.
enum class Right { as_it_is, transposed, columns };
void product_fits(Check& c, Right how, const char* shapes = "C3") {
  const bool transposed = how == Right::transposed;
  if (!c.inside(Op::plan) && !c.inside(Op::warpgroups_kernel) && !c.warpgroups_block()) {
    c.broken("C1", c.stmt.span,
             fmt::format("`{}` stands neither in a plan nor among warpgroups that multiply",
                         word(c.stmt.op)));
    return;
  }
  const auto is = [&](Hole hole, std::initializer_list<Category> ok) {
    const Symbol* s = c.find(c.stmt.expr(hole));
    const bool right = s && std::find(ok.begin(), ok.end(), s->category) != ok.end();
    if (!right)
      c.broken(
          "C2", c.stmt.expr(hole)->span,
          fmt::format("`{}` is {}", print(c.stmt.expr(hole)), s ? word(s->category) : "nothing"));
    if (right && c.stmt.expr(hole)->kind == ExprKind::index)
      indices_are_possible(c, *s, c.stmt.expr(hole));
    return right;
  };
  const bool left = is(Hole::a, {Category::operand, Category::tile, Category::ring}),
             right = is(Hole::b, {Category::tile, Category::ring});
  if (!is(Hole::acc, {Category::accumulator}) || !left || !right) return;
  const Symbol& a = *c.find(c.stmt.a());
  if (holds_data(a)) return data_is_for_maps(c, a, c.stmt.a()->span);
  for (const Hole hole : {Hole::a, Hole::b})
    if (const Symbol& s = *c.find(c.stmt.expr(hole)); has_own_statements(s))
      return tile_is_for_its_own(c, s, c.stmt.expr(hole)->span);
  const Extents e = extents(c);
  agree(c, shapes, "columns", e.a, e.k, transposed ? "columns" : "rows", e.b,
        transposed ? e.b_columns : e.b_rows, transposed ? "the tile is read transposed" : "");
  if (how != Right::columns)
    agree(c, shapes, "columns", e.c, e.columns, transposed ? "rows" : "columns", e.b,
          transposed ? e.b_rows : e.b_columns, transposed ? "the tile is read transposed" : "");
  agree(c, shapes, "rows", e.c, c.extent(&e.c, 0), "rows", e.a, c.extent(&e.a, 0), "");
}
}  // namespace
void law_mma(Check& c) { product_fits(c, Right::transposed); }
void law_mma_add(Check& c) { product_fits(c, Right::as_it_is); }
void law_mma_add_transposed(Check& c) { product_fits(c, Right::transposed); }

void law_mma_add_columns(Check& c) {
  product_fits(c, Right::columns, "C2");
  const std::optional<int64_t> some = c.extent(c.find(c.stmt.acc()), 1),
                               all = c.extent(c.find(c.stmt.b()), 1);
  if (some && all) are_panels(c, "C3", *some, *all);
}

}  // namespace kw::tl
