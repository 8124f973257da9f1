#include "report/html.h"

#include <gtest/gtest.h>

#include "report/diff.h"

namespace kw::report {
namespace {

TEST(Html, TextCannotBecomeMarkup) {
  const std::string hostile = "</script><img src=x onerror=\"a('b')\">&amp;";
  EXPECT_EQ(
      html("<p title=\"{}\">{}</p>", hostile, 7).text(),
      "<p title=\"&lt;/script&gt;&lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;amp;"
      "\">7</p>");
}

TEST(Html, MarkupStaysMarkupAndIsEscapedOnce) {
  const Markup inner = html("<b>{}</b>", "a < b");
  EXPECT_EQ(html("<p>{}</p>", inner).text(), "<p><b>a &lt; b</b></p>");
}

TEST(Html, PatternsWithoutArgumentsStandAsTheyAre) {
  EXPECT_EQ(html("<style>p{color:red}</style>").text(), "<style>p{color:red}</style>");
}

TEST(Html, BytesThatAreNoUtf8AndControlCharactersAreReplaced) {
  EXPECT_EQ(escape("ü ≤ 𝄞\n").text(), "ü ≤ 𝄞\n");
  for (const char* wrong : {"\xff", "\xc3", "\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                            "\x01", "\x7f", "\xc2\x85", "\xe2\x89"})
    EXPECT_EQ(escape(wrong).text().substr(0, 3), "\xef\xbf\xbd") << wrong;
}

TEST(Html, NumbersHaveCommas) {
  EXPECT_EQ(with_commas(80096), "80,096");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(count(1, "line") + count(0, "line") + count(1500, "line"), "1 lineno lines1,500 lines");
}

const char kPatch[] =
    "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,4 @@\n a\n-int x = 1;\n+int y;\n+int x = 2;\n c\n";

TEST(Diff, LinesThatShareMostArePaired) {
  const auto diff = read_patch(kPatch, "a\nint x = 1;\nc\nd\n", "a\nint y;\nint x = 2;\nc\nd\n");
  ASSERT_TRUE(diff);
  ASSERT_EQ(diff->rows.size(), 5u);
  EXPECT_EQ(diff->rows[1].old_line, 0);
  EXPECT_EQ(diff->rows[1].new_text, "int y;");
  EXPECT_EQ(diff->rows[2].old_text, "int x = 1;");
  EXPECT_EQ(diff->rows[2].new_text, "int x = 2;");
  EXPECT_FALSE(diff->rows[4].changed);
  EXPECT_EQ(diff->added, 2);
  EXPECT_EQ(diff->removed, 1);
}

TEST(Diff, APatchOfOtherTextsIsNone) {
  EXPECT_FALSE(read_patch(kPatch, "a\nint x = 3;\nc\nd\n", "a\nint y;\nint x = 2;\nc\nd\n"));
  EXPECT_FALSE(read_patch(kPatch, "a\nint x = 1;\nc\nd\n", "a\nint y;\nint x = 2;\nc\ne\n"));
  EXPECT_FALSE(read_patch("", "a\n", "b\n"));
  EXPECT_TRUE(read_patch("", "a\n", "a\n"));
}

}  // namespace
}  // namespace kw::report
