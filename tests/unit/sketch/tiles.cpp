// What sizes the passes choose, and what they refuse.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "sketch_machines.h"

namespace kw::sketch {
namespace {

SourcePtr file(const std::string& name) { return read_source(in_clone() + "/" + name); }

tl::Program sketch_file() { return parsed(file("sketches/attention.tl")->text); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

tl::Program sized(const std::string& gpu, int64_t d, int64_t v, const std::string& element = "") {
  Diagnostics found;
  const auto p = size(sketch_file(), {machine_of(gpu), {{"D", d}, {"V", v}}, element}, found);
  EXPECT_TRUE(p) << render(found);
  return *p;
}

std::string refusal(const std::string& text, const std::string& gpu) {
  Diagnostics d;
  EXPECT_FALSE(schedule(parsed(text), machine_of(gpu), d));
  return render(d);
}

struct Case {
  const char* gpu;
  const char* element;
  int64_t d, v, rows, keys, warpgroups, resident;
};

class TilesOfExpert : public testing::TestWithParam<Case> {};

TEST_P(TilesOfExpert, AreChosen) {
  const Case& c = GetParam();
  const tl::Program p = sized(c.gpu, c.d, c.v, c.element);
  Diagnostics d;
  const auto scheduled = schedule(p, machine_of(c.gpu), d);
  ASSERT_TRUE(scheduled) << render(d);
  const auto values = parameters(*scheduled);
  EXPECT_EQ(values.at("ROWS"), c.rows);
  EXPECT_EQ(values.at("BN"), c.keys);
  EXPECT_EQ(values.at("WARPGROUPS"), c.warpgroups);
  EXPECT_EQ(values.at("RESIDENT"), c.resident);
}

// The first rows of kernels/sm80/tiles.json, and for 192/128 what fits; for an L40S at D 128 there
// is room for one CTA of the expert's 64 keys, and two with 32 are predicted to be faster.
INSTANTIATE_TEST_SUITE_P(All, TilesOfExpert,
                         testing::Values(Case{"a100", "bf16", 64, 64, 128, 128, 1, 2},
                                         Case{"a100", "bf16", 128, 128, 128, 64, 1, 2},
                                         Case{"a100", "bf16", 256, 256, 64, 64, 2, 1},
                                         Case{"a100", "bf16", 192, 128, 64, 64, 2, 1},
                                         Case{"l40s", "bf16", 64, 64, 128, 64, 1, 2},
                                         Case{"l40s", "bf16", 128, 128, 64, 32, 1, 2},
                                         Case{"l40s", "f16", 256, 256, 64, 32, 1, 1},
                                         Case{"l40s", "bf16", 192, 128, 64, 32, 1, 1},
                                         Case{"t4", "f16", 64, 64, 128, 64, 1, 2},
                                         Case{"t4", "f16", 128, 128, 64, 64, 2, 1},
                                         Case{"t4", "f16", 256, 256, 64, 32, 1, 1}),
                         [](const auto& of) {
                           const Case& c = of.param;
                           return fmt::format("{}_{}_{}_{}", c.gpu, c.element, c.d, c.v);
                         });

TEST(Schedule, HopperIssuesTheNextScoresBeforeTheProductWithThisBlocksValues) {
  for (const auto& [d, v] : {std::pair(64, 64), {128, 128}, {256, 256}, {192, 128}}) {
    Diagnostics found;
    const auto p = schedule(sized("h200", d, v), machine_of("h200"), found);
    ASSERT_TRUE(p) << render(found);
    const std::string text = tl::print(*p);
    const size_t scores = text.find("wgmma s = q_s[me][u] @ k_s[t + 1].T");
    EXPECT_LT(scores, text.find("wgmma_add acc += p @ v_s[t]", scores));
    EXPECT_NE(text.find("tile k_s: ring(STAGES) of element[BN, D]"), std::string::npos);
    EXPECT_EQ(text.find("o_s"), std::string::npos);  // O leaves by Q's tile
  }
}

TEST(Schedule, TheFirstTileOfKeysIsCopiedAheadIntoTwoSlots) {
  Diagnostics d;
  const auto p = schedule(sized("a100", 128, 128), machine_of("a100"), d);
  ASSERT_TRUE(p) << render(d);
  const std::string text = tl::print(*p);
  EXPECT_NE(text.find("tile k_s: ring(2) of element[BN, D]"), std::string::npos);
  EXPECT_NE(text.find("tile v_s: element[BN, V]"), std::string::npos);
  EXPECT_NE(text.find("cp_async k[c.b, g, (n - 1) * BN] -> k_s[n - 1] by WARPGROUPS"),
            std::string::npos);
}

TEST(Schedule, TuringCopiesWithoutSlotsBetweenTwoMeetings) {
  Diagnostics d;
  const auto p = schedule(sized("t4", 64, 64, "f16"), machine_of("t4"), d);
  ASSERT_TRUE(p) << render(d);
  EXPECT_FALSE(p->find(tl::Op::ring));
  EXPECT_FALSE(p->find(tl::Op::cp_async));
  EXPECT_TRUE(p->find(tl::Op::copy_in));
}

TEST(Size, TheSizedTextIsReadBackAsItIs) {
  const tl::Program p = sized("a100", 128, 128);
  EXPECT_TRUE(tl::equal(p, parsed(tl::print(p))));
}

TEST(Size, AParameterThatTheSketchLacksIsRefused) {
  Diagnostics d;
  EXPECT_FALSE(size(sketch_file(), {machine_of("a100"), {{"E", 64}}, ""}, d));
  EXPECT_NE(render(d).find("--param E: the sketch has no parameter `E`; it has D, V"),
            std::string::npos);
}

TEST(Size, AnOperandFollowsTheLastStatementThatTouchesItsScores) {
  const std::string text = tl::print(sized("a100", 128, 128));
  EXPECT_LT(text.find("row_sum l += s"), text.find("to_operand p = s"));
  EXPECT_LT(text.find("to_operand p = s"), text.find("mma_add acc += p @ v_s"));
}

TEST(Schedule, WithoutTheReshapeALawIsBroken) {
  std::string text = tl::print(sized("a100", 128, 128));
  text = replaced(text, "            to_operand p = s\n", "");
  text = replaced(text, "mma_add acc += p", "mma_add acc += s");
  Diagnostics d;
  EXPECT_FALSE(tl::verify(parsed(text), d));
  EXPECT_NE(render(d).find("mma_add.C2"), std::string::npos) << render(d);
}

TEST(Schedule, TooManyKeysAreRefusedWithTheSumAndTheSmallestChange) {
  const std::string text = replaced(tl::print(sized("l40s", 128, 128)), "BN = 32", "BN = 128");
  const std::string said = refusal(text, "l40s");
  EXPECT_NE(said.find("the tiles take 114688 bytes of shared memory, and l40s has 101376"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("k_s: 2 of 128 x 128 x 2 bytes = 65536"), std::string::npos) << said;
  EXPECT_NE(said.find("BN = 64 would fit"), std::string::npos) << said;
}

TEST(Schedule, AccumulatorsBeyondTheRegistersAreRefused) {
  const std::string text = replaced(tl::print(sized("a100", 64, 64)), "BN = 128", "BN = 160");
  EXPECT_NE(refusal(text, "a100").find("registers of each thread"), std::string::npos);
}

TEST(Schedule, ASketchIsNotScheduledBeforeItIsSized) {
  const std::string said = refusal(file("sketches/attention.tl")->text, "a100");
  EXPECT_NE(said.find("the module is sketch, and sized is due here"), std::string::npos) << said;
}

TEST(Size, ASecondLoopIsRefusedAtItsPlace) {
  const std::string text =
      replaced(file("sketches/attention.tl")->text, "        compute sum = total(l)\n",
               "        for j1 in blocks(N):\n"
               "            fill l = 0.0\n"
               "        compute sum = total(l)\n");
  Diagnostics d;
  EXPECT_FALSE(size(parsed(text), {machine_of("a100"), {}, ""}, d));
  EXPECT_NE(render(d).find("a second loop over blocks"), std::string::npos) << render(d);
}

}  // namespace
}  // namespace kw::sketch
