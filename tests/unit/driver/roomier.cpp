// The last rows of the tile databases: masks and scores that need more registers than the best
// tiles leave still have a kernel without a spill. What `make` tries after the first row, without
// its checks: transfer, the laws, lower, NVRTC.
//
// A case is compiled with one row only: the last, which is there for it. The first row must not do
// (or the case says nothing of the last). Without an NVRTC on the machine the tests are skipped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/environment/tools.h"
#include "in_clone.h"
#include "lower/launch_plan.h"
#include "lower/lower.h"
#include "support/files.h"
#include "support/targets.h"
#include "tl/laws/laws.h"
#include "transfer_form.h"

namespace kw::driver {
namespace {

// Forms whose masks and scores are computed from much at once.
constexpr const char* kRemainders =
    "score s\n"
    "keep j <= i and (i % 7 + j % 11 + (i * 3 + j * 5) % 13) % 4 < 2 and i - j < 1500\n";
constexpr const char* kColumns =
    "argument document i64[B, N]\nargument part i64[B, N]\nargument page i64[B, N]\nscore s\n"
    "keep j <= i and document[b, i] == document[b, j] and (part[b, i] == part[b, j] or part[b, j] "
    "== 0) and (page[b, i] == page[b, j] or page[b, j] == 1)\n";
constexpr const char* kWeights =
    "argument prefix i32[B]\nargument document i32[B, N]\n"
    "score sigmoid(tanh(s * 0.002) * 50.0 - log(f32(N)))\nnormaliser none\n"
    "keep (j <= i or j < prefix[b]) and document[b, i] == document[b, j] and (i + j) % 3 < 2\n";
constexpr const char* kBias =
    "argument bias bf16[B, H, M, N]\nargument document i64[B, N]\n"
    "score tanh((s * 0.088 + bias[b, h, i, j]) * 0.02) * 50.0\n"
    "keep j <= i and document[b, i] == document[b, j]\n";

class RoomierTiles : public testing::Test {
 protected:
  void SetUp() override {
    setenv("KERNELWRIGHT_HOME", in_clone().c_str(), 1);
    tools = find_tools(diagnostics);
    ASSERT_TRUE(tools) << render(diagnostics);
    if (!runtime::Nvrtc::find(tools->python, diagnostics))
      GTEST_SKIP() << "no NVRTC on this machine: neither PyTorch nor a CUDA toolkit";
  }

  // The codes of what is wrong with the kernel of so many rows further on; empty: nothing.
  std::string faults(const transfer::Target& target, const std::string& form, bool* roomier) {
    const SourcePtr expert = read_source(
        in_clone(fmt::format("/kernels/{}/attention_fwd.cu", find_target(target.name)->folder)));
    Diagnostics d;
    std::optional<Built> built;
    const auto made =
        transfer::transfer(transfer::kernel_of(target.name), transfer::form_of(form), target, d);
    if (made) *roomier = made->roomier;
    if (made && tl::verify(made->program, d))
      if (const auto text = lower::lower(made->program, expert, tools->clang, d))
        if (const auto plan = lower::plan_launch(made->program, target.name, d))
          built = build(*tools, make_source("kernel.cu", text->text), target.name, plan->entries(),
                        plan->parameter_bytes, d);
    std::string out = built && built->resources.spills() ? "build.spill: some\n" : "";
    for (const Diagnostic& x : d.all())
      if (x.severity == Severity::error) out += x.code + ": " + x.message + "\n";
    return out;
  }

  void takes(const std::string& target, const std::string& dims, const std::string& form) {
    SCOPED_TRACE(fmt::format("{}, D {}\n{}", target, dims, form));
    const std::string whole = fmt::format("head_dim {}\n{}", dims, form);
    bool roomier = false;
    EXPECT_EQ(faults(transfer::target_of(target), whole, &roomier).substr(0, 11), "build.spill");
    ASSERT_TRUE(roomier);
    EXPECT_EQ(faults(last(target, whole), whole, &roomier), "");
    EXPECT_FALSE(roomier);
  }

  // What once needed roomier tiles: its places in shared memory are not kept in registers now.
  void takes_at_once(const std::string& target, const std::string& dims, const std::string& form) {
    SCOPED_TRACE(fmt::format("{}, D {}\n{}", target, dims, form));
    bool roomier = false;
    EXPECT_EQ(
        faults(transfer::target_of(target), fmt::format("head_dim {}\n{}", dims, form), &roomier),
        "");
  }

  // The target after all rows but the last were in vain.
  transfer::Target last(const std::string& name, const std::string& form) {
    transfer::Target target = transfer::target_of(name);
    for (;; ++target.tried) {
      Diagnostics d;
      const auto made =
          transfer::transfer(transfer::kernel_of(name), transfer::form_of(form), target, d);
      if (!made || !made->roomier) return target;
    }
  }

  std::optional<Tools> tools;
  Diagnostics diagnostics;
};

TEST_F(RoomierTiles, take_masks_of_several_remainders_at_256_columns) {
  takes("sm_90a", "256", kRemainders);
}

TEST_F(RoomierTiles, take_a_bias_of_each_pair_at_256_columns) {
  takes_at_once("sm_90a", "256", kBias);
}

TEST_F(RoomierTiles, take_columns_of_documents_at_96_columns) { takes("sm_90a", "96", kColumns); }

TEST_F(RoomierTiles, of_the_ampere_class_text_take_weights_under_a_mask_of_all_kinds) {
  takes("sm_90", "128", kWeights);
  takes_at_once("sm_86", "64", kWeights);
}

}  // namespace
}  // namespace kw::driver
