// The element type, the head dimensions, and the tiles that are best for them.
//
//   element bf16                            ->   element f16
//   param D = 128, V = 128                  ->   param D = 64, V = 64
//   param BM = 256, BN = 128, CTAS = 2      ->   param BM = 384, BN = 128, CTAS = 2
//   toggle PING_PONG = false                ->   toggle PING_PONG = true
//
// When     the form has another 16-bit type than the kernel, other head dimensions, or a case for
//          which other tiles were measured to be best: Target::tiles has the rows (tiles.h). Where
//          the range of keys moves with the row another row may be best, and where a row sees a
//          window or other parts of the keys (sparse.h): small tiles visit fewer masked keys. Rows
//          that look at a block late (late_toggles) come last where a score is computed from where
//          its query and key stand, and rows see no parts: that takes the registers that Q would
//          have (ALiBi 1.07 to 1.13x, a logarithm of the distance 1.13x), and where scores rise
//          along the visits, as on one side of a symmetric bias, most blocks would be computed
//          twice. A text with constants that stand in no row keeps them for its own head
//          dimensions: whoever wrote them meant them. Only rows that the user named go before.
// Effect   none: the tiles decide in which order sums are taken, the type what operands round to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "transfer/editing/terms.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/masks/key_ranges.h"
#include "transfer/masks/sparse.h"

namespace kw::transfer {
namespace {

// ---- constants of the program

// The value of an integer constant; 0 if there is none of that name.
int64_t value_of(tl::Program& program, const std::string& name) {
  const tl::Item* d = constant_named(program, name);
  const bool known = d && d->expr && d->expr->kind == tl::ExprKind::integer;
  return known ? std::stoll(d->expr->text) : 0;
}

tl::ExprPtr expr_of(const ConstantValue& value) {
  const int64_t* number = std::get_if<int64_t>(&value);
  return number ? tl::integer(*number) : tl::name(text_of(value));
}

// `place` is the row's, for a message.
bool set_constant(Edit& edit, const std::string& name, const tl::ExprPtr& value,
                  const std::string& place) {
  tl::Item* d = constant_named(edit.program, name);
  if (!d)
    return edit.refuse(
        "transfer.kernel", {},
        fmt::format("this kernel has no constant {}, which its tiles set ({})", name, place),
        "rows are for one kernel's text: see its targets");
  d->expr = value;
  return true;
}

// When blocks are looked at, what a backward kernel reads decides (saves.cpp), and no row: so a
// program tells whether a row set a constant, or that rule.
bool is_set_by_saves(const Edit& edit, const Constant& c) {
  return edit.form.saves && edit.normaliser == spec::Normaliser::softmax && c.name == "CHECK_LATE";
}

bool set_constants(Edit& edit, const Tiles& tiles) {
  for (const Constant& c : tiles.constants)
    if (!is_set_by_saves(edit, c) && !set_constant(edit, c.name, expr_of(c.value), tiles.place))
      return false;
  return true;
}

bool has_constants(tl::Program& program, const std::vector<Constant>& constants) {
  for (const Constant& c : constants) {
    const tl::Item* d = constant_named(program, c.name);
    if (!d || !d->expr || tl::print(d->expr) != text_of(c.value)) return false;
  }
  return true;
}

// ---- which row

spec::ExprPtr expr_of(const spec::Size& s) {
  if (s.times > 1) return spec::binary("*", expr_of({s.name}), spec::integer(s.times));
  return s.name.empty() ? spec::integer(s.constant) : size(s.name);
}

// Whether the range of keys that a row sees moves with the row: causal masks and windows.
bool range_moves_with_row(const spec::ExprPtr& keep, const spec::ExprPtr& keys) {
  using spec::Kind;
  const spec::ExprPtr i = spec::leaf(Kind::index, spec::Type::integer, "i");
  const auto moves = [&](const spec::ExprPtr& bound) {
    return bound && spec::mentions(bound, Kind::index, "i");
  };
  const KeyRanges kept = key_ranges(keep, keys);
  return std::any_of(kept.cover.begin(), kept.cover.end(), [&](const KeyBounds& k) {
    return (k.upper && moves(highest(k.upper, {i, i}))) ||
           (k.lower && moves(lowest(k.lower, {i, i})));
  });
}

Keys keys_of(const Edit& edit) {
  const spec::ExprPtr &keep = edit.term.keep, keys = expr_of(edit.form.N),
                      queries = expr_of(edit.form.M);
  if (!keep) return Keys::alike;
  const Seen seen = what_a_row_sees(keep, keys, queries);
  if (seen == Seen::parts) return Keys::sparse;
  if (seen == Seen::window) return Keys::window;
  return range_moves_with_row(keep, keys) ? Keys::by_row : Keys::alike;
}

// Whether e computes with this coordinate, and not only reads there.
bool computes_with(const spec::ExprPtr& e, const char* coordinate) {
  if (e->kind == spec::Kind::read) return false;
  if (e->kind == spec::Kind::index) return e->name == coordinate;
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const spec::ExprPtr& a) { return computes_with(a, coordinate); });
}

bool turns_on(const Tiles& tiles, const std::vector<std::string>& toggles) {
  return std::any_of(tiles.constants.begin(), tiles.constants.end(), [&](const Constant& c) {
    return c.value == ConstantValue(true) &&
           std::find(toggles.begin(), toggles.end(), c.name) != toggles.end();
  });
}

struct Dims {
  int64_t dim, value_dim;
  bool operator==(const Dims&) const = default;
};

// Whether the program's constants for its own dimensions are somebody's own: no row has them, for
// whatever target.
bool has_constants_of_its_own(Edit& edit, const Dims& own) {
  for (const Tiles& t : edit.target.tiles)
    if (Dims{t.dim, t.value_dim} == own && has_constants(edit.program, t.constants)) return false;
  return true;
}

// Whether the keys lie in no pages, or in some that fit these tiles. Null: those of the program.
bool fits_pages(Edit& edit, const Tiles* tiles) {
  const std::optional<spec::Pages> pages = spec::pages_of(edit.term.k);
  if (!pages) return true;
  const std::string name = tl::print(edit.facts.key_tile);
  int64_t rows = value_of(edit.program, name);
  if (tiles)
    for (const Constant& c : tiles->constants)
      if (const int64_t* n = std::get_if<int64_t>(&c.value); n && c.name == name) rows = *n;
  return fits_tiles(*pages, rows);
}

// What to try for these dimensions, best first; null stands for the constants as they are.
std::vector<const Tiles*> choices(Edit& edit, const Dims& asked, const Dims& own) {
  const Keys keys = edit.result.keys;
  std::vector<const Tiles*> users, shipped, out;
  for (const Tiles& t : edit.target.tiles)
    if (t.is_for(edit.target.name) && Dims{t.dim, t.value_dim} == asked &&
        (t.keys == Keys::any || t.keys == keys))
      (t.users ? users : shipped).push_back(&t);
  const spec::ExprPtr& score = edit.term.score;
  const bool of_parts = keys == Keys::sparse || keys == Keys::window;  // rows of their own
  if (!of_parts && computes_with(score, "i") && computes_with(score, "j")) {
    const std::vector<std::string> late = late_toggles(edit.program, edit.facts);
    std::stable_partition(shipped.begin(), shipped.end(),
                          [&](const Tiles* t) { return !turns_on(*t, late); });
  }
  const bool stay = asked == own && (shipped.empty() || has_constants_of_its_own(edit, own));
  out = users;
  if (stay) out.push_back(nullptr);
  out.insert(out.end(), shipped.begin(), shipped.end());
  const auto fits = [&](const Tiles* t) { return fits_pages(edit, t); };
  if (std::any_of(out.begin(), out.end(), fits))  // else the law says so
    std::erase_if(out, [&](const Tiles* t) { return !fits(t); });
  return out;
}

// ---- refusal of other head dimensions

std::string text_of(const Dims& d) {
  if (d.dim == d.value_dim) return std::to_string(d.dim);
  return fmt::format("{} with {} for v", d.dim, d.value_dim);
}

std::string text_of(const spec::Size& size) {
  return size.name.empty() ? std::to_string(size.constant) : size.name;
}

// The kernel's own, and those of the table; ascending, those that differ for v last.
std::vector<Dims> supported(const Edit& edit, const Dims& own) {
  std::vector<Dims> out;
  if (own.dim > 0) out.push_back(own);
  for (const Tiles& t : edit.target.tiles)
    if (t.is_for(edit.target.name) && !t.of_product()) out.push_back({t.dim, t.value_dim});
  std::sort(out.begin(), out.end(), [](const Dims& a, const Dims& b) {
    return std::tuple(a.dim != a.value_dim, a.dim, a.value_dim) <
           std::tuple(b.dim != b.value_dim, b.dim, b.value_dim);
  });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// How many columns of q, k and v are read for each score and its product.
int64_t columns(const Dims& d) { return d.dim + d.value_dim; }

bool refuse_head_dimension(Edit& edit, const Dims& own) {
  const spec::Size &d = edit.form.D, &v = edit.form.Dv;
  const bool constant = d.name.empty() && v.name.empty();
  const std::vector<Dims> all = supported(edit, own);
  const Dims* wider = nullptr;  // the smallest that holds the user's
  std::vector<std::string> list;
  for (const Dims& s : all) {
    list.push_back(text_of(s));
    const bool holds = constant && s.dim >= d.constant && s.value_dim >= v.constant;
    if (holds && (!wider || columns(s) < columns(*wider))) wider = &s;
  }
  std::string hint = fmt::format("supported are {}", fmt::join(list, ", "));
  if (wider)
    hint +=
        fmt::format("; pad with zeros to {}, and keep the scale of the true size", text_of(*wider));
  const bool same = text_of(d) == text_of(v);
  return edit.refuse("transfer.head_dim", edit.place(nullptr),
                     fmt::format("the head dimension is {}{}, for which this kernel has no tiles",
                                 text_of(d), same ? "" : ", and " + text_of(v) + " for v"),
                     hint);
}

// ---- the two parts

bool element_type(Edit& edit) {
  tl::Stmt* element = edit.program.find(tl::Op::element);
  const Dtype type = edit.form.dtype;
  if (element && (type == Dtype::bf16 || type == Dtype::f16)) {
    element->type() = kw::name(type);
    return true;
  }
  return edit.refuse("transfer.dtype", edit.place(nullptr),
                     fmt::format("the function computes in {}, the kernel in {}", kw::name(type),
                                 element ? "16 bits" : "no element type"),
                     "supported are bf16 and f16");
}

bool head_dimensions(Edit& edit) {
  const std::string &d = edit.facts.dim, &v = edit.facts.value_dim;
  const spec::Size &dim = edit.form.D, &value_dim = edit.form.Dv;
  const Dims own{value_of(edit.program, d), value_of(edit.program, v)};
  const Dims asked{dim.constant, value_dim.constant};
  const bool constant = dim.name.empty() && value_dim.name.empty();
  edit.result.keys = keys_of(edit);
  const auto tiles = constant ? choices(edit, asked, own) : std::vector<const Tiles*>{};
  const size_t tried = static_cast<size_t>(edit.target.tried);
  edit.result.roomier = tried + 1 < tiles.size();
  const bool one_letter = d == v && asked.dim != asked.value_dim;
  if (tried >= tiles.size() || one_letter) return refuse_head_dimension(edit, own);
  const Tiles* row = tiles[tried];
  if (!row) return true;
  edit.result.tiles = row->place;
  return set_constant(edit, d, tl::integer(asked.dim), row->place) &&
         set_constant(edit, v, tl::integer(asked.value_dim), row->place) &&
         set_constants(edit, *row);
}

}  // namespace

bool rule_tiles(Edit& edit) { return element_type(edit) && head_dimensions(edit); }

}  // namespace kw::transfer
