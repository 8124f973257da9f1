// Probes: what is asked of a kernel on inputs that do not average errors away.
#include "driver/proof/probes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "check/hand_captures.h"
#include "num/dtype.h"

namespace kw::driver {
namespace {

std::vector<Probe> probes_of(const char* function) {
  const spec::Capture capture = check::hand::capture_of(check::hand::form_of(function));
  std::vector<Probe> out;
  Diagnostics d;
  const auto take = [&](const Probe& probe) {
    out.push_back(probe);
    return true;
  };
  EXPECT_TRUE(for_each_probe(capture, transfer::Result{}, 512, take, d)) << render(d);
  return out;
}

TEST(Probes, say_the_shapes_of_what_a_function_reads) {
  for (const Probe& probe : probes_of("documents")) {
    const auto document = probe.problem.tensors.find("document");
    ASSERT_NE(document, probe.problem.tensors.end()) << probe.name;
    EXPECT_EQ(document->second.shape.back(), 512) << probe.name;
  }
}

// One key rounds like one number, hundreds of keys like their mean.
TEST(Probes, accept_more_of_rows_that_few_keys_share) {
  const double half = half_ulp(Dtype::bf16);
  for (const char* function : {"full", "causal"})
    for (const Probe& probe : probes_of(function)) {
      if (probe.name.rfind("mean", 0) != 0) continue;
      for (size_t r = 0; r < probe.accepted.size(); ++r) {
        const bool few = function[0] == 'c' && probe.index[3 * r + 2] < 8;
        EXPECT_GE(probe.accepted[r], half * (few ? 1.0 : 0.78)) << function;
        EXPECT_LE(probe.accepted[r], half * (function[0] == 'f' ? 0.85 : 1.75)) << function;
      }
    }
}

}  // namespace
}  // namespace kw::driver
