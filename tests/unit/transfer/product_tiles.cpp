// Which row of the tile database a product takes, and the next one where registers lacked.
#include <gtest/gtest.h>

#include "transfer/families/gemm/rules/rules.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

Tiles row(const std::string& target, std::vector<Constant> constants, int64_t dim = 0) {
  Tiles t;
  t.targets = {target};
  t.dim = t.value_dim = dim;
  t.constants = std::move(constants);
  t.place = "test: " + text_of(t.constants);
  return t;
}

Result after(const std::vector<Tiles>& rows, int tried, const std::string& target = "sm_89") {
  Diagnostics d;
  const spec::Form form = form_of("product\n");
  const Target of{target, rows, tried};
  gemm::Edit edit(kernel_of("sm_80", "gemm"), form, of, d);
  EXPECT_TRUE(gemm::rule_tiles(edit)) << render(d);
  return edit.result;
}

bool has(const Result& r, const char* text) {
  return tl::print(r.program).find(text) != std::string::npos;
}

const std::vector<Tiles> kRows = {
    row("sm_89", {{"BN", int64_t{256}}}, 64), row("sm_80", {{"BN", int64_t{32}}}),
    row("sm_89", {{"BN", int64_t{64}}}),
    row("sm_89", {{"ROWS", int64_t{64}}, {"WARPGROUPS", int64_t{2}}})};

TEST(ProductRows, the_first_of_the_target_that_is_for_products_counts) {
  const Result r = after(kRows, 0);
  EXPECT_TRUE(has(r, "param BN = 64, BK = 64, STAGES = 3")) << tl::print(r.program);
  EXPECT_EQ(r.tiles, "test: BN = 64");
  EXPECT_TRUE(r.roomier);
}

TEST(ProductRows, the_next_one_is_tried_where_registers_lacked) {
  const Result r = after(kRows, 1);
  EXPECT_TRUE(has(r, "param ROWS = 64, WARPGROUPS = 2")) << tl::print(r.program);
  EXPECT_TRUE(has(r, "param BN = 128"));
  EXPECT_FALSE(r.roomier);
}

TEST(ProductRows, without_one_the_text_keeps_its_own) {
  const Result r = after(kRows, 0, "sm_86");
  EXPECT_TRUE(has(r, "param BN = 128"));
  EXPECT_TRUE(r.tiles.empty());
}

TEST(ProductRows, a_constant_that_the_text_lacks_is_refused) {
  Diagnostics d;
  const spec::Form form = form_of("product\n");
  const Target of{"sm_75", {row("sm_75", {{"STAGES", int64_t{2}}})}, 0};
  gemm::Edit edit(kernel_of("sm_75", "gemm"), form, of, d);
  EXPECT_FALSE(gemm::rule_tiles(edit));
  EXPECT_NE(render(d).find("this kernel has no constant STAGES"), std::string::npos) << render(d);
}

}  // namespace
}  // namespace kw::transfer
