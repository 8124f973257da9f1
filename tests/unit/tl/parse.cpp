// TL text: every statement comes back as it was written, every bad line is reported where it is
// bad.
#include <gtest/gtest.h>

#include <algorithm>

#include "in_clone.h"
#include "tl/program.h"
#include "tl/syntax/renamed.h"
#include "tl/syntax/table.h"

namespace kw::tl {
namespace {

std::optional<Program> parsed(const std::string& text, std::string* errors = nullptr) {
  Diagnostics d;
  std::optional<Program> p = parse(make_source("k.tl", text), d);
  if (errors) *errors = render(d);
  return p;
}

TEST(Parse, the_kernel_s_text_comes_back_as_it_is) {
  const SourcePtr source = read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl"));
  ASSERT_TRUE(source);
  Diagnostics d;
  const std::optional<Program> program = parse(source, d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_EQ(print(*program), source->text);
}

// The statements that the corpus's kernel does not have, at all three levels.
TEST(Parse, sketches_and_sized_programs_come_back_as_they_are) {
  const std::string text =
      "level sketch\n"
      "args:\n"
      "    q: tiled in element[B, H, M, D]\n"
      "    window: i32\n"
      "    first: i32 = max(M - N, 0)\n"
      "    sink: in real[H]\n"
      "plan attention:\n"
      "    for b, h in grid(B, H):\n"
      "        for n in blocks(N // 128):\n"
      "            copy q[b, h, 0] -> q_s\n"
      "            mma s = q_s @ k_s.T\n"
      "            compute s[i, j] = where(not (j > i or j % 2 == 1), s[i, j], -inf)\n"
      "            mma_add acc += p @ v_s\n"
      "            row_max m = s\n"
      "            map_real s[i, j] from (i0, n * 128) = s[i, j] - 0.5 * (i - j)\n";
  std::string errors;
  const std::optional<Program> program = parsed(text, &errors);
  ASSERT_TRUE(program) << errors;
  EXPECT_EQ(print(*program), text);
}

TEST(Parse, comments_and_blank_lines_are_not_kept) {
  const std::optional<Program> p = parsed("# a module\n\nparam D = 64  # columns\n");
  ASSERT_TRUE(p);
  EXPECT_EQ(print(*p), "param D = 64\n");
}

TEST(Parse, spans_are_the_statement_s_own_words) {
  const std::optional<Program> p = parsed("args:\n    N: size\nparam D = 64  # columns\n");
  ASSERT_TRUE(p);
  EXPECT_EQ(p->body[0].span.text(), "args:");
  EXPECT_EQ(p->body[0].body[0].span.text(), "N: size");
  EXPECT_EQ(p->body[1].names()[0].expr->span.place(), "k.tl:3:11");
}

TEST(Parse, every_bad_line_is_reported_with_its_column) {
  std::string errors;
  EXPECT_FALSE(
      parsed("param D = \n"
             "args:\n"
             "    N: sizes\n"
             "kernel k, threads 128:\n"
             "    wait k_full[t\n"
             "    lod q_s[u] -> q_r\n"
             "    if a < b < c:\n"
             "        fence_async now\n"
             "    fill s = 0.0\n",
             &errors));
  EXPECT_EQ(errors,
            "k.tl:1:9: error[tl.syntax]: expected an expression, found the end\n"
            "     1 | param D = \n"
            "       |         ^\n"
            "k.tl:3:8: error[tl.syntax]: expected 'tiled', 'in', 'out' or 'scratch', 'size', "
            "'i32', 'f32', 'workspace' or 'scratch', found 'sizes'\n"
            "     3 |     N: sizes\n"
            "       |        ^~~~~\n"
            "k.tl:5:17: error[tl.syntax]: expected ']', found the end\n"
            "     5 |     wait k_full[t\n"
            "       |                 ^\n"
            "k.tl:6:5: error[tl.syntax]: no statement begins with 'lod'\n"
            "     6 |     lod q_s[u] -> q_r\n"
            "       |     ^~~\n"
            "k.tl:7:14: error[tl.syntax]: comparisons do not chain: join two with 'and', or write "
            "parentheses\n"
            "     7 |     if a < b < c:\n"
            "       |              ^\n"
            "k.tl:8:21: error[tl.syntax]: the statement ends before 'now'\n"
            "     8 |         fence_async now\n"
            "       |                     ^~~\n");
}

TEST(Parse, an_old_name_is_refused_with_the_new_one) {
  std::string errors;
  EXPECT_FALSE(
      parsed("kernel k, threads 128:\n"
             "    for u, w in deal(blocks, 2):\n"
             "        raised = raise m, factor, s, slack, scale\n"
             "        gemm s = q_s @ k_s.T\n"
             "        publish\n"
             "    for t, n in down(a, b):\n"
             "        count t\n"
             "    partial l: real[64]\n"
             "kernel k, threads 128, resident 2, workers me:\n"
             "    sync_block\n",
             &errors));
  for (const char* said : {"k.tl:2:17: error[tl.syntax]: `deal` is now `static_tiles`",
                           "k.tl:3:18: error[tl.syntax]: `raise` is now `online_max`",
                           "k.tl:4:9: error[tl.syntax]: `gemm` is now `mma`",
                           "k.tl:5:9: error[tl.syntax]: `publish` is now `fence_async`",
                           "k.tl:6:17: error[tl.syntax]: `down` is now `range_down_counted`",
                           "k.tl:8:5: error[tl.syntax]: `partial` is now `lane_sum`",
                           "k.tl:9:36: error[tl.syntax]: `workers` is now `warpgroups`"})
    EXPECT_NE(errors.find(said), std::string::npos) << said << "\n" << errors;
}

TEST(Parse, a_name_of_one_s_own_may_be_an_old_word) {
  std::string errors;
  EXPECT_TRUE(parsed("def take(n: i32) -> index:\n    return n\nparam down = 2\n", &errors))
      << errors;
  EXPECT_FALSE(parsed("kernel k, threads 128:\n    take(1,\n    let down = \n", &errors));
  EXPECT_EQ(errors.find("is now"), std::string::npos) << errors;
}

// Every new name is one, and no old one is still in use.
TEST(Parse, the_table_of_old_names_agrees_with_the_table_of_statements) {
  const auto is_statement = [](std::string_view word) {
    return std::any_of(table().begin(), table().end(),
                       [&](const Row& r) { return r.word == word; });
  };
  int count = 0;
#define RENAMED(was, now)                                                  \
  EXPECT_FALSE(is_statement(#was)) << #was;                                \
  EXPECT_EQ(new_name(#was), #now);                                         \
  EXPECT_TRUE(is_statement(#now) || std::string_view(#now) == "LaneSum" || \
              std::string_view(#now) == "warpgroup_index")                 \
      << #now;                                                             \
  ++count;
#include "tl/syntax/renamed.def"
  EXPECT_GT(count, 30);
  EXPECT_EQ(new_name("static_tiles"), "");
}

TEST(Parse, a_statement_in_the_wrong_block_is_refused) {
  std::string errors;
  EXPECT_FALSE(parsed("args:\n    wait q_full[0]\n", &errors));
  EXPECT_NE(errors.find("k.tl:2:5: error[tl.syntax]: 'wait' may not stand in 'args:'"),
            std::string::npos)
      << errors;
  EXPECT_FALSE(parsed("param D = 64\n    fence_async\n", &errors));
  EXPECT_NE(errors.find("k.tl:2:5: error[tl.syntax]: indented by 4 where the block has 0"),
            std::string::npos)
      << errors;
}

TEST(Parse, indentation_is_reported_once_for_a_block) {
  std::string errors;
  EXPECT_FALSE(parsed("args:\n   N: size\n   M: size\nparam D = 64\n", &errors));
  EXPECT_EQ(errors.find("k.tl:2:4: error[tl.syntax]: indented by 3 where the block has 4"), 0u);
  EXPECT_EQ(errors.find("k.tl:3"), std::string::npos) << errors;
  EXPECT_FALSE(parsed("args:\n\tN: size\n", &errors));
  EXPECT_NE(errors.find("a tab in the indentation"), std::string::npos) << errors;
  EXPECT_FALSE(parsed("kernel k, threads 1:\n    fence_async\n  fence_async\n", &errors));
  EXPECT_NE(errors.find("k.tl:3:3"), std::string::npos) << errors;
}

TEST(Parse, a_head_without_a_block_is_refused) {
  std::string errors;
  EXPECT_FALSE(parsed("args:\nparam D = 64\n", &errors));
  EXPECT_NE(errors.find("no block under 'args:'"), std::string::npos) << errors;
}

TEST(Parse, an_argument_with_a_value_stands_alone) {
  std::string errors;
  EXPECT_FALSE(parsed("args:\n    a, b: f32 = 1.0\n", &errors));
  EXPECT_NE(errors.find("an argument with a value stands alone"), std::string::npos) << errors;
}

TEST(Parse, deep_nesting_is_refused_not_a_crash) {
  std::string errors;
  EXPECT_FALSE(parsed("param D = " + std::string(100000, '(') + "\n", &errors));
  EXPECT_NE(errors.find("nested too deeply"), std::string::npos);
  EXPECT_FALSE(parsed("param D = " + std::string(100000, '-') + "\n"));
  EXPECT_FALSE(parsed("toggle T = " + [] {
    std::string nots;
    for (int k = 0; k < 50000; ++k) nots += "not ";
    return nots;
  }() + "\n"));
}

TEST(Parse, a_real_that_is_no_normal_number_of_fp32_is_refused) {
  for (const char* number : {"1.0e-40", "1.0e-46", "1.0e-400", "1.175e-38", "3.5e38", "1.0e400"}) {
    std::string errors;
    EXPECT_FALSE(parsed(std::string("args:\n    eps: f32 = ") + number + "\n", &errors)) << number;
    EXPECT_NE(errors.find(std::string("k.tl:2:16: error[tl.syntax]: '") + number +
                          "' is none of fp32's normal numbers"),
              std::string::npos)
        << errors;
  }
  for (const char* number : {"0.0", "0.0e-400", "1.1754944e-38", "3.4028234e38", "1.0e-30"})
    EXPECT_TRUE(parsed(std::string("args:\n    eps: f32 = ") + number + "\n")) << number;
}

TEST(Parse, one_statement_is_read_for_rules) {
  Diagnostics d;
  const std::optional<Stmt> s = parse_statement("if partial:\n    fill s = 0.0\n", d);
  ASSERT_TRUE(s) << render(d);
  EXPECT_EQ(s->op, Op::if_);
  EXPECT_EQ(base_name(s->body[0].target()), "s");
  EXPECT_FALSE(parse_statement("fence_async\nfence_async\n", d));
  EXPECT_FALSE(parse_expr("a +", d));
  EXPECT_EQ(print(parse_expr("(a + b) * c", d)), "(a + b) * c");
}

TEST(Table, a_statement_s_cuda_and_tl_spellings_have_the_same_holes) {
  for (const Row& r : table()) {
    if (r.cuda.empty()) continue;
    for (const Part& p : r.cuda.parts) {
      if (!p.hole()) continue;
      EXPECT_NE(std::find(r.holes.begin(), r.holes.end(), p.name), r.holes.end()) << r.word;
    }
    for (const Hole hole : r.holes) {
      const bool there = std::any_of(r.cuda.parts.begin(), r.cuda.parts.end(),
                                     [&](const Part& p) { return p.hole() && p.name == hole; });
      EXPECT_TRUE(there) << r.word << " $" << word(hole);
    }
  }
}

}  // namespace
}  // namespace kw::tl
