#include "sketch/families/gemm/size.h"

#include <fmt/format.h>

#include "sketch/families/gemm/gemm.h"
#include "sketch/families/gemm/tiles.h"
#include "sketch/parts.h"
#include "tl/laws/laws.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

class ProductSizer {
 public:
  ProductSizer(const tl::Program& sketch, const Product& product, const Machine& machine,
               const ProductSizes& sizes)
      : sketch_(sketch), p_(product), machine_(machine), sizes_(sizes) {}

  std::string run() {
    const auto fresh = [&](const char* name) { return fresh_name(sketch_, name); };
    const std::string o_s = fresh("o_s"), m = fresh("m"), n = fresh("n"), k = fresh("k"),
                      me = fresh("me");
    head();
    text_.line(0, "shared:");  // N1
    text_.line(1, fmt::format("tile {}[WARPGROUPS]: element[ROWS, BK]", p_.a_s));
    text_.line(1, fmt::format("tile {}: element[BK, BN]", p_.b_s));
    text_.line(1, fmt::format("tile {}[WARPGROUPS]: element[ROWS, BN]", o_s));
    const auto& counters = p_.plan.counters;
    text_.line(0, fmt::format("plan {}:", p_.plan.plan->name()));
    text_.line(1, fmt::format("accumulator {}: real[ROWS, BN]", p_.acc));
    text_.line(1, fmt::format("for {}, {}, {}, {}, {} in grid(rows, columns, {}, {}, WARPGROUPS):",
                              m, n, counters[1], counters[0], me, extent(1), extent(0)));  // N2
    text_.line(2, fmt::format("let {} = {} * BM + {} * ROWS", counters[2], m, me));
    text_.line(2, fmt::format("let {} = {} * BN", counters[3], n));
    text_.add(*p_.fill, 2);
    text_.line(2, fmt::format("for {} in blocks(ceil_div({}, BK)):", k,
                              tl::print(p_.plan.loop->extent())));
    const std::vector<tl::Replacement> swap = {
        {tl::name(p_.plan.counter), tl::binary("*", tl::name(k), tl::name("BK"))},  // N3
        {tl::name(p_.a_s), tl::index(tl::name(p_.a_s), {tl::name(me)})}};
    for (const Stmt* s : p_.plan.inside) text_.add(replaced(*s, swap), 3);
    text_.line(2, fmt::format("store {} -> {}[{}]", p_.acc, o_s, me));
    text_.line(2, fmt::format("copy {}[{}] -> {}", o_s, me, tl::print(p_.out->dst())));
    return text_.text();
  }

 private:
  std::string extent(size_t n) const { return tl::print(p_.plan.extents[n]); }

  static Stmt replaced(Stmt s, const std::vector<tl::Replacement>& swap) {
    tl::each_expression(s, [&](tl::ExprPtr& e) { e = tl::replace(e, swap); });
    return s;
  }

  void head() {
    for (const Stmt& s : sketch_.body) {
      if (s.op == Op::plan) continue;
      if (s.op == Op::level) {
        text_.line(0, "level sized");
        continue;
      }
      if (s.op != Op::args) {
        text_.add(s, 0);
        continue;
      }
      text_.line(0, fmt::format("param ROWS = {}, WARPGROUPS = {}, BM = ROWS * WARPGROUPS",
                                sizes_.rows, sizes_.warpgroups));
      text_.line(0, fmt::format("param BN = {}, BK = {}{}", sizes_.columns, sizes_.step,
                                machine_.style == Style::synchronous
                                    ? ""
                                    : fmt::format(", STAGES = {}", sizes_.stages)));
      text_.add(s, 0);
      text_.line(1, fmt::format("rows: size = ceil_div({}, BM)", extent(2)));
      text_.line(1, fmt::format("columns: size = ceil_div({}, BN)", extent(3)));
      text_.line(1, fmt::format("blocks: size = rows * columns * {} * {}", extent(1), extent(0)));
    }
  }

  const tl::Program& sketch_;
  const Product& p_;
  const Machine& machine_;
  const ProductSizes& sizes_;
  Text text_;
};

}  // namespace

std::optional<tl::Program> size_product(const tl::Program& given, const Request& request,
                                        Diagnostics& diagnostics) {
  const auto product = read_product(given, "sketch", diagnostics);
  if (!product) return std::nullopt;
  if (request.sizes) {
    diagnostics
        .error("sketch.tiles", product->product->span,
               "rows, keys and warpgroups are asked for, and a product has no keys")
        .hint = "without them the passes choose; the sized text may be edited";
    return std::nullopt;
  }
  const Stmt* element = given.find(Op::element);
  const auto sizes =
      choose_product_tiles(request.machine, element ? element->type() : "bf16", diagnostics);
  if (!sizes) return std::nullopt;
  const std::string text = ProductSizer(given, *product, request.machine, *sizes).run();
  auto program = tl::parse(make_source("<sized>", text), diagnostics);
  if (!program || !tl::verify(*program, diagnostics)) return std::nullopt;
  return program;
}

}  // namespace kw::sketch
