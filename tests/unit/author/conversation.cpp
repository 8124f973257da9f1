// A conversation's budget is that of all its steps, whoever answers.
#include "author/conversation.h"

#include <gtest/gtest.h>

namespace kw::author {
namespace {

// Says the same to everything, and keeps what it was asked.
class Says : public models::Provider {
 public:
  explicit Says(std::string text) : text_(std::move(text)) {}
  models::Answer ask(const models::Request& request,
                     const std::function<void(size_t)>& heard) override {
    asked.push_back(request);
    heard(text_.size());
    return {text_, "somebody"};
  }
  std::vector<models::Request> asked;

 private:
  std::string text_;
};

const Prompt kPrompt{"About {{what}}.", "{{feedback}}"};
Question question(const char* step) { return {step, kPrompt, {{"what", "tiles"}}, {}, nullptr}; }

// Refuses the first `times` answers.
Judge refusing(int times) {
  return [left = times](const models::Answer& answer) mutable {
    if (left-- <= 0) return Judged{};
    return Judged{{"law.C1", "it has no end"}, "line 3", answer.text};
  };
}

TEST(AuthorConversation, StepsShareTheirAttempts) {
  Says says("yes");
  Conversation talk(says, {3, 0, 100});
  Diagnostics d;
  EXPECT_TRUE(talk.ask(question("sketch"), refusing(1), d));
  EXPECT_FALSE(talk.ask(question("tiles"), refusing(5), d));
  ASSERT_EQ(says.asked.size(), 3u);
  EXPECT_EQ(says.asked[2].stage, "tiles");
  EXPECT_EQ(says.asked[2].attempt, 3);
  EXPECT_EQ(says.asked[2].system, "About tiles.");
  // A step begins without the refusals of the one before it.
  EXPECT_EQ(says.asked[2].user, "This is the first attempt.");
  EXPECT_NE(says.asked[1].user.find("The last answer was:\n\nyes"), std::string::npos);
  EXPECT_NE(says.asked[1].user.find("law.C1: it has no end\n\n```\nline 3\n```"),
            std::string::npos);
  EXPECT_EQ(count_refusals(talk.attempts()), "3 attempts: 2 law.C1");
  EXPECT_FALSE(d.has_errors());
}

TEST(AuthorConversation, TokensEndIt) {
  Says says(std::string(4000, 'x'));  // about a thousand tokens
  Conversation talk(says, {9, 4000, 5000});
  Diagnostics d;
  EXPECT_FALSE(talk.ask(question("kernel"), refusing(9), d));
  EXPECT_EQ(says.asked.size(), 2u);
  ASSERT_EQ(talk.attempts().size(), 3u);
  EXPECT_EQ(talk.attempts()[2].refusal.code, "budget.tokens");
  EXPECT_FALSE(talk.attempts()[2].answered);
  EXPECT_LT(says.asked[1].most_tokens, says.asked[0].most_tokens);
}

TEST(AuthorConversation, AnEndlessAnswerIsRefused) {
  Says says(std::string(propose::kMostBytes + 1, 'x'));
  Conversation talk(says, {1, 0, 5000});
  Diagnostics d;
  EXPECT_FALSE(talk.ask(question("kernel"), refusing(0), d));
  EXPECT_EQ(talk.attempts()[0].refusal.code, "answer.size");
}

TEST(AuthorConversation, AnUnknownSlotIsReported) {
  Says says("yes");
  Conversation talk(says, {1, 0, 5000});
  const Prompt broken{"About {{who}}.", "{{feedback}}"};
  Diagnostics d;
  EXPECT_FALSE(talk.ask({"kernel", broken, {{"what", "tiles"}}, {}, nullptr}, refusing(0), d));
  EXPECT_TRUE(d.has_errors());
  EXPECT_TRUE(says.asked.empty());
}

}  // namespace
}  // namespace kw::author
