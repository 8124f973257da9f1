// Which key blocks are visited for a block of the output, and which of those need no mask.
//
//   return ceil_div(N, BN), N // BN
//     ->   return ceil_div(min(N, c.m * BM + BM), BN), min(N, c.m * BM + 1) // BN
//     ->   let kept = prefix[c.b]
//          return ceil_div(min(N, max(c.m * BM + BM, kept)), BN),
//                 min(N, max(c.m * BM + 1, kept)) // BN
//
// When     the form has a keep predicate. Any predicate implies j < P(i) and is implied by j < F(i)
//          for some P and F (bounds.h; none is N, and 0). count covers the largest P of the tile's
//          rows, full lies below the smallest F; max(1, ...) and max(0, ...) stand where intervals
//          cannot show that they are not needed. Rows past M only make count larger and full
//          smaller.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include <fmt/format.h>

#include "transfer/bounds.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;
using spec::Type;

ExprPtr size(const std::string& name) { return spec::leaf(Kind::size, Type::integer, name); }

// Where keys end, for a tile of rows: past it nothing is kept, below it everything is.
struct KeyRange {
  ExprPtr end, full;
};

KeyRange key_range(const Edit& edit) {
  const ExprPtr keys = size(edit.facts.keys), first = spec::leaf(Kind::index, Type::integer, "i0");
  const ExprPtr rows = size(tl::print(edit.facts.row_tile));
  const Rows tile{first, binary("-", binary("+", first, rows), spec::integer(1))};
  const ExprPtr below = kept_below(edit.keep, keys), all = all_below(edit.keep, keys);
  const ExprPtr end = below ? highest(below, tile) : nullptr;
  const ExprPtr full = all ? lowest(all, tile) : nullptr;
  return {end ? smaller(keys, end, {}) : keys, full ? smaller(keys, full, {}) : spec::integer(0)};
}

// Reads become `let`s of the function, named as in the math workers' loop.
ExprPtr named_reads(Edit& edit, const ExprPtr& e, const std::string& block,
                    std::vector<std::string>& lets) {
  bool failed = false;
  const ExprPtr out = spec::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
    if (x->kind != Kind::read || failed) return nullptr;
    std::string name = edit.hoisted(x);
    if (name.empty()) name = edit.fresh({"kept", x->name + "_value"});
    const std::optional<std::string> text = edit.in_block(x, block);
    if (!text) {
      failed = true;
      return nullptr;
    }
    const std::string let = "let " + name + " = " + *text;
    if (std::find(lets.begin(), lets.end(), let) == lets.end()) lets.push_back(let);
    return spec::leaf(Kind::argument, x->type, name);
  });
  return failed ? nullptr : out;
}

std::string quotient(const std::string& a, const ExprPtr& value, const std::string& b) {
  const bool tight = value->kind != Kind::binary || value->name == "min" || value->name == "max";
  return tight ? a + " // " + b : "(" + a + ") // " + b;
}

}  // namespace

bool rule_keys(Edit& edit) {
  if (!edit.keep) return true;
  KeyRange range_of_keys = key_range(edit);
  edit.rows_differ = spec::mentions(range_of_keys.end, Kind::index, "i0");
  tl::Stmt& def = *def_named(edit.program, edit.facts.keys_def);
  const std::string block = def.items("ps").at(0).name;
  std::vector<std::string> lets;
  const ExprPtr end = named_reads(edit, range_of_keys.end, block, lets);
  ExprPtr full = end ? named_reads(edit, range_of_keys.full, block, lets) : nullptr;
  if (!full) return false;
  full = larger(spec::integer(0), full, {});
  const auto end_text = edit.in_block(end, block), full_text = edit.in_block(full, block);
  if (!end_text || !full_text) return false;

  const std::string tile = tl::print(edit.facts.key_tile);
  std::string count = fmt::format("ceil_div({}, {})", *end_text, tile);
  if (range(end, {}).low < 1) count = "max(1, " + count + ")";
  const bool none_full = full->kind == Kind::number && full->integer == 0;
  lets.push_back("return " + count + ", " + (none_full ? "0" : quotient(*full_text, full, tile)));
  if (none_full)
    edit.result.notes.push_back(
        "no key block is known to be kept whole: every visited one is "
        "masked");
  if (end->kind == Kind::size)
    edit.result.notes.push_back("no bound on the kept keys is known: every key block is visited");
  return edit.replace(def.body, lets);
}

}  // namespace kw::transfer
