// kernelwright-tune-time as a program, against the stand-in driver, and the choice that follows.
//
// The stand-in's launches take half a millisecond and a millionth of one more for each byte of
// shared memory, so every test knows which candidate is fastest.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "num/npy.h"
#include "num/random.h"
#include "runtime/tune/choice.h"
#include "support/files.h"
#include "support/process.h"
#include "tiny_cubin.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Tuning : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/kw_tune_" + std::to_string(getpid());
    fs::create_directories(folder);
    write_cases();
  }
  void TearDown() override { fs::remove_all(folder); }

  // A candidate that is the stand-in's kernel `entry`, with so much shared memory.
  void add(const std::string& name, const std::string& entry, int shared, bool present = false) {
    const auto tensor = [](const char* name, int offset, const char* dtype, Json dims,
                           const char* access) {
      return Json{{"name", name},   {"kind", "tensor"}, {"offset", offset},
                  {"dtype", dtype}, {"dims", dims},     {"access", access}};
    };
    const Json rank4 = {"B", "H", "M", "D"};
    const Json launch = {
        {"entry", entry},
        {"target", "sm_90a"},
        {"threads", 128},
        {"shared_bytes", shared},
        {"parameter_bytes", 168},
        {"cluster", 1},
        {"resident", 1},
        {"grid", "M"},
        {"constants", {{"D", 8}}},
        {"arguments",
         {tensor("x", 0, "bf16", rank4, "read"), tensor("y", 56, "bf16", rank4, "write"),
          tensor("lse", 112, "f32", {"B", "H", "M"}, "write"),
          Json{{"name", "queue"}, {"kind", "workspace"}, {"offset", 160}, {"bytes", 4}}}}};
    const fs::path at = fs::path(folder) / "candidates" / name;
    fs::create_directories(at);
    write_file(at / "launch.json", launch.dump());
    write_file(at / "kernel.cubin", tiny_cubin(entry, 168));
    tune["candidates"].push_back(
        {{"name", name}, {"text", "SHARED = " + std::to_string(shared)}, {"present", present}});
    write_file(folder + "/tune.json", tune.dump());
  }

  void write_cases() {
    const auto named = [](const char* name, int rows, bool timed, Json goldens) {
      return Json{{"name", name},
                  {"seed", 7},
                  {"sizes", {{"B", 2}, {"H", 3}, {"M", rows}}},
                  {"layout", "BHSD"},
                  {"flop", 1e9},
                  {"timed", timed},
                  {"inputs", {{"x", {{"kind", "normal"}, {"stream", 4}}}}},
                  {"goldens", goldens}};
    };
    const Json golden = {
        {"output", "y"}, {"rows", "rows.npy"}, {"values", "y.npy"}, {"accepted", "accepted.npy"}};
    const Tensor x = draw({.kind = Draw::Kind::normal, .stream = 4}, 7, Dtype::bf16, {2, 3, 5, 8});
    Tensor rows(Dtype::i64, {1, 3}), y(Dtype::f64, {1, 8}), accepted(Dtype::f64, {1});
    rows.values = {1, 2, 4};
    for (int64_t c = 0; c < 8; ++c) y.values[c] = x.at({1, 2, 4, c});
    accepted.values = {1e-3};
    write_npy(folder + "/rows.npy", rows);
    write_npy(folder + "/y.npy", y);
    write_npy(folder + "/accepted.npy", accepted);
    write_file(folder + "/prove.json", Json{{"cases",
                                             {named("small", 5, false, Json::array({golden})),
                                              named("long", 40, true, Json::array())}}}
                                           .dump());
  }

  int run(std::vector<std::string> options = {}) {
    std::vector<std::string> argv = {KW_TUNE_TIME, folder};
    argv.insert(argv.end(), options.begin(), options.end());
    setenv("LD_LIBRARY_PATH", KW_FAKE_CUDA_FOLDER, 1);
    const ProcessResult result = run_process(argv, "", 60);
    unsetenv("LD_LIBRARY_PATH");
    out = result.out;
    err = result.err;
    times.reset();
    if (const SourcePtr source = read_source(folder + "/times.json")) {
      Diagnostics d;
      times = read_tune_times(source, d);
    }
    return result.exit_code;
  }
  const CandidateTimes& timed(const std::string& name) const {
    for (const CandidateTimes& c : times->candidates)
      if (c.name == name) return c;
    throw std::runtime_error("no candidate " + name);
  }

  std::string folder, out, err;
  Json tune = {{"candidates", Json::array()}};
  std::optional<TuneTimes> times;
};

TEST_F(Tuning, EveryRightCandidateIsTimedInEveryRound) {
  add("00", "copy", 100000, true);
  add("01", "copy", 20000);
  add("02", "copy", 40000);
  ASSERT_EQ(run(), 0) << err;
  for (const auto& [name, ms] : {std::pair{"00", 0.6}, {"01", 0.52}, {"02", 0.54}}) {
    EXPECT_EQ(timed(name).verdict, "ok");
    ASSERT_EQ(timed(name).ms.size(), 5u);
    for (const double round : timed(name).ms) EXPECT_NEAR(round, ms, 1e-3) << name;
  }
  EXPECT_EQ(times->gpu, "Fake GPU");
  EXPECT_EQ(times->shape, "long");
  EXPECT_NE(out.find("01 is fastest, 1.154x the present 00, 1.038x the next, 02"),
            std::string::npos)
      << out;
}

TEST_F(Tuning, ACandidateThatIsWrongIsNotTimed) {
  add("00", "copy", 50000);
  add("01", "copy_wrong", 0);
  add("02", "copy_large", 0);
  add("03", "copy_past", 0);
  ASSERT_EQ(run({"--rounds", "1"}), 0) << err;
  EXPECT_TRUE(timed("00").ok());
  for (const auto& [name, why] :
       {std::pair{"01", "small: y: 1 of 1 sampled rows are further from the truth"},
        {"02", "y: row 39 differs from the first candidate's"},
        {"03", "small: y: memory after the tensor was written"}}) {
    EXPECT_EQ(timed(name).verdict, "wrong");
    EXPECT_TRUE(timed(name).ms.empty());
    EXPECT_EQ(timed(name).why.rfind(why, 0), 0u) << timed(name).why;
  }
  EXPECT_NE(out.find("02        wrong: y: row 39"), std::string::npos) << out;
}

TEST_F(Tuning, OneThatCrashesOrHangsIsLeftOutAndTheOthersAreTimed) {
  add("00", "copy_fault", 0);
  add("01", "copy", 30000);
  add("02", "copy_hang", 0);
  ASSERT_EQ(run({"--rounds", "2", "--limit", "5"}), 0) << err;
  EXPECT_EQ(timed("00").verdict, "crashed");
  EXPECT_NE(timed("00").why.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
  EXPECT_EQ(timed("02").why, "silent for 5 s");
  EXPECT_EQ(timed("01").ms.size(), 2u);
}

TEST_F(Tuning, WithoutARightCandidateThereIsNoChoice) {
  add("00", "copy_wrong", 0);
  EXPECT_EQ(run(), 1);
}

TEST_F(Tuning, WithoutAGpuNothingIsWritten) {
  add("00", "copy", 0);
  setenv("FAKE_CUDA_NO_GPU", "1", 1);
  EXPECT_EQ(run(), 3);
  unsetenv("FAKE_CUDA_NO_GPU");
  EXPECT_FALSE(times);
}

TEST_F(Tuning, AWrongFolderIsRefused) {
  EXPECT_EQ(run(), 2);
  EXPECT_NE(err.find("error[tune.json]"), std::string::npos) << err;
  add("../00", "copy", 0);
  EXPECT_EQ(run(), 2);
  EXPECT_NE(err.find("'../00' is not a candidate's name"), std::string::npos) << err;
}

// ---- the choice

const std::vector<TuneCandidate> kThree = {
    {"00", "BN = 128", true}, {"01", "BN = 96", false}, {"02", "BN = 80", false}};

TuneTimes times_of(std::vector<double> present, std::vector<double> other) {
  return {"GPU",
          "13.0",
          "2026-11-21",
          "long",
          1e9,
          {{"00", "ok", "", present}, {"01", "ok", "", other}, {"02", "wrong", "y differs", {}}}};
}

TEST(TuneChoice, AFasterOneTakesThePlaceOfThePresent) {
  const auto choice = choose(kThree, times_of({1.0, 1.02, 1.01}, {0.96, 0.99, 0.95}));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->fastest, "01");
  EXPECT_EQ(choice->runner_up, "00");
  EXPECT_NEAR(choice->present_ratio, 1.01 / 0.96, 1e-9);
  EXPECT_FALSE(choice->keeps_present);
}

TEST(TuneChoice, WithinTheSpreadOfThePresentThePresentStays) {
  const auto choice = choose(kThree, times_of({1.0, 1.02, 1.01}, {1.0, 1.03, 0.95}));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->fastest, "01");
  EXPECT_TRUE(choice->keeps_present);
  EXPECT_NE(sentence(*choice).find("within the spread of the present one, which stays"),
            std::string::npos);
}

TEST(TuneChoice, ThePresentStaysWhereItIsFastest) {
  const auto choice = choose(kThree, times_of({1.0, 1.0, 1.0}, {1.1, 1.2, 1.1}));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->fastest, "00");
  EXPECT_TRUE(choice->keeps_present);
}

TEST(TuneChoice, APresentOneThatIsWrongDoesNotStay) {
  TuneTimes times = times_of({}, {1.1, 1.2});
  times.candidates[0].verdict = "wrong";
  const auto choice = choose(kThree, times);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->fastest, "01");
  EXPECT_EQ(choice->present, "");
  EXPECT_FALSE(choice->keeps_present);
}

TEST(TuneChoice, TimesAreReadAsTheyAreWritten) {
  const TuneTimes times = times_of({1.0, 2.0}, {3.0});
  Diagnostics d;
  const auto read = read_tune_times(make_source("t", to_json(times).dump()), d);
  ASSERT_TRUE(read) << render(d);
  EXPECT_EQ(to_json(*read), to_json(times));
  EXPECT_FALSE(read_tune_times(make_source("t", "{\"gpu\": 1}"), d));
  EXPECT_EQ(d.all().at(0).code, "tune.times");
}

}  // namespace
}  // namespace kw::runtime
