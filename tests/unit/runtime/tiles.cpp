// kernels/sm80/tiles.json: every row of it, put into the kernel's text, compiles for each of
// its targets and both element types without a spilled register, and fits the shared memory.
//
// All of them when KW_TEST_ALL=1; otherwise each row once, with a target and a type that a hash
// of the row and the commit (KW_SAMPLE, from scripts/test) chooses. Without an NVRTC on the machine
// the tests are skipped, and say so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "compile/nvrtc.h"
#include "in_clone.h"
#include "support/files.h"
#include "support/targets.h"

namespace kw::runtime {
namespace {

const std::filesystem::path root = in_clone();

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Row {
  std::vector<std::string> targets;
  std::map<std::string, int> constants;  // as the kernel's text names them

  int bytes() const {  // Q, two stages of K, one of V
    const auto& c = constants;
    return 2 * c.at("D") * (c.at("WARPGROUPS") * c.at("ROWS") + 3 * c.at("BN"));
  }
};

std::vector<Row> table() {
  std::vector<Row> rows;
  const auto json = nlohmann::json::parse(text_of(root / "kernels/sm80/tiles.json"));
  for (const auto& row : json.at("rows")) {
    rows.push_back({row.at("targets"), row.at("constants")});
    rows.back().constants["D"] = row.at("D");
  }
  return rows;
}

// The best row for a target and a head dimension.
Row row_for(const std::string& target, int dimension) {
  for (const Row& row : table())
    for (const std::string& t : row.targets)
      if (t == target && row.constants.at("D") == dimension) return row;
  ADD_FAILURE() << target << ", D " << dimension << " has no row";
  return {};
}

// The kernel with these constants and this element type; fails where the text has none of a name.
std::string kernel_with(const std::map<std::string, int>& constants, const std::string& element) {
  std::string text = text_of(root / "kernels/sm80/attention_fwd.cu");
  const auto put = [&](const std::string& name, const std::string& value) {
    const std::regex definition("\\b" + name + " = [^,;]+");
    EXPECT_TRUE(std::regex_search(text, definition)) << name;
    text = std::regex_replace(text, definition, name + " = " + value,
                              std::regex_constants::format_first_only);
  };
  for (const auto& [name, value] : constants) put(name, std::to_string(value));
  put("using element", "kw::" + element);
  return text;
}

std::vector<Header> vocabulary() {
  std::vector<Header> headers;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "cuda"))
    if (entry.path().extension() == ".cuh")
      headers.push_back(
          {std::filesystem::relative(entry.path(), root / "cuda").string(), text_of(entry.path())});
  return headers;
}

class Tiles : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc = Nvrtc::find((root / ".venv/bin/python").string(), diagnostics);
    if (!nvrtc) GTEST_SKIP() << "no NVRTC on this machine: neither PyTorch nor a CUDA toolkit";
  }
  bool compiles(const Row& row, const std::string& target, const std::string& element) {
    const SourcePtr kernel = make_source("attention_fwd.cu", kernel_with(row.constants, element));
    return nvrtc->compile(kernel, vocabulary(), target, {}, diagnostics).has_value();
  }
  std::optional<Nvrtc> nvrtc;
  Diagnostics diagnostics;
};

TEST(TilesTable, CoversEveryTargetAndHeadDimension) {
  for (const TargetLimits& target : targets()) {
    if (target.folder != "sm80") continue;
    for (int dimension : {64, 128, 256})
      EXPECT_FALSE(row_for(std::string(target.name), dimension).targets.empty());
  }
}

TEST(TilesTable, ThreadBlocksThatShareAMultiprocessorFitItsSharedMemory) {
  for (const Row& row : table())
    for (const std::string& name : row.targets) {
      const TargetLimits* target = find_target(name);
      ASSERT_TRUE(target) << name;
      EXPECT_EQ(target->folder, "sm80") << name;
      EXPECT_LE(row.bytes(), target->block_shared_bytes) << name;
      EXPECT_LE(row.constants.at("RESIDENT") * (row.bytes() + reserved_shared_bytes),
                target->processor_shared_bytes)
          << name;
    }
}

TEST(TilesTable, HasTheConstantsThatTheTextHas) {
  const std::string text = text_of(root / "kernels/sm80/attention_fwd.cu");
  int as_it_is = 0;
  for (const Row& row : table()) as_it_is += kernel_with(row.constants, "bf16") == text;
  EXPECT_EQ(as_it_is, 1);
}

TEST_F(Tiles, EveryRowCompilesWithoutSpills) {
  const char* all = std::getenv("KW_TEST_ALL");
  const char* commit = std::getenv("KW_SAMPLE");
  size_t rows = 0;
  for (const Row& row : table()) {
    const std::string hash = sha256(fmt::format("{} {}", rows++, commit ? commit : "no commit"));
    const size_t chosen = std::stoul(hash.substr(0, 8), nullptr, 16) % (2 * row.targets.size());
    for (size_t n = 0; n < 2 * row.targets.size(); ++n) {
      if (!(all && all[0] == '1') && n != chosen) continue;
      const std::string &target = row.targets[n / 2], element = n % 2 ? "f16" : "bf16";
      EXPECT_TRUE(compiles(row, target, element))
          << target << ", D " << row.constants.at("D") << ", " << element << "\n"
          << render(diagnostics);
    }
  }
}

TEST_F(Tiles, OfTooManyKeysAreRefused) {
  Row row = row_for("sm_80", 128);
  row.constants["BN"] = 96;
  EXPECT_FALSE(compiles(row, "sm_80", "bf16"));
  EXPECT_EQ(diagnostics.all().at(0).code, "build.spill") << render(diagnostics);
}

}  // namespace
}  // namespace kw::runtime
