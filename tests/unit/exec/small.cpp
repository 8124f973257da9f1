// The exact reading in the small algebra of a KW_EXACT build: what the executor gives a GPU to meet
// is the formula's own word, whatever tiles, references and rescalings came between.
#include <gtest/gtest.h>

#include "edited_program.h"
#include "exec/exec.h"
#include "num/random.h"
#include "num/small_algebra.h"

namespace kw {
namespace {

using exact::Element;
using exact::SmallAlgebra;

constexpr int64_t M = 130, N = 150, D = 128;
constexpr float kScale = 0.12751743f;

Tensor words(uint64_t stream, int64_t rows) {
  Tensor t(Dtype::bf16, {1, 1, rows, D});
  const Random random(7, stream);
  for (size_t n = 0; n < t.values.size(); ++n)
    t.values[n] = SmallAlgebra::word(uint16_t(random.word(n)));
  return t;
}

// softmax(q k' scale) v of one row, in the most direct way; the log of the sum, too.
struct Row {
  std::vector<Element> o;
  Element lse;
};
Row row_of(const SmallAlgebra& A, const exec::Launch& launch, int64_t i) {
  const auto at = [&](const char* name, int64_t r, int64_t d) {
    return A.draw(uint64_t(launch.tensors.at(name).values[r * D + d]));
  };
  Row row{std::vector<Element>(D, A.integer(0)), {}};
  Element sum = A.integer(0);
  for (int64_t j = 0; j < N; ++j) {
    Element s = A.integer(0);
    for (int64_t d = 0; d < D; ++d) s = A.add(s, A.mul(at("q", i, d), at("k", j, d)));
    const Element p = A.exp2(A.mul(s, A.constant(kScale)));
    sum = A.add(sum, p);
    for (int64_t d = 0; d < D; ++d) row.o[d] = A.add(row.o[d], A.mul(p, at("v", j, d)));
  }
  for (Element& x : row.o) x = A.div(x, sum);
  row.lse = A.mul(A.log2(sum), A.ln2());
  return row;
}

TEST(SmallReading, gives_the_formulas_words_whatever_the_references) {
  const SmallAlgebra algebra(1);
  exec::Launch launch;
  launch.tensors = {{"q", words(0, M)}, {"k", words(1, N)}, {"v", words(2, N)}};
  launch.scalars = {{"scale", kScale}};
  launch.algebra = &algebra;
  const auto program = test::parsed("full", test::text_of("full"));
  for (uint64_t seed : {0, 1}) {
    launch.seed = seed;  // of the references
    const exec::Outcome run = exec::run(*program, launch);
    ASSERT_TRUE(run.faults.empty()) << render(run.faults[0]);
    for (int64_t i : {0, 63, 64, 128, 129}) {
      const Row want = row_of(algebra, launch, i);
      for (int64_t d = 0; d < D; ++d)
        ASSERT_EQ(SmallAlgebra::bits(run.exact.at("o")[i * D + d]) >> 16,
                  SmallAlgebra::bits(want.o[d]) >> 16)
            << i << " " << d;
      EXPECT_EQ(SmallAlgebra::bits(run.exact.at("lse")[i]) & 0xffff,
                SmallAlgebra::bits(want.lse) & 0xffff);
    }
  }
}

TEST(SmallReading, sees_a_mask_that_lets_one_key_too_many_pass) {
  const SmallAlgebra algebra(1);
  exec::Launch launch;
  launch.tensors = {{"q", words(0, M)}, {"k", words(1, N)}, {"v", words(2, N)}};
  launch.scalars = {{"scale", kScale}};
  launch.algebra = &algebra;
  std::string text = test::text_of("full");
  const size_t at = text.find("where(j < N,");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 12, "where(j <= N,");
  const exec::Outcome right = exec::run(*test::parsed("full", test::text_of("full")), launch);
  const exec::Outcome wrong = exec::run(*test::parsed("wrong", text), launch);
  ASSERT_TRUE(wrong.faults.empty());
  EXPECT_NE(SmallAlgebra::bits(right.exact.at("o")[0]) >> 16,
            SmallAlgebra::bits(wrong.exact.at("o")[0]) >> 16);
}

}  // namespace
}  // namespace kw
