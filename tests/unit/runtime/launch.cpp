// Launching without a GPU: the order of driver calls, against the stand-in driver of
// tests/fake_cuda.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "launch_json.h"
#include "tiny_cubin.h"

namespace kw::runtime {
namespace {

class Launching : public testing::Test {
 protected:
  void SetUp() override {
    log_path = fmt::format("{}/kw_fake_cuda_{}.log", testing::TempDir(), getpid());
    remove(log_path.c_str());
    setenv("FAKE_CUDA_LOG", log_path.c_str(), 1);
    driver = Driver::open(diagnostics, KW_FAKE_CUDA);
    ASSERT_TRUE(driver) << render(diagnostics);
  }
  void TearDown() override { unsetenv("FAKE_CUDA_LOG"); }
  std::unique_ptr<Kernel> load(const Json& json, int parameter_bytes = 448) {
    auto spec = read(json, diagnostics);
    return Kernel::load(driver, tiny_cubin("attention_fwd", parameter_bytes), *spec, 0,
                        diagnostics);
  }
  std::string log() {
    std::ifstream file(log_path);
    std::stringstream text;
    text << file.rdbuf();
    remove(log_path.c_str());
    return text.str();
  }
  std::string log_path;
  Diagnostics diagnostics;
  std::shared_ptr<const Driver> driver;
};

TEST_F(Launching, LoadsOncePlansOnceAndEnqueuesWithTheAddressesOfTheDay) {
  auto kernel = load(attention());
  ASSERT_TRUE(kernel) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\n");
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  EXPECT_EQ(
      log(),
      "encode dtype 9 dims 64 300 2 8 2 strides 256 128 76800 614400 box 64 64 2 1 1 swizzle 3\n"
      "encode dtype 9 dims 64 500 2 2 2 strides 512 128 256 256000 box 64 128 2 1 1 swizzle 3\n");
  const std::string launch = "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n";
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(), "allocate 8\nfill 8\n" + launch);
  EXPECT_TRUE(plan->enqueue({0x10000, 0x50000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(), "address\n" + launch);
  // Another stream has a workspace of its own: its launches run beside the first stream's.
  EXPECT_TRUE(
      plan->enqueue({0x10000, 0x20000, 0x30000}, reinterpret_cast<CuStream>(1), diagnostics));
  EXPECT_EQ(log(), "allocate 8\nfill 8\n" + launch);
  kernel.reset();
  EXPECT_EQ(log(), "free\nfree\nunload\n");
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics);
}

// A replay may overlap an eager launch on the stream that it was captured on, and another graph.
TEST_F(Launching, GivesEachCaptureAWorkspaceOfItsOwnAndZeroesItApart) {
  auto kernel = load(attention());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  const auto stream = reinterpret_cast<CuStream>(1);
  const auto enqueue = [&](const char* capture) {
    capture ? setenv("FAKE_CUDA_CAPTURE", capture, 1) : unsetenv("FAKE_CUDA_CAPTURE");
    log();
    EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, stream, diagnostics))
        << render(diagnostics);
    unsetenv("FAKE_CUDA_CAPTURE");
    return log();
  };
  const std::string launch = "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n";
  const std::string own = "allocate 8\nstream\nfill 8 apart\nwait\nstream ends\n" + launch;
  EXPECT_EQ(enqueue("7"), own);
  EXPECT_EQ(enqueue("7"), launch);  // the same graph: its launches follow each other
  EXPECT_EQ(enqueue("8"), own);
  EXPECT_EQ(enqueue(nullptr), "allocate 8\nfill 8\n" + launch);
  EXPECT_TRUE(kernel->workspaces_are_zero(diagnostics));
}

TEST_F(Launching, LeavesSharedMemoryForAllThreadBlocksOfAMultiprocessor) {
  Json json = attention();
  json["resident"] = 2;
  EXPECT_TRUE(load(json)) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\ncarveout 100\nunload\n");
}

TEST_F(Launching, LeavesTheL1CacheToAKernelWithoutSharedMemory) {
  Json json = attention();
  json["resident"] = 2;
  json["shared_bytes"] = 0;
  EXPECT_TRUE(load(json)) << render(diagnostics);
  EXPECT_EQ(log().find("carveout"), std::string::npos);
}

TEST_F(Launching, LaunchesThePrePassFirstWithMemoryThatNobodyZeroes) {
  Json json = attention();
  json["arguments"][8] = Json::parse(
      R"({"name": "lists", "kind": "scratch", "offset": 328, "bytes": ["*", ["*", "B", "M"], 4]})");
  json["before"] =
      Json::parse(R"([{"entry": "attention_fwd", "threads": 64, "grid": ["ceil_div", "M", 200]}])");
  auto kernel = load(json);
  ASSERT_TRUE(kernel) << render(diagnostics);
  EXPECT_EQ(log(), "load\nfunction attention_fwd\nshared 230000\nfunction attention_fwd\n");
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  log();
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(),
            "allocate 2400\n"
            "launch attention_fwd grid 2 cluster 1 threads 64 shared 0\n"
            "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n");
  EXPECT_TRUE(kernel->workspaces_are_zero(diagnostics));  // it is none
  json["before"][0]["entry"] = "attention_lists";
  EXPECT_FALSE(load(json));
  EXPECT_NE(render(diagnostics).find("no entry attention_lists"), std::string::npos);
}

TEST_F(Launching, LaunchesThePassBehindTheKernelLast) {
  Json json = attention();
  json["after"] = Json::parse(
      R"([{"entry": "attention_fwd", "threads": 256, "grid": ["ceil_div", "M", 100]}])");
  auto kernel = load(json);
  ASSERT_TRUE(kernel) << render(diagnostics);
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  log();
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(),
            "allocate 8\nfill 8\n"
            "launch attention_fwd grid 48 cluster 1 threads 384 shared 230000\n"
            "launch attention_fwd grid 3 cluster 1 threads 256 shared 0\n");
  json["after"][0]["entry"] = "add_sums";
  EXPECT_FALSE(load(json));
  EXPECT_NE(render(diagnostics).find("no entry add_sums"), std::string::npos);
}

TEST_F(Launching, LaunchesClusters) {
  auto kernel = load(in_clusters());
  ASSERT_TRUE(kernel) << render(diagnostics);
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  ASSERT_TRUE(plan) << render(diagnostics);
  log();
  EXPECT_TRUE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  EXPECT_EQ(log(),
            "allocate 8\nfill 8\n"
            "launch attention_fwd grid 96 cluster 2 threads 384 shared 230000\n");
}

TEST_F(Launching, SaysThatAGpuHasNoClustersOrRefusesThem) {
  setenv("FAKE_CUDA_NO_CLUSTERS", "1", 1);
  EXPECT_FALSE(load(in_clusters()));
  EXPECT_TRUE(load(attention()));
  unsetenv("FAKE_CUDA_NO_CLUSTERS");
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message,
            "the kernel runs in clusters of 2 CTAs, the GPU or its driver cannot launch "
            "clusters");
  diagnostics = {};
  auto kernel = load(in_clusters());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  setenv("FAKE_CUDA_REFUSES_CLUSTERS", "1", 1);
  EXPECT_FALSE(plan->enqueue({0x10000, 0x20000, 0x30000}, nullptr, diagnostics));
  unsetenv("FAKE_CUDA_REFUSES_CLUSTERS");
  ASSERT_EQ(diagnostics.all().size(), 1u) << render(diagnostics);
  EXPECT_EQ(diagnostics.all()[0].message,
            "launching attention_fwd with 96 blocks of 384 threads in clusters of 2: "
            "CUDA_ERROR_INVALID_CLUSTER_SIZE: as the fake was told (912)");
}

TEST_F(Launching, RefusesWrongAddressesAndWrongCounts) {
  auto kernel = load(attention());
  const auto plan = kernel->plan(attention_tensors(), {{"cap", 30}}, diagnostics);
  EXPECT_FALSE(plan->enqueue({0x10000, 0x20004, 0x30000}, nullptr, diagnostics));
  EXPECT_FALSE(plan->enqueue({0x10000}, nullptr, diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 2u);
  EXPECT_EQ(diagnostics.all()[0].message,
            "k is at address 0x20004, which is not a multiple of 16 bytes");
  EXPECT_EQ(diagnostics.all()[1].message, "1 addresses are given for 3 tensors");
}

TEST_F(Launching, RefusesACubinThatDoesNotFitLaunchJson) {
  EXPECT_FALSE(load(attention(), 440));
  EXPECT_EQ(diagnostics.all()[0].message,
            "attention_fwd takes 440 bytes of arguments in the cubin and 448 in launch.json");
  diagnostics = {};
  Json other = attention();
  other["entry"] = "other";
  EXPECT_FALSE(load(other));
  EXPECT_EQ(diagnostics.all()[0].message, "the cubin has no entry other, which launch.json names");
}

TEST_F(Launching, RefusesAGpuThatCannotRunTheKernel) {
  for (const auto& [field, value, message] :
       {std::tuple<std::string, Json, std::string>{
            "target", "sm_100a", "the kernel is built for sm_100a, the GPU is sm_90"},
        {"target", "sm_80", "the kernel is built for sm_80, the GPU is sm_90"},
        {"shared_bytes", 240000,
         "the kernel needs 240000 bytes of shared memory, the GPU has 232448 a block"}}) {
    diagnostics = {};
    Json json = attention();
    json[field] = value;
    EXPECT_FALSE(load(json));
    EXPECT_EQ(diagnostics.all()[0].message, message);
  }
}

TEST(OpeningTheDriver, SaysThatThereIsNoneOrNoGpu) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Driver::open(diagnostics, "/nowhere/libcuda.so.1"));
  EXPECT_EQ(diagnostics.all()[0].code, "driver.missing");
  setenv("FAKE_CUDA_NO_GPU", "1", 1);
  EXPECT_FALSE(Driver::open(diagnostics, KW_FAKE_CUDA));
  unsetenv("FAKE_CUDA_NO_GPU");
  EXPECT_EQ(diagnostics.all()[1].code, "driver.no_device");
}

}  // namespace
}  // namespace kw::runtime
