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

std::string Printer::warp_tile(const Stmt& s, const Scope& scope, const ExprPtr& e) {
  const std::string all = tile(s, scope, e);
  return hopper_ ? "tl::for_warps(" + all + ")" : all;
}

bool Printer::is_operand(const Scope& scope, const ExprPtr& e) {
  const Symbol* a = scope.find(base_name(e));
  return a && a->category == Category::operand;
}

std::string Printer::coordinates(const Stmt& s, const Scope& scope) {
  return text(s, scope, s.batch()) + ", " + text(s, scope, s.head()) + ", " +
         text(s, scope, s.row());
}

bool Printer::declaration(const Stmt& s, const Scope& scope) {
  const auto size = [&](const ExprPtr& x, const char* way) {
    return fmt::format("Int<({}){}>", text(s, scope, x), way);
  };
  const auto vector = [&](const Item& d, const std::string& extent) {
    line(fmt::format("Tensor {} = make_tensor<{}>({}{{}});", d.name, type_name(s.type()), extent));
  };
  switch (s.op) {
    case Op::let: {
      Scope here(&scope);
      for (const Item& d : s.names()) {
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
      line(fmt::format("bool {};", s.names().front().name));
      return true;
    case Op::accumulator:
      for (const Item& d : s.names()) {
        line(fmt::format("Tensor {}_mma = partition_fragment_C(mma, Shape<{}, {}>{{}});", d.name,
                         size(s.rows(), ""), size(s.columns(), "")));
        line(fmt::format("Tensor {0} = tl::rows_columns({0}_mma);", d.name));
      }
      return true;
    case Op::operand:
      for (const Item& d : s.names())
        if (is_data(s.type()))
          line(fmt::format("Tensor {} = make_tensor<{}>(Shape<{}, {}>{{}});", d.name,
                           s.type() == "bool" ? "uint1b_t" : type_name(s.type()),
                           size(s.rows(), " / 32"), size(s.columns(), " / 4")));
        else
          line(fmt::format("Tensor {}_mma = tl::make_operand<element>(mma, Shape<{}, {}>{{}});",
                           d.name, size(s.rows(), ""), size(s.columns(), "")));
      return true;
    case Op::row:
    case Op::lane_sum:
      for (const Item& d : s.names()) {
        if (!d.expr) {
          vector(d, size(s.rows(), " / 32"));
        } else if (d.expr->kind == ExprKind::call && d.expr->text == "total") {
          line(fmt::format("Tensor {} = tl::total({});", d.name, print(d.expr->args[0])));
        } else {
          line(fmt::format("Tensor {} = {};", d.name, print(d.expr)));
        }
      }
      return true;
    case Op::column:
      for (const Item& d : s.names())
        vector(d, fmt::format("Int<({} + 31) / 32>", text(s, scope, s.columns(), 7)));
      return true;
    case Op::diagonal:
      for (const Item& d : s.names())
        vector(d, fmt::format("Int<tl::diagonals({}, {})>", text(s, scope, s.rows()),
                              text(s, scope, s.columns())));
      return true;
    default:
      return false;
  }
}

bool Printer::whole_tiles(const Stmt& s, const Scope& scope) {
  const auto e = [&](const ExprPtr& x) { return text(s, scope, x); };
  const auto name = [&](const ExprPtr& x) { return print(x); };
  const auto t = [&](const ExprPtr& x) { return tile(s, scope, x); };
  switch (s.op) {
    case Op::sync_block:
      line("__syncthreads();");
      return true;
    case Op::sync_warpgroup:
      line(fmt::format("cutlass::arch::NamedBarrier::sync(128, {});", e(s.warpgroup())));
      return true;
    case Op::cp_async_commit:
      line("cp_async_fence();");
      return true;
    case Op::cp_async_wait:
      line(fmt::format("cp_async_wait<{}>();", e(s.pending())));
      return true;
    case Op::cp_async:
    case Op::copy_in:
      line(fmt::format("tl::{}<{}>({}, {}, {});", word(s.op), e(s.by()), e(s.tensor()),
                       coordinates(s, scope), t(s.dst())));
      return true;
    case Op::copy_out:
      line(fmt::format("tl::copy_out<{}>({}, {}, {});", e(s.by()), t(s.src()), e(s.tensor()),
                       coordinates(s, scope)));
      return true;
    case Op::cp_async_tile:
    case Op::copy_tile_in:
      line(fmt::format("tl::{}<{}>({}, {}, {}, {});", word(s.op), e(s.by()), e(s.tensor()),
                       coordinates(s, scope), e(s.column()), t(s.dst())));
      return true;
    case Op::copy_tile_out:
      line(fmt::format("tl::copy_tile_out<{}>({}, {}, {}, {});", e(s.by()), t(s.src()),
                       e(s.tensor()), coordinates(s, scope), e(s.column())));
      return true;
    case Op::upcast:
      line(fmt::format("tl::upcast<{}>({}, {});", e(s.by()), t(s.src()), t(s.dst())));
      return true;
    case Op::load:
      line(fmt::format("tl::load(mma, {}, {}_mma);", warp_tile(s, scope, s.src()), name(s.dst())));
      return true;
    case Op::store:
      line(fmt::format("tl::store<{}>(mma, {}_mma, {});", atoms_.store, name(s.src()),
                       warp_tile(s, scope, s.dst())));
      return true;
    case Op::store_rows:
      line(fmt::format("tl::store_rows(mma, {}, {}, {});", name(s.src()), e(s.tensor()),
                       coordinates(s, scope)));
      return true;
    case Op::mma:
    case Op::mma_add_transposed:
      if (is_operand(scope, s.a()))
        line(fmt::format("tl::{}_registers(mma, {}_mma, {}_mma, {});", word(s.op), name(s.acc()),
                         name(s.a()), warp_tile(s, scope, s.b())));
      else
        line(fmt::format("tl::{}(mma, {}_mma, {}, {});", word(s.op), name(s.acc()),
                         warp_tile(s, scope, s.a()), warp_tile(s, scope, s.b())));
      return true;
    case Op::mma_add:
      line(fmt::format("tl::mma_add(mma, {}_mma, {}_mma, {});", name(s.acc()), name(s.a()),
                       warp_tile(s, scope, s.b())));
      return true;
    case Op::to_operand:
      line(fmt::format("tl::to_operand({}_mma, {}_mma);", name(s.src()), name(s.dst())));
      return true;
    case Op::fill:
      line(fmt::format("fill({}, float({}));", base_name(s.target()), e(s.value())));
      return true;
    case Op::online_max:
      line(fmt::format("{} = tl::online_max({}, {}, {}, {}, {});", s.flag(), name(s.max()),
                       name(s.alpha()), name(s.src()), e(s.threshold()), e(s.scale())));
      return true;
    case Op::any_exceeds:
      line(fmt::format("{} = tl::any_exceeds({}, {}, {});", s.flag(), name(s.max()), name(s.sum()),
                       e(s.threshold())));
      return true;
    case Op::row_max:
      line(fmt::format("tl::row_max({}, {});", name(s.src()), name(s.max())));
      return true;
    case Op::row_sum:
      line(fmt::format("tl::row_sum({}, {});", name(s.src()), name(s.sum())));
      return true;
    case Op::add:
      line(fmt::format("transform({0}, {1}, {0}, plus{{}});", name(s.sum()), name(s.part())));
      return true;
    default:
      return false;
  }
}

}  // namespace kw::cute
