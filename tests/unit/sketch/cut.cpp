// Outputs too wide for the registers: when and how they are cut (K1 to K4 of cut.h), how that is
// scheduled (S1 to S5 of schedule_cut.cpp), and what is refused.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "sketch_machines.h"

namespace kw::sketch {
namespace {

std::string text_of(const std::string& sketch) {
  return read_source(in_clone() + "/sketches/" + sketch + ".tl")->text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

struct Asked {
  std::string gpu;
  int64_t d = 576, v = 512;
  std::string sketch = "latent", element = "f16";
};

std::optional<tl::Program> sized(const Asked& a, Diagnostics& found) {
  return size(parsed(text_of(a.sketch)), {machine_of(a.gpu), {{"D", a.d}, {"V", a.v}}, a.element},
              found);
}

std::string sized_text(const Asked& a) {
  Diagnostics found;
  const auto p = sized(a, found);
  EXPECT_TRUE(p) << render(found);
  return p ? tl::print(*p) : "";
}

std::string scheduled_text(const std::string& sized, const Machine& machine) {
  Diagnostics found;
  const auto p = schedule(parsed(sized), machine, found);
  EXPECT_TRUE(p) << render(found);
  return p ? tl::print(*p) : "";
}

std::string refusal(const std::string& sized, const Machine& machine) {
  Diagnostics found;
  EXPECT_FALSE(schedule(parsed(sized), machine, found));
  return render(found);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether the lines stand in this order, others between them.
void in_order(const std::string& text, const std::vector<std::string>& lines) {
  size_t at = 0;
  for (const std::string& line : lines) {
    const size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << "\nin\n" << text;
    at = found + line.size();
  }
}

struct Case {
  const char *gpu, *target;
  int64_t rows, keys, warpgroups;
};
class LatentTiles : public testing::TestWithParam<Case> {};

TEST_P(LatentTiles, FitAndArePartsOf256Columns) {
  const Case& c = GetParam();
  const Machine m = machine_of(c.gpu, c.target);
  Diagnostics found;
  const auto p = size(parsed(text_of("latent")), {m, {}, "f16"}, found);
  ASSERT_TRUE(p) << render(found);
  const auto values = parameters(*p);
  EXPECT_EQ(values.at("CUT"), 256);
  EXPECT_EQ(values.at("CUTS"), 2);
  EXPECT_EQ(values.at("STEPS"), 9);
  EXPECT_EQ(values.at("ROWS"), c.rows);
  EXPECT_EQ(values.at("BN"), c.keys);
  EXPECT_EQ(values.at("WARPGROUPS"), c.warpgroups);
  EXPECT_TRUE(schedule(*p, m, found)) << render(found);
}

INSTANTIATE_TEST_SUITE_P(All, LatentTiles,
                         testing::Values(Case{"t4", "sm_75", 64, 32, 1},
                                         Case{"a100", "sm_80", 64, 64, 2},
                                         Case{"a10", "sm_86", 64, 64, 1},
                                         Case{"l40s", "sm_89", 64, 64, 1},
                                         Case{"h200", "sm_90", 64, 64, 2}));

TEST(Cut, WhatFitsAsAWholeIsLeftWhole) {  // K1
  for (const char* gpu : {"t4", "l40s", "a100"})
    EXPECT_FALSE(has(sized_text({gpu, 256, 256, "attention"}), "CUT")) << gpu;
}

TEST(Cut, TheWidestPartThatDividesAndFitsIsTaken) {  // K1
  EXPECT_TRUE(has(sized_text({"a100", 512, 512, "attention"}), "CUT = 256,"));
  EXPECT_TRUE(has(sized_text({"a100", 384, 384, "attention"}), "CUT = 128,"));
  EXPECT_TRUE(has(sized_text({"a100", 448, 448, "attention"}), "CUT = 64,"));
}

TEST(Cut, ColumnsThatThePanelsDoNotDivideAreRefusedAsAWhole) {  // K2
  Diagnostics found;
  EXPECT_FALSE(sized({"l40s", 544, 512}, found));
  EXPECT_TRUE(has(render(found), "sketch.fit")) << render(found);
}

TEST(Cut, HoppersCopyEngineLoadsWholeRows) {
  Diagnostics found;
  EXPECT_FALSE(sized({"h200", 512, 512, "attention"}, found));
  EXPECT_TRUE(has(render(found), "sketch.fit")) << render(found);
}

TEST(Cut, ScoresThatAreReadFromAColumnOnAreLeftWhole) {
  const std::string text =
      replaced(text_of("latent"), "copy k[b, g, j0] -> k_s", "copy k[b, g, j0, 64] -> k_s");
  Diagnostics found;
  EXPECT_FALSE(size(parsed(text), {machine_of("l40s"), {}, "f16"}, found));
  EXPECT_TRUE(has(render(found), "sketch.fit")) << render(found);
}

TEST(Cut, ScoresAreSummedUpInStepsOfBothOperands) {  // K2
  const std::string text = sized_text({"l40s"});
  in_order(text,
           {"tile q_s[WARPGROUPS]: element[ROWS, STEP]", "tile k_s: element[BN, STEP]",
            "fill s = 0.0", "for t in range(STEPS):", "copy q[b, h, i0, t * STEP] -> q_s[me]",
            "copy k[b, g, n * BN, t * STEP] -> k_s", "mma_add_transposed s += q_s[me] @ k_s.T"});
  EXPECT_FALSE(has(text, "copy q[b, h, i0] -> q_s"));
}

TEST(Cut, APartOfTheValuesAndOfTheOutputHasAnOwnTileEach) {  // K3
  const std::string text = sized_text({"l40s"});
  in_order(text, {"tile v_s: element[BN, CUT]", "tile o_s[WARPGROUPS]: element[ROWS, CUT]",
                  "accumulator acc: real[ROWS, CUT]", "copy k[b, g, n * BN, cut * CUT] -> v_s",
                  "store acc -> o_s[me]", "copy o_s[me] -> o[b, h, i0, cut * CUT]"});
  EXPECT_TRUE(has(text, "blocks: size = ceil_div(M, BM) * CUTS * H * B"));
  EXPECT_TRUE(
      has(sized_text({"l40s", 512, 512, "attention"}), "copy v[b, g, n * BN, cut * CUT] -> v_s"));
}

TEST(Cut, RowsLeaveWithTheFirstPart) {  // K4
  EXPECT_TRUE(has(sized_text({"l40s"}), "        if cut == 0:\n            store_rows lse_r"));
}

TEST(Cut, TheSizedTextIsReadBackAsItIs) {
  const std::string text = sized_text({"t4"});
  EXPECT_EQ(tl::print(parsed(text)), text);
}

TEST(Cut, TheSumOfARefusalHasBothSlotsOfAStep) {
  const std::string said =
      refusal(replaced(sized_text({"l40s"}), "BN = 64", "BN = 128"), machine_of("l40s"));
  EXPECT_TRUE(has(said, "q_s: 2 of 64 x 64 x 2 bytes = 16384")) << said;
  EXPECT_TRUE(has(said, "BN = 64 would fit")) << said;
}

TEST(CutSchedule, CopiesComeUnderTheProductBefore) {  // S1 to S3
  const std::string text = scheduled_text(sized_text({"l40s"}), machine_of("l40s"));
  EXPECT_TRUE(has(text, "tile q_s[WARPGROUPS]: ring(2) of element[ROWS, STEP]"));
  EXPECT_TRUE(has(text, "tile v_s: element[BN, CUT]"));
  in_order(text, {"step advance", "range(STEPS - 1)", "cp_async_wait 0", "sync_block",
                  "cp_async_tile q[c.b, c.h, i0, (t + 1) * STEP] -> q_s[me][t + 1] by 1",
                  "mma_add_transposed s += q_s[me][t] @ k_s[t].T", "cp_async_wait 0", "sync_block",
                  "cp_async_tile k[c.b, g, n * BN, c.cut * CUT] -> v_s by WARPGROUPS",
                  "mma_add_transposed s += q_s[me][STEPS - 1] @ k_s[STEPS - 1].T",
                  "softmax(n, partial)", "cp_async_wait 0", "sync_block",
                  "cp_async_tile k[c.b, g, (n - 1) * BN, 0] -> k_s[0] by WARPGROUPS",
                  "mma_add acc += p @ v_s"});
}

TEST(CutSchedule, WithoutAsynchronousCopiesAllMeetBeforeAndAfterThem) {  // S4
  const std::string text = scheduled_text(sized_text({"t4"}), machine_of("t4"));
  EXPECT_FALSE(has(text, "ring(") || has(text, "copies"));
  in_order(text,
           {"step advance", "range(STEPS)", "sync_block", "copy_tile_in q[", "copy_tile_in k[",
            "sync_block", "mma_add_transposed s +=", "copy_tile_in k[c.b, g, n * BN, c.cut",
            "softmax(n, partial)", "sync_block", "mma_add acc +="});
}

TEST(CutSchedule, TheOutputLeavesBehindAMeetingOfItsWarpgroup) {  // S5
  in_order(scheduled_text(sized_text({"l40s"}), machine_of("l40s")),
           {"store acc -> o_s[me]", "sync_warpgroup me", "copy_tile_out o_s[me] -> o["});
}

TEST(CutSchedule, ValuesThatAreColumnsOfTheKeysNeedNoCut) {
  const std::string text = scheduled_text(sized_text({"l40s", 192, 128}), machine_of("l40s"));
  EXPECT_FALSE(has(text, "CUT"));
  EXPECT_TRUE(has(text, "tile v_s: element[BN, V]"));
  EXPECT_TRUE(has(text, "cp_async_tile k[c.b, g, n * BN, 0] -> v_s by WARPGROUPS"));
}

struct Slip {
  const char *was, *is, *said;
};
class SizedSlip : public testing::TestWithParam<Slip> {};

TEST_P(SizedSlip, IsRefusedAtItsPlace) {
  const Slip& s = GetParam();
  const std::string text = replaced(sized_text({"l40s"}), s.was, s.is);
  EXPECT_TRUE(has(refusal(text, machine_of("l40s")), s.said));
}

INSTANTIATE_TEST_SUITE_P(
    All, SizedSlip,
    testing::Values(Slip{"            fill s = 0.0\n", "", "nothing fills what the steps add to"},
                    Slip{"                mma_add_transposed s += q_s[me] @ k_s.T\n", "",
                         "the steps have no `mma_add_transposed`"},
                    Slip{"                mma_add_transposed",
                         "                fill l = 0.0\n                mma_add_transposed",
                         "`fill l = 0.0` stands in a step of the scores"}));

TEST(CutSchedule, AFillBeforeAWholeProductIsRefused) {
  const std::string text =
      replaced(sized_text({"a100", 128, 128, "attention"}), "            mma s",
               "            fill s = 0.0\n            mma s");
  EXPECT_TRUE(has(refusal(text, machine_of("a100")), "`fill s = 0.0` stands before the first one"));
}

TEST(CutSchedule, TheCopyEngineLoadsNoPartOfARow) {
  const std::string text = sized_text({"h200", 192, 128});
  EXPECT_TRUE(
      has(refusal(text, machine_of("h200")), "the copy engine's schedule loads whole rows"));
}

TEST(Place, ACopyFromAColumnOnNeedsSomethingThatLeaves) {  // P1
  const std::string text = replaced(text_of("latent"), "        copy acc -> o[b, h, i0]\n", "");
  Diagnostics found;
  EXPECT_FALSE(size(parsed(text), {machine_of("l40s"), {}, "f16"}, found));
  EXPECT_TRUE(has(render(found), "`k` is copied from a column on, and nothing leaves"))
      << render(found);
}

}  // namespace
}  // namespace kw::sketch
