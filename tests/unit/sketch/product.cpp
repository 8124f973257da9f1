// A product from a sketch: what sizes the passes choose, what they write, and what they refuse.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "sketch/families/gemm/tiles.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "sketch_machines.h"

namespace kw::sketch {
namespace {

std::string file(const std::string& name) { return read_source(in_clone() + "/" + name)->text; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string sketch_text() { return file("sketches/product.tl"); }

std::string sized(const std::string& gpu) {
  Diagnostics d;
  const auto p = size(parsed(sketch_text()), {machine_of(gpu), {}, gpu == "t4" ? "f16" : ""}, d);
  EXPECT_TRUE(p) << render(d);
  return tl::print(*p);
}

std::string scheduled(const std::string& text, const std::string& gpu) {
  Diagnostics d;
  const auto p = schedule(parsed(text), machine_of(gpu), d);
  EXPECT_TRUE(p) << render(d);
  return p ? tl::print(*p) : "";
}

std::string size_refusal(const std::string& text, const std::string& gpu = "a100") {
  Diagnostics d;
  EXPECT_FALSE(size(parsed(text), {machine_of(gpu), {}, ""}, d));
  return render(d);
}

std::string refusal(const std::string& text, const std::string& gpu) {
  Diagnostics d;
  EXPECT_FALSE(schedule(parsed(text), machine_of(gpu), d));
  return render(d);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// G1 to G6. An A100 hides nothing less than 128 x 128 behind its products; an L40S has no room for
// three steps of that; a wgmma of 256 columns reads least of the second-level cache; on a T4, where
// copies go through registers, two CTAs of a warpgroup fill each other's waits.
TEST(ProductTiles, AreThoseThatTheGpuHasRoomAndBandwidthFor) {
  for (const auto& [gpu, params] : {std::pair("a100", "ROWS = 128, WARPGROUPS = 1, BN = 128, 3"),
                                    {"l40s", "ROWS = 64, WARPGROUPS = 2, BN = 128, 2"},
                                    {"a10", "ROWS = 64, WARPGROUPS = 2, BN = 128, 2"},
                                    {"h200", "ROWS = 64, WARPGROUPS = 2, BN = 256, 3"},
                                    {"t4", "ROWS = 64, WARPGROUPS = 1, BN = 64, 1"}}) {
    const auto v = parameters(parsed(sized(gpu)));
    const auto stages = v.contains("STAGES") ? v.at("STAGES") : 1;
    EXPECT_EQ("ROWS = " + std::to_string(v.at("ROWS")) +
                  ", WARPGROUPS = " + std::to_string(v.at("WARPGROUPS")) +
                  ", BN = " + std::to_string(v.at("BN")) + ", " + std::to_string(stages),
              params)
        << gpu;
    EXPECT_EQ(v.at("BK"), 64);
  }
}

TEST(ProductTiles, MoreStepsAreCopiedAheadWhereCopiesTakeLonger) {  // G3
  Machine slow = machine_of("a100");
  slow.gpu.copy_latency = 2500;
  Diagnostics d;
  const auto s = choose_product_tiles(slow, "bf16", d);
  ASSERT_TRUE(s) << render(d);
  EXPECT_EQ(s->stages, 4);
}

TEST(ProductTiles, AreSmallerWhereThereAreFewerRegisters) {  // G2
  Machine few = machine_of("a100");
  few.gpu.registers = 128 * 128;
  Diagnostics d;
  const auto s = choose_product_tiles(few, "bf16", d);
  ASSERT_TRUE(s) << render(d);
  EXPECT_LE(product_registers(few, *s) + 63, 128 / s->warpgroups);
}

TEST(ProductTiles, ThatFitNowhereAreRefusedWithTheSum) {  // G1
  Machine small = machine_of("a100");
  small.block_bytes = 16384;
  Diagnostics d;
  EXPECT_FALSE(choose_product_tiles(small, "bf16", d));
  EXPECT_TRUE(says(render(d), "the tiles take 40960 bytes of shared memory")) << render(d);
}

TEST(Product, ForTheA100ItIsTheExpertsProgram) {
  EXPECT_EQ(scheduled(sized("a100"), "a100"), file("tests/corpus/sm80_gemm.tl"));
}

TEST(Product, ForTuringItIsTheExpertsProgramWithOtherTiles) {
  const std::string ours = scheduled(sized("t4"), "t4");
  std::string experts = file("tests/corpus/sm75_gemm.tl");
  experts = replaced(experts, "ROWS = 64, WARPGROUPS = 2", "ROWS = 64, WARPGROUPS = 1");
  experts = replaced(experts, "BN = 128", "BN = 64");
  EXPECT_EQ(ours, replaced(experts, "RESIDENT = 1", "RESIDENT = 2"));
}

TEST(Product, ForHopperItIsTheExpertsProgramButForHowRowsAreNamed) {
  std::string experts = file("tests/corpus/sm90_gemm.tl");
  experts = replaced(experts, "param BM = 128, BN",
                     "param ROWS = 64, WARPGROUPS = 2, BM = ROWS * WARPGROUPS\nparam BN");
  experts = replaced(experts, ", WARPGROUPS = BM // 64", "");
  experts = replaced(experts, "r * 64", "r * ROWS");
  EXPECT_EQ(scheduled(sized("h200"), "h200"), replaced(experts, "[64, B", "[ROWS, B"));
}

TEST(Product, WithTwoStepsOneIsUnderWayAndWithFourThree) {  // R1
  const std::string two = scheduled(sized("l40s"), "l40s");
  EXPECT_TRUE(says(two, "cp_async_wait 0\n")) << two;
  EXPECT_TRUE(says(two, "if k > 0:\n                fetch(n, k - 1)")) << two;
  EXPECT_FALSE(says(two, "fetch(n, steps - 2)"));
  const std::string four = scheduled(
      replaced(replaced(sized("a100"), "STAGES = 3", "STAGES = 4"), "BN = 128", "BN = 64"), "a100");
  EXPECT_TRUE(says(four, "cp_async_wait 2\n")) << four;
  EXPECT_TRUE(says(four, "if steps > 2:\n            fetch(n, steps - 3)")) << four;
}

TEST(Product, TheSizedTextIsReadBackAsItIs) {
  EXPECT_EQ(tl::print(parsed(sized("a100"))), sized("a100"));
}

TEST(Product, AGridOfOtherCountersIsRefused) {  // M1
  const std::string text = replaced(sketch_text(), "for batch, head, i0, j0 in grid(B, H, M, N):",
                                    "for batch, head, i0, j0, e in grid(B, H, M, N, B):");
  EXPECT_TRUE(says(size_refusal(text), "the grid of a product has 4 counters, and this one 5"));
}

TEST(Product, WhatIsAddedToIsFilledFirst) {  // M2
  EXPECT_TRUE(says(size_refusal(replaced(sketch_text(), "        fill acc = 0.0\n", "")),
                   "nothing is filled before the loop"));
  EXPECT_TRUE(says(size_refusal(replaced(sketch_text(), "fill acc = 0.0", "fill other = 0.0")),
                   "`other` is filled before the loop, and the product adds to `acc`"));
}

TEST(Product, BothSidesAreCopiedInTheLoop) {  // M3
  const std::string left = "            copy a[batch, head, i0, k0] -> a_s\n";
  EXPECT_TRUE(
      says(size_refusal(replaced(sketch_text(), left, "")), "`a_s` is multiplied and not copied"));
  EXPECT_TRUE(
      says(size_refusal(replaced(sketch_text(), left, left + left)), "`a_s` is copied twice"));
  EXPECT_TRUE(says(size_refusal(replaced(sketch_text(), "copy a[batch, head, i0, k0]",
                                         "copy a[batch, head, i0]")),
                   "is not a place at four coordinates"));
  const std::string product = "            mma_add acc += a_s @ b_s\n";
  EXPECT_TRUE(
      says(size_refusal(replaced(sketch_text(), product,
                                 product + "            map acc[i, j] = acc[i, j] * 2.0\n")),
           "stands in the loop of a product"));
}

TEST(Product, NothingButTheCopyFollowsTheLoop) {  // M4
  const std::string out = "        copy acc -> o[batch, head, i0, j0]\n";
  EXPECT_TRUE(says(
      size_refusal(replaced(sketch_text(), out, "        map acc[i, j] = acc[i, j] * 2.0\n" + out)),
      "stands after the loop of a product"));
  EXPECT_TRUE(
      says(size_refusal(replaced(sketch_text(), out, "")), "nothing is copied out after the loop"));
}

TEST(Product, TilesThatAModelWasAskedForAreRefused) {
  Diagnostics d;
  EXPECT_FALSE(size(parsed(sketch_text()), {machine_of("a100"), {}, "", Sizes{64, 64, 1}}, d));
  EXPECT_TRUE(says(render(d), "a product has no keys")) << render(d);
}

TEST(Product, TooManyColumnsAreRefusedWithTheSumAndTheSmallestChange) {
  const std::string said = refusal(replaced(sized("l40s"), "STAGES = 2", "STAGES = 3"), "l40s");
  EXPECT_TRUE(says(said, "the tiles take 131072 bytes of shared memory, and l40s has 101376"));
  EXPECT_TRUE(says(said, "left: 6 of 64 x 64 x 2 bytes = 49152")) << said;
  EXPECT_TRUE(says(said, "STAGES = 2 would fit")) << said;
  const std::string wide = refusal(replaced(sized("l40s"), "BN = 128", "BN = 256"), "l40s");
  EXPECT_TRUE(says(wide, "BN = 128 would fit: fewer columns")) << wide;
  const std::string many = refusal(replaced(sized("a100"), "BN = 128", "BN = 224"), "a100");
  EXPECT_TRUE(says(many, "BN = 160 would fit")) << many;
}

TEST(Product, NumbersThatNoProductHasAreRefused) {
  const std::string a100 = sized("a100"), h200 = sized("h200"), t4 = sized("t4");
  EXPECT_TRUE(says(refusal(replaced(a100, "ROWS = 128", "ROWS = 96"), "a100"), "ROWS is 96"));
  EXPECT_TRUE(says(refusal(replaced(h200, "ROWS = 64", "ROWS = 128"), "h200"), "ROWS is 128"));
  EXPECT_TRUE(
      says(refusal(replaced(h200, "WARPGROUPS = 2", "WARPGROUPS = 1"), "h200"), "WARPGROUPS is 1"));
  EXPECT_TRUE(says(refusal(replaced(a100, "BN = 128", "BN = 40"), "a100"), "BN is 40"));
  EXPECT_TRUE(says(refusal(replaced(h200, "BN = 256", "BN = 224"), "h200"), "BN is 224"));
  EXPECT_TRUE(says(refusal(replaced(a100, "BK = 64", "BK = 16"), "a100"), "BK is 16"));
  EXPECT_TRUE(says(refusal(replaced(a100, "STAGES = 3", "STAGES = 1"), "a100"), "STAGES is 1"));
  EXPECT_TRUE(says(refusal(replaced(t4, "BK = 64", "BK = 64, STAGES = 2"), "t4"), "STAGES is 2"));
  EXPECT_TRUE(says(refusal(replaced(a100, ", STAGES = 3", ""), "a100"),
                   "the module has no parameter STAGES"));
}

}  // namespace
}  // namespace kw::sketch
