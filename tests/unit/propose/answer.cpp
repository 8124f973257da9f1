// What an answer may be: every way in which it may be no answer has a code and a sentence.
#include "propose/answer.h"

#include <gtest/gtest.h>

#include <functional>

namespace kw::propose {
namespace {

constexpr const char* kGood =
    R"({"why": "causal", "edits": [{"op": "replace", "first": 3, "last": 4, "expect": "count t",)"
    R"( "text": ["    count u"]}]})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  text.replace(text.find(from), from.size(), to);
  return text;
}

Refusal refusal_of(const std::string& text, bool complete = true) {
  Refusal refusal;
  EXPECT_FALSE(read_answer({text, "by hand", complete}, refusal)) << text;
  EXPECT_EQ(refusal.sentence.find('\n'), std::string::npos) << refusal.sentence;
  return refusal;
}

TEST(Answer, that_is_right_is_read) {
  Refusal refusal;
  const auto edits = read_answer({kGood, "by hand"}, refusal);
  ASSERT_TRUE(edits) << refusal.sentence;
  EXPECT_EQ(edits->why, "causal");
  ASSERT_EQ(edits->edits.size(), 1u);
  EXPECT_EQ(edits->edits[0].kind, EditKind::replace);
  EXPECT_EQ(edits->edits[0].first, 3);
  EXPECT_EQ(edits->edits[0].last, 4);
  EXPECT_EQ(edits->edits[0].expect, "count t");
  EXPECT_EQ(edits->edits[0].text, std::vector<std::string>{"    count u"});
  EXPECT_EQ(nlohmann::json(to_json(*edits)), nlohmann::json::parse(kGood));
}

TEST(Answer, in_any_order_of_properties_and_with_any_spaces_is_the_same) {
  Refusal refusal;
  const auto spaced =
      read_answer({"\n" + nlohmann::json::parse(kGood).dump(3) + "\r\n", "by hand"}, refusal);
  ASSERT_TRUE(spaced);
  EXPECT_EQ(nlohmann::json(to_json(*spaced)), nlohmann::json::parse(kGood));
}

struct Case {
  const char *name, *text, *code, *part;
};

class Refused : public testing::TestWithParam<Case> {};
TEST_P(Refused, says_where_and_what_is_due) {
  const Refusal refusal = refusal_of(GetParam().text);
  EXPECT_EQ(refusal.code, GetParam().code) << refusal.sentence;
  EXPECT_NE(refusal.sentence.find(GetParam().part), std::string::npos) << refusal.sentence;
}
INSTANTIATE_TEST_SUITE_P(
    Answer, Refused,
    testing::Values(
        Case{"empty", "", "answer.empty", "empty"},
        Case{"blank", " \n\t ", "answer.empty", "empty"},
        Case{"prose", "Here is the kernel.", "answer.json", "from byte"},
        Case{"fenced", "```json\n{}\n```", "answer.json", "byte 1"},
        Case{"more_after", "{} {}", "answer.json", "byte"},
        Case{"cut_off", R"({"why": "a", "edits": [{"op": )", "answer.json", "byte"},
        Case{"not_utf8", "{\"why\": \"\xff\", \"edits\": []}", "answer.utf8", "byte 9"},
        Case{"surrogate", "{\"why\": \"\xed\xa0\x80\", \"edits\": []}", "answer.utf8", "byte 9"},
        Case{"twice", R"({"why": "a", "why": "b", "edits": []})", "answer.json", "twice"},
        Case{"nested", R"({"why": [[[[[[[[[[1]]]]]]]]]], "edits": []})", "answer.json", "deeper"},
        Case{"list", "[]", "answer.schema", "an object is due"},
        Case{"no_why", R"({"edits": []})", "answer.schema", "lacks the property \"why\""},
        Case{"verdict", R"({"why": "a", "edits": [], "verdict": "holds"})", "answer.schema",
             "\"verdict\""},
        Case{"check", R"({"why": "a", "edits": [], "check": {"cases": 0}})", "answer.schema",
             "nothing else"},
        Case{"file",
             R"({"why": "a", "edits": [{"file": "src/check/check.cpp", "op": "delete", "first": 1,
                 "last": 1, "expect": "", "text": []}]})",
             "answer.schema", "/edits/0 has the property \"file\""},
        Case{"other_op",
             R"({"why": "a", "edits": [{"op": "run", "first": 1, "last": 1, "expect": "",
                 "text": []}]})",
             "answer.schema", "/edits/0/op is \"run\""},
        Case{"real_line",
             R"({"why": "a", "edits": [{"op": "delete", "first": 1.5, "last": 1, "expect": "",
                 "text": []}]})",
             "answer.schema", "an integer is due"},
        Case{"text_of_numbers",
             R"({"why": "a", "edits": [{"op": "replace", "first": 1, "last": 1, "expect": "",
                 "text": [1]}]})",
             "answer.schema", "/edits/0/text/0 is 1, a string is due"}),
    [](const auto& info) { return info.param.name; });

TEST(Answer, that_was_cut_off_is_refused_even_if_it_is_json) {
  EXPECT_EQ(refusal_of(kGood, false).code, "answer.truncated");
}

TEST(Answer, is_read_up_to_its_limit) {
  EXPECT_EQ(refusal_of(std::string(kMostBytes + 1, ' ')).code, "answer.size");
  Refusal refusal;
  EXPECT_TRUE(
      read_answer({kGood + std::string(kMostBytes - std::string(kGood).size(), ' '), ""}, refusal));
}

TEST(Answer, names_lines_that_no_program_has_without_wrapping_around) {
  Refusal refusal;
  const auto far = read_answer({with("\"first\": 3", "\"first\": 4294967299"), ""}, refusal);
  ASSERT_TRUE(far);
  EXPECT_GT(far->edits[0].first, 100'000);
  const auto farther = read_answer({with("\"last\": 4", "\"last\": -18446744073"), ""}, refusal);
  ASSERT_TRUE(farther);
  EXPECT_LT(farther->edits[0].last, 0);
}

// What strict endpoints ask of a schema, at every object of it.
void expect_strict(const nlohmann::json& schema) {
  if (schema["type"] == "array") return expect_strict(schema["items"]);
  if (schema["type"] != "object") return;
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["required"].size(), schema["properties"].size());
  for (const auto& [name, one] : schema["properties"].items()) {
    EXPECT_NE(std::find(schema["required"].begin(), schema["required"].end(), name),
              schema["required"].end());
    expect_strict(one);
  }
}

TEST(Schema, requires_every_property_and_allows_no_other) { expect_strict(answer_schema()); }

}  // namespace
}  // namespace kw::propose
