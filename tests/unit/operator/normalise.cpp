// Steps between the graph and the form, one at a time.
#include <gtest/gtest.h>

#include <cmath>

#include "operator/evaluate/evaluate.h"
#include "operator/evaluate/program.h"
#include "operator/recognise/recognise.h"

namespace kw::spec {
namespace {

const ExprPtr i = leaf(Kind::index, Type::integer, "i"), j = leaf(Kind::index, Type::integer, "j");
const ExprPtr s = leaf(Kind::score, Type::real, "s");
const ExprPtr past = binary("<=", j, i);

TEST(SplitScore, takes_the_mask_out_however_it_was_put_in) {
  const ExprPtr minus_infinity = real(-HUGE_VAL);
  for (const ExprPtr& e :
       {where(past, s, minus_infinity), where(unary("not", past), minus_infinity, s),
        binary("+", s, where(past, real(0), minus_infinity)),
        binary("+", where(past, real(0), minus_infinity), s),
        binary("*", where(past, s, minus_infinity), real(1)),
        where(past, where(past, s, minus_infinity), minus_infinity)}) {
    const Score split = split_score(e);
    EXPECT_EQ(print(split.value), "s") << print(e);
    EXPECT_EQ(print(split.keep), "j <= i");
    EXPECT_FALSE(split.finite);
  }
}

TEST(SplitScore, large_finite_numbers_are_remembered_and_small_ones_are_scores) {
  EXPECT_TRUE(split_score(where(past, s, real(-1e9))).finite);
  EXPECT_TRUE(split_score(binary("+", s, where(past, real(0), real(-1e9)))).added);
  const Score bias = split_score(binary("+", s, where(past, real(0), real(-100))));
  EXPECT_EQ(print(bias.keep), "True");
  EXPECT_EQ(print(bias.value), "s + where(j <= i, 0, -100)");
}

TEST(SplitScore, two_branches_keep_their_own_predicates) {
  const ExprPtr near = binary("<", i, integer(4));
  const Score split =
      split_score(where(near, s, where(past, binary("*", s, real(2)), real(-HUGE_VAL))));
  EXPECT_EQ(print(split.value), "where(i < 4, s, s * 2)");
  EXPECT_EQ(print(split.keep), "i < 4 or j <= i");
}

TEST(SimplifyBounds, knows_that_an_index_is_below_its_extent) {
  const ExprPtr N = leaf(Kind::size, Type::integer, "N");
  const std::map<std::string, ExprPtr> extents = {{"j", N}, {"i", integer(8)}};
  EXPECT_EQ(print(simplify_bounds(binary("<", j, N), extents)), "True");
  EXPECT_EQ(print(simplify_bounds(binary("<=", integer(0), j), extents)), "True");
  EXPECT_EQ(print(simplify_bounds(binary("<", i, integer(8)), extents)), "True");
  EXPECT_EQ(print(simplify_bounds(binary("<", j, integer(0)), extents)), "False");
  EXPECT_EQ(print(simplify_bounds(binary("<", i, integer(7)), extents)), "i < 7");
  EXPECT_EQ(print(simplify_bounds(binary("<", j, integer(8)), extents)), "j < 8");
}

TEST(Elements, a_flat_index_is_taken_apart_where_the_bounds_allow_it) {
  Graph graph;
  Diagnostics diagnostics;
  Elements g(graph, diagnostics);
  const ExprPtr M = leaf(Kind::size, Type::integer, "M");
  const ExprPtr h = g.index("h", integer(8)),
                b = g.index("b", leaf(Kind::size, Type::integer, "B"));
  const ExprPtr row = g.index("i", M);
  const auto flat = binary("+", binary("*", b, integer(8)), h);
  EXPECT_EQ(print(g.split(flat, integer(8)).quotient), "b");
  EXPECT_EQ(print(g.split(flat, integer(8)).remainder), "h");
  // Over four instead of eight, h stays a quotient and a remainder.
  EXPECT_EQ(print(g.split(h, integer(4)).quotient), "h // 4");
  const auto symbolic = binary("+", binary("*", h, M), row);
  EXPECT_EQ(print(g.split(symbolic, M).quotient), "h");
  EXPECT_EQ(print(g.split(symbolic, M).remainder), "i");
  // No bound is known for b against M: nothing is dropped.
  EXPECT_EQ(print(g.split(binary("+", binary("*", h, M), b), M).remainder), "(b + M * h) % M");
}

TEST(Program, agrees_with_plain_evaluation_and_reads_out_of_range_as_nan) {
  Problem problem;
  problem.sizes = {{"N", 9}};
  problem.scalars = {{"t", 0.5}};
  Tensor prefix(Dtype::i32, {2});
  prefix.values = {3, 7};
  problem.tensors = {{"prefix", prefix}};
  const ExprPtr b = leaf(Kind::index, Type::integer, "b");
  const ExprPtr read_prefix = read("prefix", Type::integer, {b});
  const ExprPtr e = where(binary("or", past, binary("<", j, read_prefix)),
                          binary("*", unary("tanh", s), leaf(Kind::argument, Type::real, "t")),
                          binary("+", s, leaf(Kind::size, Type::integer, "N")));
  Program program(e, problem);
  for (int n = 0; n < 200; ++n) {
    Scope scope;
    scope.indices = {{"b", n % 2}, {"i", n % 5}, {"j", n % 11}, {"N", 9}};
    scope.scalars = problem.scalars;
    scope.scores[0] = n * 0.1;
    scope.read = [&](const std::string&, const std::vector<int64_t>& at) { return prefix.at(at); };
    Program::Inputs in{};
    in[Program::b] = n % 2;
    in[Program::i] = n % 5;
    in[Program::j] = n % 11;
    in[Program::score] = n * 0.1;
    ASSERT_EQ(program.run(in), evaluate(e, scope));
  }
  Program outside(read_prefix, problem);
  Program::Inputs in{};
  in[Program::b] = 2;
  EXPECT_TRUE(std::isnan(outside.run(in)));
}

}  // namespace
}  // namespace kw::spec
