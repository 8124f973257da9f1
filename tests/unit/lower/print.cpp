// A program as a CUDA file of its own: lifting it gives the program back, and what its comments say
// is in the program.
#include <gtest/gtest.h>

#include <filesystem>

#include "in_clone.h"
#include "lower/lower.h"
#include "lower/print_module.h"
#include "support/files.h"
#include "tl/laws/laws.h"
#include "tl/laws/laws_target.h"

namespace kw::lower {
namespace {

const std::string kRoot = in_clone();

const lift::Toolchain& toolchain() {
  static const lift::Toolchain t = lift::find_toolchain(kRoot + "/cuda", {kRoot + "/.venv"});
  return t;
}

std::string text_of(const std::string& path) { return read_source(kRoot + "/" + path)->text; }

tl::Program parsed(const std::string& text) {
  Diagnostics d;
  std::optional<tl::Program> p = tl::parse(make_source("program.tl", text), d);
  EXPECT_TRUE(p && tl::verify(*p, d)) << render(d);
  return p ? std::move(*p) : tl::Program{};
}

// PutGet by text; the CUDA file.
std::string printed(const std::string& tl_text) {
  Diagnostics d;
  const std::optional<std::string> cuda = print_cuda(parsed(tl_text), d);
  EXPECT_TRUE(cuda) << render(d);
  if (!cuda) return "";
  const auto back = lift::lift(make_source("printed.cu", *cuda), toolchain(), d);
  EXPECT_TRUE(back) << render(d) << *cuda;
  if (back) {
    EXPECT_EQ(tl::print(*back), tl_text);
  }
  return *cuda;
}

TEST(PrintModule, gives_back_the_corpus_and_the_kernels_for_turing) {
  for (const char* path :
       {"tests/corpus/sm80_attention_fwd.tl", "tests/corpus/sm90_attention_fwd.tl",
        "tests/sm75/attention_d64.tl", "tests/sm75/attention_d128.tl"})
    printed(text_of(path));
}

TEST(PrintModule, has_one_statement_a_line_with_what_is_known_beside_it) {
  const std::string text = printed(text_of("tests/corpus/sm90_attention_fwd.tl"));
  for (const char* line :
       {"\n    Shared& shared = kw::shared_memory<Shared>();\n"
        "    const int warpgroup = kw::warpgroup_index();\n",
        "\n    } else {\n        kw::registers_up<WARPGROUP_REGISTERS>();\n",
        "\n#pragma unroll 1\n                for (int n = keys.count - 1; n >= 0; --n, ++t) {\n",
        "\n    kw::size B, H, G, M, N;                                      // batch, query heads",
        "// q, in the end o\n", "for Hopper (sm_90a)"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
}

// What is said of an argument is what its value says.
TEST(PrintModule, says_nothing_of_an_argument_with_another_value) {
  std::string text = text_of("tests/corpus/sm80_attention_fwd.tl");
  const std::string value = "scale: f32 = rsqrt(D) * log2e";
  text.replace(text.find(value), value.size(), "scale: f32 = 0.5 * log2e");
  const std::string cuda = printed(text);
  EXPECT_NE(cuda.find("    float scale = 0.5f * kw::log2e;\n"), std::string::npos);
  EXPECT_EQ(cuda.find("powers of two"), std::string::npos);
}

TEST(PrintModule, names_the_oldest_target_that_has_its_instructions) {
  const std::string turing = printed(text_of("tests/sm75/attention_d64.tl"));
  EXPECT_NE(turing.find("for sm_75 and later"), std::string::npos) << turing;
  std::string text = text_of("tests/sm75/attention_d64.tl");
  text.replace(text.find("element f16"), 11, "element bf16");
  EXPECT_NE(printed(text).find("for sm_80 and later"), std::string::npos);
}

TEST(PrintModule, a_statement_without_cuda_is_refused_at_its_place) {
  std::string text = text_of("tests/corpus/sm80_attention_fwd.tl");
  const std::string name = "flag raised";
  for (size_t at = 0; (at = text.find("raised", at)) != std::string::npos; at += 6)
    text.replace(at, 6, "warpgroup");
  Diagnostics d;
  const std::optional<tl::Program> program = tl::parse(make_source("k.tl", text), d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_FALSE(print_cuda(*program, d));
  ASSERT_TRUE(d.has_errors());
  EXPECT_EQ(d.all()[0].code, "lower.unspellable");
  EXPECT_EQ(d.all()[0].span.text(), "flag warpgroup");
}

}  // namespace
}  // namespace kw::lower
