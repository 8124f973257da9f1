// The judge's rules on bytes that are planted here: each accepts what is right and refuses what is
// just beyond.
#include "runtime/prove/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kw::runtime {
namespace {

// An fp32 output [1, 1, 2, 4] and its golden of both rows by the window's rule.
struct Window {
  Strided layout = Strided::of(Dtype::f32, {1, 1, 2, 4}, false);
  std::vector<float> got = {0.25f, 0.5f, 0.25f, 0, 1e-9f, 0.5f, 0.25f, 0.25f};
  Golden golden;
  Diagnostics findings;

  Window() {
    golden.output = "o";
    golden.window = true;
    golden.rows = Tensor(Dtype::i64, {2, 3});
    golden.rows.values = {0, 0, 0, 0, 0, 1};
    golden.values = Tensor(Dtype::f64, {2, 4});
    for (int n = 0; n < 8; ++n) golden.values.values[n] = got[n];
    golden.accepted = Tensor(Dtype::f64, {2});
    golden.accepted.values = {1e-5, 1e-5};
  }
  // The message of the only finding; empty where there is none.
  std::string judge() {
    findings = {};
    const std::string_view bytes(reinterpret_cast<const char*>(got.data()), 4 * got.size());
    compare_golden(golden, {"o", layout, bytes}, findings);
    EXPECT_LE(findings.all().size(), 1u);
    return findings.all().empty() ? "" : findings.all()[0].message;
  }
};

TEST(WindowRule, AcceptsTheTruthAndRoundingErrors) {
  Window w;
  EXPECT_EQ(w.judge(), "");
  for (float& x : w.got) x *= 1.004f;
  EXPECT_EQ(w.judge(), "");
  w.got[4] = 0;  // nothing beside the row's largest
  EXPECT_EQ(w.judge(), "");
}

TEST(WindowRule, RefusesTheSmallestLeakOfAMaskedKey) {
  Window w;
  w.got[3] = 1e-30f;
  EXPECT_EQ(w.judge(),
            "o: 1 entries of masked keys are not zero; the first, at [0, 0, 0, 3], is 1e-30 where "
            "the truth is 0");
  w.got[3] = NAN;
  EXPECT_NE(w.judge(), "");
}

TEST(WindowRule, RefusesOneWeightBeyondTwoPercent) {
  Window w;
  w.got[1] = 0.5f * 1.019f;  // alone, too much for the mean of seven
  EXPECT_NE(w.judge().find("root mean square"), std::string::npos);
  w.got[1] = 0.5f * 1.021f;
  EXPECT_EQ(w.judge(),
            "o: the weight of a key is wrong by 0.021 of itself, accepted 0.02; at [0, 0, 0, 1] it "
            "is 0.5105, the truth 0.5");
  w.got[1] = NAN;
  EXPECT_NE(w.judge(), "");
}

TEST(WindowRule, RefusesWeightsThatAreAllALittleWrong) {
  Window w;
  for (float& x : w.got) x *= 1.006f;
  EXPECT_EQ(w.judge(),
            "o: the weights of 6 keys are wrong by 0.006 of themselves in the root mean square, "
            "accepted 0.005");
}

TEST(Signs, AreFollowedHeadByHead) {
  const Strided v = Strided::of(Dtype::bf16, {1, 2, 2, 2}, true), o = v;
  std::string bytes(v.bytes(), '\0');
  for (size_t n = 0; n < bytes.size(); n += 2) {
    const uint16_t bits = bf16_bits(1.0f + static_cast<float>(n));
    memcpy(bytes.data() + n, &bits, 2);
  }
  const std::vector<bool> signs = {false, true};
  std::string changed = bytes;
  change_signs(changed, v, signs);
  for (int64_t n = 0; n < 8; ++n)  // row-major: the last four are of head 1
    EXPECT_EQ(element(changed, Dtype::bf16, v.position(n)),
              (n < 4 ? 1 : -1) * element(bytes, Dtype::bf16, v.position(n)));
  const Output before{"o", o, bytes};
  EXPECT_TRUE(differs_in_signs_only(before, changed, signs, 2));
  EXPECT_FALSE(differs_in_signs_only(before, bytes, signs, 2)) << "a replay of the launch before";
  EXPECT_FALSE(differs_in_signs_only(before, changed, {true, true}, 2));
  changed[0] ^= 1;
  EXPECT_FALSE(differs_in_signs_only(before, changed, signs, 2)) << "the last bit of one element";
}

TEST(Signs, OfGroupedHeadsCountForAllHeadsOfTheGroup) {
  const Strided o = Strided::of(Dtype::f32, {1, 4, 1, 1}, false);
  const float before[] = {1, 2, 0, 4}, now[] = {1, 2, 0, -4};
  const auto bytes = [](const float* x) {
    return std::string_view(reinterpret_cast<const char*>(x), 16);
  };
  EXPECT_TRUE(differs_in_signs_only({"o", o, bytes(before)}, bytes(now), {false, true}, 2));
  EXPECT_FALSE(differs_in_signs_only({"o", o, bytes(before)}, bytes(now), {true, false}, 2));
}

TEST(Floor, IsThatOfTheDataSheets) {
  EXPECT_NEAR(peaks_of(90, 132, 1830000, 3201000, 6144).flops, 989e12, 1e12);
  EXPECT_NEAR(peaks_of(90, 132, 1830000, 3201000, 6144).bytes, 4.9e12, 0.03e12);
  EXPECT_NEAR(peaks_of(80, 108, 1410000, 1215000, 5120).flops, 312e12, 1e12);
  const Peaks peaks{1e15, 4e12};
  EXPECT_DOUBLE_EQ(floor_ms(peaks, 1e12, 0), 0.98);
  EXPECT_DOUBLE_EQ(floor_ms(peaks, 1e12, 8e9), 1.96);
  EXPECT_EQ(floor_ms(peaks_of(120, 100, 1, 0, 0), 1e15, 1), 0) << "nothing is known, nothing said";
}

TEST(Contents, HaveAMeanOrAreAWindow) {
  Contents mean{{.kind = Draw::Kind::normal, .stream = 1}, 1, -1};
  const Tensor plain = draw({.kind = Draw::Kind::normal, .stream = 1}, 5, Dtype::f64, {1, 1, 4, 3});
  const Tensor moved = draw_tensor(mean, 5, Dtype::f64, {1, 1, 4, 3});
  for (int n = 0; n < 12; ++n) EXPECT_EQ(moved.values[n], plain.values[n] + 1);
  const Contents window{{.kind = Draw::Kind::constant, .value = 2}, 0, 2};
  const Strided layout = Strided::of(Dtype::bf16, {2, 1, 6, 3}, true);
  const std::string bytes = draw_bytes(window, 5, layout);
  const Tensor same = draw_tensor(window, 5, Dtype::bf16, {2, 1, 6, 3});
  for (int64_t n = 0; n < layout.count(); ++n) {
    const double expected = n / 3 % 6 == 2 + n % 3 ? 2 : 0;
    EXPECT_EQ(element(bytes, Dtype::bf16, layout.position(n)), expected) << n;
    EXPECT_EQ(same.values[n], expected) << n;
  }
}

}  // namespace
}  // namespace kw::runtime
