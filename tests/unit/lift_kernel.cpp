#include <gtest/gtest.h>

#include <chrono>

#include "lift/lift.h"

namespace kw::lift {
namespace {

const std::string kRoot = KW_SOURCE_DIR;

Toolchain toolchain() { return find_toolchain(kRoot + "/cuda", {kRoot + "/.venv"}); }

TEST(Lift, the_kernel_is_the_program_in_the_corpus) {
  const SourcePtr cuda = read_source(kRoot + "/kernels/sm90/attention_fwd.cu");
  const SourcePtr expected = read_source(kRoot + "/tests/corpus/sm90_attention_fwd.tl");
  ASSERT_TRUE(cuda && expected);
  Diagnostics d;
  const auto start = std::chrono::steady_clock::now();
  const std::optional<tl::Program> program = lift(cuda, toolchain(), d);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(program) << render(d);
  EXPECT_EQ(tl::print(*program), expected->text);
  RecordProperty("seconds", std::to_string(took.count()));
}

}  // namespace
}  // namespace kw::lift
