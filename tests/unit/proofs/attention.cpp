// The obligations of attention: right programs are proved, and a wrong token is found at its place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "in_clone.h"
#include "made.h"
#include "proofs/proofs.h"

namespace kw::proofs {
namespace {

namespace fs = std::filesystem;

void expect_proved(const Made& made) {
  const Report r = proved(made);
  EXPECT_EQ(r.proved(), int(r.obligations.size())) << print(r);
  for (const Obligation& o : r.obligations)
    EXPECT_EQ(o.answer, Answer::proved) << o.what << ": " << o.message << o.why;
}

std::string refuted(const Made& made) {
  const Report r = proved(made);
  const Obligation* o = r.first(Answer::refuted);
  return o ? o->what + ": " + o->message : "(nothing is refuted) " + print(r);
}

const char* const kWindow = "score s * 0.125\nkeep j <= i and i - 1024 < j\n";
const char* const kPrefix = "argument prefix i32[B]\nscore s\nkeep j <= i or j < prefix[b]\n";

const char* const kDocuments =
    "argument document i32[B, N]\nscore s\n"
    "keep document[b, i] == document[b, j] and j <= i\nqueries N\n";
const char* const kHole = "score s * 0.125\nkeep j <= i and (j < 4 or i - 512 < j)\n";
const char* const kTable =
    "argument table f32[H, R]\nscore s * 0.125 + table[h, min(max(j - i, -16), 16) + 16]\n";

TEST(Indices, of_programs_that_the_rules_made_are_proved) {
  for (const char* target : {"sm_90a", "sm_80"})
    for (const char* form : {"score s\n", kCausal, kWindow, kPrefix, kDocuments, kHole, kTable}) {
      SCOPED_TRACE(std::string(target) + "\n" + form);
      expect_proved(made_of(form, target));
    }
}

TEST(Indices, of_a_mask_that_is_wrong_from_one_size_on_are_refuted_there) {
  const std::string said =
      refuted(with(made_of(kCausal), "where(j < min(N, i + 1), s[i, j], -inf)",
                   "where(j < min(N, i + where(N > 4096, 2, 1)), s[i, j], -inf)"));
  EXPECT_NE(said.find("the program keeps it: true, the specification keeps it: false"),
            std::string::npos)
      << said;
}

// The program's letters are the tensors' sizes, in whichever order the user has them: taken for
// others, they would bound the sizes, and everything would be proved.
TEST(Indices, of_operands_in_another_order_are_proved_for_every_size_too) {
  for (const std::string& form :
       {std::string("dims b i h d\n") + kCausal, std::string("dims b h d i\n") + kCausal}) {
    const Made made = made_of(form);
    expect_proved(made);
    EXPECT_EQ(refuted(with(made, "where(j < min(N, i + 1), s[i, j], -inf)",
                           "where(j < min(N, i + where(N > 4096, 2, 1)), s[i, j], -inf)"))
                  .rfind("what this visit keeps", 0),
              0u);
  }
}

TEST(Indices, of_a_window_that_is_left_out_are_refuted) {
  EXPECT_EQ(
      refuted(with(made_of(kWindow), "i - 1023 <= j and ", "")).rfind("what this visit keeps", 0),
      0u);
  EXPECT_EQ(refuted(with(made_of(kWindow), "i - 1023 <= j", "i - 999 <= j")).rfind("what this", 0),
            0u);
}

TEST(Indices, of_a_block_that_is_skipped_are_refuted) {
  const Made made = with(made_of(kCausal), "return ceil_div(min(N, i0 + rows), BN),",
                         "return ceil_div(min(min(N, 4736), i0 + rows), BN),");
  EXPECT_EQ(refuted(made).rfind("each key block of which a row keeps something is visited once", 0),
            0u)
      << refuted(made);
}

TEST(Indices, of_a_block_that_is_called_whole_too_early_are_refuted) {
  const Made made = with(made_of(kCausal, "sm_80"), "min(N, i0 + 1) // BN",
                         "min(N, i0 + 1 + i0 // 4800 * BN) // BN");
  EXPECT_EQ(refuted(made).rfind("what this visit keeps", 0), 0u) << refuted(made);
}

// Terms are texts: this one would have 2^60 of them.
TEST(Indices, of_sixty_lets_that_each_double_the_one_before_stay_open) {
  std::string lets = "def block_of(w: index) -> Block:\n    let z0 = w - w\n";
  for (int n = 1; n <= 60; ++n) lets += fmt::format("    let z{0} = z{1} + z{1}\n", n, n - 1);
  const Made doubled = with(with(made_of(kCausal), "def block_of(w: index) -> Block:\n", lets),
                            "w // per_section", "z60 + w // per_section");
  const Report r = proved(doubled);
  EXPECT_LT(r.proved(), int(r.obligations.size()));
  EXPECT_EQ(r.first(Answer::refuted), nullptr) << print(r);
}

// i % n of a size's half: which half a position lies in, and where (solver/quotients.h).
TEST(Indices, of_halves_of_a_sequence_are_decided) {
  const char* const halves =
      "score s\nkeep i % ((N + 1) // 2) // 64 == j % ((N + 1) // 2) // 64\nqueries N\n";
  expect_proved(made_of(halves));
}

// f32(max(i - j, 0)) is computed as max(-f32(d), 0.0).
TEST(Indices, of_a_distance_that_ends_at_0_are_the_specifications) {
  const char* const distance =
      "argument r f32[H]\nscore s - r[h] * log(r[h] * max(i - j, 0) + 1)\nkeep j <= i\n";
  const Made made = made_of(distance);
  expect_proved(made);
  const Report r = proved(with(made, "max(-f32(d), 0.0)", "max(-f32(d * 2), 0.0)"));
  EXPECT_NE(r.first(Answer::unknown), nullptr) << print(r);
}

TEST(Indices, of_data_are_any_integers) {
  EXPECT_EQ(refuted(with(made_of(kPrefix), "where(j < min(N, max(i + 1, kept))",
                         "where(j < min(N, max(i + 1, kept % 32768))"))
                .rfind("what this visit keeps", 0),
            0u);
  EXPECT_EQ(refuted(with(made_of(kPrefix), "let kept = prefix[c.b]", "let kept = prefix[c.b % 4]"))
                .rfind("what this", 0),
            0u);
}

TEST(Indices, that_need_more_than_32_bits_limit_a_launch) {
  const Report r = proved(with(made_of(kCausal), "where(j < min(N, i + 1), s[i, j], -inf)",
                               "where(j * 65536 < min(N, i + 1) * 65536, s[i, j], -inf)"));
  EXPECT_EQ(r.first(Answer::refuted), nullptr);
  ASSERT_EQ(r.limits.size(), 2u);
  EXPECT_EQ(print(r.limits[0]), "M <= 16384");  // the first of those tried that is below 2^15
  EXPECT_EQ(print(r.limits[1]), "N <= 16384");
}

// No sequence is short enough for a product of what the data hold.
TEST(Indices, of_data_that_need_more_than_32_bits_are_refuted) {
  const std::string said = refuted(with(made_of(kCausal), "where(j < min(N, i + 1), s[i, j], -inf)",
                                        "where((j << 30) < (min(N, i + 1) << 30), s[i, j], -inf)"));
  EXPECT_EQ(said.rfind("what is computed of integers fits 32 bits", 0), 0u) << said;
}

// Of an obligation that no counterexample refutes: where it is open, and why.
std::string open_of(const Made& made) {
  const Report r = proved(made);
  const Obligation* o = r.first(Answer::unknown);
  return o ? o->what + ": " + o->why : "(nothing is open) " + print(r);
}

void expect_open(const Made& made, const std::string& part) {
  const std::string said = open_of(made);
  EXPECT_EQ(said.rfind("addresses, scores and conditions are made", 0), 0u) << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(Integers, of_another_head_or_entry_are_none_of_the_specifications) {
  const Made causal = made_of(kCausal);
  expect_open(with(causal, "k[c.b, g,", "k[where(c.b < 5, c.b, 0), g,"), "where(c.b < 5, c.b, 0)");
  expect_open(with(causal, "-> lse[c.b, c.h, i0]", "-> lse[c.b, c.h ^ 1, i0]"), "c.h ^ 1");
  expect_open(with(causal, "-> o[c.b, c.h,", "-> o[c.b, where(M > 300, H - 1 - c.h, c.h),"),
              "where(M > 300, H - 1 - c.h, c.h)");
  expect_open(with(causal, "-> o[c.b, c.h,", "-> o[c.b * c.b, c.h,"), "c.b * c.b");
}

TEST(Integers, that_a_launch_decides_by_are_none_of_the_specifications) {
  const Made causal = made_of(kCausal);
  expect_open(with(causal, "scale: f32 = ", "scale: f32 = where(N > 9999, 0.1, 1.0) * "),
              "N > 9999");
  expect_open(with(causal, "map acc[i, j] = acc[i, j] * inverse[i]",
                   "map acc[i, j] = acc[i, j] * inverse[i] * where(c.m > 50, 2.0, 1.0)"),
              "c.m > 50");
}

TEST(Turns, of_a_loader_that_ends_early_are_refuted) {
  const std::string loop = "for t, n in range_down_rolled(keys.count - 1, 0):";
  const Made made = made_of(kCausal);
  const size_t at = made.text.find(loop);
  ASSERT_NE(at, std::string::npos);
  for (const char* other : {"for t, n in range_down_rolled(min(keys.count, 37) - 1, 0):",
                            "for t, n in range_down_rolled(keys.count - 1, keys.count // 37):"}) {
    Made wrong = made;
    wrong.text.replace(at, loop.size(), other);
    EXPECT_EQ(refuted(wrong).rfind("all agents take the same key blocks", 0), 0u) << refuted(wrong);
  }
}

TEST(Turns, of_a_consumer_that_skips_other_blocks_than_it_leaves_out_are_refuted) {
  const Made made = with(made_of(kCausal), "range_down_rolled(keys.count - 1, mine.count)",
                         "range_down_rolled(keys.count - 1, min(mine.count, 37))");
  EXPECT_EQ(refuted(made).rfind("all agents take the same key blocks", 0), 0u) << refuted(made);
}

TEST(Lists, that_lack_a_block_or_call_it_whole_are_refuted) {
  const Made made = made_of(kDocuments);
  EXPECT_EQ(refuted(with(made, "and j0 <= i1,", "and j0 <= i1 and n != 37,"))
                .rfind("each key block of which a row keeps something", 0),
            0u);
  EXPECT_EQ(refuted(with(made, "and j1 <= i0", "and j1 <= i0 or n == 40"))
                .rfind("what this visit keeps", 0),
            0u);
  EXPECT_EQ(refuted(with(made, "let b = w // ceil_div(M, BM)", "let b = w // ceil_div(M, BM) % 60"))
                .rfind("what this visit keeps", 0),
            0u);
}

TEST(Lists, without_room_or_of_which_other_words_are_read_are_open) {
  const Made made = made_of(kDocuments);
  const auto why = [&](const char* from, const char* to) { return open_of(with(made, from, to)); };
  EXPECT_NE(why("= 2 + BM // 64 + ceil_div(N, BN)", "= 2 + BM // 64 + min(60, ceil_div(N, BN))")
                .find("has room for its key blocks"),
            std::string::npos);
  EXPECT_NE(why("scratch[lists * list_words]", "scratch[min(lists, 64) * list_words]")
                .find("whether all lists fit"),
            std::string::npos);
  EXPECT_NE(why("+ BM // 64 + n]", "+ BM // 64 + where(n == 40, 39, n)]").find("list.at"),
            std::string::npos);
  const Report below =
      proved(with(made_of(kDocuments, "sm_80"), "if n > 0:", "if n > keys.full - 2000:"));
  EXPECT_TRUE(std::any_of(below.obligations.begin(), below.obligations.end(), [](const auto& o) {
    return o.answer == Answer::refuted &&
           o.what == "what is read of a list of key blocks is a word of it";
  })) << print(below);
}

// Of blocks of a table that are tiles each is whole, but the last, where keys end within it.
TEST(Lists, of_whole_tiles_have_no_second_partial_one) {
  const auto never = [](const Made& made) {
    const Report r = proved(made);
    return std::count_if(r.loops.begin(), r.loops.end(),
                         [](const Bound& b) { return b.most == 0; });
  };
  const auto of_tiles = [](int64_t rows, int64_t keys) {
    return made_of(fmt::format("argument table bool[B, H, S, R]\nscore s\n"
                               "keep table[b, h, i // {}, j // {}]\n",
                               rows, keys)
                       .c_str());
  };
  EXPECT_EQ(never(of_tiles(128, 128)), 1);
  EXPECT_EQ(never(of_tiles(256, 256)), 1);
  EXPECT_EQ(never(of_tiles(128, 64)), 0) << "a tile has keys of two";
  EXPECT_EQ(never(of_tiles(100, 128)), 0) << "a tile has rows of two";
  EXPECT_EQ(never(made_of(kDocuments)), 0);
}

// x >> r of a count that varies, by what the pass looks at.
TEST(Lists, of_words_of_bits_are_proved_and_such_that_lack_a_block_are_not) {
  const Made made = made_of(
      "argument words i32[B, M, W]\nscore s\nkeep (words[b, i, j // 32] >> (j % 32)) & 1 == 1\n");
  expect_proved(made);
  const auto lacks = [&](const char* from, const char* to) {
    return open_of(with(made, from, to));
  };
  EXPECT_EQ(lacks("0 < rest_ij_most and", "1 < rest_ij_most and").rfind("each key block of", 0),
            0u);
  EXPECT_EQ(lacks("rest_ij_least == 1 and", "rest_ij_least == 0 and").rfind("what this visit", 0),
            0u);
  EXPECT_EQ(lacks("min(words_ij_least >> rest_j_least, words_ij_least >> rest_j_most)",
                  "words_ij_least >> rest_j_least")
                .rfind("what this visit", 0),
            0u);
}

TEST(Choices, are_proved_to_be_between_two_ways_to_the_same_formula) {
  const Made made = made_of(kTable);
  const std::string left =
      "let everywhere = unscale * table[c.h, min(max(n * BN - min(i0, M - 1), -16), 16) + 16]";
  expect_open(
      with(made, "map s[i, j] = s[i, j] + everywhere", "map s[i, j] = s[i, j] + everywhere * 2.0"),
      "uniform");
  expect_open(with(made, "+ everywhere", "- everywhere"), "uniform");
  expect_open(with(made, left, left.substr(0, left.size() - 3) + "15]"), "uniform");
  expect_open(with(made, "if not uniform:", "if not uniform and n < 40:"), "uniform");
}

// Two integers that are one in all cases, and part beyond.
TEST(Indices, of_which_cases_cannot_tell_two_apart_stay_open) {
  const Made far = made_of(
      "argument slopes f32[H]\nscore s * 0.125 - slopes[h] * f32(min(i - j, i // 2 + 300)) - f32(i "
      "- j) * 0.001\nkeep j <= i\n",
      "sm_80");
  expect_proved(far);
  expect_open(with(far, "slope * f32(min(i - j, i // 2 + 300))", "slope * f32(i - j)"),
              "in all cases");
  const Made batch = made_of(
      "argument slopes f32[S]\nscore s * 0.125 - slopes[max(min(b, b // 2 + 60), 0)] * f32(i - "
      "j)\nkeep j <= i\n");
  expect_open(with(batch, "slopes[max(min(c.b, c.b // 2 + 60), 0)]", "slopes[c.b]"),
              "in all cases");
  // Cases reach beyond the numbers of a score.
  const Made clamped = made_of(
      "argument table f32[H, R]\nscore s * 0.125 + table[h, min(max(i - j, 0), 500)]\nkeep j <= "
      "i\n",
      "sm_80");
  expect_proved(clamped);
}

// Whatever the rules' own tests make: nothing of it is refuted, and all but these is proved.
std::vector<std::string> cases() {
  std::vector<std::string> out;
  const fs::path folder = in_clone("/tests/transfer");
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".case")
      out.push_back(fs::relative(entry.path(), folder).replace_extension().string());
  std::sort(out.begin(), out.end());
  return out;
}

// Written for M <= N, or reading from the end; and masks that compare reals.
const std::set<std::string> kOpen = {"columns/distance_under_lists",
                                     "columns/distances",
                                     "invariant/guarded_read_stays_within_the_tensor",
                                     "order/table_of_distances_does_not_fire",
                                     "pairs/distance_does_not_fire",
                                     "uniform/distance_differs_everywhere",
                                     "lists/reals_do_not_fire",
                                     "pairs/mask_by_number",
                                     "saves/sum_of_rounded_weights"};

class OfTheRules : public testing::TestWithParam<std::string> {};

TEST_P(OfTheRules, nothing_is_refuted) {
  std::string lines = read_source(in_clone("/tests/transfer/" + GetParam() + ".case"))->text;
  lines.resize(lines.find("---\n"));
  const std::string target = transfer::take_line(lines, "target ", "sm_90a");
  // Of a text whose keys are split nothing is proved.
  if (!transfer::take_line(lines, "text ", "").empty()) return;
  const spec::Form form = transfer::form_of(lines);
  if (form.terms.size() != 1 || form.terms[0].finite_mask || form.gradients) return;
  Diagnostics d;
  const auto [kernel, machine] = transfer::start_of(form, target);
  const auto result = transfer::transfer(kernel, form, machine, d);
  const auto packs = [](const transfer::AppliedRule& rule) { return rule.name == "pack"; };
  if (!result || std::any_of(result->rules.begin(), result->rules.end(), packs)) return;
  const Report r = prove_attention(result->program, form, solver());
  for (const Obligation& o : r.obligations) {
    EXPECT_NE(o.answer, Answer::refuted) << o.what << ": " << o.message << "\n"
                                         << tl::print(result->program);
    if (o.answer == Answer::proved) continue;
    EXPECT_TRUE(kOpen.count(GetParam())) << o.what << ": " << o.why;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OfTheRules, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

}  // namespace
}  // namespace kw::proofs
