// Which key blocks are visited for a block of the output, and which of those need no mask.
//
//   return ceil_div(N, BN), N // BN
//     ->   return ceil_div(min(N, c.m * BM + BM), BN), min(N, c.m * BM + 1) // BN
//     ->   let kept = prefix[c.b]
//          return ceil_div(min(N, max(c.m * BM + BM, kept)), BN),
//                 min(N, max(c.m * BM + 1, kept)) // BN
//
//   return ceil_div(N, BN), N // BN
//     ->   let count = ceil_div(min(N, c.m * BM + BM), BN)
//          return count, 0, min(count - 1, max(0, c.m * BM - 63) // BN)
//   with a third field, first, in the record, and loops that end there instead of at 0
//
// When     the form has a keep predicate. Any predicate implies j < P(i) and is implied by j < F(i)
//          for some P and F (bounds.h; none is N, and 0). count covers the largest P of the tile's
//          rows, full lies below the smallest F; max(1, ...) and max(0, ...) stand where intervals
//          cannot show that they are not needed. Rows past M only make the range larger.
//          A predicate that implies j >= L(i) (a sliding window) starts at the smallest L of the
//          tile's rows instead; then no visited block counts as full.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include <fmt/format.h>

#include <algorithm>

#include "transfer/bounds.h"
#include "transfer/intervals.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::Kind;
using spec::Type;

ExprPtr size(const std::string& name) { return spec::leaf(Kind::size, Type::integer, name); }

// For a tile of rows: past `end` nothing is kept, below `full` everything, before `first` nothing.
struct KeyRange {
  ExprPtr end, full;
  ExprPtr first;  // null: from key 0
};

KeyRange key_range(const Edit& edit) {
  const ExprPtr keys = size(edit.facts.keys), first = spec::leaf(Kind::index, Type::integer, "i0");
  const ExprPtr rows = size(tl::print(edit.facts.row_tile)), zero = spec::integer(0);
  const Rows tile{first, binary("-", binary("+", first, rows), spec::integer(1))};
  const ExprPtr below = kept_below(edit.keep, keys), all = all_below(edit.keep, keys),
                from = kept_from(edit.keep, keys);
  const ExprPtr end = below ? highest(below, tile) : nullptr;
  const ExprPtr full = all ? lowest(all, tile) : nullptr;
  KeyRange out{end ? smaller(keys, end) : keys, full ? larger(zero, smaller(keys, full)) : zero,
               from ? lowest(from, tile) : nullptr};
  if (out.first && range(out.first, {}).high <= 0) out.first = nullptr;
  if (out.first) {
    out.first = larger(zero, out.first);
    out.full = zero;
  }
  return out;
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

// The quotient of a value's text and a tile size; of 0, 0.
std::string quotient(const std::string& text, const ExprPtr& value, const std::string& tile) {
  if (value->kind == Kind::number && value->integer == 0) return "0";
  const bool sum = value->kind == Kind::binary && (value->name == "+" || value->name == "-");
  return (sum ? "(" + text + ")" : text) + " // " + tile;
}

// The record in keys.count - 1; null for what mentions no number of visited blocks.
tl::ExprPtr counted(const Edit& edit, const tl::ExprPtr& e) {
  tl::ExprPtr keys;
  tl::rewrite(e, [&](const tl::ExprPtr& x) -> tl::ExprPtr {
    if (x->kind == tl::ExprKind::field && x->text == edit.facts.count_field) keys = x->args[0];
    return nullptr;
  });
  return keys;
}

// `if n > 0:` before a copy of the keys of n - 1.
bool asks_for_next_keys(const Edit& edit, const tl::Stmt& s) {
  if (s.op != tl::Op::if_ || s.expr("c")->text != ">" || s.expr("c")->args[1]->text != "0")
    return false;
  return std::any_of(s.body.begin(), s.body.end(), [&](const tl::Stmt& copy) {
    return copy.op == tl::Op::copy_async && copy.expr("m")->is_name(edit.facts.k);
  });
}

// The record gets a third field, and what visited key blocks down to 0 (loops of a loader, copies
// of the next block's keys), or masked ones down to the full ones, ends there. The loop over full
// blocks then has nothing to do.
bool start_at_first(Edit& edit) {
  const tl::Stmt& def = *def_named(edit.program, edit.facts.keys_def);
  bool loads = false, masked = false;
  tl::ExprPtr visited;  // the record of the loops
  tl::walk(edit.program.body, [&](tl::Stmt& s) {
    if (s.op == tl::Op::record && s.word("n") == def.word("r")) s.items("d").push_back({"first"});
    if (s.op != tl::Op::down && s.op != tl::Op::down_rolled && s.op != tl::Op::descend) return;
    const tl::ExprPtr keys = counted(edit, s.expr("a"));
    tl::ExprPtr& end = s.items("b").at(0).expr;
    const bool loader = keys && s.op == tl::Op::down_rolled && end->text == "0";
    const bool mask =
        keys && end->kind == tl::ExprKind::field && end->text == edit.facts.full_field;
    if (loader || mask) end = tl::field(keys, "first");
    if (mask) visited = keys;
    loads = loads || loader;
    masked = masked || mask;
  });
  tl::walk(edit.program.body, [&](tl::Stmt& s) {
    if (!masked || !asks_for_next_keys(edit, s)) return;
    tl::ExprPtr& condition = s.items("c").at(0).expr;
    condition = tl::binary(">", condition->args[0], tl::field(visited, "first"));
    loads = true;
  });
  return (loads && masked) ||
         edit.refuse("transfer.kernel", {},
                     "this kernel's loops over key blocks cannot start past key 0", "");
}

void note_what_is_slow(Edit& edit, const KeyRange& keys) {
  if (keys.full->kind == Kind::number && keys.full->integer == 0)
    edit.result.notes.push_back(
        "no key block is known to be kept whole: every visited one is "
        "masked");
  if (keys.end->kind == Kind::size && keys.full->kind != Kind::size && !keys.first)
    edit.result.notes.push_back("no bound on the kept keys is known: every key block is visited");
}

}  // namespace

bool rule_keys(Edit& edit) {
  if (!edit.keep) return true;
  const KeyRange keys = key_range(edit);
  edit.blocks_differ = keys.end->kind != Kind::size || keys.first;
  edit.rows_differ = spec::mentions(keys.end, Kind::index, "i0") && !keys.first;
  tl::Stmt& def = *def_named(edit.program, edit.facts.keys_def);
  const std::string block = def.items("ps").at(0).name, tile = tl::print(edit.facts.key_tile);
  std::vector<std::string> body;
  const auto text = [&](const ExprPtr& e) -> std::optional<std::string> {
    const ExprPtr named = named_reads(edit, e, block, body);
    return named ? edit.in_block(named, block) : std::nullopt;
  };
  const auto end = text(keys.end), full = text(keys.full);
  const auto first = keys.first ? text(keys.first) : std::optional<std::string>("0");
  if (!end || !full || !first) return false;

  std::string count = fmt::format("ceil_div({}, {})", *end, tile);
  if (range(keys.end, {}).low < 1) count = "max(1, " + count + ")";
  if (keys.first) {
    const bool taken = declaration_of_argument(edit.program, "count") != nullptr;
    const std::string visited = taken ? edit.fresh({"visited"}) : "count";
    body.push_back(fmt::format("let {} = {}", visited, count));
    body.push_back(fmt::format("return {0}, 0, min({0} - 1, {1})", visited,
                               quotient(*first, keys.first, tile)));
    if (!start_at_first(edit)) return false;
  } else {
    body.push_back(fmt::format("return {}, {}", count, quotient(*full, keys.full, tile)));
  }
  note_what_is_slow(edit, keys);
  return edit.replace(def.body, body);
}

}  // namespace kw::transfer
