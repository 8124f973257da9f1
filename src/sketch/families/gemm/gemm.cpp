#include "sketch/families/gemm/gemm.h"

#include <fmt/format.h>

#include "tl/analysis/effects.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class ProductReader {
 public:
  ProductReader(const tl::Program& program, bool sized, Product& product, Diagnostics& diagnostics)
      : program_(program), sized_(sized), p_(product), diagnostics_(diagnostics) {}

  bool run() {
    const size_t counters = sized_ ? 5 : 4;  // M1
    if (p_.plan.counters.size() != counters || p_.plan.extents.size() != counters)
      return refuse(*p_.plan.grid,
                    fmt::format("the grid of a product has {} counters, and this one {}", counters,
                                p_.plan.counters.size()));
    return before() && inside() && after();
  }

 private:
  bool refuse(const Stmt& at, const std::string& what) {
    diagnostics_.error("sketch.shape", at.span, what).hint =
        "what is scheduled of a product are two copies and one product in the loop, and one copy "
        "after it; sketches/product.tl is one";
    return false;
  }
  bool refuse_statement(const Stmt& at, const char* where) {
    return refuse(at, fmt::format("`{}` stands {} of a product", tl::print_head(at), where));
  }

  bool before() {  // M2
    for (const Stmt* s : p_.plan.before) {
      if (s->op == Op::fill && !p_.fill)
        p_.fill = s;
      else if (sized_ && s->op == Op::let && !p_.first_row)
        p_.first_row = s;
      else if (sized_ && s->op == Op::let && !p_.first_column)
        p_.first_column = s;
      else
        return refuse_statement(*s, "before the loop");
    }
    if (!p_.fill) return refuse(*p_.plan.grid, "nothing is filled before the loop");
    if (sized_ && !p_.first_column)
      return refuse(*p_.plan.grid, "a sized product says its first row and column: two lets");
    p_.acc = tl::base_name(p_.fill->target());
    return true;
  }

  bool inside() {  // M3
    std::vector<const Stmt*> copies;
    for (const Stmt* s : p_.plan.inside) {
      if (s->op == Op::copy && !p_.product)
        copies.push_back(s);
      else if (s->op == Op::mma_add && !p_.product)
        p_.product = s;
      else
        return refuse_statement(*s, "in the loop");
    }
    if (!p_.product) return refuse(*p_.plan.loop, "the loop has no product, `mma_add`");
    if (tl::base_name(p_.product->acc()) != p_.acc)
      return refuse(*p_.product, fmt::format("`{}` is filled before the loop, and the product "
                                             "adds to `{}`",
                                             p_.acc, tl::base_name(p_.product->acc())));
    p_.a_s = tl::base_name(p_.product->a()), p_.b_s = tl::base_name(p_.product->b());
    for (const Stmt* s : copies) {
      const std::string tile = tl::base_name(s->dst());
      const Stmt*& side = tile == p_.a_s ? p_.left : p_.right;
      if ((tile != p_.a_s && tile != p_.b_s) || side)
        return refuse(
            *s, fmt::format("`{}` is copied {}", tile, side ? "twice" : "and not multiplied"));
      if (!is_place(*s, tl::Hole::src, false)) return false;
      side = s;
    }
    if (p_.left && p_.right) return true;
    return refuse(*p_.product,
                  fmt::format("`{}` is multiplied and not copied", p_.left ? p_.b_s : p_.a_s));
  }

  bool after() {  // M4
    for (const Stmt* s : p_.plan.after) {
      if (sized_ && s->op == Op::store && !p_.store && tl::base_name(s->src()) == p_.acc)
        p_.store = s;
      else if (s->op == Op::copy && !p_.out)
        p_.out = s;
      else
        return refuse_statement(*s, "after the loop");
    }
    if (!p_.out || (sized_ && !p_.store))
      return refuse(*p_.plan.grid, "nothing is copied out after the loop");
    const std::string from = sized_ ? tl::base_name(p_.store->dst()) : p_.acc;
    if (tl::base_name(p_.out->src()) != from)
      return refuse(*p_.out, fmt::format("`{}` is copied out, and `{}` holds the product",
                                         tl::base_name(p_.out->src()), from));
    return is_place(*p_.out, tl::Hole::dst, true);
  }

  // A tensor of four dimensions, at four coordinates.
  bool is_place(const Stmt& copy, tl::Hole hole, bool output) {
    const tl::ExprPtr& place = copy.expr(hole);
    const Stmt* tensor = tensor_named(program_, tl::base_name(place));
    const bool good = tensor && is_output(*tensor) == output && tensor->dims().size() == 4 &&
                      place->kind == tl::ExprKind::index && place->args.size() == 5;
    return good || refuse(copy, fmt::format("`{}` is not a place at four coordinates of an `{}` "
                                            "tensor of four dimensions",
                                            tl::print(place), output ? "out" : "in"));
  }

  const tl::Program& program_;
  bool sized_;
  Product& p_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool is_product(const tl::Program& program) {
  const Stmt* plan = program.find(Op::plan);
  if (!plan) return false;
  int adds = 0, others = 0;
  tl::walk(plan->body, [&](const Stmt& s) {
    adds += s.op == Op::mma_add;
    others += s.op == Op::mma || s.op == Op::to_operand;
  });
  return adds == 1 && others == 0;
}

std::optional<Product> read_product(const tl::Program& program, const std::string& level,
                                    Diagnostics& diagnostics) {
  const auto plan = read_plan(program, level, diagnostics);
  if (!plan) return std::nullopt;
  Product p;
  p.plan = *plan;
  if (!ProductReader(program, level == "sized", p, diagnostics).run()) return std::nullopt;
  return p;
}

}  // namespace kw::sketch
