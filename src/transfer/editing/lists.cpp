#include "transfer/editing/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "transfer/editing/spell.h"
#include "transfer/editing/terms.h"
#include "transfer/masks/key_bounds.h"
#include "transfer/masks/key_ranges.h"
#include "transfer/masks/predicate_intervals.h"
#include "transfer/masks/sparse.h"

namespace kw::transfer {

using spec::ExprPtr;
using spec::Kind;
using tl::Op;
using tl::Stmt;

namespace {

// Warps take a block each at a time. Twice as many would have 64 registers a thread, which is
// too few for predicates with several reads.
constexpr int kThreads = 512;

ExprPtr local(const std::string& name) {
  return spec::leaf(Kind::argument, spec::Type::integer, name);
}

bool mentions(const ExprPtr& e, const std::string& name) {
  return spec::mentions(e, Kind::argument, name);
}

int times(const tl::ExprPtr& e, const std::string& name) {
  int count = e->is_name(name);
  for (const tl::ExprPtr& a : e->args) count += times(a, name);
  return count;
}

bool looks_at_elements(const tl::ExprPtr& e) {
  return (e->kind == tl::ExprKind::call && (e->text == "least" || e->text == "greatest")) ||
         std::any_of(e->args.begin(), e->args.end(), looks_at_elements);
}
bool is_joined_by(const tl::ExprPtr& e, const std::string& op) {
  return e->kind == tl::ExprKind::binary && e->text == op;
}
tl::ExprPtr closed_form_first(const tl::ExprPtr& e);

void collect(const tl::ExprPtr& e, const std::string& op, std::vector<tl::ExprPtr>& parts) {
  if (!is_joined_by(e, op)) return parts.push_back(closed_form_first(e));
  for (const tl::ExprPtr& a : e->args) collect(a, op, parts);
}

// The condition with what coordinates say before what elements say: where that decides, nobody
// looks at elements.
tl::ExprPtr closed_form_first(const tl::ExprPtr& e) {
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

}  // namespace

ListWriter::ListWriter(Editing& edit, ListPlan plan)
    : edit_(edit),
      plan_(std::move(plan)),
      by_row_(spec::mentions(plan_.keep, Kind::index, "i")),
      by_head_(spec::mentions(plan_.keep, Kind::index, "h")),
      row_tile_(tl::print(plan_.row_tile)),
      column_tile_(tl::print(plan_.column_tile)) {
  for (const char* name : {"m", "b", "h", "i0", "i1", "j0", "j1", "n", "w", "r", "s"})
    locals_[name] = edit.local(name);
  const auto range = [&](const char* low, const char* high) {
    return WrittenRange{local(locals_[low]), local(locals_[high])};
  };
  ranges_.emplace(range("i0", "i1"), range("j0", "j1"),
                  [this](const std::string& name) { return edit_.fresh({name}); });
  truth_ = ranges_->truth(plan_.keep);
}

bool ListWriter::says_something() const {
  if (!reads_the_tile(plan_.keep)) return !spec::equal(truth_.some, spec::boolean(true));
  for (const TileValue& value : ranges_->values())
    for (const std::string& name : {value.least, value.most})
      if (mentions(truth_.some, name) || mentions(truth_.all, name)) return true;
  return false;
}

bool ListWriter::write() {
  visits_ = edit_.fresh({"visits", "visited"});
  lists_ = edit_.fresh({"lists", "lists_of_blocks"});
  words_ = edit_.fresh({"list_words", "words_of_a_list"});
  first_word_ = edit_.fresh({"first_word", "first_word_of"});
  return write_arguments() && write_first_word() && write_pre_pass();
}

std::string ListWriter::groups() const {
  return plan_.group ? fmt::format("{} // {}", row_tile_, tl::print(plan_.group)) : "1";
}
std::string ListWriter::header() const { return plan_.group ? "2 + " + groups() : "3"; }
std::string ListWriter::blocks_of_rows() const {
  return fmt::format("ceil_div({}, {})", plan_.rows, row_tile_);
}

bool ListWriter::write_arguments() {
  std::vector<Stmt>& args = edit_.program.find(Op::args)->body;
  std::string count = plan_.batch;
  if (by_head_) count += " * " + plan_.heads;
  if (by_row_) count = blocks_of_rows() + " * " + count;
  const std::vector<std::string> texts = {
      fmt::format("{}: size = {}", lists_, count),
      fmt::format("{}: size = {} + ceil_div({}, {})", words_, header(), plan_.columns,
                  column_tile_),
      fmt::format("{}: scratch[{} * {}]", visits_, lists_, words_)};
  return edit_.insert({&args, args.size()}, texts);
}

// A block's list: its row block runs fastest, then the head, then the batch entry.
bool ListWriter::write_first_word() {
  const std::string& block = plan_.block.name;
  std::string list = block + "." + plan_.batch_field;
  if (by_head_) list = fmt::format("({} * {} + {}.{})", list, plan_.heads, block, plan_.head_field);
  if (by_row_)
    list = fmt::format("({} * {} + {}.{})", list, blocks_of_rows(), block, plan_.row_field);
  return insert_function(edit_, plan_.before, first_word_, {plan_.block}, "index",
                         {fmt::format("return {} * {}", list, words_)});
}

// An expression of the pre-pass in TL, and its text.
std::optional<tl::ExprPtr> ListWriter::spelled(const ExprPtr& e) {
  Spelling how;
  for (const char* index : {"b", "h"}) how.indices[index] = tl::name(locals_[index]);
  return spell(e, how, edit_.diagnostics);
}
std::optional<std::string> ListWriter::text(const ExprPtr& e) {
  const std::optional<tl::ExprPtr> out = spelled(e);
  return out ? std::optional(tl::print(*out)) : std::nullopt;
}

// `let NAME = least(document, b, b, i0, i1)` for what the two conditions mention, or later values
// do. Elements that one condition mentions once are put there instead: they are looked at only
// where it comes to them.
bool ListWriter::write_values(std::vector<std::string>& lines, tl::ExprPtr& some,
                              tl::ExprPtr& all) {
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

std::optional<tl::ExprPtr> ListWriter::of_elements(const TileValue& value, const char* function) {
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
std::optional<std::pair<std::string, std::string>> ListWriter::closed_range() {
  const ExprPtr keys = size(plan_.columns);
  const ExprPtr tile = local(row_tile_), first = spec::binary("*", local(locals_["m"]), tile);
  const Rows all{first, spec::binary("-", spec::binary("+", first, tile), spec::integer(1))};
  const KeyBounds kept = key_ranges(plan_.keep, keys).around();
  ExprPtr end = kept.upper ? highest(kept.upper, all) : nullptr,
          begin = kept.lower ? lowest(kept.lower, all) : nullptr;
  if (end && reads_the_tile(end)) end = nullptr;
  if (begin && reads_the_tile(begin)) begin = nullptr;
  ends_with_row_ = end && !begin && mentions(end, locals_["m"]);
  const auto end_text = text(end ? smaller(keys, end) : keys);
  const auto begin_text = begin ? text(larger(spec::integer(0), begin)) : "0";
  if (!end_text || !begin_text) return std::nullopt;
  return std::pair(begin ? fmt::format("({}) // {}", *begin_text, column_tile_) : "0",
                   fmt::format("ceil_div({}, {})", *end_text, column_tile_));
}

// w -> the block of rows, the head and the batch entry, as far as they are told apart.
std::vector<std::string> ListWriter::numbers() const {
  std::vector<std::string> lines;
  std::string rest = locals_.at("w");
  if (by_row_) {
    lines.push_back(fmt::format("let {} = {} % {}", locals_.at("m"), rest, blocks_of_rows()));
    rest = fmt::format("{} // {}", rest, blocks_of_rows());
  }
  if (by_head_) {
    lines.push_back(fmt::format("let {} = {} % {}", locals_.at("h"), rest, plan_.heads));
    rest = fmt::format("{} // {}", rest, plan_.heads);
  }
  lines.push_back(fmt::format("let {} = {}", locals_.at("b"), rest));
  return lines;
}

// The ends of the tile: the rows of groups r to s - 1, and the keys of block n.
std::string ListWriter::rows_of_tile() const {
  const auto& l = locals_;
  if (!plan_.group)
    return fmt::format("let {0} = {1} * {2}, {3} = min({4}, {0} + {2}) - 1", l.at("i0"), l.at("m"),
                       row_tile_, l.at("i1"), plan_.rows);
  return fmt::format(
      "let {0} = min({6} - 1, {1} * {2} + {3} * {7}), {4} = min({6}, {1} * {2} + {5} * {7}) - 1",
      l.at("i0"), l.at("m"), row_tile_, l.at("r"), l.at("i1"), l.at("s"), plan_.rows,
      tl::print(plan_.group));
}
std::string ListWriter::columns_of_tile() const {
  const auto& l = locals_;
  return fmt::format("let {0} = {1} * {2}, {3} = min({4}, {0} + {2}) - 1", l.at("j0"), l.at("n"),
                     column_tile_, l.at("j1"), plan_.columns);
}

bool ListWriter::write_pre_pass() {
  auto some = spelled(truth_.some), all = spelled(truth_.all);
  const auto range = closed_range();
  std::vector<std::string> inside;
  if (by_row_) inside.push_back(rows_of_tile());
  inside.push_back(columns_of_tile());
  if (!some || !all || !range || !write_values(inside, *some, *all)) return false;
  const auto condition = [](const tl::ExprPtr& e) { return tl::print(closed_form_first(e)); };
  const tl::ExprPtr whole = tl::binary(
      "<=", tl::binary("+", tl::name(locals_["j0"]), plan_.column_tile), tl::name(plan_.columns));
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
bool insert_function(Editing& edit, const std::string& before, const std::string& name,
                     const std::vector<tl::Item>& parameters, const std::string& result,
                     const std::vector<std::string>& body) {
  std::vector<Stmt>& all = edit.program.body;
  for (size_t n = 0; n < all.size(); ++n) {
    if (all[n].op != Op::def || all[n].name() != before) continue;
    Stmt def = all[n];
    def.name() = name;
    def.result() = result;
    def.params() = parameters;
    if (!edit.replace(def.body, body)) return false;
    all.insert(all.begin() + std::ptrdiff_t(n), std::move(def));
    return true;
  }
  return false;
}

}  // namespace kw::transfer
