// The table of tiles beside kernels that are not the expert's, and targets that it lacks.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "tl/laws/laws.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

std::string kernel_text() {
  return read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl"))->text;
}

// The kernel with parts of its text replaced.
tl::Program kernel(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  std::string text = kernel_text();
  for (const auto& [from, to] : changes) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  Diagnostics d;
  const auto program = tl::parse(make_source("kernel.tl", text), d);
  EXPECT_TRUE(program) << render(d);
  return *program;
}

std::string refusal(const tl::Program& source, const char* form, const Target& target) {
  Diagnostics d;
  EXPECT_FALSE(transfer(source, form_of(form), target, d));
  return d.all().empty() ? "" : d.all()[0].message + "\n" + d.all()[0].hint;
}

// The shipped rows, but another target.
Target for_target(const char* name) { return {name, sm_90a().tiles}; }

// The shipped rows behind these.
Target with_users(const std::string& rows) {
  Diagnostics d;
  const auto read = read_tiles(make_source("mine.json", "{\"rows\": [" + rows + "]}"), d);
  EXPECT_TRUE(read) << render(d);
  Target target = sm_90a();
  target.tiles.insert(target.tiles.begin(), read->rows.begin(), read->rows.end());
  for (size_t n = 0; n < read->rows.size(); ++n) target.tiles[n].users = true;
  return target;
}

bool has(const Result& result, const std::string& line) {
  return tl::print(result.program).find(line) != std::string::npos;
}

// Every row for plain and causal attention of these dimensions, best first.
std::vector<Result> all_rows(const std::string& dims, const char* keep,
                             const std::string& target = "sm_90a") {
  const tl::Program source = kernel_of(target);
  std::vector<Result> out;
  do {
    Diagnostics d;
    const auto form = form_of("head_dim " + dims + "\nscore s\n" + keep);
    auto result = transfer(source, form, target_of(target, static_cast<int>(out.size())), d);
    EXPECT_TRUE(result) << dims << "\n" << render(d);
    if (!result) return out;
    out.push_back(std::move(*result));
  } while (out.back().roomier);
  return out;
}

TEST(Tiles, every_row_is_lawful) {
  for (const char* dims : {"64", "96", "128", "256", "192 128"})
    for (const char* keep : {"", "keep j <= i\n"})
      for (const Result& result : all_rows(dims, keep)) {
        Diagnostics d;
        EXPECT_TRUE(tl::verify(result.program, d)) << dims << "\n" << render(d);
      }
}

TEST(Tiles, every_row_of_the_kernel_without_a_loader_is_lawful) {
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90"})
    for (const char* dims : {"64", "128", "256"})
      for (const Result& result : all_rows(dims, "keep j <= i\n", target)) {
        Diagnostics d;
        EXPECT_TRUE(tl::verify(result.program, d)) << target << " " << dims << "\n" << render(d);
      }
  EXPECT_EQ(all_rows("128", "", "sm_80").size(), 4u);
}

TEST(Tiles, roomier_rows_follow_the_best) {
  const std::vector<Result> rows = all_rows("64", "");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(has(rows[0], "param BM = 384, BN = 128, CTAS = 2"));
  EXPECT_TRUE(has(rows[1], "param BM = 384, BN = 96, CTAS = 2"));
  EXPECT_TRUE(has(rows[2], "param BM = 256, BN = 128, CTAS = 2"));
  EXPECT_TRUE(has(rows[3], "param BM = 256, BN = 96, CTAS = 2"));
  const std::vector<Result> own = all_rows("128", "");
  ASSERT_EQ(own.size(), 8u);
  EXPECT_TRUE(has(own[0], "BN = 128") && has(own[0], "toggle CHECK_LATE = true"));
  EXPECT_TRUE(has(own[1], "BN = 128") && has(own[1], "toggle Q_IN_REGISTERS = false"));
  EXPECT_TRUE(has(own[2], "BN = 112") && has(own[2], "toggle CHECK_LATE = true"));
  EXPECT_TRUE(has(own[3], "BN = 128") && has(own[3], "toggle CHECK_LATE = false"));
  EXPECT_TRUE(has(own[7], "BN = 64") && has(own[7], "toggle CHECK_LATE = false"));
}

TEST(Tiles, a_mask_that_leaves_a_row_a_part_of_the_keys_has_small_tiles) {
  const std::pair<const char*, bool> masks[] = {
      {"score s\nkeep j <= i and i - 64 < j\n", true},
      {"score s\nkeep j < 4 or j <= i and i - 64 < j\n", true},
      {"score s\nkeep i % 512 // 64 == j % 512 // 64\n", true},
      {"argument doc i32[B, N]\nscore s\nkeep doc[b, i] == doc[b, j]\n", true},
      {"argument tree i32[M, N]\nscore s\nkeep tree[i, j] > 0\n", true},
      {"score s\nkeep j < 4 or j <= i and i - 1024 < j\n", true},
      {"score s\nkeep j <= i\n", false},
      {"score s\nkeep j <= i and i - 1024 < j\n", false},
      {"argument first i32[B, M]\nscore s\nkeep first[b, i] <= j\n", false},
      {"argument prefix i32[B]\nscore s\nkeep j <= i or j < prefix[b]\n", false},
      {"argument seen i32[B, N]\nscore s\nkeep j <= i and seen[b, j] > 0\n", false},
      {"argument width i32[H]\nscore s\nkeep j <= i and i - width[h] < j\n", false},
  };
  for (const auto& [form, sparse] : masks) {
    Diagnostics d;
    const auto made = transfer(kernel(), form_of(form), sm_90a(), d);
    ASSERT_TRUE(made) << form << render(d);
    EXPECT_EQ(made->keys == Keys::sparse, sparse) << form;
    EXPECT_EQ(has(*made, "param BM = 128, BN = 128, CTAS = 1"), sparse) << form;
  }
}

TEST(Tiles, another_target_has_none_of_this_one_s_rows) {
  EXPECT_EQ(refusal(kernel(), "head_dim 64\nscore s\n", for_target("sm_80")),
            "the head dimension is 64, for which this kernel has no tiles\n"
            "supported are 128; pad with zeros to 128, and keep the scale of the true size; or a "
            "model may be asked");
}

TEST(Tiles, the_kernel_s_own_head_dimension_needs_no_row) {
  Diagnostics d;
  EXPECT_TRUE(transfer(kernel(), form_of("score s\n"), for_target("sm_80"), d)) << render(d);
}

TEST(Tiles, what_the_text_says_of_its_own_head_dimension_stays) {
  const tl::Program source = kernel({{"param D = 128, V = 128", "param D = 64, V = 64"},
                                     {"BM = 256, BN = 128", "BM = 128, BN = 96"}});
  Diagnostics d;
  const auto own = transfer(source, form_of("head_dim 64\nscore s\nkeep j <= i\n"), sm_90a(), d);
  ASSERT_TRUE(own) << render(d);
  EXPECT_TRUE(has(*own, "param BM = 128, BN = 96, CTAS = 2"));
  const auto other = transfer(source, form_of("head_dim 128\nscore s\n"), sm_90a(), d);
  ASSERT_TRUE(other) << render(d);
  EXPECT_TRUE(has(*other, "param D = 128, V = 128\nparam BM = 256, BN = 128, CTAS = 2"));
}

constexpr const char* kMine = R"({"targets": ["sm_90a"], "D": 128, "V": 128, "keys": "by_row",
    "constants": {"BM": 384, "PING_PONG": true}, "why": "mine"})";

TEST(Tiles, the_user_s_rows_come_before_the_shipped_ones) {
  Diagnostics d;
  const auto causal = form_of("score s\nkeep j <= i\n");
  Target target = with_users(kMine);
  const auto mine = transfer(kernel(), causal, target, d);
  ASSERT_TRUE(mine) << render(d);
  EXPECT_TRUE(has(*mine, "param BM = 384, BN = 128") && has(*mine, "toggle PING_PONG = true"));
  EXPECT_TRUE(mine->roomier);
  target.tried = 1;
  const auto shipped = transfer(kernel(), causal, target, d);
  ASSERT_TRUE(shipped) << render(d);
  EXPECT_TRUE(has(*shipped, "param BM = 256, BN = 128") && has(*shipped, "PING_PONG = false"));
  EXPECT_TRUE(shipped->roomier);
  const auto full = transfer(kernel(), form_of("score s\n"), with_users(kMine), d);
  ASSERT_TRUE(full) << render(d);
  EXPECT_TRUE(has(*full, "param BM = 256, BN = 128")) << "the row is for other keys";
}

TEST(Tiles, the_user_s_rows_come_before_what_a_text_says_of_its_own) {
  Diagnostics d;
  const tl::Program source = kernel({{"BN = 128", "BN = 96"}});
  const auto causal = form_of("score s\nkeep j <= i\n");
  const auto mine = transfer(source, causal, with_users(kMine), d);
  ASSERT_TRUE(mine) << render(d);
  EXPECT_TRUE(has(*mine, "param BM = 384, BN = 96"));
  const auto own = transfer(source, causal, sm_90a(), d);
  ASSERT_TRUE(own) << render(d);
  EXPECT_TRUE(has(*own, "param BM = 256, BN = 96"));
}

TEST(Tiles, a_text_with_the_table_s_constants_takes_the_row_of_its_case) {
  Target target = sm_90a();
  Tiles row;
  for (const Tiles& shipped : target.tiles)
    if (shipped.dim == 128) row = shipped;
  row.keys = Keys::by_row;
  target.tiles.insert(target.tiles.begin(), row);
  target.tiles[0].constants = {{"BN", 112}};
  Diagnostics d;
  const auto causal = transfer(kernel(), form_of("score s\nkeep j <= i\n"), target, d);
  ASSERT_TRUE(causal) << render(d);
  EXPECT_TRUE(has(*causal, "param BM = 256, BN = 112"));
}

TEST(Tiles, the_expert_s_text_has_constants_that_stand_in_the_table) {
  Target target = sm_90a();
  for (Tiles& row : target.tiles)
    if (row.dim == 128) row.constants.push_back({"BN", 8});
  Diagnostics d;
  const auto changed = transfer(kernel(), form_of("score s\n"), target, d);
  const auto plain = transfer(kernel(), form_of("score s\n"), sm_90a(), d);
  ASSERT_TRUE(changed && plain) << render(d);
  EXPECT_TRUE(has(*changed, "BN = 128")) << "constants in no row stay";
  EXPECT_EQ(all_rows("128", "").size(), 8u) << "the text's constants are those of the first row";
  for (const AppliedRule& rule : plain->rules) EXPECT_NE(rule.name, "tiles");
}

TEST(Tiles, a_kernel_without_a_constant_of_the_row_is_refused_by_the_constant) {
  const tl::Program source = kernel({{"STAGES", "SLOTS_OF_K"}});
  EXPECT_EQ(refusal(source, "head_dim 64\nscore s\n", sm_90a()),
            "this kernel has no constant STAGES, which its tiles set (" + in_clone() +
                "/kernels/sm90/tiles.json: rows[3])\n"
                "rows are for one kernel's text: see its targets; or a model may be asked");
}

TEST(Tiles, one_letter_for_all_columns_takes_one_head_dimension) {
  const tl::Program source =
      kernel({{"param D = 128, V = 128", "param D = 128"}, {", V]", ", D]"}});
  Diagnostics d;
  const auto same = transfer(source, form_of("head_dim 64\nscore s\n"), sm_90a(), d);
  ASSERT_TRUE(same) << render(d);
  EXPECT_TRUE(has(*same, "param D = 64\n"));
  EXPECT_NE(refusal(source, "head_dim 192 128\nscore s\n", sm_90a()).find("192, and 128 for v"),
            std::string::npos);
}

TEST(Tiles, q_may_stay_in_shared_memory) {
  const tl::Program source = kernel(
      {{"wgmma s = q_r @", "wgmma s = q_s[me][u] @"}, {"load q_s[me][u] -> q_r", "fence_async"}});
  Diagnostics d;
  const auto result = transfer(source, form_of("dims b i h d\nscore s\n"), sm_90a(), d);
  ASSERT_TRUE(result) << render(d);
  EXPECT_EQ(result->bindings[0].argument, "q");
}

}  // namespace
}  // namespace kw::transfer
