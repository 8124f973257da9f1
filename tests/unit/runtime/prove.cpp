// kernelwright-prove as a program, against the stand-in driver: its kernels copy x to y, and each
// of them but `copy` is wrong in one way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "num/npy.h"
#include "runtime/launch/strided.h"
#include "runtime/prove/prove_spec.h"
#include "support/files.h"
#include "support/process.h"
#include "tiny_cubin.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;

class Proving : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/kw_prove_" + std::to_string(getpid());
    std::filesystem::create_directories(folder);
    setenv("XDG_CACHE_HOME", (folder + "/cache").c_str(), 1);
    make("copy");
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // A folder for the kernel of that name, with true goldens of two rows and two elements.
  void make(const std::string& kernel, int cluster = 1) {
    const auto x = [](const char* name, int offset, const char* access) {
      return Json{{"name", name},
                  {"kind", "tensor"},
                  {"offset", offset},
                  {"dtype", "bf16"},
                  {"dims", {"B", "H", "M", "D"}},
                  {"access", access}};
    };
    const Json launch = {
        {"entry", kernel},
        {"target", "sm_90a"},
        {"threads", 128},
        {"shared_bytes", 0},
        {"parameter_bytes", 168},
        {"cluster", cluster},
        {"resident", 1},
        {"grid", {"*", cluster, "M"}},
        {"constants", {{"D", 8}}},
        {"arguments",
         {x("x", 0, "read"), x("y", 56, "write"),
          Json{{"name", "lse"},
               {"kind", "tensor"},
               {"offset", 112},
               {"dtype", "f32"},
               {"dims", {"B", "H", "M"}},
               {"access", "write"}},
          Json{{"name", "queue"}, {"kind", "workspace"}, {"offset", 160}, {"bytes", 4}}}}};
    write_file(folder + "/launch.json", launch.dump());
    write_file(folder + "/kernel.cubin", tiny_cubin(kernel, 168));
    prove = {{"cases",
              {{{"name", "small"},
                {"seed", 7},
                {"sizes", {{"B", 2}, {"H", 3}, {"M", 5}}},
                {"layout", "BSHD"},
                {"flop", 1e9},
                {"timed", true},
                {"signs", {{"input", "x"}, {"outputs", {"y", "lse"}}}},
                {"inputs", {{"x", {{"kind", "normal"}, {"stream", 4}, {"scale", 0.7}}}}},
                {"goldens",
                 {{{"output", "y"},
                   {"rows", "y.rows.npy"},
                   {"values", "y.npy"},
                   {"accepted", "y.accepted.npy"}},
                  {{"output", "lse"},
                   {"rows", "lse.rows.npy"},
                   {"values", "lse.npy"},
                   {"accepted", "lse.accepted.npy"}}}}}}}};
    write_goldens();
    write_prove();
  }

  void write_goldens() {
    const Tensor x =
        draw({.kind = Draw::Kind::normal, .stream = 4, .scale = 0.7}, 7, Dtype::bf16, {2, 3, 5, 8});
    Tensor rows(Dtype::i64, {2, 3}), y(Dtype::f64, {2, 8}), lse(Dtype::f64, {2});
    rows.values = {0, 1, 2, 1, 2, 4};
    for (int r = 0; r < 2; ++r) {
      const double* at = rows.values.data() + 3 * r;
      for (int c = 0; c < 8; ++c)
        y.values[8 * r + c] = x.at({int64_t(at[0]), int64_t(at[1]), int64_t(at[2]), c});
      lse.values[r] = y.values[8 * r];
    }
    Tensor accepted(Dtype::f64, {2});
    accepted.values = {1e-3, 1e-3};
    for (const char* name : {"y", "lse"}) {
      write_npy(folder + "/" + name + ".rows.npy", rows);
      write_npy(folder + "/" + name + ".accepted.npy", accepted);
    }
    write_npy(folder + "/y.npy", y);
    write_npy(folder + "/lse.npy", lse);
  }
  void write_prove() { write_file(folder + "/prove.json", prove.dump()); }

  ProcessResult run(std::vector<std::string> options = {}) {
    std::vector<std::string> argv = {KW_PROVE, folder, "--json"};
    argv.insert(argv.end(), options.begin(), options.end());
    setenv("LD_LIBRARY_PATH", KW_FAKE_CUDA_FOLDER, 1);
    const ProcessResult result = run_process(argv, "", 60);
    unsetenv("LD_LIBRARY_PATH");
    report = Json::parse(result.out, nullptr, false);
    return result;
  }
  // A self-test of these kernels; what the prover says of it.
  ProcessResult self_test(const std::vector<std::pair<std::string, std::string>>& kernels) {
    namespace fs = std::filesystem;
    const std::string planted = folder + "/planted";
    fs::remove_all(planted);
    Json list = Json::array();
    for (const auto& [name, expect] : kernels) {
      make(name);
      fs::create_directories(planted + "/kernels/" + name);
      for (const char* file : {"/launch.json", "/kernel.cubin"})
        fs::copy_file(folder + file, planted + "/kernels/" + name + file);
      list.push_back({{"name", name}, {"expect", expect}});
    }
    for (const auto& file : fs::directory_iterator(folder))
      if (file.path().extension() == ".npy" || file.path().filename() == "prove.json")
        fs::copy_file(file.path(), planted / file.path().filename());
    write_file(planted + "/self_test.json", Json{{"kernels", list}}.dump());
    make("copy");
    setenv("LD_LIBRARY_PATH", KW_FAKE_CUDA_FOLDER, 1);
    const ProcessResult result =
        run_process({KW_PROVE, "--self-test", planted, "--limit", "0.5"}, "", 60);
    unsetenv("LD_LIBRARY_PATH");
    return result;
  }

  // The codes of the only case's findings.
  std::vector<std::string> findings() const {
    std::vector<std::string> codes;
    for (const Json& finding : report["cases"][0]["findings"]) codes.push_back(finding["code"]);
    return codes;
  }

  std::string folder;
  Json prove, report;
};

// Words must be the same: there is no threshold for planted bugs to show wrong.
TEST_F(Proving, WordsHoldWithoutASelfTestUnlessNumbersStandBesideThem) {
  Diagnostics diagnostics;
  Tensor y = *read_npy(folder + "/y.npy", diagnostics),
         lse = *read_npy(folder + "/lse.npy", diagnostics);
  const auto to_bits = [](Tensor& t, int shift) {
    for (double& v : t.values) v = std::bit_cast<uint32_t>(static_cast<float>(v)) >> shift;
  };
  to_bits(y, 16);
  to_bits(lse, 0);
  write_npy(folder + "/y.npy", y);
  write_npy(folder + "/lse.npy", lse);
  Json& goldens = prove["cases"][0]["goldens"];
  goldens[0]["mask"] = 0xffff;
  goldens[1]["mask"] = 0xffffffff;
  write_prove();
  EXPECT_EQ(run().exit_code, 0);
  y.values[3] = static_cast<uint32_t>(y.values[3]) ^ 1;
  write_npy(folder + "/y.npy", y);
  EXPECT_EQ(run().exit_code, 1);
  EXPECT_EQ(findings(), std::vector<std::string>{"prove.words"});
  y.values[3] = static_cast<uint32_t>(y.values[3]) ^ 1;
  write_npy(folder + "/y.npy", y);
  prove["cases"].push_back(prove["cases"][0]);
  prove["cases"][1]["goldens"] = Json::array();
  prove["cases"][1]["name"] = "no goldens";
  write_prove();
  EXPECT_EQ(run().exit_code, 3);
}

TEST_F(Proving, NothingHoldsBeforeThePlantedBugsWereCaught) {
  ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(report["cases"][0]["verdict"], "holds");
  EXPECT_NE(result.err.find("self-test not run"), std::string::npos) << result.err;
  // A planted bug that no case shows.
  result = self_test({{"copy", "holds"}, {"copy_large", "refuted"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("copy_large               is wrong, and passed at 0 keys"),
            std::string::npos)
      << result.out;
  result = run();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("self-test failed"), std::string::npos) << result.err;
  // A right kernel that is refuted, and a list that could not fail.
  EXPECT_EQ(self_test({{"copy_wrong", "holds"}, {"copy_lse", "refuted"}}).exit_code, 1);
  EXPECT_EQ(self_test({{"copy", "holds"}}).exit_code, 2);
  result = self_test({{"copy", "holds"},
                      {"copy_wrong", "refuted"},
                      {"copy_hang", "refuted"},
                      {"copy_fault", "refuted"}});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("prove.hang"), std::string::npos) << result.out;
  EXPECT_EQ(run().exit_code, 0);
}

TEST_F(Proving, ARightKernelHoldsAndIsTimed) {
  EXPECT_EQ(self_test({{"copy", "holds"}, {"copy_wrong", "refuted"}}).exit_code, 0);
  const ProcessResult result = run();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json& one = report["cases"][0];
  EXPECT_EQ(report["machine"]["gpu"], "Fake GPU");
  EXPECT_EQ(one["verdict"], "holds");
  EXPECT_EQ(one["goldens"].size(), 2u);
  EXPECT_EQ(one["goldens"][0]["rows"], 2);
  EXPECT_EQ(one["goldens"][0]["worst_error"], 0);
  EXPECT_EQ(one["time"]["l2"], "cold");
  EXPECT_EQ(one["time"]["median_ms"], 0.5);
  EXPECT_EQ(one["time"]["tflops"], 2.0);
  EXPECT_NE(result.err.find("small"), std::string::npos);
}

TEST_F(Proving, EachWrongKernelIsRefutedByItsOwnFinding) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"copy_wrong", {"prove.error"}},
      {"copy_lse", {"prove.error", "prove.replay"}},
      {"copy_past", {"prove.guard", "prove.guard"}},
      {"copy_drift", {"prove.repeat"}},
      {"copy_replay", {"prove.replay"}},
      {"copy_fault", {"prove.fault"}}};
  for (const auto& [kernel, expected] : cases) {
    make(kernel);
    EXPECT_EQ(run().exit_code, 1) << kernel;
    EXPECT_EQ(findings(), expected) << kernel;
  }
}

TEST_F(Proving, ALateDifferenceNeedsManyLaunches) {
  make("copy_late");
  prove["cases"][0]["timed"] = false;
  write_prove();
  run();
  EXPECT_EQ(report["cases"][0]["verdict"], "holds");
  prove["cases"][0]["launches"] = 20;
  write_prove();
  EXPECT_EQ(run().exit_code, 1);
  EXPECT_EQ(report["cases"][0]["findings"][0]["message"],
            "y: launch 5 on the same inputs gave other bits than launch 1");
}

TEST_F(Proving, ATimeBelowWhatTheGpuCanDoIsVoid) {
  prove["cases"][0]["flop"] = 1e15;
  write_prove();
  EXPECT_EQ(run().exit_code, 3);
  EXPECT_EQ(findings(), std::vector<std::string>{"prove.floor"});
  EXPECT_EQ(report["cases"][0]["time"]["void"], true);
}

TEST_F(Proving, AKernelInClustersIsLaunchedSo) {
  make("copy", 2);
  setenv("FAKE_CUDA_LOG", (folder + "/calls").c_str(), 1);
  run();
  EXPECT_EQ(report["cases"][0]["verdict"], "holds");
  unsetenv("FAKE_CUDA_LOG");
  EXPECT_NE(read_source(folder + "/calls")->text.find("launch copy grid 10 cluster 2 threads 128"),
            std::string::npos);
}

TEST_F(Proving, AGpuWithoutClustersIsTheWrongOneForTheKernel) {
  make("copy", 2);
  setenv("FAKE_CUDA_NO_CLUSTERS", "1", 1);
  EXPECT_EQ(run().exit_code, 2);
  unsetenv("FAKE_CUDA_NO_CLUSTERS");
  EXPECT_EQ(report["failed"][0]["code"], "launch.target");
}

TEST_F(Proving, ARefusedLaunchIsAFinding) {
  make("copy", 2);
  setenv("FAKE_CUDA_REFUSES_CLUSTERS", "1", 1);
  EXPECT_EQ(run().exit_code, 1);
  unsetenv("FAKE_CUDA_REFUSES_CLUSTERS");
  EXPECT_EQ(findings(), std::vector<std::string>{"driver.call"});
}

TEST_F(Proving, AnUnwrittenElementIsNamed) {
  make("copy_skip");
  EXPECT_EQ(run().exit_code, 1);
  const Json& findings = report["cases"][0]["findings"];
  EXPECT_EQ(findings[0]["message"],
            "y: 48 of 240 elements were not written, the first at [0, 0, 4, 0]");
  EXPECT_EQ(findings[1]["message"],
            "lse: 6 of 30 elements were not written, the first at [0, 0, 4]");
}

TEST_F(Proving, AChangedInputIsFound) {
  make("copy_input");
  EXPECT_EQ(run().exit_code, 1);
  const std::vector<std::string> codes = findings();
  EXPECT_NE(std::find(codes.begin(), codes.end(), "prove.input"), codes.end());
}

TEST_F(Proving, ADirtyWorkspaceIsFound) {
  make("copy_dirty");
  EXPECT_EQ(run().exit_code, 1);
  EXPECT_EQ(findings(), std::vector<std::string>{"launch.workspace"});
}

TEST_F(Proving, AHangingKernelIsKilledAndRefuted) {
  make("copy_hang");
  EXPECT_EQ(run({"--limit", "0.3"}).exit_code, 1);
  EXPECT_EQ(findings(), std::vector<std::string>{"prove.hang"});
}

TEST_F(Proving, AnotherSeedLeavesTheGoldensOutAndIsInconclusive) {
  EXPECT_EQ(run({"--seed", "8", "--warm"}).exit_code, 3);
  EXPECT_EQ(report["cases"][0]["verdict"], "inconclusive");
  EXPECT_EQ(report["cases"][0]["goldens"].size(), 0u);
  EXPECT_EQ(report["cases"][0]["time"]["l2"], "warm");
}

TEST_F(Proving, AnInputThatIsGivenIsNotDrawnAndBelongsToItsSeed) {
  EXPECT_EQ(self_test({{"copy", "holds"}, {"copy_wrong", "refuted"}}).exit_code, 0);
  const Tensor drawn =
      draw({.kind = Draw::Kind::normal, .stream = 4, .scale = 0.7}, 7, Dtype::bf16, {2, 3, 5, 8});
  Tensor given(Dtype::f64, {2, 3, 5, 8});
  given.values = drawn.values;
  write_npy(folder + "/x.given.npy", given);
  Json& one = prove["cases"][0];
  one["inputs"]["x"] = {{"kind", "given"}, {"values", "x.given.npy"}};
  write_prove();
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(run({"--seed", "8"}).exit_code, 2);
  EXPECT_EQ(findings(), std::vector<std::string>{"prove.seed"});

  given.values[(3 + 1) * 5 * 8 + 2 * 8] += 1;  // of a row that is no golden,
  write_npy(folder + "/x.given.npy", given);
  EXPECT_EQ(run().exit_code, 0);
  for (double& x : given.values) x = -x;  // and of all
  write_npy(folder + "/x.given.npy", given);
  EXPECT_EQ(run().exit_code, 1);

  given.shape = {2, 3, 8, 5};
  write_npy(folder + "/x.given.npy", given);
  const ProcessResult other = run();
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("x's values have shape [2, 3, 8, 5]"), std::string::npos) << other.err;
}

TEST_F(Proving, OfTwoHalvesBothAreProvedAndTheWorseEndsIt) {
  namespace fs = std::filesystem;
  EXPECT_EQ(self_test({{"copy", "holds"}, {"copy_wrong", "refuted"}}).exit_code, 0);
  const auto halves = [&](const std::string& forward, const std::string& backward) {
    const std::string one = folder, both = folder + "/both";
    for (const auto& [half, kernel] : {std::pair("forward", forward), {"backward", backward}}) {
      folder = both + "/" + half;
      fs::create_directories(folder);
      make(kernel);
    }
    folder = both;
    const ProcessResult result = run();
    folder = one;
    return result.exit_code;
  };
  EXPECT_EQ(halves("copy", "copy"), 0);
  EXPECT_EQ(report["halves"]["forward"]["verdict"], "holds");
  EXPECT_EQ(report["halves"]["backward"]["cases"].size(), 1u);
  EXPECT_EQ(report["machine"]["gpu"], "Fake GPU");
  EXPECT_EQ(halves("copy_wrong", "copy"), 1);
  EXPECT_EQ(report["halves"]["backward"]["verdict"], "holds");
  EXPECT_EQ(halves("copy", "copy_wrong"), 1);
  EXPECT_EQ(report["verdict"], "refuted");
  EXPECT_EQ(report["halves"]["forward"]["verdict"], "holds");
}

TEST_F(Proving, AnErrorThatIsNaNNeverPasses) {
  Tensor accepted(Dtype::f64, {2});
  accepted.values = {1e-3, NAN};
  write_npy(folder + "/y.accepted.npy", accepted);
  EXPECT_EQ(run().exit_code, 1);
}

TEST_F(Proving, NoGpuIsInconclusive) {
  setenv("FAKE_CUDA_NO_GPU", "1", 1);
  const ProcessResult result = run();
  unsetenv("FAKE_CUDA_NO_GPU");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(report["failed"][0]["code"], "driver.no_device");
}

TEST_F(Proving, EachFaultOfProveJsonIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"op":"remove","path":"/cases/0/seed"}])", "key 'seed' not found"},
      {R"([{"op":"remove","path":"/cases/0/sizes/M"}])",
       "case 'small': the sizes do not give x a shape [B, H, M, D]"},
      {R"([{"op":"replace","path":"/cases/0/layout","value":"SBHD"}])",
       "layout is 'SBHD', neither BHSD nor BSHD"},
      {R"([{"op":"replace","path":"/cases/0/inputs/x/kind","value":"zeros"}])",
       "x is drawn as 'zeros', none of normal, uniform, integer, constant, window"},
      {R"([{"op":"add","path":"/cases/0/inputs/y","value":{"kind":"normal"}}])",
       "prove.json: `inputs.y` does not name an input of the kernel"},
      {R"([{"op":"remove","path":"/cases/0/inputs/x"}])", "nothing says how to draw x"},
      {R"([{"op":"replace","path":"/cases/0/goldens/0/output","value":"x"}])",
       "there is a golden for x, which the kernel does not write"},
      {R"([{"op":"replace","path":"/cases/0/sizes/H","value":2}])",
       "y's row 1 has index 2 in a dimension of 2"},
      {R"([{"op":"replace","path":"/cases/0/goldens/0/values","value":"lse.npy"}])",
       "y's values have shape [2], its rows and the sizes say [2, 8]"},
      {R"([{"op":"replace","path":"/cases/0/goldens/0/rows","value":"y.npy"}])",
       "y's rows have shape [2, 8] of f64; they are i64 [R, 3] or [R, 4]"},
      {R"([{"op":"replace","path":"/cases/0/signs/input","value":"y"}])",
       "prove.json: `signs` names y, which is not an input of the kernel with heads"},
      {R"([{"op":"add","path":"/cases/0/goldens/1/rule","value":"window"}])",
       "lse's golden is of elements, and its rule 'window' of rows"},
      {R"([{"op":"add","path":"/cases/0/launches","value":0}])", "is launched 0 times"},
      {R"([{"op":"replace","path":"/cases","value":[]}])", "has no cases"}};
  const Json good = prove;
  for (const auto& [patch, expected] : cases) {
    prove = good.patch(Json::parse(patch));
    write_prove();
    const ProcessResult result = run();
    EXPECT_EQ(result.exit_code, 2) << patch;
    EXPECT_NE(result.err.find(expected), std::string::npos) << result.err;
  }
}

TEST(StridedTensors, PutRowsBeforeHeadsInMemory) {
  const Strided s = Strided::of(Dtype::bf16, {2, 3, 5, 8}, true);
  EXPECT_EQ(s.strides, (std::vector<int64_t>{120, 8, 24, 1}));
  EXPECT_EQ(s.position(0), 0);
  EXPECT_EQ(s.position(8), 24);     // [0, 0, 1, 0]
  EXPECT_EQ(s.position(5 * 8), 8);  // [0, 1, 0, 0]
  EXPECT_EQ(Strided::of(Dtype::f32, {2, 3, 5}, true).strides, (std::vector<int64_t>{15, 5, 1}));
}

TEST(StridedTensors, HoldTheGeneratorsValues) {
  const std::pair<Draw, Dtype> draws[] = {
      {{.kind = Draw::Kind::normal, .stream = 1, .scale = 0.3}, Dtype::bf16},
      {{.kind = Draw::Kind::uniform, .stream = 2, .scale = 2}, Dtype::f16},
      {{.kind = Draw::Kind::integer, .stream = 3, .low = -4, .high = 9}, Dtype::i32},
      {{.kind = Draw::Kind::constant, .value = 0.5}, Dtype::f32}};
  for (const auto& [how, dtype] : draws) {
    const Tensor expected = draw(how, 11, dtype, {2, 3, 50, 300});
    const Strided layout = Strided::of(dtype, {2, 3, 50, 300}, true);
    const std::string bytes = draw_bytes({how}, 11, layout);
    for (int64_t n = 0; n < expected.count(); ++n)
      ASSERT_EQ(element(bytes, dtype, layout.position(n)), expected.values[n]) << n;
  }
}

}  // namespace
}  // namespace kw::runtime
