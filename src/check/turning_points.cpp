#include "check/turning_points.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "check/family.h"
#include "check/program_numbers.h"
#include "check/spread.h"
#include "operator/family.h"
#include "tl/scope/scope.h"

namespace kw::check {
namespace {

void add(int64_t value, std::set<int64_t>& to) {
  value = std::abs(value);
  if (value >= kCovered && value <= kFarthest) to.insert(value);
}

void written_numbers_of(const spec::ExprPtr& e, std::set<int64_t>& all) {
  for (const int64_t value : written_integers(e)) add(value, all);
}

// Whether e is of positions alone.
bool is_of_positions(const spec::ExprPtr& e) {
  using spec::Kind;
  for (const Kind kind :
       {Kind::read, Kind::size, Kind::argument, Kind::score, Kind::output, Kind::total})
    if (spec::mentions(e, kind)) return false;
  return spec::mentions(e, Kind::index, "i") || spec::mentions(e, Kind::index, "j");
}

// Where an integer or a condition that is the same all along the first rows, keys or both becomes
// another: `j // 100 // 100` at 10000, which stands nowhere.
void changes_of(const spec::ExprPtr& e, std::set<int64_t>& all) {
  constexpr int64_t kLooked = 640;
  for (const auto& line : {std::pair{1, 0}, {0, 1}, {1, 1}}) {
    const int64_t rows = line.first, keys = line.second;
    spec::Scope scope;
    scope.indices = {{"b", 0}, {"h", 0}, {"d", 0}};
    const auto at = [&](int64_t t) {
      scope.indices["i"] = rows * t;
      scope.indices["j"] = keys * t;
      return spec::evaluate(e, scope);
    };
    const double first = at(0);
    int64_t same = 0, other = 0;
    while (same < kLooked && at(same + 1) == first) ++same;
    if (same < kLooked) continue;
    for (int64_t t = 2 * same; t <= 2 * kFarthest && !other; t *= 2)
      (at(t) == first ? same : other) = t;
    while (other - same > 1) {
      const int64_t middle = same + (other - same) / 2;
      (at(middle) == first ? same : other) = middle;
    }
    if (other) add(other, all);
  }
}

void numbers_and_changes_of(const spec::ExprPtr& of, std::set<int64_t>& all) {
  written_numbers_of(of, all);
  spec::rewrite(of, [&](const spec::ExprPtr& part) {
    if (part->type != spec::Type::real && is_of_positions(part)) changes_of(part, all);
    return spec::ExprPtr();
  });
}

enum class Part { all, masks, but_masks };

std::set<int64_t> of_form(const spec::Form& form, Part which) {
  std::set<int64_t> all;
  spec::Form copy = form;
  if (which == Part::but_masks)
    for (spec::Term& t : copy.terms) t.keep = nullptr;
  if (which == Part::masks) {
    for (const spec::Term& t : form.terms)
      if (t.keep) numbers_and_changes_of(t.keep, all);
    return all;
  }
  spec::Family::of(form).each_expression(
      copy, [&](spec::ExprPtr& e, const spec::Extents&) { numbers_and_changes_of(e, all); });
  return all;
}

// What a product is summed over, where a number of the program's may count its steps, or be that
// size: a step beyond, and all but one column of one.
std::set<int64_t> depths(const ProgramNumbers& of) {
  std::set<int64_t> out;
  for (const int64_t value : of.numbers) {
    if (!of.steps.empty() && value >= kCovered && value <= kFarthest)
      out.insert({value - 1, value + 1});
    for (const int64_t step : of.steps)
      if (value > 4 && value * step <= kFarthest)
        out.insert({value * step, value * step + step + 1});
  }
  return out;
}

// Sizes of a case; what is summed over as the family says, where it is 0. `of` numbers what some
// case must reach, `point` what to name where none does.
struct Sizes {
  int64_t m = 0, n = 0, point = 0, b = 1;
  Planted planted = Planted::none;
  int64_t depth = 0, of = 0;
  bool a_tile_more = false;  // than a number of the program's or the function's
};

constexpr int64_t kFew = 65, kShort = 17, kTile = 128, kMuch = 1'000'000;

// Around a turn of the program's own sizes: what grows, by so much more or less.
std::optional<Sizes> sizes_at(const SizeTurn& turn, int64_t more, const spec::Form& form,
                              bool tied) {
  Sizes s;
  if (more >= 0) s.point = turn.at, s.of = -1 - turn.decision;
  bool any = false;
  for (const spec::Axis& axis : spec::axes(form)) {
    const auto grown = turn.grown.find(axis.letter), other = turn.others.find(axis.letter);
    const bool grows = grown != turn.grown.end();
    if (axis.size.name.empty() && grows) return std::nullopt;  // no case has another
    if (axis.size.name.empty() || (!grows && other == turn.others.end())) continue;
    any |= grows;
    const int64_t value = grows ? grown->second + more : other->second;
    (axis.letter == "B"   ? s.b
     : axis.letter == "M" ? s.m
     : axis.letter == "N" ? s.n
                          : s.depth) = value;
  }
  // Rows that are the heads' queries.
  if (const auto rows = turn.grown.find("R"); rows != turn.grown.end() && !form.M.name.empty()) {
    const int64_t heads = form.H.constant / form.G.constant;
    s.m = (rows->second + more + heads - 1) / heads;
    any = true;
  }
  if (!any) return std::nullopt;
  // Beside much of one, little of the others.
  const bool alone = s.depth > 0 && s.m == 0 && s.n == 0, two = turn.grown.size() > 1;
  const int64_t few = s.b > kTile || two ? kShort : kFew;
  if (tied) s.m = s.n = std::max(s.m, s.n);
  if (s.m == 0) s.m = alone ? 3 : few;
  if (s.n == 0) s.n = alone ? 5 : few;
  if (tied) s.m = s.n;
  if (s.depth == 0 && s.m * s.n > kMuch) s.depth = 8;
  return s;
}

int64_t work_of(const Sizes& s) { return s.b * s.m * s.n * (1 + s.depth / 64); }

// Of each decision the least work that sees it turn, and what else is little.
void add_turns(const std::set<SizeTurn>& turns, const spec::Form& form, bool tied, int64_t scores,
               std::vector<Sizes>& sizes) {
  std::map<int, int64_t> least;
  for (const SizeTurn& turn : turns)
    if (const auto s = sizes_at(turn, 0, form, tied)) {
      const auto [known, is_new] = least.emplace(turn.decision, work_of(*s));
      if (!is_new) known->second = std::min(known->second, work_of(*s));
    }
  std::set<std::vector<int64_t>> taken;  // two decisions may turn at once
  std::set<int> begun;
  for (const SizeTurn& turn : turns) {
    const auto at = sizes_at(turn, 0, form, tied);
    if (!at) continue;
    const int64_t work = work_of(*at);
    const bool first = work == least.at(turn.decision) && begun.insert(turn.decision).second;
    if (!first && work > scores / 100) continue;
    for (const int64_t more : {int64_t{0}, int64_t{1}, int64_t{-1}, kTile + 1}) {
      if (work > kMuch && (more == 1 || more == -1)) continue;
      Sizes s = *sizes_at(turn, more, form, tied);
      if (s.depth > 8 && more == 1) s.planted = Planted::ends;
      if (turn.of_data && has_spread(form)) s.planted = Planted::spread;
      if (taken.insert({s.b, s.m, s.n, s.depth, int64_t(s.planted)}).second || more == 0)
        sizes.push_back(s);
    }
  }
}

}  // namespace

namespace {
std::vector<int64_t> turning_points(const ProgramNumbers& of, const spec::Form& form, bool proved) {
  std::set<int64_t> points = of_form(form, proved ? Part::but_masks : Part::all);
  for (int64_t value : of.numbers) {
    add(value, points);
    // The tiles' own sizes stand everywhere; what else a program says of small numbers may be of
    // its blocks.
    if (value > 4 && value < kCovered && value % 16 != 0)
      for (int64_t tile : of.tiles) add(value * tile, points);
  }
  std::vector<int64_t> out;
  for (auto p = points.begin(); p != points.end(); ++p)
    if (std::next(p) == points.end() || *std::next(p) - *p > 1) out.push_back(*p);
  return out;
}

}  // namespace

std::set<int64_t> written_integers(const spec::ExprPtr& e) {
  std::set<int64_t> out;
  spec::rewrite(e, [&](const spec::ExprPtr& part) {
    if (part->kind == spec::Kind::number && part->type == spec::Type::integer)
      out.insert(std::abs(part->integer));
    return spec::ExprPtr();
  });
  return out;
}

std::vector<int64_t> turning_points(const tl::Program& program, const spec::Form& form,
                                    bool proved) {
  return turning_points(proved ? ProgramNumbers{} : numbers_of(program), form, proved);
}

std::vector<Case> cases_beyond(const tl::Program& program, const spec::Capture& capture,
                               const Options& options, bool proved,
                               std::vector<int64_t>& unreached) {
  constexpr int64_t kMany = 67, kMostBlocks = 128;
  constexpr uint64_t kSalt = 30000;
  const spec::Form& form = capture.form;
  int64_t scores = options.further_scores;
  std::vector<Case> cases;
  if (capture.cases.empty()) return cases;
  const auto take = [&](Case c, size_t k) {
    const int64_t work = scores_of(form, c);
    if (work > scores || elements_of(few_heads(form, c)) > kMostElements) return false;
    scores -= work;
    c.grid = 1 + int(k % 3);
    cases.push_back(std::move(c));
    return true;
  };
  const bool rows = !form.M.name.empty(), keys = !form.N.name.empty(),
             tied = rows && form.M.name == form.N.name;
  const auto one_head = [&](Case& c) {  // of one row all heads are a tile
    if (rows) keep_one_head(form, c);
  };
  // A kernel sees how many heads and batch entries there are, and their numbers.
  if (!proved) {
    Case all = case_of(capture, 2, 257, 300, kSalt + (options.rehearsal << 20));
    choose_heads(form, all, true);
    take(std::move(all), 0);
  }
  Case many = case_of(capture, kMany, 17, 33, kSalt + 1 + (options.rehearsal << 20));
  choose_heads(form, many, false);
  take(std::move(many), 1);

  const ProgramNumbers of = proved ? ProgramNumbers{} : numbers_of(program);
  std::set<int64_t> entries = of.numbers;
  entries.insert(of.bounds.begin(), of.bounds.end());
  // Two numbers of a program may be of an entry and a block at once. Where rows are keys, too, that
  // is the square of so many: with what is left of the work then.
  const auto entries_and_blocks = [&] {
    for (const int64_t value : of.numbers)
      for (const bool of_rows : {true, false}) {
        if (value < 3 || value >= kMany || value % 16 == 0) continue;
        if (form.B.name.empty() || of.tiles.empty() || !rows || (tied && !of_rows)) continue;
        const int64_t far = (value + 2) * *of.tiles.rbegin();
        if ((value + 2) * far * kShort > options.further_scores / 60) continue;
        Case c = case_of(capture, value + 2, of_rows || tied ? far : kShort,
                         of_rows && !tied ? kShort : far,
                         kSalt + 4 + of_rows + (options.rehearsal << 20));
        choose_heads(form, c, false);
        one_head(c);
        take(std::move(c), 1);
      }
  };
  if (!tied) entries_and_blocks();
  for (const int64_t depth : depths(of)) {
    if (form.D.name.empty()) break;
    Case c = case_of(capture, 1, 3, 5, kSalt + 3 + (options.rehearsal << 20));
    choose_heads(form, c, false);
    c.sizes[form.D.name] = depth;
    if (of.numbers.count(depth - 1)) c.planted = Planted::ends;
    if (!take(std::move(c), 1)) unreached.push_back(depth);
  }
  // A number may be that of a batch entry, or of a block of the output: first entries of one block,
  // which are little work.
  const auto counts_entries = [&](int64_t value) {
    return !form.B.name.empty() && value > kMany && value <= kFarthest;
  };
  const auto as_many_entries = [&](int64_t value, int64_t n) {
    Case c = case_of(capture, value + 10, 17, n, kSalt + 2 + (options.rehearsal << 20));
    choose_heads(form, c, false);
    one_head(c);
    if (has_spread(form)) c.planted = Planted::spread;
    return take(std::move(c), 1);
  };
  std::set<int64_t> numbered;
  for (const int64_t value : of.numbers)
    if (counts_entries(value) && value * kShort * 33 <= options.further_scores / 100 &&
        as_many_entries(value, 33))
      numbered.insert(value);
  std::vector<Sizes> sizes;
  // Integers of the data all over so many keys; of one query a row of them is an entry's.
  const auto spread = [&](int64_t n) {
    if (has_spread(form)) sizes.push_back({tied ? n : kFew, n, 0, rows ? 1 : 8, Planted::spread});
  };
  for (int64_t p : turning_points(of, form, proved)) {
    for (int64_t more : {-1l, 0l, 1l, kTile + 1}) {
      const int64_t size = p + more;
      const size_t first = sizes.size();
      if (!tied && keys) sizes.push_back({kFew, size, 0});
      if (!tied && rows) sizes.push_back({size, kFew, 0});
      if (tied) sizes.push_back({size, size, more > 0 ? p : 0});
      for (size_t k = first; k < sizes.size(); ++k) sizes[k].a_tile_more = more > 1;
    }
    if (!tied && rows && keys) sizes.push_back({p + kFew, 200, 0});
    if (!tied && rows && keys) sizes.push_back({p + kFew, p + kFew, p});
    if (keys) spread(p + kTile + 1);
    // Blocks of keys that take turns and skip some: more of them than such a number of rows has.
    if (!proved && rows && keys && tl::takes_turns(program))
      sizes.push_back({2 * p + 3 * kTile, 2 * p + 3 * kTile, p});
  }
  add_turns(of.turns, form, tied, options.further_scores, sizes);
  // A block beyond so many that the program counts them by.
  for (const int64_t count : of.counts)
    for (const int64_t tile : of.tiles)
      if (rows && keys && count * tile <= kFarthest) {
        const int64_t beyond = count * tile + kTile + 1;
        sizes.push_back({beyond, tied ? beyond : 300, 0});
        if (!tied) sizes.push_back({300, beyond, 0});
      }
  // And a block beyond so many that it decides something by, and beyond as many as what is written
  // nowhere may be.
  const auto far = [&](int64_t beyond) {
    if (beyond * kFew > options.further_scores / 12) return;
    if (tied) sizes.push_back({beyond, beyond, 0});
    if (!tied && rows) sizes.push_back({beyond, kFew, 0});
    if (!tied && keys) sizes.push_back({kFew, beyond, 0});
    if (keys) spread(beyond);
  };
  std::set<int64_t> beyond;  // two numbers and two tiles may say the same
  if (!proved && !tied) beyond.insert(kMostBlocks * kTile + kTile + 1);
  for (const int64_t bound : of.bounds)
    for (const int64_t tile : of.tiles) beyond.insert(bound * tile + kTile + 1);
  for (const int64_t size : beyond) far(size);
  // So many more rows than keys that a window has left the last key behind: a row without a key is
  // another formula.
  if (!tied && rows && keys)
    for (const int64_t p : of_form(form, Part::masks)) sizes.push_back({p + 200 + kFew, 200, 0});
  // Where something turns for certain comes before where a number may count something; and what has
  // a block with that number before what has the last element of the one before.
  const auto dear = [](const Sizes& s) { return work_of(s) / (s.of ? 4 : s.a_tile_more ? 2 : 1); };
  std::stable_sort(sizes.begin(), sizes.end(),
                   [&](const Sizes& a, const Sizes& b) { return dear(a) < dear(b); });
  std::map<int64_t, int64_t> due;
  std::set<int64_t> done;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto& [m, n, point, b, planted, depth, turn, a_tile_more] = sizes[k];
    const int64_t what = turn ? turn : point;
    if (point) due.emplace(what, point);
    Case c = case_of(capture, b, m, n, kSalt + 2 + k + (options.rehearsal << 20));
    choose_heads(form, c, false);
    one_head(c);
    if (depth > 0 && !form.D.name.empty()) c.sizes[form.D.name] = depth;
    c.planted = planted;
    if (take(std::move(c), k) && point) done.insert(what);
  }
  for (const auto& [what, point] : due)
    if (!done.count(what)) unreached.push_back(point);
  if (tied) entries_and_blocks();
  // Last, with what is left of the work: of several blocks of keys, for what an entry keeps may
  // decide how many it visits.
  for (const int64_t value : entries) {
    if (!counts_entries(value)) continue;
    const bool taken = (!tied && as_many_entries(value, 3 * kTile + 1)) || numbered.count(value) ||
                       as_many_entries(value, 33);
    if (!taken && of.numbers.count(value)) unreached.push_back(value);
  }
  std::sort(unreached.begin(), unreached.end());
  unreached.erase(std::unique(unreached.begin(), unreached.end()), unreached.end());
  return cases;
}

}  // namespace kw::check
