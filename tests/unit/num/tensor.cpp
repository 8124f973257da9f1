#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "num/compare.h"
#include "num/npy.h"
#include "num/random.h"

namespace kw {
namespace {

TEST(Random, has_these_values_which_python_has_too) {
  // tests/python/capture/test_random.py holds the same numbers.
  const Random r(7, 2);
  EXPECT_EQ(r.word(0), 0xbce33ed48e94b602u);
  EXPECT_EQ(r.integer(5, -3, 1000), 206);
  EXPECT_EQ(r.normal(0), -0.018096923828125f);
}

TEST(Random, is_about_standard_normal) {
  const Random r(1, 0);
  double sum = 0, square = 0, fourth = 0;
  const int count = 200000;
  for (int n = 0; n < count; ++n) {
    const double x = r.normal(n);
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(square / count, 1, 0.01);
  EXPECT_NEAR(fourth / count, 3 - 0.1, 0.06);  // twelve uniforms: excess kurtosis -1.2 / 12
}

TEST(Random, integers_reach_both_ends_and_no_further) {
  const Random r(3, 1);
  int64_t low = 100, high = -100;
  for (int n = 0; n < 1000; ++n) {
    low = std::min(low, r.integer(n, -2, 3));
    high = std::max(high, r.integer(n, -2, 3));
  }
  EXPECT_EQ(low, -2);
  EXPECT_EQ(high, 3);
}

TEST(Random, streams_and_seeds_differ) {
  EXPECT_NE(Random(1, 0).word(0), Random(1, 1).word(0));
  EXPECT_NE(Random(1, 0).word(0), Random(2, 0).word(0));
}

TEST(Random, a_tensor_that_threads_draw_is_the_stream) {
  Draw how;
  how.stream = 3;
  const Tensor tensor = draw(how, 9, Dtype::bf16, {5, 1 << 20, 1});
  const Random random(9, 3);
  for (int64_t n = 0; n < tensor.count(); n += 4099)
    ASSERT_EQ(tensor.values[n], round_to(Dtype::bf16, random.normal(n))) << n;
  EXPECT_EQ(tensor.values.back(), round_to(Dtype::bf16, random.normal(tensor.count() - 1)));
}

TEST(Npy, reads_back_what_it_wrote_in_every_type) {
  const std::string path = testing::TempDir() + "/kw_round_trip.npy";
  for (Dtype t : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::i64,
                  Dtype::i32, Dtype::u32, Dtype::u8, Dtype::boolean}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {5}, {2, 3}, {0, 4}}) {
      Draw how;
      how.scale = 100;
      const Tensor tensor = draw(how, 1, t, shape);
      ASSERT_TRUE(write_npy(path, tensor));
      Diagnostics diagnostics;
      const std::optional<Tensor> back = read_npy(path, diagnostics, t);
      ASSERT_TRUE(back) << render(diagnostics);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->values, tensor.values) << name(t);
    }
  }
  std::filesystem::remove(path);
}

TEST(Npy, refuses_a_file_that_is_cut_short_and_one_that_is_something_else) {
  const std::string path = testing::TempDir() + "/kw_short.npy";
  ASSERT_TRUE(write_npy(path, Tensor(Dtype::f32, {4})));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  Diagnostics diagnostics;
  EXPECT_FALSE(read_npy(path, diagnostics));
  std::ofstream(path) << "hello";
  EXPECT_FALSE(read_npy(path, diagnostics));
  EXPECT_FALSE(read_npy(path + ".none", diagnostics));
  ASSERT_EQ(diagnostics.all().size(), 3u);
  EXPECT_NE(diagnostics.all()[0].message.find("16 bytes"), std::string::npos);
  std::filesystem::remove(path);
}

Tensor row(std::vector<double> values) {
  Tensor t(Dtype::f64, {static_cast<int64_t>(values.size())});
  t.values = std::move(values);
  return t;
}

TEST(Compare, is_relative_to_the_norm_of_the_row) {
  const Comparison c = compare_rows(row({3, 4.05}), row({3, 4}), {0.011});
  EXPECT_NEAR(c.errors[0], 0.01, 1e-12);
  EXPECT_TRUE(c.within);
  EXPECT_FALSE(compare_rows(row({3, 4.06}), row({3, 4}), {0.011}).within);
}

TEST(Compare, nan_and_infinity_must_stand_where_the_truth_has_them) {
  EXPECT_FALSE(compare_rows(row({NAN, 1}), row({1, 1}), {1e9}).within);
  EXPECT_FALSE(compare_rows(row({0, 1}), row({NAN, 1}), {1e9}).within);
  EXPECT_FALSE(compare_rows(row({HUGE_VAL, 1}), row({-HUGE_VAL, 1}), {1e9}).within);
  EXPECT_TRUE(compare_rows(row({NAN, HUGE_VAL}), row({NAN, HUGE_VAL}), {0}).within);
  EXPECT_FALSE(compare_rows(row({1}), row({1}), {NAN}).within);
}

TEST(Compare, names_the_row_that_uses_most_of_its_allowance) {
  Tensor truth(Dtype::f64, {2, 1}), result(Dtype::f64, {2, 1});
  truth.values = {1, 1};
  result.values = {1.5, 1.1};
  const Comparison c = compare_rows(result, truth, {1.0, 0.05});
  EXPECT_EQ(c.worst_row, 1);
  EXPECT_FALSE(c.within);
}

TEST(Compare, a_row_below_what_the_output_holds_is_compared_as_if_it_were_at_its_edge) {
  const double zeros[] = {0, 0}, lost[] = {6e-67, -5e-67}, small[] = {1e-20, 1e-20},
               none[] = {1e-60, 0};
  const double least = least_norm(Dtype::bf16, 2);
  EXPECT_LT(row_error(zeros, lost, 2, least), 1e-30);
  EXPECT_EQ(row_error(zeros, small, 2, least), 1);
  EXPECT_EQ(row_error(none, zeros, 2, least), HUGE_VAL);
  EXPECT_EQ(row_error(zeros, lost, 2), 1);
  EXPECT_EQ(row_error(none, zeros, 2, 0, std::hypot(none[0], none[1])), 1);
  const double one[] = {1, 0}, other[] = {1.5, 0};
  EXPECT_EQ(row_error(other, one, 2, 0, 1), 0.25);
  const double subnormal[] = {3e-6, 0}, rounded[] = {2.98e-6, 0};
  EXPECT_LE(row_error(rounded, subnormal, 2, least_norm(Dtype::f16, 2)),
            accepted_error(0, Dtype::f16));
}

TEST(Compare, a_function_coarser_than_a_sixteenth_excuses_no_more) {
  EXPECT_EQ(accepted_error(0x1p-5, Dtype::bf16), 0x1p-4);
  EXPECT_EQ(accepted_error(0x1p-4, Dtype::bf16), 0x1p-3);
  EXPECT_EQ(accepted_error(100, Dtype::bf16), 0x1p-3);
  EXPECT_EQ(accepted_error(HUGE_VAL, Dtype::bf16), 0x1p-7);
}

TEST(Compare, a_row_of_zeros_asks_for_zeros) {
  EXPECT_TRUE(compare_rows(row({0, 0}), row({0, 0}), {0}).within);
  EXPECT_FALSE(compare_rows(row({0, 1e-9}), row({0, 0}), {1}).within);
}

}  // namespace
}  // namespace kw
