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
  // Q twice and O for two workers of 64 rows, two stages of K and V, and the barriers.
  EXPECT_EQ(j["shared_bytes"], 2 * 2 * 16384 + 4 * 32768 + 2 * 16384 + 1024);
  EXPECT_EQ(j["grid"], nlohmann::json({"min", "blocks", "SMS"}));
  const nlohmann::json& a = j["arguments"];
  EXPECT_EQ(a[0]["name"], "q");
  EXPECT_EQ(a[0]["box"], nlohmann::json({{"rows", 64}, {"columns", 128}}));
  EXPECT_EQ(a[1]["box"], nlohmann::json({{"rows", 128}, {"columns", 128}}));
  EXPECT_EQ(a[1]["dims"], nlohmann::json({"B", "G", "N", 128}));
  EXPECT_EQ(a[3]["access"], "write");
  EXPECT_EQ(a[4]["name"], "lse");
  EXPECT_EQ(a[4]["offset"], 512);
  EXPECT_EQ(a[5]["offset"], 512 + 48);  // pointer, three strides, three extents, padded to 8
  EXPECT_EQ(a.back()["bytes"], 8);
  EXPECT_EQ(j["parameter_bytes"].get<int64_t>() % 64, 0);
}

TEST(LaunchPlan, refuses_tiles_of_two_shapes_from_one_tensor) {
  Diagnostics d;
  const std::string text = replaced(corpus_text(), "load_async v[c.b, g, n * BN] -> v_s[t]",
                                    "load_async q[c.b, g, n * BN] -> v_s[t]");
  EXPECT_FALSE(plan_of(text, d));
  EXPECT_EQ(d.all()[0].code, "launch.box") << render(d);
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
  for (const char* part : {"namespace prefix_lm {", "Tensor q;", "CUdeviceptr counter;",
                           "lse: dimension 1 must be H", "H % G == 0 must hold"})
    EXPECT_NE(h.find(part), std::string::npos) << part << "\n" << h;
}

}  // namespace
}  // namespace kw::lower
