// What is tried when a kernel is tuned, in which order, and what becomes of the result.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>

#include "driver/tune/candidates.h"
#include "driver/tune/result.h"
#include "driver/tune/shape.h"
#include "in_clone.h"
#include "support/files.h"
#include "transfer_form.h"

namespace kw::driver {
namespace {

namespace fs = std::filesystem;
using transfer::form_of;
using transfer::Tiles;

// ---- the space

std::optional<Space> space_of(const std::string& text, std::string* why = nullptr) {
  Diagnostics d;
  auto space = read_space(make_source("space.json", text), d);
  if (why) *why = d.all().empty() ? "" : d.all()[0].code + ": " + d.all()[0].message;
  return space;
}

TEST(TuneSpace, axes_are_combined_and_lists_of_one_axis_go_together) {
  const auto space =
      space_of(R"({"axes": [{"BM": [128, 256], "CTAS": [1, 2]}, {"PING_PONG": [false, true]}]})");
  ASSERT_TRUE(space);
  std::string all;
  for (const Setting& s : combinations(space->axes)) all += text_of(s) + "\n";
  EXPECT_EQ(all,
            "BM = 128, CTAS = 1, PING_PONG = false\nBM = 128, CTAS = 1, PING_PONG = true\n"
            "BM = 256, CTAS = 2, PING_PONG = false\nBM = 256, CTAS = 2, PING_PONG = true\n");
  EXPECT_EQ(combinations({}).size(), 1u);
}

TEST(TuneSpace, a_wrong_space_is_refused_by_its_path) {
  const std::pair<const char*, const char*> faults[] = {
      {"[", "is not a JSON object"},
      {"{}", "axes: there are none"},
      {R"({"axis": []})", "axis: is not a field here"},
      {R"({"axes": 1})", "axes: is not a list"},
      {R"({"axes": [{}]})", "axes[0]: is not an object of names and lists"},
      {R"({"axes": [{"BM": 1}]})", "axes[0].BM: is not a list of values"},
      {R"({"axes": [{"BM": [1, 2], "BN": [1]}]})",
       "axes[0].BN: has 1 values, the list before it 2"},
      {R"({"axes": [{"BM": [1.5]}]})",
       "axes[0].BM: holds 1.5; a constant is a whole number, true or false"}};
  for (const auto& [text, message] : faults) {
    std::string why;
    EXPECT_FALSE(space_of(text, &why));
    EXPECT_EQ(why, std::string("tune.space: space.json: ") + message);
  }
}

TEST(TuneSpace, the_shipped_ones_have_every_row_of_the_shipped_tables) {
  for (const char* arch : {"sm80", "sm90"}) {
    const std::string folder = in_clone("/kernels/") + arch + "/";
    Diagnostics d;
    const auto space = read_space(read_source(folder + "space.json"), d);
    const auto database = transfer::read_tiles(read_source(folder + "tiles.json"), d);
    ASSERT_TRUE(space && database) << render(d);
    std::vector<Axis> axes = space->axes;
    axes.insert(axes.end(), space->first.begin(), space->first.end());
    for (const Tiles& row : database->rows) {
      bool found = false;
      for (const Setting& s : combinations(axes))
        found = found ||
                std::is_permutation(s.begin(), s.end(), row.constants.begin(), row.constants.end());
      EXPECT_TRUE(found) << row.place << ": " << text_of(row.constants);
    }
  }
}

// ---- the candidates

tl::Program kernel() {
  Diagnostics d;
  return *tl::parse(read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl")), d);
}

constexpr const char* kSpace = R"({
  "axes": [{"BM": [256, 384], "CTAS": [2, 2]}, {"BN": [64, 128, 192]}],
  "first": [{"LOADER_REGISTERS": [24, 32], "WARPGROUP_REGISTERS": [240, 160]}]})";

TEST(TuneCandidates, what_the_laws_refuse_is_counted_by_its_number) {
  const Candidates found =
      lawful_candidates(kernel(), form_of("score s\n"), "sm_90a", *space_of(kSpace));
  // D 128: two tiles each of K and V with 192 keys need 192 KB, and Q 64 or 96 beside them.
  EXPECT_EQ(told(found), "6 candidates: 2 break shared.C2; 4 left");
  EXPECT_EQ(found.refused.at("shared.C2"), 2);
  EXPECT_EQ(found.example.all().at(0).code, "shared.C2");
}

TEST(TuneCandidates, of_a_first_axis_the_first_lawful_entry_is_used) {
  const Candidates found =
      lawful_candidates(kernel(), form_of("head_dim 64\nscore s\n"), "sm_90a", *space_of(kSpace));
  EXPECT_EQ(found.lawful.size(), 6u);
  for (const Candidate& c : found.lawful) {
    const auto& constants = c.plan.constants;
    EXPECT_EQ(constants.at("WARPGROUP_REGISTERS"), constants.at("BM") == 256 ? 240 : 160);
    EXPECT_EQ(constants.at("D"), 64);
  }
}

TEST(TuneCandidates, three_warpgroups_come_first_at_64_columns_and_two_at_256) {
  const auto first = [](const char* form) {
    Diagnostics d;
    auto space = read_space(read_source(in_clone("/kernels/sm90/space.json")), d);
    for (Axis& axis : space->axes)  // less to go through
      if (axis.size() == 2 && (axis[0][0].name == "STAGES" || axis[0][0].name == "PING_PONG"))
        axis.resize(1);
    return lawful_candidates(kernel(), form_of(form), "sm_90a", *space).lawful.at(0);
  };
  EXPECT_EQ(first("head_dim 64\nscore s\n").plan.constants.at("BM"), 384);
  EXPECT_EQ(first("head_dim 256\nscore s\n").plan.constants.at("BM"), 256);
}

TEST(TuneCandidates, what_probably_spills_is_tried_last) {
  Candidate c;
  c.plan.cluster = 2;
  c.plan.constants = {
      {"D", 128}, {"V", 128}, {"BM", 256}, {"BN", 128}, {"WARPGROUP_REGISTERS", 240}};
  c.constants = {{"Q_IN_REGISTERS", true}};
  const double fits = modelled_cycles(c, "BM", "BN");
  c.plan.constants["BN"] = 176;
  EXPECT_GT(modelled_cycles(c, "BM", "BN"), 5 * fits);
  c.constants[0].value = false;
  EXPECT_LT(modelled_cycles(c, "BM", "BN"), 1.1 * fits);
}

// ---- compiling

TEST(FirstGood, compiles_until_enough_are_good_and_different) {
  // 0 spills, 2 has the code of 1, 5 is not reached.
  const char* codes[] = {"build.spill", "", "", "", "", ""};
  const char* prints[] = {"", "a", "a", "b", "c", "d"};
  for (const int jobs : {1, 2, 4}) {
    std::atomic<int> calls = 0;
    const Kept kept = first_good(6, 3, jobs, [&](size_t n) -> Outcome {
      ++calls;
      return {codes[n], prints[n], n == 0 ? "it spills" : ""};
    });
    EXPECT_EQ(kept.indices, (std::vector<size_t>{1, 3, 4})) << jobs;
    EXPECT_EQ(kept.refused, (Refusals{{"build.spill", 1}, {"same", 1}}));
    EXPECT_EQ(kept.messages.at("build.spill"), "it spills");
    EXPECT_EQ(kept.compiled, 5);
    EXPECT_LE(calls, 4 + jobs);
  }
}

TEST(FirstGood, ends_where_there_are_no_more) {
  const Kept kept = first_good(2, 5, 3, [](size_t n) -> Outcome {
    return {n ? "build.spill" : "", "a", ""};
  });
  EXPECT_EQ(kept.indices, std::vector<size_t>{0});
}

// ---- the shape

std::string shape_refusal(const spec::Form& form, const char* shape) {
  Diagnostics d;
  spec::Capture capture;
  capture.form = form;
  const auto letters = parse_shape(shape, d);
  const bool good = letters && tuned_shape(capture, with_usual(form, *letters), d);
  EXPECT_FALSE(good);
  return d.all().empty() ? "" : d.all()[0].code + ": " + d.all()[0].message;
}

TEST(TuneShape, what_is_left_out_is_the_usual) {
  Diagnostics d;
  const spec::Form form = form_of("score s\n"), wide = form_of("head_dim 192 128\nscore s\n");
  using Sizes = std::map<std::string, int64_t>;
  EXPECT_EQ(with_usual(form, {}),
            (Sizes{{"B", 1}, {"H", 32}, {"G", 8}, {"M", 16384}, {"N", 16384}}));
  EXPECT_EQ(with_usual(wide, {}).at("M"), 8192);
  EXPECT_EQ(with_usual(form, *parse_shape("M=4096,H=16,G=16", d)),
            (Sizes{{"B", 1}, {"H", 16}, {"G", 16}, {"M", 4096}, {"N", 4096}}));
}

TEST(TuneShape, what_is_no_size_is_refused) {
  for (const char* wrong : {"M", "M=", "M=0", "M=x", "D=64", "M=12k"})
    EXPECT_EQ(shape_refusal(form_of("score s\n"), wrong),
              std::string("tune.shape: '") + wrong + "' is not a size of a shape");
}

TEST(TuneShape, a_size_that_the_function_fixes_stays) {
  EXPECT_EQ(shape_refusal(form_of("queries 96\nscore s\n"), "M=128"),
            "tune.shape: M is 128, and the function fixes it to 96");
}

TEST(TuneShape, half_of_the_scores_count_under_a_causal_mask) {
  for (const auto& [keep, share] :
       {std::pair{"", 1.0}, {"keep j <= i\n", 0.5}, {"keep j <= i and j > i - 64\n", 0.0625}}) {
    Diagnostics d;
    spec::Capture capture;
    capture.form = form_of(std::string("score s\n") + keep);
    const auto shape = tuned_shape(capture, with_usual(capture.form, {{"M", 1024}}), d);
    ASSERT_TRUE(shape) << render(d);
    EXPECT_NEAR(shape->kept, share, 0.004) << keep;
  }
}

// ---- the result

TuneFacts facts() {
  TuneFacts f;
  f.spec = "full.py";
  f.target = "sm_90a";
  f.dtype = "bf16";
  f.dim = f.value_dim = 64;
  f.keys = transfer::Keys::by_row;
  f.candidates = {{"00", "BN = 128", true}, {"01", "BN = 96", false}, {"02", "BN = 80", false}};
  f.constants = {{{"BN", 128}}, {{"BN", 96}, {"PING_PONG", true}}, {{"BN", 80}}};
  return f;
}

const runtime::TuneTimes kTimes = {
    "NVIDIA H200", "13.0",
    "2026-11-21",  "B1 H16 1024x1024",
    1e12,          {{"00", "ok", "", {2.2}}, {"01", "ok", "", {2.0}}, {"02", "ok", "", {2.1}}}};

TEST(TuneResult, the_row_has_the_figure_the_machine_the_date_and_the_runner_up) {
  const Tiles row = row_of(facts(), kTimes, *runtime::choose(facts().candidates, kTimes));
  EXPECT_EQ(text_of(row.constants), "BN = 96, PING_PONG = true");
  EXPECT_EQ(row.keys, transfer::Keys::by_row);
  EXPECT_EQ(row.why,
            "500 TFLOP/s, NVIDIA H200, 2026-11-21, bf16 B1 H16 1024x1024, tuned. 1.050x the "
            "next: BN = 80. 1.100x the row before it.");
}

class TuneFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/tune.XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder); }
  // "64 by_row new; 128 any old": the rows that are in the file.
  std::string rows(const std::string& file) {
    const auto read = transfer::read_tiles(read_source(file), d);
    std::string out;
    for (const Tiles& t : read ? read->rows : std::vector<Tiles>{})
      out += std::to_string(t.dim) + " " + name(t.keys) + " " + t.why + "; ";
    return out;
  }
  Tiles row(int64_t dim, transfer::Keys keys, const char* why) {
    return {{"sm_90a"}, dim, dim, keys, {{"BN", 64}}, why, "", false};
  }
  fs::path folder;
  Diagnostics d;
};

TEST_F(TuneFiles, what_is_written_for_a_run_is_read_again) {
  ASSERT_TRUE(write_tune_facts(folder, facts()));
  const auto read = read_tune_facts(folder, d);
  ASSERT_TRUE(read) << render(d);
  EXPECT_EQ(read->constants, facts().constants);
  EXPECT_EQ(read->candidates.size(), 3u);
  EXPECT_TRUE(read->candidates[0].present);
  EXPECT_EQ(read->keys, transfer::Keys::by_row);
}

TEST_F(TuneFiles, a_new_case_goes_in_front_and_an_old_one_is_replaced) {
  using enum transfer::Keys;
  const std::string file = folder / "mine.json";
  for (const Tiles& t : {row(64, any, "a"), row(128, any, "b"), row(64, by_row, "c"),
                         row(128, any, "d"), row(64, by_row, "e")})
    ASSERT_TRUE(merge_into(file, t, d)) << render(d);
  EXPECT_EQ(rows(file), "64 by_row e; 128 any d; 64 any a; ");
}

TEST_F(TuneFiles, a_file_that_is_no_database_is_left_alone) {
  const std::string file = folder / "mine.json";
  ASSERT_TRUE(write_file(file, "my notes"));
  EXPECT_FALSE(merge_into(file, row(64, transfer::Keys::any, "a"), d));
  EXPECT_EQ(d.all().at(0).code, "tiles.syntax");
  EXPECT_EQ(read_source(file)->text, "my notes");
}

}  // namespace
}  // namespace kw::driver
