// Edits by hand meet a new kernel: nothing is lost, and what cannot be decided is a conflict.
#include "lower/merge.h"

#include <gtest/gtest.h>

#include <random>

#include "support/files.h"
#include "support/process.h"

namespace kw::lower {
namespace {

const std::string kBase = "a\nb\nc\nd\ne\n";

TEST(Merge, takes_what_only_one_side_changed) {
  const Merged m = merge(kBase, "a\nB\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(m.text, "a\nB\nc\nd\ne\nf\n");
  ASSERT_EQ(m.replayed.size(), 1u);
  EXPECT_EQ(m.replayed[0].at, 1u);
  EXPECT_FALSE(m.replayed[0].already);
}

TEST(Merge, keeps_a_line_that_was_taken_out_out) {
  EXPECT_EQ(merge(kBase, "a\nc\nd\ne\n", "a\nb\nc\nD\ne\n").text, "a\nc\nD\ne\n");
}

TEST(Merge, knows_a_change_that_both_made) {
  const Merged m = merge(kBase, "a\nB\nc\nd\ne\n", "x\nB\nc\nd\ne\n");
  EXPECT_EQ(m.text, std::nullopt) << "the line above it changed as well: they touch";
  const Merged apart = merge(kBase, "a\nb\nc\nD\ne\n", "x\na\nb\nc\nD\ne\n");
  EXPECT_EQ(apart.text, "x\na\nb\nc\nD\ne\n");
  EXPECT_TRUE(apart.replayed.at(0).already);
}

TEST(Merge, names_the_lines_of_a_conflict_in_all_three) {
  const Merged m = merge(kBase, "new\na\nb\nmine\nd\ne\n", "a\nb\ntheirs\ntoo\nd\ne\n");
  EXPECT_EQ(m.text, std::nullopt);
  ASSERT_EQ(m.conflicts.size(), 1u);
  const Meeting& c = m.conflicts[0];
  EXPECT_EQ(std::pair(c.base.begin, c.base.end), std::pair(size_t{2}, size_t{3}));
  EXPECT_EQ(std::pair(c.mine.begin, c.mine.end), std::pair(size_t{3}, size_t{4}));
  EXPECT_EQ(std::pair(c.theirs.begin, c.theirs.end), std::pair(size_t{2}, size_t{4}));
}

TEST(Merge, of_a_changed_line_and_its_removal_is_a_conflict) {
  EXPECT_EQ(merge(kBase, "a\nb\nC\nd\ne\n", "a\nb\nd\ne\n").conflicts.size(), 1u);
  EXPECT_EQ(merge(kBase, "a\nb\nd\ne\n", "a\nb\nC\nd\ne\n").conflicts.size(), 1u);
}

TEST(Merge, of_two_insertions_at_one_place_is_a_conflict) {
  EXPECT_EQ(merge(kBase, "a\nx\nb\nc\nd\ne\n", "a\ny\nb\nc\nd\ne\n").conflicts.size(), 1u);
}

TEST(Merge, of_an_unchanged_side_is_the_other) {
  const std::string other = "a\nc\nx\ne";
  EXPECT_EQ(merge(kBase, kBase, other).text, other);
  EXPECT_EQ(merge(kBase, other, kBase).text, other);
  EXPECT_EQ(merge("", "", other).text, other);
}

// Texts of few different lines, so that changes touch and repeat.
std::string edited(const std::string& text, std::mt19937& random) {
  std::string out;
  for (std::string_view line : split_lines(text)) {
    const unsigned what = random() % 40;
    if (what == 0) continue;
    if (what == 1) out += std::string(1, static_cast<char>('a' + random() % 6)) + "\n";
    out += what == 2 ? "X\n" : std::string(line);
  }
  return out;
}

// git's merge is another implementation of the same idea: where both find no conflict, they agree.
TEST(Merge, agrees_with_git_on_what_is_no_conflict) {
  std::mt19937 random(1);
  const TemporaryFolder folder;
  int agreed = 0;
  for (int n = 0; n < 60; ++n) {
    std::string base;
    for (int k = 0; k < 30; ++k)
      base += std::string(1, static_cast<char>('a' + random() % 20)) + "\n";
    const std::string mine = edited(base, random), theirs = edited(base, random);
    const Merged ours = merge(base, mine, theirs);
    for (const auto& [name, text] : {std::pair("base", base), {"mine", mine}, {"theirs", theirs}})
      ASSERT_TRUE(write_file(folder.path() / name, text));
    const ProcessResult git =
        run_process({"git", "merge-file", "-p", (folder.path() / "mine").string(),
                     (folder.path() / "base").string(), (folder.path() / "theirs").string()});
    ASSERT_EQ(ours.conflicts.empty(), ours.text.has_value());
    if (git.exit_code != 0 || !ours.text) continue;
    EXPECT_EQ(*ours.text, git.out) << base << "---\n" << mine << "---\n" << theirs;
    ++agreed;
  }
  EXPECT_GE(agreed, 20);
}

TEST(Patch, applied_gives_the_other_text_back) {
  std::mt19937 random(2);
  for (int n = 0; n < 100; ++n) {
    std::string from;
    for (int k = 0; k < 40; ++k)
      from += std::string(1, static_cast<char>('a' + random() % 9)) + "\n";
    if (n % 3 == 0) from.pop_back();  // no newline at the end
    std::string to = edited(from, random);
    if (n % 5 == 0 && !to.empty()) to.pop_back();
    EXPECT_EQ(apply_patch(from, line_changes("x", from, to).patch), to) << from << "---\n" << to;
  }
}

TEST(Patch, is_refused_where_a_line_is_another) {
  const std::string patch = line_changes("x", kBase, "a\nb\nC\nd\ne\n").patch;
  EXPECT_EQ(apply_patch("a\nb\nc\nd\nE\n", patch), std::nullopt);
  EXPECT_EQ(apply_patch("a\nb\n", patch), std::nullopt);
}

}  // namespace
}  // namespace kw::lower
