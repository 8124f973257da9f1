#include "sketch/families/gemm/schedule.h"

#include <fmt/format.h>

#include "tl/laws/laws.h"

namespace kw::sketch {

using tl::Op;
using tl::Stmt;

tl::ExprPtr expression(const std::string& text) {
  Diagnostics none;
  return tl::parse_expr(text, none);
}

std::string kernel_place(const SizedProduct& p, const tl::ExprPtr& place, const std::string& column,
                         const std::vector<tl::Replacement>& more) {
  const tl::Item& j0 =
      p.product.plan.counters.empty() ? tl::Item{} : p.product.first_column->names().at(0);
  std::vector<tl::Replacement> all = more;
  all.push_back({tl::name(p.batch), tl::field(tl::name("c"), "b")});
  all.push_back({tl::name(p.head), tl::field(tl::name("c"), "h")});
  all.push_back({tl::name(j0.name), tl::replace(j0.expr, {{tl::name(p.n), expression(column)}})});
  const tl::ExprPtr at = tl::replace(place, all);
  return tl::print(at);
}

std::optional<tl::Program> schedule_product(const tl::Program& sized, const Machine& machine,
                                            Diagnostics& diagnostics) {
  const auto product = read_product(sized, "sized", diagnostics);
  if (!product) return std::nullopt;
  const bool one = machine.style == Style::synchronous;
  const auto values = parameters(sized);
  for (const char* name : {"ROWS", "WARPGROUPS", "BM", "BN", "BK", "STAGES"})
    if (!values.contains(name) && !(one && std::string(name) == "STAGES")) {
      diagnostics
          .error("sketch.shape", product->plan.plan->span,
                 fmt::format("the module has no parameter {}", name))
          .hint =
          "`size` writes ROWS, WARPGROUPS, BM, BN, BK and, where copies are asynchronous, "
          "STAGES";
      return std::nullopt;
    }
  const auto& c = product->plan.counters;
  const SizedProduct p{sized,
                       *product,
                       machine,
                       {values.at("ROWS"), values.at("WARPGROUPS"), values.at("BN"),
                        values.at("BK"), values.contains("STAGES") ? values.at("STAGES") : 1},
                       tl::base_name(product->store->dst()),
                       c[0],
                       c[1],
                       c[2],
                       c[3],
                       c[4],
                       product->plan.counter};
  const Stmt* shared = sized.find(Op::shared);
  if (!hold_product_tiles(machine, p.sizes, shared ? shared->span : product->plan.plan->span,
                          diagnostics))
    return std::nullopt;
  const std::string text = machine.style == Style::engine ? product_engine(p) : product_alike(p);
  auto program = tl::parse(make_source("<scheduled>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

}  // namespace kw::sketch
