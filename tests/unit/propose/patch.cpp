// Edits of the corpus's program: what they give, and what is not theirs to change.
#include "propose/patch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "in_clone.h"
#include "support/source.h"

namespace kw::propose {
namespace {

tl::Program corpus() {
  Diagnostics d;
  auto program = tl::parse(read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl")), d);
  EXPECT_TRUE(program) << render(d);
  return std::move(*program);
}

const tl::Program& source() {
  static const tl::Program program = corpus();
  return program;
}
const std::vector<std::string>& lines() {
  static const std::vector<std::string> all = lines_of(source());
  return all;
}

std::string trimmed(const std::string& line) { return line.substr(line.find_first_not_of(' ')); }

// The line whose text begins so.
int line_with(const std::string& begin) {
  for (size_t n = 0; n < lines().size(); ++n)
    if (trimmed(lines()[n]).starts_with(begin)) return static_cast<int>(n) + 1;
  ADD_FAILURE() << "no line begins with " << begin;
  return 0;
}

LineEdit edit(EditKind kind, int line, std::vector<std::string> text, int last = 0) {
  const bool known = line >= 1 && line <= static_cast<int>(lines().size());
  return {kind, line, last ? last : line, known ? trimmed(lines()[line - 1]) : "", std::move(text)};
}

LineEdit replace(const std::string& begin, const std::string& text) {
  const int line = line_with(begin);
  return edit(EditKind::replace, line,
              {lines()[line - 1].substr(0, lines()[line - 1].find_first_not_of(' ')) + text});
}

std::string code_of(const std::vector<LineEdit>& edits, std::string* sentence = nullptr) {
  Refusal refusal;
  const auto text = apply(lines(), {"", edits}, refusal);
  if (text) read_program(*text, source(), false, refusal);
  if (sentence) *sentence = refusal.sentence;
  EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos) << refusal.sentence;
  return refusal.code;
}

const std::string kMask = "map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)";

TEST(Patch, of_one_line_changes_that_line) {
  Refusal refusal;
  const std::string causal =
      "map_at s[i, j] from (i0, n * BN) = where(j < min(N, i + 1), s[i, j], -inf)";
  const auto text = apply(lines(), {"", {replace(kMask, causal)}}, refusal);
  ASSERT_TRUE(text) << refusal.sentence;
  std::string expected;
  for (const std::string& line : lines())
    expected += (trimmed(line) == kMask ? line.substr(0, line.find('m')) + causal : line) + "\n";
  EXPECT_EQ(*text, expected);
  EXPECT_TRUE(read_program(*text, source(), false, refusal)) << refusal.sentence;
}

TEST(Patch, inserts_before_and_after_and_takes_out) {
  Refusal refusal;
  const std::vector<std::string> three = {"a", "    b", "c"};
  const Edits edits{"",
                    {{EditKind::insert_after, 1, 1, "a", {"x", "y"}},
                     {EditKind::insert_before, 2, 2, "  b ", {"z"}},
                     {EditKind::remove, 3, 3, "c", {}}}};
  EXPECT_EQ(apply(three, edits, refusal), "a\nx\ny\nz\n    b\n") << refusal.sentence;
}

TEST(Patch, of_several_lines_expects_the_first) {
  Refusal refusal;
  const std::vector<std::string> three = {"a", "b", "c"};
  EXPECT_EQ(apply(three, {"", {{EditKind::replace, 1, 2, "a", {"x"}}}}, refusal), "x\nc\n");
  EXPECT_FALSE(apply(three, {"", {{EditKind::replace, 1, 2, "b", {"x"}}}}, refusal));
  EXPECT_EQ(refusal.code, "edit.expect");
}

TEST(Patch, that_miscounts_hears_what_stands_there) {
  LineEdit wrong = replace(kMask, "count t");
  wrong.first = ++wrong.last;
  std::string sentence;
  EXPECT_EQ(code_of({wrong}, &sentence), "edit.expect");
  EXPECT_NE(sentence.find("is `if not late:`"), std::string::npos) << sentence;
}

TEST(Patch, outside_of_the_program_is_refused) {
  const int count = static_cast<int>(lines().size());
  EXPECT_EQ(code_of({edit(EditKind::replace, 0, {"x"})}), "edit.range");
  EXPECT_EQ(code_of({edit(EditKind::replace, count + 1, {"x"})}), "edit.range");
  EXPECT_EQ(code_of({edit(EditKind::replace, 5, {"x"}, 4)}), "edit.range");
  EXPECT_EQ(code_of({edit(EditKind::insert_after, 4, {"x"}, 5)}), "edit.range");
  EXPECT_EQ(code_of({}), "edit.limit");
  EXPECT_EQ(code_of(std::vector<LineEdit>(kMostEdits + 1, edit(EditKind::remove, 1, {}))),
            "edit.limit");
  EXPECT_EQ(code_of({edit(EditKind::replace, 1, std::vector<std::string>(kMostLines + 1, "x"))}),
            "edit.limit");
}

TEST(Patch, with_text_where_none_is_due_or_none_where_some_is_is_refused) {
  EXPECT_EQ(code_of({edit(EditKind::replace, 3, {})}), "edit.text");
  EXPECT_EQ(code_of({edit(EditKind::remove, 3, {"x"})}), "edit.text");
  EXPECT_EQ(code_of({edit(EditKind::insert_after, 3, {})}), "edit.text");
}

TEST(Patch, of_lines_that_hide_others_is_refused) {
  for (const char* text :
       {"count t\n    include \"x\"", "\tcount t", "count\x01t", "count \xc3\xa9"})
    EXPECT_EQ(code_of({edit(EditKind::replace, 3, {text})}), "edit.text") << text;
  EXPECT_EQ(code_of({edit(EditKind::replace, 3, {std::string(kMostColumns + 1, 'x')})}),
            "edit.text");
}

TEST(Patch, with_a_line_in_two_edits_is_refused) {
  EXPECT_EQ(code_of({edit(EditKind::remove, 3, {}, 5), edit(EditKind::insert_after, 5, {"x"})}),
            "edit.overlap");
}

TEST(Program, that_cannot_be_read_names_the_line) {
  std::string sentence;
  EXPECT_EQ(code_of({replace(kMask, "map_at s[i, j] = where(")}, &sentence), "tl.syntax");
  EXPECT_NE(sentence.find("at `map_at s[i, j] = where(`"), std::string::npos) << sentence;
}

TEST(Program, may_name_no_file) {
  EXPECT_EQ(code_of({edit(EditKind::insert_after, 1, {"include \"/etc/hostname\""})}),
            "edit.include");
  EXPECT_EQ(code_of({edit(EditKind::replace, 1, {"include \"other.cuh\""})}), "edit.include");
}

TEST(Program, keeps_its_arguments) {
  EXPECT_EQ(code_of({replace("lse: out", "lse: out f32[B, H]")}), "edit.arguments");
  EXPECT_EQ(code_of({replace("q: tiled", "q: tiled in element[B, M, H, D]")}), "edit.arguments");
  EXPECT_EQ(code_of({replace("o: tiled", "other: tiled out element[B, H, M, V]")}),
            "edit.arguments");
  // A computed argument that callers would have to give.
  EXPECT_EQ(code_of({replace("blocks: size", "blocks: size")}), "edit.arguments");
  EXPECT_EQ(code_of({replace("scale: f32", "scale: f32 = 0.5 * log2e")}), "");
  EXPECT_EQ(code_of({edit(EditKind::insert_after, line_with("lse: out"), {"    v3: in i32[B]"})}),
            "");
}

TEST(Program, keeps_its_kernel) {
  EXPECT_EQ(code_of({replace("kernel attention_fwd",
                             "kernel other, threads 128 * (MATH + WARPGROUPS):")}),
            "edit.kernel");
}

TEST(Program, that_breaks_a_law_hears_the_law) {
  std::string sentence;
  EXPECT_EQ(code_of({replace(kMask, "map_at s[i, j] from (i0, n * BN) = j")}, &sentence),
            "types.C6");
  EXPECT_NE(sentence.find("Law types.C6"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace kw::propose
