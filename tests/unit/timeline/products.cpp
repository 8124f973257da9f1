// Products of matrices on GPUs that need not be there: their sizes are M, N and K.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "timeline/predict.h"
#include "tl/program.h"

namespace kw::timeline {
namespace {

std::optional<Prediction> predicted(const std::string& program, const std::string& gpu,
                                    const std::string& shape, Diagnostics& d) {
  const auto p = tl::parse(read_source(in_clone("/tests/corpus/") + program), d);
  const auto g = find_gpu(in_clone("/gpus"), gpu, d);
  const auto s = parse_shape(shape, d);
  return p && g && s ? predict(*p, *g, *s, Heat::sustained, d) : std::nullopt;
}

TEST(Products, OneOfMatricesHasOneBatchAndOneHead) {
  for (const auto& [program, gpu] : {std::pair("sm80_gemm.tl", "a100"), {"sm90_gemm.tl", "h200"}}) {
    Diagnostics d;
    const auto p = predicted(program, gpu, "M=2048,N=1024,K=4096", d);
    ASSERT_TRUE(p) << render(d);
    EXPECT_EQ(p->product_flop, 2. * 2048 * 1024 * 4096) << program;
    const auto same = predicted(program, gpu, "B=1,H=1,M=2048,N=1024,K=4096", d);
    ASSERT_TRUE(same) << render(d);
    EXPECT_EQ(p->cycles, same->cycles);
    const auto batch = predicted(program, gpu, "H=3,M=2048,N=1024,K=4096", d);
    ASSERT_TRUE(batch) << render(d);
    EXPECT_EQ(batch->blocks, 3 * p->blocks);
  }
}

TEST(Products, TwiceTheColumnsTakeTwiceTheTime) {
  Diagnostics d;
  const auto one = predicted("sm80_gemm.tl", "a100", "M=4096,K=4096", d);
  const auto two = predicted("sm80_gemm.tl", "a100", "M=4096,K=8192", d);
  ASSERT_TRUE(one && two) << render(d);
  EXPECT_NEAR(two->cycles / one->cycles, 2, 0.1);
}

TEST(Products, WithoutTheColumnsThatAreSummedOverNothingIsSaid) {
  Diagnostics d;
  EXPECT_FALSE(predicted("sm80_gemm.tl", "a100", "M=4096,N=4096", d));
  EXPECT_NE(render(d).find("the shape does not give K"), std::string::npos) << render(d);
}

TEST(Products, KeyHeadsAreNoSizeOfTheirs) {
  Diagnostics d;
  EXPECT_FALSE(predicted("sm80_gemm.tl", "a100", "G=1,M=4096,K=4096", d));
  EXPECT_NE(render(d).find("G = 1, which the program has not"), std::string::npos) << render(d);
}

}  // namespace
}  // namespace kw::timeline
