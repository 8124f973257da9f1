// Goldens that are words: every bit under the mask counts, whatever number it spells.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/prove/prove_words.h"

namespace kw::runtime {
namespace {

struct Words : testing::Test {
  Strided layout = Strided::of(Dtype::bf16, {1, 2, 2, 3}, true);  // heads inside rows
  Golden golden{.output = "o", .mask = 0xffff};
  std::string bytes;

  // Element n has the word 1000 n; among them a NaN, an infinity and zero.
  void SetUp() override {
    bytes.resize(24);
    golden.rows = Tensor(Dtype::i64, {4, 3});
    golden.values = Tensor(Dtype::i32, {4, 3});
    for (int n = 0; n < 12; ++n) {
      const uint16_t word = n == 3 ? 0x7fc1 : n == 5 ? 0xff80 : uint16_t(1000 * n);
      memcpy(bytes.data() + layout.position(n) * 2, &word, 2);
      golden.values.values[n] = word;
      golden.rows.values[n / 3 * 3 + 1] = n / 6;
      golden.rows.values[n / 3 * 3 + 2] = n / 3 % 2;
    }
  }
  std::string finding() {
    Diagnostics d;
    compare_words(golden, {"o", layout, bytes}, d);
    return d.all().empty() ? "" : d.all()[0].message;
  }
};

TEST_F(Words, that_are_the_same_are_right_even_where_they_spell_nan) { EXPECT_EQ(finding(), ""); }

TEST_F(Words, that_differ_in_one_bit_are_found_with_their_place) {
  bytes[layout.position(10) * 2] ^= 1;
  EXPECT_EQ(finding(),
            "o: 1 of 12 words differ, the first at [0, 1, 1, 1]: 0x2711, must be 0x2710");
}

TEST_F(Words, differ_only_under_the_mask) {
  bytes[layout.position(10) * 2] ^= 1;
  golden.mask = 0xfffe;
  EXPECT_EQ(finding(), "");
}

TEST_F(Words, of_another_layout_are_found) {
  layout = Strided::of(Dtype::bf16, {1, 2, 2, 3}, false);
  EXPECT_NE(finding(), "");
}

TEST_F(Words, are_told_from_values_by_the_mask) {
  ProveCase c;
  c.goldens.push_back(golden);
  EXPECT_TRUE(holds_words(c, "o"));
  EXPECT_FALSE(holds_words(c, "lse"));
  c.goldens[0].mask = 0;
  EXPECT_FALSE(holds_words(c, "o"));
}

}  // namespace
}  // namespace kw::runtime
