#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "in_clone.h"
#include "lower/launch_plan.h"

namespace kw::lower {
namespace {

std::string corpus_text() {
  return read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl"))->text;
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

// The backward kernel: sums and values of rows are floats that the launcher makes room for; o and
// its gradient are read, and dq is written, 16 bytes at a time.
TEST(LaunchPlan, has_room_for_floats_that_a_pass_writes) {
  Diagnostics d;
  const auto plan = plan_of(read_source(in_clone("/tests/corpus/sm90_attention_bwd.tl"))->text, d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  std::map<std::string, nlohmann::json> arguments;
  for (const nlohmann::json& a : j["arguments"]) arguments[a["name"]] = a;
  EXPECT_EQ(arguments["sum_dq"]["bytes"],
            nlohmann::json::parse(R"(["*", ["*", ["*", ["*", 4, "B"], "H"], "P"], 128])"));
  EXPECT_EQ(arguments["delta"]["bytes"],
            nlohmann::json::parse(R"(["*", ["*", ["*", 4, "B"], "H"], "P"])"));
  for (const char* name : {"o", "do_rows", "dq"}) EXPECT_EQ(arguments[name]["row_alignment"], 16);
  EXPECT_EQ(j["before"][0]["entry"], "attention_bwd_rows");
  EXPECT_EQ(j["after"][0]["entry"], "attention_bwd_round");
  EXPECT_EQ(j["shared_bytes"], 4 * 16384 + 4 * 16384 + 4 * 8192 + 2 * 16384 + 2048);
}

TEST(LaunchPlan, of_the_corpus_kernel) {
  Diagnostics d;
  const auto plan = plan_of(corpus_text(), d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  EXPECT_EQ(j["entry"], "attention_fwd");
  EXPECT_EQ(j["threads"], 384);
  // Two slots of Q for two warpgroups of 64 rows, two stages of K and V, and the barriers.
  EXPECT_EQ(j["shared_bytes"], 2 * 2 * 16384 + 4 * 32768 + 1024);
  EXPECT_EQ(j["cluster"], 2);
  EXPECT_EQ(j["resident"], 1);
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
      "param D = 64\n"
      "args:\n"
      "    q: tiled in element[B, H, M, D]\n"
      "    B, H, M: size\n"
      "    counter: workspace[2]\n"
      "shared:\n"
      "    tile q_s: element[128, 64]\n"
      "    queue work: ring(2), takers 1 of each of 1\n"
      "    barrier q_full: ring(3), arrivals 1\n"
      "    barrier q_free: ring(2), arrivals 4 of each of 1\n"
      "kernel copies, threads 128:\n"
      "    thread 0:\n"
      "        schedule_tiles work, counter, ceil_div(M, 128)\n"
      "    thread 1:\n"
      "        for u, w in dynamic_tiles(work, ceil_div(M, 128)):\n"
      "            tma_load q[0, 0, w * 128] -> q_s, arrive q_full[u], evict_first\n",
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

// ---- the kernel whose warpgroups are all alike

std::string ampere_text() {
  return read_source(in_clone("/tests/corpus/sm80_attention_fwd.tl"))->text;
}

std::optional<LaunchPlan> ampere_plan(const std::string& text, const char* target,
                                      Diagnostics& diagnostics) {
  const auto program = tl::parse(make_source("k.tl", text), diagnostics);
  return program ? plan_launch(*program, target, diagnostics) : std::nullopt;
}

TEST(LaunchPlan, of_a_kernel_with_a_thread_block_for_each_block_of_the_output) {
  Diagnostics d;
  const auto plan = ampere_plan(ampere_text(), "sm_80", d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  EXPECT_EQ(j["grid"], "blocks");
  EXPECT_EQ(j["cluster"], 1);
  EXPECT_EQ(j["resident"], 2);
  EXPECT_EQ(j["threads"], 128);
  EXPECT_EQ(j["shared_bytes"], (128 + 3 * 64) * 128 * 2);
  EXPECT_EQ(j["parameter_bytes"], 4 * 56 + 48 + 8 * 4);  // a pointer aligns the struct to 8
  const nlohmann::json& a = j["arguments"];
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(a[n]["kind"], "tensor");
    EXPECT_EQ(a[n]["row_alignment"], 16);
    EXPECT_EQ(a[n]["offset"], 56 * n);  // pointer, four strides, four extents
  }
  EXPECT_EQ(a[4]["name"], "lse");
  EXPECT_FALSE(a[4].contains("row_alignment"));
}

TEST(LaunchPlan, refuses_rows_that_are_no_rows_of_the_tile_and_two_grids) {
  Diagnostics d;
  EXPECT_FALSE(ampere_plan(replaced(ampere_text(), "q_s[WARPGROUPS]: element[ROWS, D]",
                                    "q_s[WARPGROUPS]: element[ROWS, 64]"),
                           "sm_80", d));
  EXPECT_EQ(d.all().at(0).code, "launch.box");
  EXPECT_EQ(d.all().at(0).message, "rows of 'q' have 128 columns, 'q_s' has 64");
  d = {};
  EXPECT_FALSE(ampere_plan(replaced(ampere_text(), "let i0 = c.m * BM + me * ROWS",
                                    "let i0 = c.m * BM + me * ROWS + block_index(M) * 0"),
                           "sm_80", d));
  EXPECT_EQ(d.all().at(0).code, "launch.grid");
}

TEST(LaunchPlan, refuses_more_shared_memory_than_the_target_has_line_by_line) {
  const auto refusal = [](const char* constants, const char* target) {
    Diagnostics d;
    std::string text = replaced(ampere_text(), "D = 128, BN = 64", constants);
    if (ampere_plan(text, target, d)) return std::string();
    EXPECT_EQ(d.all().at(0).code, "launch.shared");
    std::string out = d.all().at(0).message;
    for (const Note& note : d.all().at(0).notes) out += "\n" + note.message;
    return out;
  };
  EXPECT_EQ(refusal("D = 128, BN = 64", "sm_80"), "");
  EXPECT_EQ(refusal("D = 128, BN = 64", "sm_86"),
            "2 CTAs that share a multiprocessor take 165888 bytes of shared memory, sm_86 "
            "has 102400\n"
            "tile q_s, 1 of 128 x 128: 32768 bytes\n"
            "ring k_s, 2 of 64 x 128: 32768 bytes\n"
            "tile v_s, 1 of 64 x 128: 16384 bytes\n"
            "in all, as a multiple of 1024: 81920 bytes\n"
            "2 times that and 1024 bytes of the system's each: 165888 bytes");
  EXPECT_EQ(refusal("D = 256, BN = 128", "sm_80").substr(0, 60),
            "a CTA takes 262144 bytes of shared memory, sm_80 has 166912\n");
  EXPECT_EQ(refusal("D = 256, BN = 64", "sm_89").substr(0, 60),
            "a CTA takes 163840 bytes of shared memory, sm_89 has 101376\n");
  EXPECT_EQ(refusal("D = 64, BN = 64", "sm_89"), "");
}

// The corpus kernel with other dimensions, key blocks and clusters.
std::string with(int d, int v, int bn = 128, int ctas = 2) {
  return replaced(replaced(corpus_text(), "param D = 128, V = 128",
                           "param D = " + std::to_string(d) + ", V = " + std::to_string(v)),
                  "BN = 128, CTAS = 2",
                  "BN = " + std::to_string(bn) + ", CTAS = " + std::to_string(ctas));
}

using Shape = std::pair<int64_t, int64_t>;

// The box of an argument, or {0, 0} when the plan is refused.
Shape box(const std::string& text, size_t argument) {
  Diagnostics d;
  const auto plan = plan_of(replaced(text, "Q_SLOTS = 2", "Q_SLOTS = 1"), d);
  if (!plan) return {0, 0};
  return {plan->arguments[argument].box_rows, plan->arguments[argument].box_columns};
}

TEST(LaunchPlan, boxes_of_a_multicast_are_the_parts_that_each_cta_fetches) {
  const auto keys = [](int d, int bn, int ctas) {
    return box(with(d, std::min(d, 128), bn, ctas), 1);
  };
  EXPECT_EQ(keys(128, 128, 2), Shape(128, 64));
  EXPECT_EQ(keys(128, 128, 1), Shape(128, 128));
  EXPECT_EQ(keys(256, 64, 2), Shape(64, 128));
  EXPECT_EQ(keys(64, 128, 2), Shape(64, 64));   // one panel: each fetches half its rows
  EXPECT_EQ(keys(128, 128, 4), Shape(32, 64));  // two panels for four: a quarter of the rows
  EXPECT_EQ(keys(192, 128, 2), Shape(64, 64));  // three panels for two: half the rows
  EXPECT_EQ(keys(96, 128, 2), Shape(64, 32));   // three panels of 32 columns
  EXPECT_EQ(keys(96, 112, 1), Shape(112, 96));  // none shares them: all panels at once
  EXPECT_EQ(keys(64, 24, 2), Shape(0, 0));      // refused: 12 rows split the swizzle's 8
  EXPECT_EQ(keys(192, 24, 2), Shape(0, 0));     // refused alike, one copy a panel
}

TEST(LaunchPlan, of_an_output_narrower_than_the_tile_it_leaves_through) {
  const std::string text = with(192, 128);
  EXPECT_EQ(box(text, 0), Shape(64, 192));  // Q fills the tile
  EXPECT_EQ(box(text, 1), Shape(64, 64));   // K: 3 panels, half the rows
  EXPECT_EQ(box(text, 2), Shape(128, 64));  // V: 2 panels, one for each
  EXPECT_EQ(box(text, 3), Shape(64, 128));  // O: the first two panels of Q's place
}

TEST(LaunchPlan, of_panels_of_32_columns_has_tiles_of_the_same_bytes) {
  Diagnostics d;
  const auto plan = plan_of(with(96, 96, 112), d);
  ASSERT_TRUE(plan) << render(d);
  // Two slots of Q for two warpgroups, two stages of K and V, each at a multiple of 1024; the
  // barriers.
  EXPECT_EQ(plan->shared_bytes, 2 * 2 * 64 * 96 * 2 + 4 * 112 * 96 * 2 + 1024);
  EXPECT_EQ(plan_of(with(96, 96, 24, 1), d)->shared_bytes, 2 * 4 * 12288 + 4 * 5120 + 1024)
      << "24 rows of 192 bytes are 4608, which the next multiple of 1024 follows";
}

TEST(LaunchPlan, refuses_an_output_whose_panels_are_not_the_tiles) {
  const std::pair<std::string, const char*> cases[] = {
      {with(96, 64), "'o' has 64 columns, panels of 64; 'q_s' has 96, panels of 32"},
      {with(192, 96), "'o' has 96 columns, panels of 32; 'q_s' has 192, panels of 64"},
      {with(80, 80, 128, 1), "'q' has 80 columns; the copy engine moves panels of 64 or 32"}};
  for (const auto& [text, message] : cases) {
    Diagnostics d;
    EXPECT_FALSE(plan_of(text, d));
    ASSERT_FALSE(d.all().empty());
    EXPECT_EQ(d.all()[0].code, "launch.box");
    EXPECT_EQ(d.all()[0].message, message);
  }
}

TEST(LaunchPlan, refuses_columns_that_are_known_only_at_launch) {
  Diagnostics d;
  EXPECT_FALSE(plan_of(
      replaced(corpus_text(), "q: tiled in element[B, H, M, D]", "q: tiled in element[B, H, D, M]"),
      d));
  EXPECT_EQ(d.all()[0].message,
            "'M' is the number of columns of a tiled tensor; it must be a param");
}

TEST(LaunchPlan, of_f16_has_tensors_of_f16) {
  Diagnostics d;
  const auto plan = plan_of(replaced(corpus_text(), "element bf16", "element f16"), d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  for (int n = 0; n < 4; ++n) EXPECT_EQ(j["arguments"][n]["dtype"], "f16");
  EXPECT_EQ(j["arguments"][4]["dtype"], "f32");  // lse
  const std::string h = launch_header(*plan, "k");
  EXPECT_NE(h.find("CU_TENSOR_MAP_DATA_TYPE_FLOAT16"), std::string::npos);
  EXPECT_EQ(h.find("BFLOAT16"), std::string::npos);
}

// A product: tensors of any width, and with sums of rows a pass behind the kernel.
TEST(LaunchPlan, of_parts_of_rows_needs_no_constant_columns) {
  const std::string text = read_source(in_clone("/tests/corpus/sm90_gemm.tl"))->text;
  Diagnostics d;
  const auto plan = plan_of(text, d);
  ASSERT_TRUE(plan) << render(d);
  const nlohmann::json j = to_json(*plan);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(j["arguments"][n]["part_of_rows"], true);
    EXPECT_EQ(j["arguments"][n]["box"], (nlohmann::json{{"rows", 64}, {"columns", 64}}));
  }
  EXPECT_EQ(j.count("after"), 0u);
  EXPECT_EQ(j["shared_bytes"], 3 * (2 * 8192 + 32768) + 2 * 32768 + 1024);
}

TEST(LaunchPlan, lists_the_pass_behind_the_kernel) {
  std::string text = read_source(in_clone("/tests/tl/row_parts.tl"))->text;
  text = text.substr(text.find("include"));
  Diagnostics d;
  const auto plan = plan_of(text, d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(plan->entries(), (std::vector<std::string>{"gemm", "add_sums"}));
  const nlohmann::json after = to_json(*plan)["after"];
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0]["entry"], "add_sums");
  EXPECT_EQ(after[0]["threads"], 256);
  const std::string h = launch_header(*plan, "k");
  const size_t kernel = h.find("cuLaunchKernelEx(&config, kernel"),
               pass = h.find("cuLaunchKernelEx(&config, after[0]");
  ASSERT_NE(kernel, std::string::npos) << h;
  ASSERT_NE(pass, std::string::npos) << h;
  EXPECT_LT(kernel, pass);
  EXPECT_LT(h.find("config.sharedMemBytes = 0", kernel), pass);
}

TEST(LaunchPlan, refuses_what_a_cluster_cannot_do) {
  Diagnostics d;
  EXPECT_FALSE(plan_of(with(192, 128, 24), d));
  EXPECT_EQ(d.all()[0].code, "launch.box");
  EXPECT_EQ(d.all()[0].message,
            "a tile of 24x192 has no 2 equal parts of whole panels of 64 columns, or of a multiple "
            "of 8 rows of each");
  d = {};
  EXPECT_FALSE(plan_of(replaced(corpus_text(), "cluster cta of CTAS", "cluster cta of 16"), d));
  EXPECT_EQ(d.all()[0].code, "launch.cluster");
  EXPECT_EQ(d.all()[0].message, "a cluster of 16 CTAs; every GPU with clusters runs 1 to 8");
}

TEST(LaunchPlan, refuses_a_kernel_that_nobody_hands_blocks) {
  std::string text = corpus_text();
  for (size_t at; (at = text.find("for u, w in static_tiles(blocks, CTAS):")) != std::string::npos;)
    text.replace(at, 39, "for u, w in dynamic_tiles(work, blocks):");
  Diagnostics d;
  EXPECT_FALSE(plan_of(text, d));
  ASSERT_EQ(d.all().size(), 1u) << render(d);
  EXPECT_EQ(d.all()[0].message,
            "a launch needs kernel, args, shared, and one of static_tiles, schedule_tiles and "
            "block_index or cluster_index; all three are missing");
}

TEST(LaunchPlan, refuses_tiles_of_two_shapes_from_one_tensor) {
  Diagnostics d;
  const std::string text = replaced(corpus_text(), "tma_load_multicast v[c.b, g, n * BN] -> v_s[t]",
                                    "tma_load_multicast q[c.b, g, n * BN] -> v_s[t]");
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

TEST(LaunchPlan, a_scalar_that_divides_is_positive) {
  Diagnostics d;
  std::string text = replaced(corpus_text(), "    scale: f32", "    step: i32\n    scale: f32");
  EXPECT_EQ(to_json(*plan_of(text, d))["requires"].dump().find("step"), std::string::npos);
  text = replaced(text, "where(j < N, s[i, j], -inf)",
                  "where(j < N and (i - j) % step == 0, s[i, j], -inf)");
  const auto plan = plan_of(text, d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_NE(to_json(*plan)["requires"].dump().find("[\">=\",\"step\",1]"), std::string::npos);
}

// The corpus's kernel with a pre-pass that lists all key blocks.
std::string listed_text() {
  const std::string with_scratch =
      replaced(corpus_text(), "    scale: f32", "    visits: scratch[B * (3 + N)]\n    scale: f32");
  return replaced(with_scratch, "kernel attention_fwd",
                  "lists attention_lists, threads 64, w of B:\n"
                  "    list_blocks visits[w * (3 + N)] for n in range(0, N), groups r to s of 1:\n"
                  "        return true, false\n"
                  "kernel attention_fwd");
}

TEST(LaunchPlan, of_a_kernel_with_a_pre_pass) {
  Diagnostics d;
  const auto plan = plan_of(listed_text(), d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(plan->entries(), (std::vector<std::string>{"attention_fwd", "attention_lists"}));
  const nlohmann::json j = to_json(*plan);
  EXPECT_EQ(j["before"],
            nlohmann::json::parse(R"([{"entry": "attention_lists", "threads": 64, "grid": "B"}])"));
  for (const nlohmann::json& a : j["arguments"])
    if (a["name"] == "visits") {
      EXPECT_EQ(a["kind"], "scratch");
      EXPECT_EQ(a["bytes"], nlohmann::json::parse(R"(["*", ["*", "B", ["+", 3, "N"]], 4])"));
      EXPECT_EQ(a["offset"].get<int64_t>() % 8, 0);
    }
  const auto alone = plan_of(corpus_text(), d);
  EXPECT_FALSE(to_json(*alone).contains("before"));
}

TEST(LaunchHeader, of_a_kernel_with_a_pre_pass_launches_both_and_asks_for_memory) {
  Diagnostics d;
  const auto plan = plan_of(listed_text(), d);
  ASSERT_TRUE(plan) << render(d);
  const std::string h = launch_header(*plan, "k");
  for (const char* part : {"CUfunction* kernel, CUfunction* before)",
                           "cuModuleGetFunction(before + 0, module, "
                           "\"attention_lists\")",
                           "config.gridDimX = plan.grid_before[0];", "int64_t visits_bytes;",
                           "\"visits: plan.visits_bytes bytes are needed\""})
    EXPECT_NE(h.find(part), std::string::npos) << part << "\n" << h;
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

TEST(LaunchHeader, of_a_kernel_that_shares_a_multiprocessor_has_no_tensor_maps) {
  Diagnostics d;
  const auto plan = ampere_plan(ampere_text(), "sm_80", d);
  ASSERT_TRUE(plan) << render(d);
  const std::string h = launch_header(*plan, "k");
  EXPECT_NE(h.find("CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT"), std::string::npos);
  LaunchPlan bare = *plan;
  bare.shared_bytes = 0;  // it wants the L1 cache
  EXPECT_EQ(launch_header(bare, "k").find("CARVEOUT"), std::string::npos);
  EXPECT_EQ(h.find("TensorMap"), std::string::npos);
  const auto hopper = plan_of(corpus_text(), d);
  EXPECT_EQ(launch_header(*hopper, "k").find("CARVEOUT"), std::string::npos);
}

TEST(LaunchHeader, of_a_kernel_without_clusters_sets_no_attribute) {
  Diagnostics d;
  const auto plan = plan_of(
      replaced(replaced(corpus_text(), "CTAS = 2", "CTAS = 1"), "Q_SLOTS = 2", "Q_SLOTS = 1"), d);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(launch_header(*plan, "k").find("luster"), std::string::npos);
  EXPECT_EQ(to_json(*plan)["grid"], nlohmann::json({"min", "blocks", "SMS"}));
}

}  // namespace
}  // namespace kw::lower
