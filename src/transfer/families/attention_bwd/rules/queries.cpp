// Which query blocks see some of a block of keys, and of which nothing is masked: the forward rule
// about keys (attention/rules/keys.cpp) with rows and columns exchanged.
//
//   def query_blocks(c: Block):
//       return 0, ceil_div(M, BM)
//     ->   let first = min(c.n * BN // BM, ceil_div(M, BM) - 1)
//          return first, max(1, ceil_div(M, BM) - first)
//   if (c.n + 1) * BN > N:
//     ->   if (c.n + 1) * BN > N or m * BM < c.n * BN + BN - 1 or m * BM + BM > M:
//
// When     the form has a keep predicate. A key that no query sees has one block of queries all the
//          same, in which all is masked: its gradients are zero, and somebody writes them.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/editing/terms.h"
#include "transfer/families/attention_bwd/edit.h"
#include "transfer/masks/key_ranges.h"

namespace kw::transfer::bwd {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

ExprPtr index(const char* name) { return spec::leaf(Kind::index, Type::integer, name); }

// Queries first ... below - 1 see some of the keys; from ... until - 1 see all. Null: from the
// first, to the last; and no query is known to see all where `any_whole` is false.
struct Ranges {
  ExprPtr first, below, from, until;
  bool any_whole = false;
};

Ranges ranges_of(const ExprPtr& keep) {
  const Rows keys{index("i0"), index("i1")};
  const KeyRanges kept = key_ranges(exchanged(keep), size("M"));
  const KeyBounds around = kept.around();
  // The heads that share keys have one range: what depends on which of them it is bounds none.
  const auto of_all = [](const ExprPtr& e) {
    return e && spec::mentions(e, Kind::index, "h") ? nullptr : e;
  };
  Ranges out;
  if (around.lower) out.first = of_all(lowest(around.lower, keys));
  if (around.upper) out.below = of_all(highest(around.upper, keys));
  if (kept.whole.empty()) return out;
  const KeyBounds& whole = kept.whole[0];
  out.from = whole.lower ? of_all(highest(whole.lower, keys)) : nullptr;
  out.until = whole.upper ? of_all(lowest(whole.upper, keys)) : nullptr;
  out.any_whole = (!whole.lower || out.from) && (!whole.upper || out.until);
  return out;
}

// Whether a bound never falls from one block of keys to the next: then blocks of keys that see a
// block of queries follow each other. Of `where(j < 4, M, j + 512)` they do not.
bool never_falls(const ExprPtr& e) {
  if (!e || e->kind == Kind::size || e->kind == Kind::number || e->kind == Kind::index) return true;
  if (e->kind == Kind::binary && e->name == "-")
    return never_falls(e->args[0]) && !spec::mentions(e->args[1], Kind::index);
  if (e->kind == Kind::binary && (e->name == "//" || e->name == "*"))
    return never_falls(e->args[0]) && e->args[1]->kind == Kind::number && e->args[1]->integer > 0;
  if (e->kind != Kind::binary || (e->name != "+" && e->name != "min" && e->name != "max"))
    return false;
  return std::all_of(e->args.begin(), e->args.end(), never_falls);
}

class Writer {
 public:
  explicit Writer(Edit& edit) : edit_(edit) {}

  bool write(const Ranges& r) {
    std::vector<std::string> lets;
    const std::string blocks = "ceil_div(M, BM)";
    std::string first = "0", count = blocks;
    if (r.first) {
      first = "first";
      lets.push_back(
          fmt::format("let first = min(max(0, {}) // BM, {} - 1)", text(r.first), blocks));
    }
    if (r.below) count = fmt::format("ceil_div(min(M, {}), BM)", text(r.below));
    if (r.first) count += " - first";
    if (r.first || r.below) count = fmt::format("max(1, {})", count);
    lets.push_back(fmt::format("return {}, {}", first, count));
    return edit_.replace(edit_.queries_def()->body, lets) && set_mask(r) && !failed_;
  }

 private:
  // TL text over the first key of the block and its last.
  std::string text(const ExprPtr& e) {
    const ExprPtr named = spec::rewrite(e, [](const ExprPtr& x) -> ExprPtr {
      if (x->kind != Kind::index) return nullptr;
      return x->name == "i0" ? index("j") : x->name == "i1" ? index("i") : nullptr;
    });
    const auto out = edit_.spelled(named, "c.n * BN + BN - 1", "c.n * BN");
    failed_ = failed_ || !out;
    return out.value_or("");
  }

  // Blocks that are not whole are masked. Nothing of it is kept for the block: registers are few.
  bool set_mask(const Ranges& r) {
    tl::Item& when = edit_.mask().items(tl::Hole::condition).at(0);
    std::string condition = tl::print(when.expr);
    if (!r.any_whole) condition += " or m * BM < M";
    if (r.any_whole && r.from) condition += fmt::format(" or m * BM < {}", text(r.from));
    if (r.any_whole && r.until) condition += fmt::format(" or m * BM + BM > {}", text(r.until));
    const auto own = tl::parse_expr(condition, edit_.diagnostics);
    if (own) when.expr = own;
    return own != nullptr;
  }

  Edit& edit_;
  bool failed_ = false;
};

}  // namespace

bool rule_queries(Edit& edit) {
  if (!edit.keep) return true;
  const Ranges ranges = ranges_of(edit.keep);
  if (ranges.below)
    edit.seen = never_falls(ranges.first) && never_falls(ranges.below) ? Edit::Seen::neighbours
                                                                       : Edit::Seen::scattered;
  edit.fewer_queries = ranges.first && spec::mentions(ranges.first, Kind::index) && !ranges.below;
  return Writer(edit).write(ranges);
}

}  // namespace kw::transfer::bwd
