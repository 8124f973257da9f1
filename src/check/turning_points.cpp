#include "check/turning_points.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/family.h"
#include "check/spread.h"
#include "operator/family.h"
#include "tl/scope/scope.h"

namespace kw::check {
namespace {

constexpr int64_t kCovered = 256, kFarthest = int64_t{1} << 20;

void add(int64_t value, std::set<int64_t>& to) {
  value = std::abs(value);
  if (value >= kCovered && value <= kFarthest) to.insert(value);
}

void numbers_of(const spec::ExprPtr& of, std::set<int64_t>& all) {
  spec::ExprPtr e = of;
  spec::rewrite(e, [&](const spec::ExprPtr& part) {
    if (part->kind == spec::Kind::number && part->type == spec::Type::integer)
      add(part->integer, all);
    return spec::ExprPtr();
  });
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
  numbers_of(of, all);
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

// Every integer of a program's statements but the parameters, and what is divided by several of
// them in turn; of the parameters the tiles' sizes, how much one step of a product sums up, and
// what a function of the program's counts blocks by. What a size is a multiple of, blocks may be
// counted by too: `R: size = B * 16` are the rows of a scratch in which 16 blocks take turns.
struct Numbers {
  std::set<int64_t> numbers, tiles, steps, counts;
};

// a // 64 // 64   ->   4096: 1 where e is no quotient.
int64_t divisor_of(const tl::ExprPtr& e, const std::map<std::string, int64_t>& parameters) {
  if (e->kind != tl::ExprKind::binary || e->text != "//") return 1;
  const tl::ExprPtr& by = e->args[1];
  const auto known = parameters.find(by->kind == tl::ExprKind::name ? by->text : "");
  const int64_t own = by->kind == tl::ExprKind::integer ? std::stoll(by->text)
                      : known != parameters.end()       ? known->second
                                                        : 0;
  const int64_t inner = divisor_of(e->args[0], parameters);
  return own > 0 && inner <= kFarthest / own ? own * inner : kFarthest + 1;
}

bool reads(const tl::Stmt& s, const std::string& name) {
  for (const tl::Field& field : s.fields)
    for (const tl::Item& item : field.items)
      if (tl::mentions(item.expr, name)) return true;
  return false;
}

Numbers of_program(const tl::Program& program) {
  Numbers out;
  std::map<std::string, int64_t> parameters;
  const auto literals = [](const tl::ExprPtr& e, const auto& take) {
    tl::rewrite(e, [&](const tl::ExprPtr& part) {
      if (part->kind == tl::ExprKind::integer) take(std::stoll(part->text));
      return tl::ExprPtr();
    });
  };
  tl::walk(program.body, [&](const tl::Stmt& s) {
    for (const tl::Field& field : s.fields)
      for (const tl::Item& item : field.items) {
        if (!item.expr) continue;
        if (s.op == tl::Op::param && item.expr->kind == tl::ExprKind::integer)
          parameters[item.name] = std::stoll(item.expr->text);
        tl::rewrite(item.expr, [&](const tl::ExprPtr& part) {
          const int64_t by = divisor_of(part, parameters);
          if (by >= kCovered && by <= kFarthest) out.numbers.insert(by);
          return tl::ExprPtr();
        });
        if (s.op != tl::Op::param)
          literals(item.expr, [&](int64_t value) { out.numbers.insert(value); });
        if (s.op == tl::Op::arg_size)
          tl::rewrite(item.expr, [&](const tl::ExprPtr& part) {
            if (part->kind == tl::ExprKind::binary && part->text == "*" &&
                part->args[1]->kind == tl::ExprKind::integer && part->args[1]->text.size() < 6)
              if (const int64_t by = std::stoll(part->args[1]->text); by > 4) out.counts.insert(by);
            return tl::ExprPtr();
          });
        else if (item.name == "BM" || item.name == "BN" || item.name == "BK")
          literals(item.expr, [&](int64_t value) {
            (item.name == "BK" ? out.steps : out.tiles).insert(value);
          });
      }
  });
  for (const tl::Stmt& s : program.body)
    if (s.op == tl::Op::def)
      tl::walk(s.body, [&](const tl::Stmt& inside) {
        for (const auto& [name, value] : parameters)
          if (value > 4 && !out.tiles.contains(value) && reads(inside, name))
            out.counts.insert(value);
      });
  return out;
}

// What a product is summed over, where a number of the program's may count its steps, or be that
// size: a step beyond, and all but one column of one.
std::set<int64_t> depths(const Numbers& of) {
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

// Sizes of a case.
struct Sizes {
  int64_t m = 0, n = 0, point = 0, b = 1;
  Planted planted = Planted::none;
};

}  // namespace

namespace {
std::vector<int64_t> turning_points(const Numbers& of, const spec::Form& form, bool proved) {
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

std::vector<int64_t> turning_points(const tl::Program& program, const spec::Form& form,
                                    bool proved) {
  return turning_points(proved ? Numbers{} : of_program(program), form, proved);
}

std::set<int64_t> numbers_of(const tl::Program& program) { return of_program(program).numbers; }

std::vector<Case> cases_beyond(const tl::Program& program, const spec::Capture& capture,
                               const Options& options, bool proved,
                               std::vector<int64_t>& unreached) {
  constexpr int64_t kFew = 65, kShort = 17, kTile = 128, kMany = 67;
  constexpr uint64_t kSalt = 30000;
  const spec::Form& form = capture.form;
  int64_t scores = options.further_scores;
  std::vector<Case> cases;
  if (capture.cases.empty()) return cases;
  const auto take = [&](Case c, size_t k) {
    const int64_t work = scores_of(form, c);
    if (work > scores) return false;
    scores -= work;
    c.grid = 1 + int(k % 3);
    cases.push_back(std::move(c));
    return true;
  };
  const bool rows = !form.M.name.empty(), keys = !form.N.name.empty(),
             tied = rows && form.M.name == form.N.name;
  const auto one_head = [&](Case& c) {  // of one row all heads are a tile
    if (!rows || !spec::heads_are_alike(form)) return;
    c.heads.resize(1);
    c.key_heads = 1;
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

  const Numbers of = proved ? Numbers{} : of_program(program);
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
    if (!take(std::move(c), 1)) unreached.push_back(depth);
  }
  std::vector<Sizes> sizes;
  for (int64_t p : turning_points(of, form, proved)) {
    for (int64_t size : {p - 1, p, p + 1, p + kTile + 1}) {
      if (!tied && keys) sizes.push_back({kFew, size, 0});
      if (!tied && rows) sizes.push_back({size, kFew, 0});
      if (tied) sizes.push_back({size, size, p});
    }
    if (!tied && rows && keys) sizes.push_back({p + kFew, 200, 0});
    if (!tied && rows && keys) sizes.push_back({p + kFew, p + kFew, p});
    // And integers of the data all over so many keys; of one query a row of them is an entry's.
    if (keys && has_spread(form))
      sizes.push_back(
          {tied ? p + kTile + 1 : kFew, p + kTile + 1, 0, rows ? 1 : 8, Planted::spread});
  }
  // A block beyond so many that the program counts them by.
  for (const int64_t count : of.counts)
    for (const int64_t tile : of.tiles)
      if (rows && keys && count * tile <= kFarthest) {
        const int64_t beyond = count * tile + kTile + 1;
        sizes.push_back({beyond, tied ? beyond : 300, 0});
        if (!tied) sizes.push_back({300, beyond, 0});
      }
  // So many more rows than keys that a window has left the last key behind: a row without a key is
  // another formula.
  if (!tied && rows && keys)
    for (const int64_t p : of_form(form, Part::masks)) sizes.push_back({p + 200 + kFew, 200, 0});
  std::stable_sort(sizes.begin(), sizes.end(), [](const Sizes& a, const Sizes& b) {
    return a.b * a.m * a.n < b.b * b.m * b.n;
  });
  std::set<int64_t> due, done;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto& [m, n, point, b, planted] = sizes[k];
    if (point) due.insert(point);
    Case c = case_of(capture, b, m, n, kSalt + 2 + k + (options.rehearsal << 20));
    choose_heads(form, c, false);
    one_head(c);
    c.planted = planted;
    if (take(std::move(c), k) && point) done.insert(point);
  }
  for (int64_t p : due)
    if (!done.count(p)) unreached.push_back(p);
  if (tied) entries_and_blocks();
  // Last, with what is left of the work: a number may be that of a batch entry, or of a block of
  // the output. Entries of one block then.
  for (const int64_t value : of.numbers) {
    if (form.B.name.empty() || value <= kMany || value > kFarthest) continue;
    Case c = case_of(capture, value + 2, 17, 33, kSalt + 2 + (options.rehearsal << 20));
    choose_heads(form, c, false);
    one_head(c);
    if (!take(std::move(c), 1)) unreached.push_back(value);
  }
  return cases;
}

}  // namespace kw::check
