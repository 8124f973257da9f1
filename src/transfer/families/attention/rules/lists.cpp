// Key blocks that keep nothing are not visited where it is the data that says so: a pre-pass lists
// the others.
//
//   lists attention_lists, threads 512, w of lists:
//       ...
//       list_blocks visits[w * list_words] for n in range(0, end), groups r to s of BM // 64:
//           let i0 = ..., i1 = ..., j0 = n * BN, j1 = min(N, j0 + BN) - 1
//           let document_i_least = least(document, b, b, i0, i1), ...
//           return document_i_least <= document_j_most and ..., ...
//   def key_blocks(c: Block, i0: index, rows: index) -> Keys:
//       let list = first_word(c)
//       return visits[list + where(rows == BM, 0, ...)], visits[list + 1]
//   def key_block(c: Block, n: index) -> index:
//       return visits[first_word(c) + ... + n]
//   with `visits: scratch[lists * list_words]`, and key_block(c, n) * BN for n * BN (visits.h)
//
// When     the form's keep predicate reads ints or bools at positions that depend on the row or the
//          key, and its intervals over a tile (tile_ranges.h) depend on what is read; or it reads
//          nothing, and its intervals leave out a fifth of the tiles that its ranges of keys
//          (ranges.h) visit: `i % 512 // 64 == j % 512 // 64`. Where the
//          kernel asks for the key range of fewer rows than a block has, these are a group of their
//          own: a warpgroup lets go by what only others need. A predicate that is the same for all
//          rows has one list for a batch entry, one that is not the same for all heads one for
//          each.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/families/attention/visits.h"
#include "transfer/masks/coordinates.h"
#include "transfer/masks/key_bounds.h"
#include "transfer/masks/key_ranges.h"
#include "transfer/masks/predicate_intervals.h"
#include "transfer/masks/sparse.h"
#include "transfer/masks/tile_ranges.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

// Warps take a key block each at a time. Twice as many would have 64 registers a thread, which is
// too few for predicates with several reads.
constexpr int kThreads = 512;

ExprPtr local(const std::string& name) {
  return spec::leaf(Kind::argument, spec::Type::integer, name);
}

// The number of rows that some warpgroup asks the key range of, where it is not the whole block's.
tl::ExprPtr rows_of_a_group(const Edit& edit) {
  for (const tl::ExprPtr& rows : rows_asked_for(edit.program, edit.facts))
    if (!tl::equal(rows, edit.facts.row_tile)) return rows;
  return nullptr;
}

class ListWriter {
 public:
  explicit ListWriter(Edit& edit)
      : edit_(edit),
        f_(edit.facts),
        by_row_(spec::mentions(edit.keep, Kind::index, "i")),
        by_head_(spec::mentions(edit.keep, Kind::index, "h")),
        group_(by_row_ ? rows_of_a_group(edit) : nullptr),
        bm_(tl::print(f_.row_tile)),
        bn_(tl::print(f_.key_tile)) {
    for (const char* name : {"m", "b", "h", "i0", "i1", "j0", "j1", "n", "w", "r", "s"})
      locals_[name] = edit.local(name);
    const auto range = [&](const char* low, const char* high) {
      return WrittenRange{local(locals_[low]), local(locals_[high])};
    };
    ranges_.emplace(range("i0", "i1"), range("j0", "j1"),
                    [this](const std::string& name) { return edit_.fresh({name}); });
    truth_ = ranges_->truth(edit.keep);
  }

  // Whether the list can leave out or unmask what data says; without any, what coordinates say.
  bool says_something() const {
    if (!reads_the_tile(edit_.keep)) return !spec::equal(truth_.some, spec::boolean(true));
    for (const TileValue& value : ranges_->values())
      for (const std::string& name : {value.least, value.most})
        if (mentions(truth_.some, name) || mentions(truth_.all, name)) return true;
    return false;
  }

  bool write() {
    visits_ = edit_.fresh({"visits", "visited"});
    lists_ = edit_.fresh({"lists", "lists_of_blocks"});
    words_ = edit_.fresh({"list_words", "words_of_a_list"});
    first_word_ = edit_.fresh({"first_word", "first_word_of"});
    return write_arguments() && write_first_word() && write_pre_pass() && write_key_blocks() &&
           number_visits(edit_, {fmt::format("return {}[{}({}) + {} + n]", visits_, first_word_,
                                             block_, header())});
  }

 private:
  Edit& edit_;
  const Facts& f_;
  const bool by_row_, by_head_;
  const tl::ExprPtr group_;  // the rows of one group; null: all rows are one
  const std::string bm_, bn_;
  std::map<std::string, std::string> locals_;  // what the pre-pass calls its values
  std::optional<TileRanges> ranges_;
  WrittenTruth truth_;
  std::string visits_, lists_, words_, first_word_, block_;

  static bool mentions(const ExprPtr& e, const std::string& name) {
    return spec::mentions(e, Kind::argument, name);
  }

  std::string groups() const {
    return group_ ? fmt::format("{} // {}", bm_, tl::print(group_)) : "1";
  }
  // How many words of a list stand before its key blocks.
  std::string header() const { return group_ ? "2 + " + groups() : "3"; }
  std::string rows() const { return fmt::format("ceil_div({}, {})", f_.queries, bm_); }

  bool write_arguments() {
    std::vector<Stmt>& args = args_of(edit_.program).body;
    std::string count = f_.batch;
    if (by_head_) count += " * " + f_.heads;
    if (by_row_) count = rows() + " * " + count;
    const std::vector<std::string> texts = {
        fmt::format("{}: size = {}", lists_, count),
        fmt::format("{}: size = {} + ceil_div({}, {})", words_, header(), f_.keys, bn_),
        fmt::format("{}: scratch[{} * {}]", visits_, lists_, words_)};
    return edit_.insert({&args, args.size()}, texts);
  }

  // A block's list: its row block runs fastest, then the head, then the batch entry.
  bool write_first_word() {
    const tl::Item block = def_named(edit_.program, f_.keys_def)->params().at(0);
    block_ = block.name;
    std::string list = block_ + "." + f_.batch_field;
    if (by_head_) list = fmt::format("({} * {} + {}.{})", list, f_.heads, block_, f_.head_field);
    if (by_row_) list = fmt::format("({} * {} + {}.{})", list, rows(), block_, f_.row_field);
    return insert_function(edit_, first_word_, {block}, "index",
                           {fmt::format("return {} * {}", list, words_)});
  }

  bool write_key_blocks() {
    Stmt& def = *def_named(edit_.program, f_.keys_def);
    const std::string i0 = def.params().at(1).name, rows = def.params().at(2).name;
    const std::string list = edit_.local("list");
    std::string count = list;
    if (group_)
      count += fmt::format(" + where({0} == {1}, 0, 2 + ({2} - {3}.{4} * {1}) // {0})", rows, bm_,
                           i0, block_, f_.row_field);
    return edit_.replace(def.body,
                         {fmt::format("let {} = {}({})", list, first_word_, block_),
                          fmt::format("return {0}[{1}], {0}[{2} + 1]", visits_, count, list)});
  }

  // An expression of the pre-pass in TL, and its text.
  std::optional<tl::ExprPtr> spelled(const ExprPtr& e) {
    Spelling how;
    for (const char* index : {"b", "h"}) how.indices[index] = tl::name(locals_[index]);
    return spell(e, how, edit_.diagnostics);
  }
  std::optional<std::string> text(const ExprPtr& e) {
    const std::optional<tl::ExprPtr> out = spelled(e);
    return out ? std::optional(tl::print(*out)) : std::nullopt;
  }

  // `let NAME = least(document, b, b, i0, i1)` for what the two conditions mention, or later values
  // do. Elements that one condition mentions once are put there instead: they are looked at only
  // where it comes to them.
  bool write_values(std::vector<std::string>& lines, tl::ExprPtr& some, tl::ExprPtr& all) {
    std::vector<ExprPtr> boxes;
    std::vector<std::string> found;
    const std::vector<TileValue>& values = ranges_->values();
    for (size_t k = values.size(); k-- > 0;) {
      const TileValue& value = values[k];
      for (const bool most : {true, false}) {
        const std::string& name = most ? value.most : value.least;
        const bool in_boxes = std::any_of(boxes.begin(), boxes.end(),
                                          [&](const ExprPtr& e) { return mentions(e, name); });
        const int in_conditions = times(some, name) + times(all, name);
        if (!in_boxes && in_conditions == 0) continue;
        const auto is = value.tensor.empty() ? spelled(most ? value.box[0].high : value.box[0].low)
                                             : of_elements(value, most ? "greatest" : "least");
        if (!is) return false;
        if (!value.tensor.empty() && !in_boxes && in_conditions == 1) {
          const auto put = [&](const tl::ExprPtr& e) { return e->is_name(name) ? *is : nullptr; };
          some = tl::rewrite(some, put);
          all = tl::rewrite(all, put);
        } else {
          found.push_back(fmt::format("let {} = {}", name, tl::print(*is)));
        }
        for (const WrittenRange& range : value.box)
          boxes.insert(boxes.end(), {range.low, range.high});
      }
    }
    lines.insert(lines.end(), found.rbegin(), found.rend());
    return true;
  }

  static int times(const tl::ExprPtr& e, const std::string& name) {
    int count = e->is_name(name);
    for (const tl::ExprPtr& a : e->args) count += times(a, name);
    return count;
  }

  std::optional<tl::ExprPtr> of_elements(const TileValue& value, const char* function) {
    std::vector<tl::ExprPtr> arguments = {tl::name(value.tensor)};
    for (const WrittenRange& range : value.box)
      for (const ExprPtr& end : {range.low, range.high}) {
        const auto index = spelled(end);
        if (!index) return std::nullopt;
        arguments.push_back(*index);
      }
    return tl::call(function, arguments);
  }

  // The key blocks that bounds in closed form leave: from the first to before the end.
  std::optional<std::pair<std::string, std::string>> closed_range() {
    const ExprPtr keys = size(f_.keys);
    const ExprPtr tile = local(bm_), first = spec::binary("*", local(locals_["m"]), tile);
    const Rows all{first, spec::binary("-", spec::binary("+", first, tile), spec::integer(1))};
    const KeyBounds kept = key_ranges(edit_.keep, keys).around();
    ExprPtr end = kept.upper ? highest(kept.upper, all) : nullptr,
            begin = kept.lower ? lowest(kept.lower, all) : nullptr;
    if (end && reads_the_tile(end)) end = nullptr;
    if (begin && reads_the_tile(begin)) begin = nullptr;
    edit_.rows_differ = end && !begin && mentions(end, locals_["m"]);
    const auto end_text = text(end ? smaller(keys, end) : keys);
    const auto begin_text = begin ? text(larger(spec::integer(0), begin)) : "0";
    if (!end_text || !begin_text) return std::nullopt;
    return std::pair(begin ? fmt::format("({}) // {}", *begin_text, bn_) : "0",
                     fmt::format("ceil_div({}, {})", *end_text, bn_));
  }

  // w -> the block of rows, the head and the batch entry, as far as they are told apart.
  std::vector<std::string> numbers() {
    std::vector<std::string> lines;
    std::string rest = locals_["w"];
    if (by_row_) {
      lines.push_back(fmt::format("let {} = {} % {}", locals_["m"], rest, rows()));
      rest = fmt::format("{} // {}", rest, rows());
    }
    if (by_head_) {
      lines.push_back(fmt::format("let {} = {} % {}", locals_["h"], rest, f_.heads));
      rest = fmt::format("{} // {}", rest, f_.heads);
    }
    lines.push_back(fmt::format("let {} = {}", locals_["b"], rest));
    return lines;
  }

  // The ends of the tile: the rows of groups r to s - 1, and the keys of block n.
  std::string rows_of_tile() {
    const auto& l = locals_;
    if (!group_)
      return fmt::format("let {0} = {1} * {2}, {3} = min({4}, {0} + {2}) - 1", l.at("i0"),
                         l.at("m"), bm_, l.at("i1"), f_.queries);
    return fmt::format(
        "let {0} = min({6} - 1, {1} * {2} + {3} * {7}), {4} = min({6}, {1} * {2} + {5} * {7}) - 1",
        l.at("i0"), l.at("m"), bm_, l.at("r"), l.at("i1"), l.at("s"), f_.queries,
        tl::print(group_));
  }
  std::string keys_of_tile() {
    const auto& l = locals_;
    return fmt::format("let {0} = {1} * {2}, {3} = min({4}, {0} + {2}) - 1", l.at("j0"), l.at("n"),
                       bn_, l.at("j1"), f_.keys);
  }

  static bool looks_at_elements(const tl::ExprPtr& e) {
    return (e->kind == tl::ExprKind::call && (e->text == "least" || e->text == "greatest")) ||
           std::any_of(e->args.begin(), e->args.end(), looks_at_elements);
  }
  static bool is_joined_by(const tl::ExprPtr& e, const std::string& op) {
    return e->kind == tl::ExprKind::binary && e->text == op;
  }
  static void collect(const tl::ExprPtr& e, const std::string& op,
                      std::vector<tl::ExprPtr>& parts) {
    if (!is_joined_by(e, op)) return parts.push_back(closed_form_first(e));
    for (const tl::ExprPtr& a : e->args) collect(a, op, parts);
  }

  // The condition with what coordinates say before what elements say: where that decides, nobody
  // looks at elements.
  static tl::ExprPtr closed_form_first(const tl::ExprPtr& e) {
    for (const char* op : {"and", "or"}) {
      if (!is_joined_by(e, op)) continue;
      std::vector<tl::ExprPtr> parts;
      collect(e, op, parts);
      std::stable_partition(parts.begin(), parts.end(),
                            [](const tl::ExprPtr& part) { return !looks_at_elements(part); });
      return std::accumulate(
          parts.begin() + 1, parts.end(), parts[0],
          [&](const tl::ExprPtr& a, const tl::ExprPtr& b) { return tl::binary(op, a, b); });
    }
    return e;
  }

  bool write_pre_pass() {
    auto some = spelled(truth_.some), all = spelled(truth_.all);
    const auto range = closed_range();
    std::vector<std::string> inside;
    if (by_row_) inside.push_back(rows_of_tile());
    inside.push_back(keys_of_tile());
    if (!some || !all || !range || !write_values(inside, *some, *all)) return false;
    const auto condition = [](const tl::ExprPtr& e) { return tl::print(closed_form_first(e)); };
    const tl::ExprPtr whole =
        tl::binary("<=", tl::binary("+", tl::name(locals_["j0"]), f_.key_tile), tl::name(f_.keys));
    inside.push_back(
        fmt::format("return {}, {}", condition(*some), condition(tl::binary("and", whole, *all))));
    const Stmt& kernel = *edit_.program.kernel();
    const std::string name =
        edit_.fresh({kernel.name().substr(0, kernel.name().rfind('_')) + "_lists"});
    std::string out =
        fmt::format("lists {}, threads {}, {} of {}:\n", name, kThreads, locals_["w"], lists_);
    for (const std::string& line : numbers()) out += "    " + line + "\n";
    out +=
        fmt::format("    list_blocks {}[{} * {}] for {} in range({}, {}), groups {} to {} of {}:\n",
                    visits_, locals_["w"], words_, locals_["n"], range->first, range->second,
                    locals_["r"], locals_["s"], groups());
    for (const std::string& line : inside) out += "        " + line + "\n";
    std::vector<Stmt>& program = edit_.program.body;
    for (size_t at = 0; at < program.size(); ++at)
      if (program[at].op == kernel.op) return edit_.insert({&program, at}, out);
    return false;
  }
};

}  // namespace

bool rule_lists(Edit& edit) {
  if (!edit.keep) return true;
  // Ranges that data places, more than two: nobody knows what lies between them.
  const bool scattered = spec::mentions(edit.keep, spec::Kind::read) &&
                         key_ranges(edit.keep, size(edit.facts.keys)).merged > 0;
  const bool data = reads_the_tile(edit.keep) || scattered;
  if (!data && !ranges_visit_too_much(edit.keep, size(edit.facts.keys), size(edit.facts.queries)))
    return true;
  ListWriter list(edit);
  if (!list.says_something()) return true;
  edit.listed = edit.blocks_differ = true;
  edit.result.notes.push_back(fmt::format(
      "which key blocks are visited {}: a pre-pass lists them before the kernel",
      data ? "depends on data" : "is said by intervals over tiles, no range of keys says it"));
  return list.write();
}

}  // namespace kw::transfer
