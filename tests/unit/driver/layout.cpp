// launch.json says where each argument lies; the CUDA text says it too, to its compiler. Here the
// compiler is asked: the kernel's text, with one static_assert an argument, must compile.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compile/nvrtc.h"
#include "driver/environment/tools.h"
#include "in_clone.h"
#include "lift/lift.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"

namespace kw::driver {
namespace {

const std::string kRoot = in_clone();

Tools tools() {
  Tools t{{kRoot}, kRoot + "/.venv/bin/python", {}};
  t.clang = lift::find_toolchain(kRoot + "/cuda", {kRoot + "/.venv"});
  return t;
}

SourcePtr corpus() {
  const std::string name = "kernels/sm90/attention_fwd.cu";
  return make_source(name, read_source(kRoot + "/" + name)->text);
}

// __INTADDR__ makes a constant of an address: NVRTC has no offsetof, and this is what that stands
// for in other compilers of the same front end.
std::string assertions(const lower::LaunchPlan& plan) {
  std::string text = fmt::format(
      "static_assert(sizeof(Args) == {}, \"Args\");\nstatic_assert(sizeof(Shared) == {}, "
      "\"Shared\");\n",
      plan.parameter_bytes, plan.shared_bytes);
  for (const lower::LaunchArgument& a : plan.arguments)
    text += fmt::format("static_assert(__INTADDR__(&((Args*)0)->{0}) == {1}, \"{0}\");\n", a.name,
                        a.offset);
  return text;
}

class Layout : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc = runtime::Nvrtc::find(with.python, d);
    if (!nvrtc) GTEST_SKIP() << "no NVRTC on this machine: neither PyTorch nor a CUDA toolkit";
    for (auto& [name, text] : vocabulary_files(with.home)) headers.push_back({name, text});
  }
  std::optional<lower::LaunchPlan> plan_of(const tl::Program& program) {
    return lower::plan_launch(program, "sm_90a", d);
  }
  // The structs alone: what follows the argument structs costs the compiler most of its time.
  bool compiles(const std::string& kernel, const std::string& more) {
    const std::string structs = kernel.substr(0, kernel.find("struct Block"));
    return nvrtc
        ->compile(make_source("layout.cu", structs + more +
                                               "extern \"C\" __global__ void k(const "
                                               "__grid_constant__ Args args) {}\n"),
                  headers, "sm_90a", {}, d)
        .has_value();
  }

  const Tools with = tools();
  Diagnostics d;
  std::optional<runtime::Nvrtc> nvrtc;
  std::vector<runtime::Header> headers;
};

TEST_F(Layout, of_the_corpus_kernel_is_the_compilers) {
  const SourcePtr kernel = corpus();
  const auto program = lift::lift(kernel, with.clang, d);
  ASSERT_TRUE(program) << render(d);
  const auto plan = plan_of(*program);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_TRUE(compiles(kernel->text, assertions(*plan))) << render(d);
}

TEST_F(Layout, of_other_head_dimensions_and_f16_is_the_compilers) {
  const std::pair<const char*, const char*> variants[] = {
      {"D = 96, V = 96;", "BM = 192, BN = 112, CTAS = 1;"},
      {"D = 192, V = 128;", "BM = 256, BN = 80, CTAS = 2;"}};
  for (const auto& [columns, tiles] : variants) {
    std::string text = corpus()->text;
    const auto replace = [&](const std::string& from, const std::string& to) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    };
    replace("element = kw::bf16", "element = kw::f16");
    replace("D = 128, V = 128;", columns);
    replace("BM = 256, BN = 128, CTAS = 2;", tiles);
    const auto program = lift::lift(make_source("variant.cu", text), with.clang, d);
    ASSERT_TRUE(program) << render(d);
    const auto plan = plan_of(*program);
    ASSERT_TRUE(plan) << render(d);
    EXPECT_TRUE(compiles(text, assertions(*plan))) << render(d);
  }
}

TEST_F(Layout, of_a_kernel_with_more_arguments_is_the_compilers) {
  const auto program = lift::lift(corpus(), with.clang, d);
  ASSERT_TRUE(program) << render(d);
  // A scalar before tensors leaves a hole; ranks of one to four; a tensor behind the workspace.
  std::string text = tl::print(*program);
  const auto insert = [&](const std::string& before, const std::string& lines) {
    const size_t at = text.find(before);
    ASSERT_NE(at, std::string::npos);
    text.insert(at, lines);
  };
  insert("    B, H, G, M, N: size\n",
         "    gain: f32\n    prefix: in i32[B]\n    slopes: in f32[H]\n    bias: in element[B, H, "
         "M, N]\n"
         "    window: i32\n");
  insert("shared:\n", "    counter: workspace[2]\n    lengths: in i32[B, G]\n    last: f32\n");
  insert("    barrier q_full", "    queue work: ring(2), takers 9 of each of CTAS\n");
  const auto edited = tl::parse(make_source("edited.tl", text), d);
  ASSERT_TRUE(edited) << render(d);
  const auto lowered = lower::lower(*edited, corpus(), with.clang, d);
  ASSERT_TRUE(lowered) << render(d);
  const auto plan = plan_of(*edited);
  ASSERT_TRUE(plan) << render(d);
  EXPECT_EQ(plan->arguments.size(), 21u);
  EXPECT_TRUE(compiles(lowered->text, assertions(*plan))) << render(d);
}

TEST_F(Layout, a_wrong_offset_does_not_compile) {
  const auto program = lift::lift(corpus(), with.clang, d);
  ASSERT_TRUE(program) << render(d);
  auto plan = plan_of(*program);
  ASSERT_TRUE(plan) << render(d);
  plan->arguments.back().offset += 4;
  EXPECT_FALSE(compiles(corpus()->text, assertions(*plan)));
  ASSERT_FALSE(d.all().empty());
  EXPECT_EQ(d.all()[0].code, "build.compile") << render(d);
  EXPECT_NE(d.all()[0].message.find("slack"), std::string::npos) << render(d);
}

}  // namespace
}  // namespace kw::driver
