#include "support/diagnostic.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/files.h"
#include "support/process.h"

namespace kw {
namespace {

TEST(Diagnostic, shows_the_line_with_carets_and_the_notes) {
  const SourcePtr source = make_source("k.tl", "one\n  mma s = q @ k\nthree\n");
  Diagnostics d;
  d.error("mma.C1", Span{source, 14, 15}, "q has 64 columns, k has 128").notes = {
      {"q is declared here", Span{source, 0, 3}}};
  EXPECT_EQ(render(d),
            "k.tl:2:11: error[mma.C1]: q has 64 columns, k has 128\n"
            "     2 |   mma s = q @ k\n"
            "       |           ^\n"
            "  note: q is declared here (k.tl:1:1)\n");
  EXPECT_EQ(to_json(d)[0]["place"]["line"], 2);
}

TEST(Process, returns_output_and_exit_code) {
  const ProcessResult r = run_process({"sh", "-c", "cat; echo bad >&2; exit 3"}, "in");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.out, "in");
  EXPECT_EQ(r.err, "bad\n");
}

TEST(Process, is_killed_when_its_time_is_up) {
  const ProcessResult r = run_process({"sleep", "20"}, "", 0.2);
  EXPECT_TRUE(r.timed_out);
  EXPECT_EQ(r.exit_code, 128 + 9);
}

TEST(Files, an_uncommitted_folder_leaves_nothing) {
  namespace fs = std::filesystem;
  const fs::path target = fs::path(testing::TempDir()) / "staged";
  fs::remove_all(target);
  {
    StagedFolder folder(target);
    EXPECT_TRUE(write_file(folder.path() / "a", "1"));
  }
  EXPECT_FALSE(fs::exists(target));
  {
    StagedFolder folder(target);
    EXPECT_TRUE(write_file(folder.path() / "a", "2"));
    EXPECT_TRUE(folder.commit());
  }
  EXPECT_EQ(read_source((target / "a").string())->text, "2");
  fs::remove_all(target);
}

TEST(Files, sha256_of_nothing) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace kw
