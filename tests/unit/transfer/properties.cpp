// Random predicates against what the library says of them. KW_SEED and KW_CASES choose others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "transfer/masks/key_ranges.h"
#include "transfer/masks/predicate_intervals.h"
#include "transfer/transfer.h"
#include "transfer_evaluate.h"
#include "transfer_form.h"
#include "transfer_random.h"

namespace kw::transfer {
namespace {

// A kernel of the corpus: BM, BN, and the query rows of a warpgroup that visits key blocks of its
// own.
struct Corpus {
  const char* target;
  int rows, keys, warpgroup_rows;
};
constexpr Corpus kHopper = {"sm_90a", 256, 128, 64}, kAmpere = {"sm_80", 128, 64, 128};

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// One launch: sizes and data.
struct Launch {
  int64_t M, N, B, window;
  std::map<std::string, std::vector<int64_t>> data;

  Launch(Predicates& random) {
    M = 1 + random.below(700);
    N = 1 + random.below(400);
    B = 1 + random.below(3);
    window = random.below(200) - 20;
    for (const char* tensor : {"prefix", "last"})
      for (int64_t b = 0; b < B; ++b) data[tensor].push_back(random.below(N + 60) - 30);
  }

  spec::Scope scope(int64_t b, int64_t i, int64_t j) const {
    spec::Scope s;
    s.indices = {{"b", b}, {"h", 0}, {"i", i}, {"j", j}, {"M", M}, {"N", N}};
    s.scalars = {{"window", window}};
    s.read = [this](const std::string& t, const std::vector<int64_t>& at) {
      return double(data.at(t).at(at[0]));
    };
    return s;
  }

  Values values(const Corpus& k, int64_t b, int64_t m) const {
    Values v;
    v.names = {{"M", M},       {"N", N},       {"B", B},          {"H", 32},  {"G", 8},
               {"BM", k.rows}, {"BN", k.keys}, {"D", 128},        {"c.m", m}, {"c.b", b},
               {"c.h", 0},     {"me", 0},      {"window", window}};
    v.read = [this](const std::string& t, const std::vector<int64_t>& at) {
      return double(data.at(t).at(at[0]));
    };
    return v;
  }
};

bool keeps(const spec::ExprPtr& e, const spec::Scope& s) { return spec::evaluate(e, s) != 0; }

std::string at(const spec::ExprPtr& e, const Launch& l, int64_t b, int64_t i, int64_t j) {
  return print(e) + " at b=" + std::to_string(b) + " i=" + std::to_string(i) +
         " j=" + std::to_string(j) + " M=" + std::to_string(l.M) + " N=" + std::to_string(l.N);
}

TEST(Properties, a_box_that_is_all_kept_drops_nothing_and_one_of_none_keeps_nothing) {
  Predicates random(setting("KW_SEED", 1));
  int decided = 0;
  for (int64_t n = setting("KW_CASES", 3000); n-- > 0;) {
    const spec::ExprPtr keep = random.predicate(3);
    const Launch l(random);
    const int64_t b = random.below(l.B), i0 = random.below(l.M), j0 = random.below(l.N);
    const int64_t i1 = i0 + random.below(40), j1 = j0 + random.below(40);
    Box box;
    box.names = {{"b", {double(b), double(b)}},
                 {"i", {double(i0), double(i1)}},
                 {"j", {double(j0), double(j1)}},
                 {"M", {double(l.M), double(l.M)}},
                 {"N", {double(l.N), double(l.N)}}};
    box.names["window"] = {double(l.window), double(l.window)};
    box.read = [&](const std::string& t, const std::vector<Interval>& where) {
      const double x = l.data.at(t).at(static_cast<size_t>(where[0].low));
      return Interval{x, x};
    };
    const Kept verdict = kept(keep, box);
    decided += verdict != Kept::partial;
    if (verdict == Kept::partial) continue;
    for (int64_t i = i0; i <= i1; ++i)
      for (int64_t j = j0; j <= j1; ++j)
        ASSERT_EQ(keeps(keep, l.scope(b, i, j)), verdict == Kept::all) << at(keep, l, b, i, j);
  }
  EXPECT_GT(decided, setting("KW_CASES", 3000) / 4);  // it does decide something
}

TEST(Properties, bounds_on_the_keys_say_what_the_predicate_says) {
  Predicates random(setting("KW_SEED", 2));
  const spec::ExprPtr keys = spec::leaf(spec::Kind::size, spec::Type::integer, "N");
  int exact = 0;
  for (int64_t n = setting("KW_CASES", 3000); n-- > 0;) {
    const spec::ExprPtr keep = random.predicate(3);
    const Launch l(random);
    const auto bounds = key_bounds(keep, keys);
    const KeyRanges ranges = key_ranges(keep, keys);
    ASSERT_LE(ranges.cover.size(), 2u);
    exact += bounds.has_value();
    for (int sample = 0; sample < 60; ++sample) {
      const int64_t b = random.below(l.B), i = random.below(l.M), j = random.below(l.N);
      const spec::Scope s = l.scope(b, i, j);
      const bool kept = keeps(keep, s);
      const auto value = [&](const spec::ExprPtr& e) { return spec::evaluate(e, s); };
      if (bounds) {
        const bool inside = (!bounds->lower || value(bounds->lower) <= j) &&
                            (!bounds->upper || j < value(bounds->upper));
        ASSERT_EQ(inside, kept) << at(keep, l, b, i, j);
      }
      const auto in = [&](const KeyBounds& k) {
        return (!k.lower || value(k.lower) <= j) && (!k.upper || j < value(k.upper));
      };
      if (kept) {
        ASSERT_TRUE(std::any_of(ranges.cover.begin(), ranges.cover.end(), in))
            << at(keep, l, b, i, j);
      }
      if (std::any_of(ranges.whole.begin(), ranges.whole.end(), in)) {
        ASSERT_TRUE(kept) << at(keep, l, b, i, j);
      }
    }
  }
  EXPECT_GT(exact, setting("KW_CASES", 3000) / 4);
}

// Visits count - 1 ... first, of which full - 1 ... full_from without the mask.
struct Range {
  int64_t first, count, full, full_from;
  std::map<int64_t, int64_t> visit_of;  // key block -> visit
};

Range range_of(const tl::Program& p, const Values& values) {
  const auto field = fields_of(p, "key_blocks", values);
  const auto get = [&](const char* name) {
    return field.count(name) ? static_cast<int64_t>(field.at(name)) : 0;
  };
  Range r{get("first"), get("count"), get("full"), get("full_from"), {}};
  Values at = values;
  for (int64_t n = r.first; n < r.count; ++n) {
    at.names["n"] = double(n);
    const int64_t block =
        has_function(p, "key_block") ? static_cast<int64_t>(call(p, "key_block", at).at(0)) : n;
    EXPECT_TRUE(r.visit_of.emplace(block, n).second) << "key block " << block << " twice";
  }
  return r;
}

// What the rules wrote into the kernel for some query rows, evaluated, against the predicate.
Range check_rows(const Corpus& k, const tl::Program& p, const spec::ExprPtr& keep, const Launch& l,
                 int64_t b, int64_t i0, int64_t rows) {
  Values values = l.values(k, b, i0 / k.rows);
  values.names["i0"] = double(i0);
  values.names["rows"] = double(rows);
  const Range r = range_of(p, values);
  const std::string where = print(keep) + " row " + std::to_string(i0);
  for (const auto& [name, value] : fields_of(p, "key_blocks", values))
    EXPECT_GE(value, 0) << name << " of " << where;
  EXPECT_LT(r.first, r.count) << where;
  EXPECT_LE(r.visit_of.rbegin()->first, (l.N - 1) / k.keys) << where;
  EXPECT_GE(r.visit_of.begin()->first, 0) << where;
  for (int64_t i = i0; i < std::min(l.M, i0 + rows); i += 5)
    for (int64_t j = 0; j < (l.N + k.keys - 1) / k.keys * k.keys; j += 3) {
      const bool kept = j < l.N && keeps(keep, l.scope(b, i, j));
      const auto visit = r.visit_of.find(j / k.keys);
      if (visit == r.visit_of.end()) {
        EXPECT_FALSE(kept) << at(keep, l, b, i, j);
      } else if (visit->second < r.full && visit->second >= r.full_from) {
        EXPECT_TRUE(kept) << at(keep, l, b, i, j);
      }
      if (j % 7 == 0 && j < l.N && visit != r.visit_of.end()) {
        values.names["i"] = double(i);
        values.names["j"] = double(j);
        values.names["i0"] = double(i / k.warpgroup_rows * k.warpgroup_rows);
        values.names["n"] = double(visit->second);
        EXPECT_EQ(mask_keeps(p, values) != 0, kept) << at(keep, l, b, i, j);
      }
      if (testing::Test::HasFailure()) return r;
    }
  return r;
}

// A warpgroup visits key blocks that its cluster loads, and the others go by.
void check_tile(const Corpus& k, const tl::Program& p, const spec::ExprPtr& keep, const Launch& l,
                int64_t b, int64_t m) {
  const Range all = check_rows(k, p, keep, l, b, m * k.rows, k.rows);
  for (int64_t i0 = m * k.rows; i0 < (m + 1) * k.rows; i0 += k.warpgroup_rows) {
    const Range mine = check_rows(k, p, keep, l, b, i0, k.warpgroup_rows);
    EXPECT_GE(mine.first, all.first) << print(keep) << " row " << i0;
    EXPECT_LE(mine.count, all.count) << print(keep) << " row " << i0;
  }
}

void check_mask_and_key_range(const Corpus& k, int64_t seed, int64_t predicates) {
  Predicates random(seed);
  const tl::Program source = kernel_of(k.target);
  const Target target = target_of(k.target);
  for (int64_t n = predicates; n-- > 0;) {
    spec::Form form =
        form_of("argument prefix i32[B]\nargument last i32[B]\nargument window i32\nscore s\n");
    form.terms[0].keep = n % 8 ? random.predicate(3) : random.window_and_first();
    Diagnostics d;
    const auto result = transfer(source, form, target, d);
    ASSERT_TRUE(result) << render(d) << print(form.terms[0].keep);
    if (result->program.find(tl::Op::lists)) continue;  // lists.cpp
    Launch l(random);
    if (n % 8 == 0) {  // long enough for a hole of whole key blocks
      l.M = 1 + random.below(1500);
      l.N = 1 + random.below(1500);
    }
    const int64_t tiles = (l.M + k.rows - 1) / k.rows;
    check_tile(k, result->program, form.terms[0].keep, l, random.below(l.B), random.below(tiles));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Properties, the_kernel_s_mask_and_key_range_are_the_predicate_s) {
  check_mask_and_key_range(kHopper, setting("KW_SEED", 3), setting("KW_CASES", 3000) / 15);
}

TEST(Properties, so_are_those_of_the_kernel_without_a_loader) {
  check_mask_and_key_range(kAmpere, setting("KW_SEED", 4), setting("KW_CASES", 3000) / 30);
}

TEST(Properties, every_block_of_the_output_has_one_number_in_either_order) {
  Diagnostics d;
  const auto causal = transfer(kernel_of("sm_90a"), form_of("score s\nkeep j <= i\n"), sm_90a(), d);
  ASSERT_TRUE(causal) << render(d);
  for (const int64_t section : {1, 4, 8, 64}) {
    const int64_t B = 2, H = 32, M = 1000, rows = 4;
    std::vector<int> seen(B * H * rows, 0);
    double last_row = 1e9;
    for (int64_t w = 0; w < B * H * rows; ++w) {
      Values v;
      v.names = {{"w", w}, {"M", M}, {"BM", kHopper.rows}, {"H", H}, {"section", section}};
      const std::vector<double> c = call(causal->program, "block_of", v);
      ++seen.at(static_cast<size_t>((c[2] * H + c[1]) * rows + c[0]));
      if (w % (section * rows) != 0) {
        ASSERT_LE(c[0], last_row) << "longest first in a section";
      }
      last_row = c[0];
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace kw::transfer
