// The files of the tile database: which count, and in which order.
#include "driver/environment/tiles.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "support/files.h"

namespace kw::driver {
namespace {

namespace fs = std::filesystem;

// A home with two shipped tables, and files of a user's.
class TileFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/tiles.XXXXXX";
    home.root = mkdtemp(pattern.data());
    unsetenv("KERNELWRIGHT_TILES");
    write("kernels/sm90/tiles.json", "shipped");
    write("kernels/sm80/tiles.json", "ampere");
    fs::create_directories(home.kernels() / "bare");
  }
  void TearDown() override {
    unsetenv("KERNELWRIGHT_TILES");
    fs::remove_all(home.root);
  }
  std::string write(const fs::path& name, const std::string& why) {
    const fs::path path = home.root / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(write_file(path, R"({"rows": [{"targets": ["sm_90a"], "D": 64, "V": 64,
        "keys": "any", "constants": {}, "why": ")" +
                                     why + "\"}]}"));
    return path.string();
  }
  // Why of each row, with a star behind the user's.
  std::string found(const std::string& file = {}) {
    std::string out;
    const auto rows = find_tiles(home, file, d);
    if (!rows) return "refused: " + d.all().at(0).code + " " + d.all()[0].message;
    for (const transfer::Tiles& row : *rows) out += row.why + (row.users ? "* " : " ");
    return out;
  }
  Home home;
  Diagnostics d;
};

TEST_F(TileFiles, the_shipped_ones_of_every_text_are_found) {
  EXPECT_EQ(found(), "ampere shipped ");
}

TEST_F(TileFiles, the_named_file_comes_before_the_environment_s_and_that_before_the_shipped) {
  const std::string mine = write("mine.json", "mine"), ours = write("ours.json", "ours");
  setenv("KERNELWRIGHT_TILES", ours.c_str(), 1);
  EXPECT_EQ(found(mine), "mine* ours* ampere shipped ");
  EXPECT_EQ(found(), "ours* ampere shipped ");
}

TEST_F(TileFiles, a_named_file_that_is_not_there_is_refused) {
  EXPECT_EQ(found("/nowhere/t.json"),
            "refused: tiles.read cannot read '/nowhere/t.json': No such file or directory");
}

TEST_F(TileFiles, a_shipped_file_is_refused_by_its_name_in_the_home) {
  EXPECT_TRUE(write_file(home.kernels() / "sm90/tiles.json", "{}"));
  EXPECT_EQ(found(),
            "refused: tiles.field kernels/sm90/tiles.json: is not an object with a list \"rows\"");
}

}  // namespace
}  // namespace kw::driver
