#include "lower/patch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/files.h"
#include "support/process.h"
#include "support/source.h"

namespace kw::lower {
namespace {
namespace fs = std::filesystem;

// Applies the patch with git in an empty folder that has `from` at `path`; the file afterwards.
std::string applied(const std::string& path, const std::string& from, const std::string& patch) {
  const fs::path folder = fs::path(testing::TempDir()) / "kw_patch";
  fs::remove_all(folder);
  fs::create_directories((folder / path).parent_path());
  EXPECT_TRUE(write_file(folder / path, from));
  const ProcessResult r =
      run_process({"git", "-C", folder.string(), "apply", "--whitespace=nowarn", "-"}, patch);
  EXPECT_EQ(r.exit_code, 0) << r.err << patch;
  const std::string out = read_source((folder / path).string())->text;
  fs::remove_all(folder);
  return out;
}

TEST(Patch, of_equal_texts_is_empty) { EXPECT_EQ(line_changes("a", "x\n", "x\n").patch, ""); }

TEST(Patch, is_unified_with_three_lines_of_context) {
  const LineChanges c = line_changes("d/k.cu", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n");
  EXPECT_EQ(c.patch,
            "--- a/d/k.cu\n+++ b/d/k.cu\n"
            "@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n");
  EXPECT_EQ(c.added, 1);
  EXPECT_EQ(c.removed, 1);
}

TEST(Patch, git_applies_it) {
  std::string lines;
  for (int k = 0; k < 60; ++k) lines += "line " + std::to_string(k) + "\n";
  const auto change = [&](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<std::string> changed = {
      change(lines, "line 0\n", ""),
      change(lines, "line 0\n", "first\nline 0\n"),
      change(lines, "line 59\n", "line 59\nlast\n"),
      change(lines, "line 59\n", "line 59"),
      change(change(lines, "line 7\n", "seven\n"), "line 14\n", ""),
      change(change(lines, "line 7\n", "seven\n"), "line 15\n", "fifteen\nagain\n"),
      change(change(lines, "line 7\n", "seven\n"), "line 40\n", "forty\n"),
  };
  for (const std::string& to : changed)
    EXPECT_EQ(applied("d/k.cu", lines, line_changes("d/k.cu", lines, to).patch), to);
  EXPECT_EQ(applied("k", "a", line_changes("k", "a", "b\n").patch), "b\n");
}

}  // namespace
}  // namespace kw::lower
