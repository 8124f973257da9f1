// The engine as a whole: what it needs of a kernel, what it binds, that it repeats itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "in_clone.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

std::string kernel_text() {
  return read_source(in_clone("/tests/corpus/sm90_attention_fwd.tl"))->text;
}

tl::Program read(const std::string& text) {
  Diagnostics d;
  auto program = tl::parse(make_source("kernel.tl", text), d);
  EXPECT_TRUE(program) << render(d);
  return *program;
}

std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  for (size_t at; (at = text.find(part)) != std::string::npos;) {
    text.replace(at, part.size(), instead);
    if (instead.find(part) != std::string::npos) break;
  }
  return text;
}

// What find_facts says of the kernel with one part of its text replaced.
std::string refusal(const std::string& part, const std::string& instead) {
  Diagnostics d;
  const std::string changed = without(kernel_text(), part, instead);
  EXPECT_NE(changed, kernel_text()) << part;
  EXPECT_FALSE(transfer(read(changed), form_of("score s\nkeep j <= i\n"), sm_90a(), d));
  return d.all().empty() ? "" : d.all()[0].code + ": " + d.all()[0].message;
}

TEST(Engine, a_form_that_the_source_computes_changes_nothing) {
  const tl::Program source = read(kernel_text());
  Diagnostics d;
  const auto result = transfer(source, form_of("score s / 11.313708498984761\n"), sm_90a(), d);
  ASSERT_TRUE(result) << render(d);
  EXPECT_TRUE(tl::equal(result->program, source));
  EXPECT_TRUE(result->rules.empty());
  EXPECT_EQ(result->statements_removed + result->statements_added, 0);
}

TEST(Engine, places_are_found_whatever_they_are_called) {
  std::string text = kernel_text();
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"softmax(", "weights("}, {"key_blocks", "span_of"}, {"block_of", "place_of"}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  Diagnostics d;
  const auto result = transfer(read(text), form_of("score s\nkeep j <= i\n"), sm_90a(), d);
  ASSERT_TRUE(result) << render(d);
  EXPECT_NE(tl::print(result->program).find("where(j < min(N, i + 1)"), std::string::npos);
}

TEST(Engine, a_kernel_without_a_place_is_refused_by_the_place) {
  const std::string no_mask =
      "transfer.kernel: this kernel has no step in which `if partial:` masks the scores with "
      "map_at";
  EXPECT_EQ(refusal("if partial:", "if raised:"), no_mask);
  EXPECT_EQ(refusal("where(j < N, s[i, j], -inf)", "s[i, j] + 0.0"), no_mask);
  EXPECT_EQ(refusal("raised = online_max m, factor, s, slack, scale", "row_max m = s"),
            "transfer.kernel: this kernel has no `online_max` with an argument as its scale");
  EXPECT_EQ(refusal("record Keys: count, full", "record Keys: count, full, more"),
            "transfer.kernel: this kernel has no loop over key blocks, counted by a record of "
            "count and full");
  EXPECT_EQ(refusal("store_rows lse_r -> lse[c.b, c.h, i0]", "fence_async"),
            "transfer.kernel: this kernel has no store of the output and of the log-sum-exp");
}

TEST(Engine, bindings_say_which_of_the_user_s_dimensions_is_which) {
  Diagnostics d;
  const auto result = transfer(
      read(kernel_text()),
      form_of(
          "argument lengths i32[B]\ndims b i h d\noutput i b h d\nscore s\nkeep j < lengths[b]\n"),
      sm_90a(), d);
  ASSERT_TRUE(result) << render(d);
  const auto dims = [&](const std::string& argument) {
    for (const Binding& b : result->bindings)
      if (b.argument == argument) return b.dims;
    return std::vector<int>{};
  };
  EXPECT_EQ(dims("q"), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(dims("k"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(dims("o"), (std::vector<int>{1, 2, 0, 3}));
  EXPECT_EQ(dims("lengths"), (std::vector<int>{0}));
}

TEST(Engine, a_single_key_head_may_be_absent) {
  spec::Form form = form_of("score s\n");
  form.G = {"", 1};
  form.terms[0].k.indices = {expr_of("b"), expr_of("j"), expr_of("d")};
  form.terms[0].v.indices = {expr_of("b"), expr_of("h // 32"), expr_of("j"), expr_of("d")};
  Diagnostics d;
  const auto result = transfer(read(kernel_text()), form, sm_90a(), d);
  ASSERT_TRUE(result) << render(d);
  EXPECT_EQ(result->bindings[1].dims, (std::vector<int>{0, -1, 1, 2}));
  EXPECT_EQ(result->bindings[2].dims, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Engine, the_source_program_is_left_alone) {
  const tl::Program source = read(kernel_text());
  Diagnostics d;
  ASSERT_TRUE(transfer(source, form_of("score s * 2.0\nkeep j <= i and i - 9 < j\n"), sm_90a(), d));
  EXPECT_EQ(tl::print(source), kernel_text());
}

TEST(Engine, a_refusal_names_the_user_s_line) {
  const SourcePtr file = make_source("user.py", "def f(q, k, v, doc):\n    return doc\n");
  spec::Form form = form_of("argument doc f64[B, N]\nscore s\nkeep doc[b, j] < 0.5\n");
  form.arguments.back().span = {file, 15, 18};
  Diagnostics d;
  EXPECT_FALSE(transfer(read(kernel_text()), form, sm_90a(), d));
  ASSERT_EQ(d.all().size(), 1u);
  EXPECT_EQ(d.all()[0].code, "transfer.dtype");
  EXPECT_EQ(d.all()[0].span.place(), "user.py:1:16");
  EXPECT_NE(d.all()[0].hint.find("a model may be asked"), std::string::npos);
}

}  // namespace
}  // namespace kw::transfer
