// Lift: the corpus's kernel, and one refusal for each thing that CUDA text may not be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "in_clone.h"
#include "lift/lift.h"

namespace kw::lift {
namespace {

const std::string kRoot = in_clone();

Toolchain toolchain() { return find_toolchain(kRoot + "/cuda", {kRoot + "/.venv"}); }

const std::string& kernel() {
  static const std::string text = read_source(kRoot + "/kernels/sm90/attention_fwd.cu")->text;
  return text;
}

// The diagnostics of lifting the kernel with one piece of text replaced; empty if it lifts.
std::string errors(const std::string& from, const std::string& to) {
  std::string text = kernel();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  Diagnostics d;
  const auto program = lift(make_source("k.cu", text), toolchain(), d);
  EXPECT_EQ(program.has_value(), !d.has_errors());
  return render(d);
}

void expect_error(const std::string& from, const std::string& to, const std::string& message) {
  const std::string text = errors(from, to);
  EXPECT_NE(text.find(message), std::string::npos) << "got: " << text;
}

TEST(Lift, the_kernel_is_the_program_in_the_corpus) {
  const SourcePtr cuda = make_source("k.cu", kernel());
  const SourcePtr expected = read_source(kRoot + "/tests/corpus/sm90_attention_fwd.tl");
  ASSERT_TRUE(expected);
  Diagnostics d;
  const std::optional<tl::Program> program = lift(cuda, toolchain(), d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_EQ(tl::print(*program), expected->text);
}

TEST(Lift, statements_know_their_place_in_the_cuda_text) {
  Diagnostics d;
  const auto program = lift(make_source("k.cu", kernel()), toolchain(), d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_EQ(program->find(tl::Op::online_max)->span.text(),
            "raised = kw::online_max(m, factor, s, args.slack, args.scale);");
  const Span span = program->find(tl::Op::cluster)->span;
  EXPECT_EQ(kernel().substr(span.begin, span.end - span.begin),
            "const int cta = kw::cluster<CTAS>();");
  EXPECT_EQ(program->find(tl::Op::map)->value()->span.text(),
            "kw::exp2(kw::fma(x, args.scale, -o))");
}

TEST(Lift, refuses_what_clang_refuses) {
  expect_error("kw::fence_async();", "kw::publis();",
               "error[lift.invalid]: no valid CUDA: no member");
  expect_error("const int i0 = c.m", "const int i0 = c.x",
               ":30: error[lift.invalid]: no valid CUDA: no member named 'x'");
}

TEST(Lift, an_old_name_is_refused_with_the_new_one) {
  expect_error("kw::fence_async();", "kw::publish();",
               "error[lift.invalid]: `kw::publish` is now `kw::fence_async`");
  expect_error("kw::static_tiles<CTAS>", "kw::deal<CTAS>",
               ": error[lift.invalid]: `kw::deal` is now `kw::static_tiles`");
  expect_error("kw::LaneSum<", "kw::RowPartial<",
               ": error[lift.invalid]: `kw::RowPartial` is now `kw::LaneSum`");
  expect_error("kw::warpgroup_index()", "kw::worker_index()",
               ": error[lift.invalid]: `kw::worker_index` is now `kw::warpgroup_index`");
}

TEST(Lift, refuses_text_that_is_no_statement) {
  expect_error(
      "kw::fence_async();", "kw::fence_async(); __syncthreads();",
      "error[lift.unrecognised]: '__syncthreads' is not a kw:: function or a step of this kernel");
  expect_error("kw::fence_async();", "kw::fence_async();\n__syncthreads();",
               ":207:1: error[lift.unrecognised]: '__syncthreads' is not a kw:: function or a step "
               "of this kernel");
  expect_error("++t;", "t += 1;", "lift.unrecognised");
  expect_error("kw::fill(l, 0.0f);", "l.x[0] = 0.0f;", "lift.unrecognised");
  expect_error("struct Shared {", "int unused;\nstruct Shared {", "lift.unrecognised");
}

TEST(Lift, names_the_furthest_point_that_a_statement_reached) {
  expect_error("kw::evict_last)", "0x10ull)",
               ":109: error[lift.unrecognised]: expected 'kw', found '0x10ull'");
}

TEST(Lift, insists_on_the_canonical_text) {
  expect_error("x * args.scale; });", "(x * args.scale); });", "the canonical text here is");
  expect_error("kw::real x, kw::real o", "float x, kw::real o", "lift.unrecognised");
  expect_error("w / rows / args.H}", "kw::floor_div(w / rows, args.H)}",
               "the canonical text here is");
  expect_error("const int g = c.h", "const auto g = c.h", "lift.unrecognised");
}

TEST(Lift, refuses_c_division_that_may_not_floor) {
  expect_error("args.N / BN}", "(args.N - args.M) / BN}", "kw::floor_div(args.N - args.M, BN)");
}

// C's & binds looser than its ==; by a count that is no bit of an int, C's shifts are not defined.
TEST(Lift, reads_bits_where_c_and_tl_mean_the_same) {
  expect_error("args.N / BN}", "args.N & BN == 0 ? 1 : 2}", "lift.");
  expect_error("args.N / BN}", "args.N >> args.M}", "kw::shift_right(args.N, args.M)");
  expect_error("args.N / BN}", "kw::shift_right(args.N, 3)}", "args.N >> 3");
  expect_error("args.N / BN}", "args.N + 1 >> 3}", "write parentheses");
}

TEST(Lift, refuses_other_includes_and_preprocessor_text) {
  std::string doubled = "#include \"kw/kw.cuh\"\n#define A0 x\n", nested = "struct Args; int x = ";
  for (int k = 1; k < 40; ++k) {
    doubled += fmt::format("#define A{} A{} A{}\n", k, k - 1, k - 1);
    nested += "KW_REG8(";
  }
  expect_error("#include \"kw/kw.cuh\"\n", doubled + "A39;\n",
               "expected 'include', found 'define'");
  expect_error("struct Args", nested + "1" + std::string(39, ')') + ";\nstruct Args",
               "`KW_REG8` is a macro of the vocabulary's own");
  expect_error("#include \"kw/kw.cuh\"\n", "#include \"kw/kw.cuh\"\n#include \"kw/scalar.cuh\"\n",
               "only \"kw/kw.cuh\" may be included");
  expect_error("using element", "#define UNUSED 64\nusing element", "lift.unrecognised");
  expect_error("struct Args", "#pragma once\nstruct Args", "lift.unrecognised");
  expect_error("#pragma unroll 1\n", "#pragma unroll 1 ", "lift.");
  expect_error("// V\n", "// V \\\n", "a backslash continues the line");
  expect_error("// V\n", std::string(100'000, '{'), "more than 500 open brackets");
}

TEST(Lift, refuses_a_name_that_would_hide_one_of_the_text) {
  expect_error("const int i0 = c.m * BM + (cta * WARPGROUPS + me) * 64;",
               "const int i0 = c.m * BM + (cta * WARPGROUPS + me) * 64; const int warpgroup = 3;",
               "'warpgroup' is a name that every kernel's CUDA text has for itself");
  expect_error("int n = mine.count - 2;", "int mine = mine.count - 2;", "lift.");
}

TEST(Lift, refuses_names_that_tl_would_read_as_something_else) {
  expect_error("const int g = c.h / (args.H / args.G);",
               "const int inf = c.h / (args.H / args.G); const int g = inf;",
               "the TL text of this kernel cannot be read");
}

TEST(Lift, refuses_empty_blocks) {
  expect_error("if (partial) {", "if (raised) { }\nif (partial) {", "the block is empty");
}

TEST(Lift, says_when_there_is_no_libclang) {
  Diagnostics d;
  EXPECT_FALSE(lift(make_source("k.cu", kernel()), {kRoot + "/cuda", {"/nowhere/libclang.so"}}, d));
  EXPECT_NE(render(d).find("error[lift.libclang]: no libclang can be loaded"), std::string::npos);
  EXPECT_NE(render(d).find("/nowhere/libclang.so"), std::string::npos);
}

TEST(Lift, says_when_the_vocabulary_is_not_there) {
  Diagnostics d;
  Toolchain without = toolchain();
  without.include = "/nowhere";
  EXPECT_FALSE(lift(make_source("k.cu", kernel()), without, d));
  EXPECT_NE(render(d).find("k.cu:15:10: error[lift.invalid]: no valid CUDA: 'kw/kw.cuh' file not"),
            std::string::npos)
      << render(d);
}

}  // namespace
}  // namespace kw::lift
