// Declarations in registers, and the statements that take whole tiles: copies, products,
// reductions.
//
// An accumulator has two names: `s_mma` is CuTe's fragment ((2, 2), M, N), which products take, and
// `s` the same registers as rows and columns. An operand that products take is `p_mma`.
#include "cute/printer.h"

namespace kw::cute {
using namespace tl;
namespace {

bool is_data(const std::string& element) { return element != "element"; }

}  // namespace

std::string Printer::tile(const Stmt& s, const Scope& scope, const ExprPtr& e) {
  ExprWriter writer(scope);
  std::string out = writer.tile(e);
  if (!writer.problem.empty()) refuse(s, writer.problem);
  return out;
}

std::string Printer::warp_tile(const Stmt& s, const Scope& scope, const char* hole) {
  const std::string all = tile(s, scope, s.expr(hole));
  return hopper_ ? "tl::for_warps(" + all + ")" : all;
}

bool Printer::is_operand(const Stmt& s, const Scope& scope, const char* hole) {
  const Symbol* a = scope.find(base_name(s.expr(hole)));
  return a && a->category == Category::operand;
}

std::string Printer::coordinates(const Stmt& s, const Scope& scope) {
  return text(s, scope, s.expr("b")) + ", " + text(s, scope, s.expr("h")) + ", " +
         text(s, scope, s.expr("r"));
}

bool Printer::declaration(const Stmt& s, const Scope& scope) {
  const auto size = [&](const char* hole, const char* way) {
    return fmt::format("Int<({}){}>", text(s, scope, s.expr(hole)), way);
  };
  const auto vector = [&](const Item& d, const std::string& extent) {
    line(fmt::format("Tensor {} = make_tensor<{}>({}{{}});", d.name, type_name(s.word("t")),
                     extent));
  };
  switch (s.op) {
    case Op::let: {
      Scope here(&scope);
      for (const Item& d : s.items("d")) {
        const Symbol symbol = symbol_of(s, d, here);
        const std::string type = symbol.type.kind == Type::integer   ? "int"
                                 : symbol.type.kind == Type::real    ? "float"
                                 : symbol.type.kind == Type::boolean ? "bool"
                                                                     : symbol.type.name;
        line(fmt::format("const {} {} = {};", type, d.name, text(s, here, d.expr)));
        here.add(symbol);
      }
      return true;
    }
    case Op::flag:
      line(fmt::format("bool {};", s.word("d")));
      return true;
    case Op::accumulator:
      for (const Item& d : s.items("d")) {
        line(fmt::format("Tensor {}_mma = partition_fragment_C(mma, Shape<{}, {}>{{}});", d.name,
                         size("r", ""), size("c", "")));
        line(fmt::format("Tensor {0} = tl::rows_columns({0}_mma);", d.name));
      }
      return true;
    case Op::operand:
      for (const Item& d : s.items("d"))
        if (is_data(s.word("t")))
          line(fmt::format("Tensor {} = make_tensor<{}>(Shape<{}, {}>{{}});", d.name,
                           s.word("t") == "bool" ? "uint1b_t" : type_name(s.word("t")),
                           size("r", " / 32"), size("c", " / 4")));
        else
          line(fmt::format("Tensor {}_mma = tl::make_operand<element>(mma, Shape<{}, {}>{{}});",
                           d.name, size("r", ""), size("c", "")));
      return true;
    case Op::row:
    case Op::lane_sum:
      for (const Item& d : s.items("d")) {
        if (!d.expr) {
          vector(d, size("r", " / 32"));
        } else if (d.expr->kind == ExprKind::call && d.expr->text == "total") {
          line(fmt::format("Tensor {} = tl::total({});", d.name, print(d.expr->args[0])));
        } else {
          line(fmt::format("Tensor {} = {};", d.name, print(d.expr)));
        }
      }
      return true;
    case Op::column:
      for (const Item& d : s.items("d"))
        vector(d, fmt::format("Int<({} + 31) / 32>", text(s, scope, s.expr("c"), 7)));
      return true;
    case Op::diagonal:
      for (const Item& d : s.items("d"))
        vector(d, fmt::format("Int<tl::diagonals({}, {})>", text(s, scope, s.expr("r")),
                              text(s, scope, s.expr("c"))));
      return true;
    default:
      return false;
  }
}

bool Printer::whole_tiles(const Stmt& s, const Scope& scope) {
  const auto e = [&](const char* hole) { return text(s, scope, s.expr(hole)); };
  const auto name = [&](const char* hole) { return print(s.expr(hole)); };
  const auto t = [&](const char* hole) { return tile(s, scope, s.expr(hole)); };
  switch (s.op) {
    case Op::sync_block:
      line("__syncthreads();");
      return true;
    case Op::sync_warpgroup:
      line(fmt::format("cutlass::arch::NamedBarrier::sync(128, {});", e("w")));
      return true;
    case Op::cp_async_commit:
      line("cp_async_fence();");
      return true;
    case Op::cp_async_wait:
      line(fmt::format("cp_async_wait<{}>();", e("n")));
      return true;
    case Op::cp_async:
    case Op::copy_in:
      line(fmt::format("tl::{}<{}>({}, {}, {});", word(s.op), e("k"), e("m"), coordinates(s, scope),
                       t("d")));
      return true;
    case Op::copy_out:
      line(fmt::format("tl::copy_out<{}>({}, {}, {});", e("k"), t("s"), e("m"),
                       coordinates(s, scope)));
      return true;
    case Op::cp_async_tile:
    case Op::copy_tile_in:
      line(fmt::format("tl::{}<{}>({}, {}, {}, {});", word(s.op), e("k"), e("m"),
                       coordinates(s, scope), e("j"), t("d")));
      return true;
    case Op::copy_tile_out:
      line(fmt::format("tl::copy_tile_out<{}>({}, {}, {}, {});", e("k"), t("s"), e("m"),
                       coordinates(s, scope), e("j")));
      return true;
    case Op::upcast:
      line(fmt::format("tl::upcast<{}>({}, {});", e("k"), t("s"), t("d")));
      return true;
    case Op::load:
      line(fmt::format("tl::load(mma, {}, {}_mma);", warp_tile(s, scope, "s"), name("d")));
      return true;
    case Op::store:
      line(fmt::format("tl::store<{}>(mma, {}_mma, {});", atoms_.store, name("s"),
                       warp_tile(s, scope, "d")));
      return true;
    case Op::store_rows:
      line(fmt::format("tl::store_rows(mma, {}, {}, {});", name("s"), e("m"),
                       coordinates(s, scope)));
      return true;
    case Op::mma:
    case Op::mma_add_transposed:
      if (is_operand(s, scope, "a"))
        line(fmt::format("tl::{}_registers(mma, {}_mma, {}_mma, {});", word(s.op), name("c"),
                         name("a"), warp_tile(s, scope, "b")));
      else
        line(fmt::format("tl::{}(mma, {}_mma, {}, {});", word(s.op), name("c"),
                         warp_tile(s, scope, "a"), warp_tile(s, scope, "b")));
      return true;
    case Op::mma_add:
      line(fmt::format("tl::mma_add(mma, {}_mma, {}_mma, {});", name("c"), name("a"),
                       warp_tile(s, scope, "b")));
      return true;
    case Op::to_operand:
      line(fmt::format("tl::to_operand({}_mma, {}_mma);", name("s"), name("p")));
      return true;
    case Op::fill:
      line(fmt::format("fill({}, float({}));", s.word("t"), e("v")));
      return true;
    case Op::online_max:
      line(fmt::format("{} = tl::online_max({}, {}, {}, {}, {});", s.word("f"), name("m"),
                       name("r"), name("s"), e("k"), e("e")));
      return true;
    case Op::any_exceeds:
      line(fmt::format("{} = tl::any_exceeds({}, {}, {});", s.word("f"), name("m"), name("l"),
                       e("k")));
      return true;
    case Op::row_max:
      line(fmt::format("tl::row_max({}, {});", name("s"), name("m")));
      return true;
    case Op::row_sum:
      line(fmt::format("tl::row_sum({}, {});", name("s"), name("l")));
      return true;
    case Op::add:
      line(fmt::format("transform({0}, {1}, {0}, plus{{}});", name("l"), name("p")));
      return true;
    default:
      return false;
  }
}

}  // namespace kw::cute
