// The solver: what is proved, what is not and where, and what it says when it cannot.
#include "proofs/solver/solver.h"

#include <gtest/gtest.h>

namespace kw::proofs {
namespace {

constexpr int64_t kEnough = 1'000'000;

Solver loaded() {
  Solver solver;
  EXPECT_TRUE(solver.load(Solver::candidates())) << solver.why();
  return solver;
}

Question about_n(const std::string& claim) {
  return {{"(declare-const N Int)"}, {"(>= N 1)"}, claim, {"N"}};
}

TEST(TheSolver, proves_what_holds_for_every_number) {
  const Reply r = loaded().ask(about_n("(>= (* 2 N) 2)"), kEnough);
  EXPECT_EQ(r.answer, Answer::proved) << r.why;
}

TEST(TheSolver, shows_where_a_claim_is_wrong) {
  Question q = about_n("(not (= (- 3 N) (- 4)))");
  q.declarations.push_back("(declare-const less Int)");
  q.premises.push_back("(= less (- 3 N))");
  q.shown.push_back("less");
  const Reply r = loaded().ask(q, kEnough);
  ASSERT_EQ(r.answer, Answer::refuted) << r.why;
  EXPECT_EQ(r.values, (std::vector<std::string>{"7", "-4"}));
}

TEST(TheSolver, says_what_it_cannot_read) {
  const Reply r = loaded().ask(about_n("(>= M 1)"), kEnough);
  EXPECT_EQ(r.answer, Answer::unknown);
  EXPECT_NE(r.why.find("M"), std::string::npos) << r.why;
}

TEST(TheSolver, gives_up_after_its_effort) {
  // No cubes of positive integers add up to a cube.
  const Question hard = {
      {"(declare-const a Int)", "(declare-const b Int)", "(declare-const c Int)"},
      {"(> a 0)", "(> b 0)", "(> c 0)"},
      "(not (= (+ (* a a a) (* b b b)) (* c c c)))",
      {}};
  const Reply r = loaded().ask(hard, 300'000);
  EXPECT_EQ(r.answer, Answer::unknown);
  EXPECT_EQ(r.why, "it was not decided with this effort");
}

TEST(TheSolver, says_why_there_is_none) {
  Solver solver;
  EXPECT_FALSE(solver.load({"/nowhere/libz3.so"}));
  EXPECT_NE(solver.why().find("/nowhere/libz3.so"), std::string::npos);
  EXPECT_EQ(solver.ask(about_n("true"), kEnough).answer, Answer::unknown);
}

}  // namespace
}  // namespace kw::proofs
