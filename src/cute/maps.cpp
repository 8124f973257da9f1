// Element by element: loops over a thread's rows (vr) and columns (vc) of a tile.
//
// Global coordinates are an identity tensor, partitioned as the accumulator is. A value of a column
// lies in one lane of each warp and is fetched by a shuffle before the rows that use it; a value of
// a distance j - i likewise, and then the loop goes from diagonal to diagonal of 8x8 squares.
#include "tl/syntax/maps.h"

#include <algorithm>

#include "cute/printer.h"
#include "tl/syntax/writer.h"
#include "tl/traits.h"

namespace kw::cute {
using namespace tl;

std::string Printer::body(const Stmt& s, const Scope& scope, const MapBody& map) {
  ExprWriter writer(scope);
  writer.map = &map;
  std::string out = writer.expr(s.value());
  if (!writer.problem.empty()) refuse(s, writer.problem);
  return out;
}

std::string Printer::shape(const Stmt& s, const Scope& scope, const Symbol& symbol) {
  std::string out;
  for (const ExprPtr& e : symbol.shape)
    out += (out.empty() ? "" : ", ") + fmt::format("Int<{}>", text(s, scope, e));
  return out;
}

void Printer::origin(const Stmt& s, const Scope& scope) {
  if (s.has(tl::Hole::i0)) line(fmt::format("const int vi = {};", text(s, scope, s.i0())));
  if (s.has(tl::Hole::j0)) line(fmt::format("const int vj = {};", text(s, scope, s.j0())));
}

void Printer::map_rows(const Stmt& s, const Scope& scope) {
  const std::string t = print(s.target());
  line("CUTE_UNROLL");
  line(fmt::format("for (int vr = 0; vr < size({}); ++vr)", t));
  line(fmt::format("  {}(vr) = {};", t, body(s, scope, {t, {}})));
}

void Printer::set_vector(const Stmt& s, const Scope& scope) {
  const std::string t = print(s.target());
  const Symbol& symbol = *scope.find(t);
  line("{");
  ++depth_;
  origin(s, scope);
  if (s.op == Op::set_rows)
    line(fmt::format("Tensor at = tl::places(mma, Shape<{}, _16>{{}});", shape(s, scope, symbol)));
  if (s.op == Op::set_diagonals)
    line(fmt::format("const int vd = vj - vi + tl::lowest_distance({});",
                     text(s, scope, symbol.shape[0])));
  line("CUTE_UNROLL");
  line(fmt::format("for (int vk = 0; vk < size({}); ++vk) {{", t));
  ++depth_;
  const std::string coordinate = s.op == Op::set_rows ? "i" : s.op == Op::set_columns ? "j" : "d";
  line(s.op == Op::set_rows      ? "const int i = vi + get<0>(at(vk, 0));"
       : s.op == Op::set_columns ? "const int j = vj + 32 * vk + int(threadIdx.x) % 32;"
                                 : "const int d = vd + 24 * vk + int(threadIdx.x) % 32;");
  line(fmt::format("{}(vk) = {};", t, body(s, scope, {"", {coordinate}})));
  --depth_;
  line("}");
  --depth_;
  line("}");
}

void Printer::map_tile(const Stmt& s, const Scope& scope) {
  const std::string t = print(s.target());
  const Symbol& symbol = *scope.find(t);
  const bool placed = s.op != Op::map;
  std::vector<std::string> columns, diagonals;
  for (const std::string& v : vectors_of(s.value(), t, scope)) {
    const Category category = scope.find(v)->category;
    if (category == Category::column) columns.push_back(v);
    if (category == Category::diagonal) diagonals.push_back(v);
  }
  line("{");
  ++depth_;
  origin(s, scope);
  if (placed || !columns.empty())
    line(fmt::format("Tensor at = tl::places(mma, Shape<{}>{{}});", shape(s, scope, symbol)));
  const auto fetch_columns = [&] {
    for (const std::string& v : columns)
      line(fmt::format(
          "const auto {0}_here = __shfl_sync(~0u, {0}(vc / 8), get<1>(at(0, vc)) % 32);", v));
  };
  const auto element = [&] {
    if (placed) {
      // Of a real, the thread's first place and a constant: an addition and no conversion.
      const char* form =
          s.op == Op::map_real
              ? "const float {0} = float(v{0} + get<{1}>(at(0, 0))) + float(get<{1}>(at(vr, vc)) "
                "- get<{1}>(at(0, 0)));"
              : "const int {0} = v{0} + get<{1}>(at(vr, vc));";
      line(fmt::format(fmt::runtime(form), "i", 0));
      line(fmt::format(fmt::runtime(form), "j", 1));
    }
    const std::vector<std::string> names =
        placed ? std::vector<std::string>{"i", "j"} : std::vector<std::string>{};
    const std::string value = body(s, scope, {t, names});
    line(fmt::format("{}(vr, vc) = {};", t,
                     symbol.category == Category::operand
                         ? fmt::format("typename decltype({})::value_type({})", t, value)
                         : value));
  };
  line("CUTE_UNROLL");
  if (diagonals.empty()) {
    line(fmt::format("for (int vc = 0; vc < size<1>({}); ++vc) {{", t));
    ++depth_;
    fetch_columns();
    line("CUTE_UNROLL");
    line(fmt::format("for (int vr = 0; vr < size<0>({}); ++vr) {{", t));
  } else {
    const std::string extents =
        text(s, scope, symbol.shape[0]) + ", " + text(s, scope, symbol.shape[1]);
    line(fmt::format("for (int vd = 0; vd < 2 * tl::squares({}); ++vd) {{", extents));
    ++depth_;
    for (const std::string& v : diagonals)
      line(fmt::format(
          "const auto {0}_here = __shfl_sync(~0u, {0}(vd / 6), tl::diagonal_lane(vd));", v));
    line("CUTE_UNROLL");
    line(fmt::format("for (int vr = 0; vr < size<0>({}); ++vr) {{", t));
    line(fmt::format("  const int vc = tl::diagonal_column({}, vr, vd);",
                     text(s, scope, symbol.shape[0])));
    line(fmt::format("  if (vc < 0 || vc >= size<1>({})) continue;", t));
  }
  ++depth_;
  if (!diagonals.empty()) fetch_columns();
  element();
  for (int k = 0; k < 3; ++k) {
    --depth_;
    line("}");
  }
}

bool Printer::map(const Stmt& s, const Scope& scope) {
  if (s.op == Op::map_rows)
    map_rows(s, scope);
  else if (has_element(s.op) || s.op == Op::set_tile)
    map_tile(s, scope);
  else if (is(s.op, Family::gather))
    set_vector(s, scope);
  else
    return false;
  return true;
}

}  // namespace kw::cute
