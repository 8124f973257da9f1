// The table of tiles beside kernels that are not the expert's, and targets that it lacks.
#include <gtest/gtest.h>

#include "tl/laws.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

std::string kernel_text() {
  return read_source(KW_SOURCE_DIR "/tests/corpus/sm90_attention_fwd.tl")->text;
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

std::string refusal(const tl::Program& source, const char* form, const char* target) {
  Diagnostics d;
  EXPECT_FALSE(transfer(source, form_of(form), {target}, d));
  return d.all().empty() ? "" : d.all()[0].message + "\n" + d.all()[0].hint;
}

bool has(const Result& result, const std::string& line) {
  return tl::print(result.program).find(line) != std::string::npos;
}

// Every row for plain and causal attention of these dimensions, best first.
std::vector<Result> all_rows(const std::string& dims, const char* keep) {
  std::vector<Result> out;
  do {
    Diagnostics d;
    const auto form = form_of("head_dim " + dims + "\nscore s\n" + keep);
    auto result = transfer(kernel(), form, {"sm_90a", static_cast<int>(out.size())}, d);
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

TEST(Tiles, roomier_rows_follow_the_best) {
  const std::vector<Result> rows = all_rows("64", "");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(has(rows[0], "param BM = 384, BN = 128, CTAS = 2"));
  EXPECT_TRUE(has(rows[1], "param BM = 384, BN = 96, CTAS = 2"));
  EXPECT_EQ(all_rows("128", "").size(), 1u);
}

TEST(Tiles, another_target_has_none_of_this_one_s_rows) {
  EXPECT_EQ(refusal(kernel(), "head_dim 64\nscore s\n", "sm_80"),
            "the head dimension is 64, for which this kernel has no tiles\n"
            "supported are 128; pad with zeros to 128, and keep the scale of the true size; or a "
            "model may be asked");
}

TEST(Tiles, the_kernel_s_own_head_dimension_needs_no_row) {
  Diagnostics d;
  EXPECT_TRUE(transfer(kernel(), form_of("score s\n"), {"sm_80"}, d)) << render(d);
}

TEST(Tiles, what_the_text_says_of_its_own_head_dimension_stays) {
  const tl::Program source = kernel({{"param D = 128, V = 128", "param D = 64, V = 64"},
                                     {"BM = 256, BN = 128", "BM = 128, BN = 96"}});
  Diagnostics d;
  const auto own = transfer(source, form_of("head_dim 64\nscore s\nkeep j <= i\n"), {"sm_90a"}, d);
  ASSERT_TRUE(own) << render(d);
  EXPECT_TRUE(has(*own, "param BM = 128, BN = 96, CTAS = 2"));
  const auto other = transfer(source, form_of("head_dim 128\nscore s\n"), {"sm_90a"}, d);
  ASSERT_TRUE(other) << render(d);
  EXPECT_TRUE(has(*other, "param D = 128, V = 128\nparam BM = 256, BN = 128, CTAS = 2"));
}

TEST(Tiles, a_kernel_without_a_constant_of_the_row_is_refused_by_the_constant) {
  const tl::Program source = kernel({{"STAGES", "SLOTS_OF_K"}});
  EXPECT_EQ(refusal(source, "head_dim 64\nscore s\n", "sm_90a"),
            "this kernel has no constant STAGES, which the tiles for other head dimensions set\n"
            "the tiles are those of kernels/sm90/attention_fwd.cu; or a model may be asked");
}

TEST(Tiles, one_letter_for_all_columns_takes_one_head_dimension) {
  const tl::Program source =
      kernel({{"param D = 128, V = 128", "param D = 128"}, {", V]", ", D]"}});
  Diagnostics d;
  const auto same = transfer(source, form_of("head_dim 64\nscore s\n"), {"sm_90a"}, d);
  ASSERT_TRUE(same) << render(d);
  EXPECT_TRUE(has(*same, "param D = 64\n"));
  EXPECT_NE(refusal(source, "head_dim 192 128\nscore s\n", "sm_90a").find("192, and 128 for v"),
            std::string::npos);
}

TEST(Tiles, q_may_stay_in_shared_memory) {
  const tl::Program source = kernel({{"gemm_async s = q_r @", "gemm_async s = q_s[me][u] @"},
                                     {"load q_s[me][u] -> q_r", "publish"}});
  Diagnostics d;
  const auto result = transfer(source, form_of("dims b i h d\nscore s\n"), {"sm_90a"}, d);
  ASSERT_TRUE(result) << render(d);
  EXPECT_EQ(result->bindings[0].argument, "q");
}

}  // namespace
}  // namespace kw::transfer
