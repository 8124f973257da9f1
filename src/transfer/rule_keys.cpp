// Which key blocks are visited for some query rows, and which of those need no mask.
//
//   def key_blocks(c: Block, i0: index, rows: index) -> Keys:
//       return ceil_div(N, BN), N // BN
//     ->   return ceil_div(min(N, i0 + rows), BN), min(N, i0 + 1) // BN
//     ->   let kept = prefix[c.b]
//          return ceil_div(min(N, max(i0 + rows, kept)), BN), min(N, max(i0 + 1, kept)) // BN
//     ->   return ceil_div(min(N, i0 + rows), BN), 0, min(N - 1, max(0, i0 - 63)) // BN
//   the last with a third field, first, in the record, loops that end there instead of at 0, and
//   behind them one that lets the key blocks go by that only other workers need; where there is no
//   loader, the copy of the next block's keys ends there as well
//
// When     the form has a keep predicate. Any predicate implies j < P(i) and is implied by j < F(i)
//          for some P and F (bounds.h; none is N, and 0). count covers the largest P of the rows,
//          full lies below the smallest F; max(1, ...) and max(0, ...) stand where intervals cannot
//          show that they are not needed. Rows past M only make the range larger.
//          A predicate that implies j >= L(i) (a sliding window) starts at the smallest L of the
//          rows instead, and no later than at the last key block of any of them; then no visited
//          block counts as full. The range of a worker's rows lies within that of its cluster's,
//          because bounds over fewer rows are at least as tight.
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

// For some rows: past `end` nothing is kept, below `full` everything, before `first` nothing.
struct KeyRange {
  ExprPtr end, full;
  ExprPtr first;  // null: from key 0
};

// The smaller of e and end - 1; an end that is itself the smaller of two is taken apart, for what e
// is known to be at most.
ExprPtr at_most_last(const ExprPtr& end, const ExprPtr& e) {
  if (end->kind == Kind::binary && end->name == "min")
    return at_most_last(end->args[0], at_most_last(end->args[1], e));
  return smaller(e, binary("-", end, spec::integer(1)));
}

// `count` names how many rows there are from i0.
KeyRange key_range(const Edit& edit, const std::string& count) {
  const ExprPtr keys = size(edit.facts.keys), i0 = spec::leaf(Kind::index, Type::integer, "i0");
  const ExprPtr zero = spec::integer(0);
  const Rows rows{i0, binary("-", binary("+", i0, size(count)), spec::integer(1))};
  const ExprPtr below = kept_below(edit.keep, keys), all = all_below(edit.keep, keys),
                from = kept_from(edit.keep, keys);
  const ExprPtr end = below ? highest(below, rows) : nullptr;
  const ExprPtr full = all ? lowest(all, rows) : nullptr;
  KeyRange out{end ? smaller(keys, end) : keys, full ? larger(zero, smaller(keys, full)) : zero,
               from ? lowest(from, rows) : nullptr};
  const ExprPtr least = end ? lowest(below, rows) : keys;  // of the ends of single rows
  if (out.first && (!least || range(out.first, {}).high <= 0)) out.first = nullptr;
  if (out.first) {
    const ExprPtr first = at_most_last(least, larger(zero, out.first));
    out.first = larger(zero, at_most_last(keys, first));
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

bool ends_at(const tl::Stmt& loop, const std::string& field) {
  const tl::ExprPtr& end = loop.items("b").at(0).expr;
  return end->kind == tl::ExprKind::field && end->text == field;
}

// The record in keys.count - 1; null in other loops.
tl::ExprPtr key_range_of(const tl::Stmt& loop, const Facts& facts) {
  if (loop.op != tl::Op::down && loop.op != tl::Op::down_rolled && loop.op != tl::Op::descend)
    return nullptr;
  tl::ExprPtr keys;
  tl::rewrite(loop.expr("a"), [&](const tl::ExprPtr& e) -> tl::ExprPtr {
    if (e->kind == tl::ExprKind::field && e->text == facts.count_field) keys = e->args[0];
    return nullptr;
  });
  return keys;
}

// Behind the count of the last visited key block: the loop that lets those before the worker's
// first go by, as the one at the start lets those from its last on.
bool let_others_go_by(Edit& edit) {
  const Facts& f = edit.facts;
  bool done = false;
  tl::walk(edit.program.body, [&](tl::Stmt& blocks) {
    const tl::Stmt* before = nullptr;
    for (const tl::Stmt& s : blocks.body)
      if (key_range_of(s, f) && ends_at(s, f.count_field)) before = &s;
    if (!before || done) return;
    tl::Stmt after = *before;
    const tl::ExprPtr mine = before->expr("b")->args[0], all = key_range_of(*before, f);
    after.items("a").at(0).expr = tl::binary("-", tl::field(mine, "first"), tl::integer(1));
    after.items("b").at(0).expr = tl::field(all, "first");
    for (size_t n = blocks.body.size(); n-- > 0;)
      if (blocks.body[n].op == tl::Op::count && blocks.body[n].word("t") == after.word("t")) {
        blocks.body.insert(blocks.body.begin() + n + 1, after);
        done = true;
        return;
      }
  });
  return done;
}

// Where no loader visits the key blocks, whoever multiplies copies the next block's keys:
// `if n > 0:` before the copy becomes `if n > keys.first:`.
bool copy_from_first(Edit& edit, const tl::ExprPtr& keys) {
  bool done = false;
  tl::walk(edit.program.body, [&](tl::Stmt& s) {
    if (s.op != tl::Op::if_ || s.body.size() != 1 || s.body[0].op != tl::Op::copy_async) return;
    tl::ExprPtr& condition = s.items("c").at(0).expr;
    if (!s.body[0].expr("m")->is_name(edit.facts.k) || condition->text != ">" ||
        condition->args[1]->text != "0")
      return;
    condition = tl::binary(">", condition->args[0], tl::field(keys, "first"));
    done = true;
  });
  return done;
}

// The record gets a third field, and the loops that visited key blocks down to 0, or masked ones
// down to the full ones, end there. The loop over full blocks then has nothing to do.
bool start_at_first(Edit& edit) {
  const Facts& f = edit.facts;
  const std::string record = def_named(edit.program, f.keys_def)->word("r");
  bool loaders = false;
  tl::ExprPtr masked;  // the record of the loop over masked blocks
  tl::walk(edit.program.body, [&](tl::Stmt& s) {
    if (s.op == tl::Op::record && s.word("n") == record) s.items("d").push_back({"first"});
    const tl::ExprPtr keys = key_range_of(s, f);
    if (!keys) return;
    const bool loader = s.op == tl::Op::down_rolled && s.expr("b")->text == "0";
    const bool mask = ends_at(s, f.full_field);
    if (loader || mask) s.items("b").at(0).expr = tl::field(keys, "first");
    loaders = loaders || loader;
    if (mask) masked = keys;
  });
  return (masked && (loaders ? let_others_go_by(edit) : copy_from_first(edit, masked))) ||
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
  if (!edit.keep || edit.listed) return true;
  tl::Stmt& def = *def_named(edit.program, edit.facts.keys_def);
  const auto& ps = def.items("ps");
  const std::string block = ps.at(0).name, first_row = ps.at(1).name,
                    tile = tl::print(edit.facts.key_tile);
  const KeyRange keys = key_range(edit, ps.at(2).name);
  edit.blocks_differ = keys.end->kind != Kind::size || keys.first;
  edit.rows_differ = spec::mentions(keys.end, Kind::index, "i0") && !keys.first;
  std::vector<std::string> body;
  const auto text = [&](const ExprPtr& e) -> std::optional<std::string> {
    const ExprPtr named = named_reads(edit, e, block, body);
    return named ? edit.in_rows(named, block, first_row) : std::nullopt;
  };
  const auto end = text(keys.end), full = text(keys.full);
  const auto first = keys.first ? text(keys.first) : std::optional<std::string>("0");
  if (!end || !full || !first) return false;

  std::string range_text = fmt::format("ceil_div({}, {})", *end, tile);
  if (range(keys.end, {}).low < 1) range_text = "max(1, " + range_text + ")";
  range_text += ", " + quotient(*full, keys.full, tile);
  if (keys.first) range_text += ", " + quotient(*first, keys.first, tile);
  body.push_back("return " + range_text);
  if (keys.first && !start_at_first(edit)) return false;
  note_what_is_slow(edit, keys);
  return edit.replace(def.body, body);
}

}  // namespace kw::transfer
