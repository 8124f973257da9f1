#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lower/launch_plan.h"

namespace kw::lower {
namespace {

std::string corpus_text() {
  return read_source(KW_SOURCE_DIR "/tests/corpus/sm90_attention_fwd.tl")->text;
}

std::optional<LaunchPlan> plan_of(const std::string& text, Diagnostics& diagnostics) {
  const auto program = tl::parse(make_source("k.tl", text), diagnostics);
  if (!program) return std::nullopt;
  return plan_launch(*program, "sm_90a", diagnostics);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(LaunchPlan, of_the_corpus_kernel) {
  Diagnostics d;
  const auto plan = plan_of(corpus_text(), d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  EXPECT_EQ(j["entry"], "attention_fwd");
  EXPECT_EQ(j["threads"], 384);
  // Q twice for two workers of 64 rows, two stages of K and V, and the barriers.
  EXPECT_EQ(j["shared_bytes"], 2 * 2 * 16384 + 4 * 32768 + 1024);
  EXPECT_EQ(j["cluster"], 2);
  EXPECT_EQ(j["grid"], nlohmann::json::parse(R"(["*", 2, ["min", "blocks", ["//", "SMS", 2]]])"));
  const nlohmann::json& a = j["arguments"];
  EXPECT_EQ(a[0]["name"], "q");
  EXPECT_EQ(a[0]["box"], nlohmann::json({{"rows", 64}, {"columns", 128}}));
  EXPECT_EQ(a[1]["box"],
            nlohmann::json({{"rows", 128}, {"columns", 64}}));  // one half for each CTA
  EXPECT_EQ(a[1]["dims"], nlohmann::json({"B", "G", "N", 128}));
  EXPECT_EQ(a[3]["access"], "write");
  EXPECT_EQ(a[4]["name"], "lse");
  EXPECT_EQ(a[4]["offset"], 512);
  EXPECT_EQ(a[5]["offset"], 512 + 48);  // pointer, three strides, three extents, padded to 8
  EXPECT_EQ(a.back()["name"], "slack");
  EXPECT_EQ(j["parameter_bytes"].get<int64_t>() % 64, 0);
}

TEST(LaunchPlan, of_a_kernel_without_clusters_whose_blocks_are_queued) {
  Diagnostics d;
  const auto plan = plan_of(
      "element bf16\n"
      "args:\n"
      "    q: tiled in element[B, H, M, D]\n"
      "    B, H, M, D: size\n"
      "    counter: workspace[2]\n"
      "shared:\n"
      "    tile q_s: element[128, 64]\n"
      "    queue work: ring(2), takers 1 of each of 1\n"
      "    barrier q_full: ring(3), arrivals 1\n"
      "    barrier q_free: ring(2), arrivals 4 of each of 1\n"
      "kernel copies, threads 128:\n"
      "    thread 0:\n"
      "        offer work, counter, ceil_div(M, 128)\n"
      "    thread 1:\n"
      "        for u, w in take(work, ceil_div(M, 128)):\n"
      "            load_async q[0, 0, w * 128] -> q_s, arrive q_full[u], evict_first\n",
      d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  EXPECT_EQ(j["cluster"], 1);
  EXPECT_EQ(j["grid"], nlohmann::json::parse(R"(["min", ["ceil_div", "M", 128], "SMS"])"));
  EXPECT_EQ(j["arguments"][0]["box"], nlohmann::json({{"rows", 128}, {"columns", 64}}));
  EXPECT_EQ(j["arguments"].back()["bytes"], 8);
  // The tile fills 16 KB; 40 bytes of queue, 24 and 16 of barriers follow.
  EXPECT_EQ(j["shared_bytes"], 16384 + 1024);
}

TEST(LaunchPlan, boxes_of_a_multicast_are_the_parts_that_each_cta_fetches) {
  const auto box = [](int rows, int columns, int ctas) {
    Diagnostics d;
    const std::string text =
        replaced(replaced(corpus_text(), "tile k_s: ring(STAGES) of element[BN, D]",
                          "tile k_s: ring(STAGES) of element[" + std::to_string(rows) + ", " +
                              std::to_string(columns) + "]"),
                 "CTAS = 2", "CTAS = " + std::to_string(ctas));
    const auto plan = plan_of(text, d);
    return plan ? std::pair(plan->arguments[1].box_rows, plan->arguments[1].box_columns)
                : std::pair<int64_t, int64_t>();
  };
  const auto is = [](int64_t rows, int64_t columns) { return std::pair(rows, columns); };
  EXPECT_EQ(box(128, 128, 2), is(128, 64));
  EXPECT_EQ(box(128, 128, 1), is(128, 128));
  EXPECT_EQ(box(64, 256, 2), is(64, 128));
  EXPECT_EQ(box(128, 64, 2), is(64, 64));   // one panel: each fetches half its rows
  EXPECT_EQ(box(128, 128, 4), is(32, 64));  // two panels: each fetches a quarter of both's rows
  EXPECT_EQ(box(128, 192, 2), is(64, 64));  // three panels have no halves
  EXPECT_EQ(box(128, 96, 2), is(64, 32));   // panels of 32 columns
  EXPECT_EQ(box(24, 64, 2), is(0, 0));      // refused: 12 rows split the swizzle's 8
}

TEST(LaunchPlan, refuses_what_a_cluster_cannot_do) {
  Diagnostics d;
  EXPECT_FALSE(plan_of(replaced(corpus_text(), "tile k_s: ring(STAGES) of element[BN, D]",
                                "tile k_s: ring(STAGES) of element[24, 192]"),
                       d));
  EXPECT_EQ(d.all()[0].code, "launch.box");
  EXPECT_EQ(
      d.all()[0].message,
      "a tile of 24x192 has no 2 equal parts of whole panels of 64 columns, or of a multiple of "
      "8 rows");
  d = {};
  EXPECT_FALSE(plan_of(replaced(corpus_text(), "cluster cta of CTAS", "cluster cta of 16"), d));
  EXPECT_EQ(d.all()[0].code, "launch.cluster");
  EXPECT_EQ(d.all()[0].message,
            "a cluster of 16 thread blocks; every GPU with clusters runs 1 to 8");
}

TEST(LaunchPlan, refuses_a_kernel_that_nobody_hands_blocks) {
  std::string text = corpus_text();
  for (size_t at; (at = text.find("for u, w in deal(blocks, CTAS):")) != std::string::npos;)
    text.replace(at, 31, "for u, w in take(work, blocks):");
  Diagnostics d;
  EXPECT_FALSE(plan_of(text, d));
  ASSERT_EQ(d.all().size(), 1u) << render(d);
  EXPECT_EQ(d.all()[0].message,
            "a launch needs kernel, args, shared, and deal or offer; both deal and offer are "
            "missing");
}

TEST(LaunchPlan, refuses_tiles_of_two_shapes_from_one_tensor) {
  Diagnostics d;
  const std::string text = replaced(corpus_text(), "multicast_async v[c.b, g, n * BN] -> v_s[t]",
                                    "multicast_async q[c.b, g, n * BN] -> v_s[t]");
  EXPECT_FALSE(plan_of(text, d));
  EXPECT_EQ(d.all()[0].code, "launch.box") << render(d);
  EXPECT_EQ(d.all()[0].message,
            "'q' is copied in boxes of 128x64 here and 64x128 elsewhere; a tensor map has one box");
}

TEST(LaunchPlan, coordinates_as_reals_limit_the_lengths) {
  Diagnostics d;
  const auto plan = plan_of(
      replaced(corpus_text(), "map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)",
               "map_real s[i, j] from (i0, n * BN) = s[i, j] + (j - i)"),
      d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(tl::print(plan->requirements.back()), "N < 16777216");
}

TEST(LaunchHeader, names_every_argument_and_check) {
  Diagnostics d;
  const auto plan = plan_of(corpus_text(), d);
  ASSERT_TRUE(plan);
  const std::string h = launch_header(*plan, "prefix_lm");
  for (const char* part : {"namespace prefix_lm {", "Tensor q;", "lse: dimension 1 must be H",
                           "H % G == 0 must hold", "clusterDim.x = 2;", "cuLaunchKernelEx"})
    EXPECT_NE(h.find(part), std::string::npos) << part << "\n" << h;
}

TEST(LaunchHeader, of_a_kernel_without_clusters_sets_no_attribute) {
  Diagnostics d;
  const auto plan = plan_of(replaced(corpus_text(), "CTAS = 2", "CTAS = 1"), d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(launch_header(*plan, "k").find("luster"), std::string::npos);
  EXPECT_EQ(to_json(*plan)["grid"], nlohmann::json({"min", "blocks", "SMS"}));
}

}  // namespace
}  // namespace kw::lower
