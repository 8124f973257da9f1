// Which key blocks are visited for some query rows, and which of those need no mask.
//
//   def key_blocks(c: Block, i0: index, rows: index) -> Keys:
//       return ceil_div(N, BN), N // BN
//     ->   return ceil_div(min(N, i0 + rows), BN), min(N, i0 + 1) // BN
//     ->   let kept = prefix[c.b]
//          return ceil_div(min(N, max(i0 + rows, kept)), BN), min(N, max(i0 + 1, kept)) // BN
//     ->   let full_from = ceil_div(max(0, i0 + rows - 512), BN)
//          return ceil_div(min(N, i0 + rows), BN), max(full_from, min(N, i0 + 1) // BN),
//                 min(N - 1, max(0, i0 - 511)) // BN, full_from
//   the last, a sliding window, with two more fields in the record and loops that end there
//   (key_loops.h); and where the kept keys are two ranges, of which one begins at key 0,
//     ->   def hole_of(c: Block) -> Hole:
//              let i0 = c.m * BM
//              let first = ceil_div(min(N, 4), BN)
//              return first, max(0, max(0, i0 - 511) // BN - first)
//          def visits_below(c: Block, n: index) -> index:
//              let hole = hole_of(c)
//              return n - min(hole.count, max(0, n - hole.first))
//          def key_blocks ...:
//              return visits_below(c, ceil_div(min(N, i0 + rows), BN)), ...
//   and key blocks numbered without those of the hole (visits.h)
//
// When     the form has a keep predicate. What is needed for some rows stands in needed_keys.h;
//          max(1, ...) and max(0, ...) stand where intervals cannot show that they are not needed.
//          Rows past M only make the range larger. (One key for a warpgroup that has no other would
//          make sinks at 64 columns 5 % faster; but it then lets an unbounded number of blocks
//          pass, and no schedule of that is seen to repeat.) The hole is the cluster's, the same
//          for everybody: what of a warpgroup's own hole lies outside, it masks in vain.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include <fmt/format.h>

#include <algorithm>

#include "tl/syntax/precedence.h"
#include "transfer/editing/lists.h"
#include "transfer/editing/terms.h"
#include "transfer/families/attention/key_loops.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/visits.h"
#include "transfer/masks/needed_keys.h"
#include "transfer/masks/predicate_intervals.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

// Reads become `let`s of the function, named as in the consumers' loop.
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
  Diagnostics none;
  const tl::ExprPtr read = tl::parse_expr(text, none);
  return (read ? tl::print(read, tl::kProduct) : text) + " // " + tile;
}

// Whether e gets larger with i0, not only by a condition.
bool grows(const ExprPtr& e) {
  if (e->kind == Kind::index) return e->name == "i0";
  const size_t skip = e->kind == Kind::where ? 1 : 0;
  return std::any_of(e->args.begin() + skip, e->args.end(), grows);
}

// Writes the functions of key ranges.
class Writer {
 public:
  Writer(Edit& edit, const tl::Stmt& def)
      : edit_(edit),
        block_(def.params().at(0).name),
        first_row_(def.params().at(1).name),
        tile_(tl::print(edit.facts.key_tile)) {}

  bool write(const Needed& needed);

 private:
  Edit& edit_;
  const std::string block_, first_row_, tile_;
  std::vector<std::string> lets_;  // of the function being written
  std::string visits_below_;       // the function of that name; "": visits are key blocks
  bool failed_ = false;

  // TL text of a key's number.
  std::string text(const ExprPtr& e) {
    const ExprPtr named = named_reads(edit_, e, block_, lets_);
    const auto out = named ? edit_.in_rows(named, block_, first_row_) : std::nullopt;
    failed_ = failed_ || !out;
    return out.value_or("");
  }

  // How many key blocks begin before a key; the visits below the one that a key lies in.
  std::string blocks_before(const ExprPtr& key) {
    return is_zero(key) ? "0" : fmt::format("ceil_div({}, {})", text(key), tile_);
  }
  std::string block_of(const ExprPtr& key) { return quotient(text(key), key, tile_); }
  std::string visit(const std::string& key_block) {
    return visits_below_.empty() || key_block == "0"
               ? key_block
               : fmt::format("{}({}, {})", visits_below_, block_, key_block);
  }

  // A `let`, in the function being written, of a name that nothing else has there.
  std::string let(const char* name, const std::string& value) {
    const std::string own = edit_.local(name);
    lets_.push_back("let " + own + " = " + value);
    return own;
  }

  bool add_function(const std::string& name, const std::vector<tl::Item>& parameters,
                    const std::string& result, const std::string& returns);
  bool write_hole(const KeySpan& hole);
  std::pair<std::string, std::string> whole_blocks(const Needed& needed);
};

// Before the function of key ranges.
bool Writer::add_function(const std::string& name, const std::vector<tl::Item>& parameters,
                          const std::string& result, const std::string& returns) {
  lets_.push_back("return " + returns);
  const bool added = insert_function(edit_, edit_.facts.keys_def, name, parameters, result, lets_);
  lets_.clear();
  return added;
}

// The key blocks that nobody of a cluster visits, and the visits without them.
bool Writer::write_hole(const KeySpan& hole) {
  const std::string record = edit_.fresh({"Hole", "KeyHole"}), of = edit_.fresh({"hole_of"}),
                    below = edit_.fresh({"visits_below"});
  const tl::Item block = def_named(edit_.program, edit_.facts.keys_def)->params().at(0);
  const tl::Item n{"n", "index", nullptr, {}};
  if (!insert_record(edit_, record, {"first", "count"})) return false;
  lets_ = {fmt::format("let {} = {}.{} * {}", first_row_, block_, edit_.facts.row_field,
                       tl::print(edit_.facts.row_tile))};
  const std::string first =
                        let("first", blocks_before(smaller(size(edit_.facts.keys),
                                                           larger(spec::integer(1), hole.from)))),
                    again = block_of(larger(spec::integer(0), hole.below));
  if (failed_ ||
      !add_function(of, {block}, record, fmt::format("{}, max(0, {} - {})", first, again, first)))
    return false;
  const std::string h = let("hole", fmt::format("{}({})", of, block_));
  if (!add_function(below, {block, n}, "index",
                    fmt::format("n - min({0}.count, max(0, n - {0}.first))", h)) ||
      !number_visits(edit_, {fmt::format("let {} = {}({})", h, of, block_),
                             fmt::format("return n + where(n < {0}.first, 0, {0}.count)", h)}))
    return false;
  visits_below_ = below;
  return true;
}

// Where full - 1 ... full_from end and begin; "0" for the latter where the first span does.
std::pair<std::string, std::string> Writer::whole_blocks(const Needed& needed) {
  if (needed.whole.empty()) return {"0", "0"};
  const KeySpan& a = needed.whole[0];
  std::string from = blocks_before(a.from), full = block_of(a.below);
  if (needed.whole.size() > 1) {
    const KeySpan& b = needed.whole[1];
    const std::string other = blocks_before(b.from), its = block_of(b.below);
    const auto width = [](const std::string& end, const std::string& begin) {
      return begin == "0" ? end : end + " - " + begin;
    };
    const std::string wider = let("wider", width(full, from) + " < " + width(its, other));
    full = fmt::format("where({}, {}, {})", wider, its, full);
    from = fmt::format("where({}, {}, {})", wider, other, from);
  }
  if (from == "0") return {visit(full), from};
  from = let("full_from", visit(from));
  return {fmt::format("max({}, {})", from, visit(full)), from};
}

bool Writer::write(const Needed& needed) {
  if (needed.hole && !write_hole(*needed.hole)) return false;
  std::string count = blocks_before(needed.end);
  if (range(needed.end, {}).low < 1) count = "max(1, " + count + ")";
  count = visit(count);
  const auto [full, full_from] = whole_blocks(needed);
  std::string returns = count + ", " + full;
  if (needed.first) returns += ", " + visit(block_of(needed.first));
  if (full_from != "0") returns += ", " + full_from;
  lets_.push_back("return " + returns);
  const KeyFields fields{needed.first != nullptr, full_from != "0"};
  if (failed_ || ((fields.first || fields.full_from) && !end_key_loops(edit_, fields)))
    return false;
  return edit_.replace(def_named(edit_.program, edit_.facts.keys_def)->body, lets_);
}

void note_what_is_slow(Edit& edit, const KeyRanges& kept, const Needed& needed) {
  if (needed.whole.empty())
    edit.result.notes.push_back(
        "no key block is known to be kept whole: every visited one is "
        "masked");
  if (needed.end->kind == Kind::size && !needed.first && !needed.hole &&
      (needed.whole.empty() || needed.whole[0].below->kind != Kind::size))
    edit.result.notes.push_back("no bound on the kept keys is known: every key block is visited");
  if (kept.cover.size() == 2 && !needed.hole)
    edit.result.notes.push_back(
        "the kept keys are two ranges, of which none begins at key 0: what lies between them is "
        "visited");
  if (kept.merged)
    edit.result.notes.push_back(fmt::format(
        "the kept keys are {} ranges: those around two are visited, with what lies between others",
        kept.merged + 2));
}

}  // namespace

bool rule_keys(Edit& edit) {
  if (!edit.keep || edit.listed) return true;
  const tl::Stmt def = *def_named(edit.program, edit.facts.keys_def);
  const KeyRanges kept = key_ranges(edit.keep, size(edit.facts.keys));
  const Needed needed = needed_keys(edit, kept, def.params().at(2).name);
  edit.blocks_differ = needed.end->kind != Kind::size || needed.first || needed.hole;
  edit.rows_differ = grows(needed.end) && !needed.first && !needed.hole;
  note_what_is_slow(edit, kept, needed);
  return Writer(edit, def).write(needed);
}

}  // namespace kw::transfer
