// Sizes that an argument alone has, a table's length: the exact reading has others than the
// goldens, so that neither the number nor a read beyond the end passes for what the function says.
#include <gtest/gtest.h>

#include "check/hand_captures.h"
#include "check/planted.h"
#include "check/trial.h"

namespace kw::check {
namespace {

using namespace spec;

// Beside the plain form's arguments a table of `length` in the goldens, read at `index`.
Capture with_table(const ExprPtr& index, int64_t length) {
  Form form = hand::plain_form();
  form.arguments.push_back(hand::tensor("table", Dtype::f32, {form.H, {"L", 0}}));
  form.arguments.push_back(hand::tensor("place", Dtype::i32, {form.N}));
  Term& t = form.terms[0];
  t.score = binary("+", t.score, read("table", Type::real, {hand::at("h"), index}));
  Capture capture = hand::capture_of(form);
  for (GoldenCase& golden : capture.cases) golden.sizes["L"] = length;
  return capture;
}

std::vector<int64_t> lengths_of(const Capture& capture) {
  std::vector<int64_t> out;
  for (const Case& c : make_exact_cases(capture, {})) out.push_back(c.sizes.at("L"));
  return out;
}

TEST(check, exact_cases_have_other_lengths_of_tables_than_goldens) {
  const ExprPtr j = hand::at("j"), length = leaf(Kind::size, Type::integer, "L");
  EXPECT_EQ(lengths_of(with_table(binary("%", j, length), 6000)),
            (std::vector<int64_t>{37, 6013, 37}));
  EXPECT_EQ(lengths_of(with_table(binary("%", j, length), 5)), (std::vector<int64_t>{5, 18, 5}));
  // Read at data, which are drawn for it as it is, it only grows.
  const ExprPtr place = read("place", Type::integer, {j});
  EXPECT_EQ(lengths_of(with_table(place, 6000)), (std::vector<int64_t>{6013, 6013, 6013}));
}

TEST(check, a_table_grows_to_what_the_function_reads) {
  const Capture capture = with_table(hand::at("j"), 6000);
  Diagnostics diagnostics;
  const Case c = make_exact_cases(capture, {})[0];
  const auto problem = problem_of(capture.form, c, diagnostics);
  ASSERT_TRUE(problem) << render(diagnostics);
  EXPECT_EQ(problem->sizes.at("L"), c.sizes.at("N"));
}

}  // namespace
}  // namespace kw::check
