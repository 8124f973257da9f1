// How many key blocks are visited beside those that are needed, for the masks of examples/ that are
// formulas. A key block is needed for some query rows if one of them keeps one of its keys.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "transfer/transfer.h"
#include "transfer_evaluate.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

struct Mask {
  const char *name, *keep;
};
constexpr Mask kMasks[] = {
    {"causal", "j <= i"},
    {"bottom_right", "j <= i + N - M"},
    {"block_causal", "j // 256 <= i // 256"},
    {"chunked", "j <= i and j // 512 == i // 512"},
    {"sliding_window", "i - 1024 < j and j <= i"},
    {"symmetric window", "abs(i - j) <= 200"},
    {"streaming", "j <= i and (j < 4 or i - 512 < j)"},
    {"longformer", "abs(i - j) < 256 or j < 16 or i < 16"},
    {"global_window", "j <= i and (i - j < 512 or j < 16 or i < 16)"},
    {"neighborhood", "abs(min(max(i, 63), N - 64) - j) <= 63"},
    {"grid_window", "abs(i // 32 - j // 32) <= 6 and abs(i % 32 - j % 32) <= 6"},
    {"dilated", "j <= i and (i - j) % 4 == 0"},
    {"dilated_window", "0 <= i - j and i - j < 512 and (i - j) % 2 == 0"},
    {"prefix and window", "j < 300 or j <= i and i - 128 < j"},
};

struct Kernel {
  const char* target;
  int64_t rows, warpgroup_rows;
};
constexpr Kernel kKernels[] = {{"sm_90a", 256, 64}, {"sm_80", 128, 128}};

struct Count {
  int64_t visited = 0, needed = 0;
  double ratio() const { return double(visited) / double(std::max<int64_t>(needed, 1)); }
};

// The key blocks that hold a key which one of the rows keeps: every 16th row, and the first and
// the last, which for these masks is all.
std::set<int64_t> needed(const spec::ExprPtr& keep, int64_t M, int64_t N, int64_t i0, int64_t rows,
                         int64_t keys) {
  std::set<int64_t> out;
  spec::Scope scope;
  scope.indices = {{"M", M}, {"N", N}, {"b", 0}, {"h", 0}};
  const int64_t last = std::min(M, i0 + rows) - 1;
  for (int64_t i = i0; i <= last; i = i < last ? std::min(last, i + 16) : last + 1)
    for (int64_t j = 0; j < N; ++j) {
      if (out.count(j / keys)) {
        j = j / keys * keys + keys - 1;
        continue;
      }
      scope.indices["i"] = i;
      scope.indices["j"] = j;
      if (spec::evaluate(keep, scope) != 0) out.insert(j / keys);
    }
  return out;
}

int64_t parameter(const tl::Program& p, const std::string& name) {
  int64_t out = 0;
  tl::walk(p.body, [&](const tl::Stmt& s) {
    if (s.op != tl::Op::param) return;
    for (const tl::Item& d : s.names())
      if (d.name == name) out = std::stoll(d.expr->text);
  });
  return out;
}

// Adds what is visited and needed for rows of one block of the output.
void count(const tl::Program& p, const spec::ExprPtr& keep, const Kernel& k, int64_t M, int64_t N,
           int64_t i0, int64_t rows, Count& sum) {
  const int64_t keys = parameter(p, "BN");
  Values values;
  values.names = {{"M", M},   {"N", N},   {"BM", k.rows}, {"BN", keys},  {"c.m", i0 / k.rows},
                  {"c.b", 0}, {"c.h", 0}, {"i0", i0},     {"rows", rows}};
  const auto range = fields_of(p, "key_blocks", values);
  const int64_t first = range.count("first") ? int64_t(range.at("first")) : 0;
  const std::set<int64_t> need = needed(keep, M, N, i0, rows, keys);
  sum.visited += int64_t(range.at("count")) - first;
  sum.needed += int64_t(need.size());
}

struct Precision {
  Count clusters, warpgroups;
};

Precision precision(const Mask& mask, const Kernel& k) {
  Diagnostics d;
  const spec::Form form = form_of(std::string("score s\nkeep ") + mask.keep + "\n");
  const auto result = transfer(kernel_of(k.target), form, target_of(k.target), d);
  Precision out;
  EXPECT_TRUE(result) << render(d);
  if (!result) return out;
  for (const auto& [M, N] : {std::pair<int64_t, int64_t>{2000, 2000}, {700, 1300}})
    for (int64_t i0 = 0; i0 < M; i0 += k.rows) {
      count(result->program, form.terms[0].keep, k, M, N, i0, k.rows, out.clusters);
      for (int64_t w = i0; w < std::min(M, i0 + k.rows); w += k.warpgroup_rows)
        count(result->program, form.terms[0].keep, k, M, N, w, k.warpgroup_rows, out.warpgroups);
    }
  return out;
}

TEST(Precision, a_tenth_of_the_visited_key_blocks_at_most_is_not_needed) {
  std::string table = fmt::format("{:20} {:8} {:>9} {:>9}\n", "", "", "cluster", "warpgroup");
  double worst = 0;
  for (const Kernel& k : kKernels)
    for (const Mask& mask : kMasks) {
      const Precision p = precision(mask, k);
      table += fmt::format("{:20} {:8} {:9.3f} {:9.3f}\n", mask.name, k.target, p.clusters.ratio(),
                           p.warpgroups.ratio());
      worst = std::max({worst, p.clusters.ratio(), p.warpgroups.ratio()});
      EXPECT_GE(p.clusters.ratio(), 1) << mask.name;
    }
  EXPECT_LE(worst, 1.1) << table;
}

}  // namespace
}  // namespace kw::transfer
