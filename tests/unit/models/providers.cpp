// Providers from several threads: budgets that hold, numbers in a folder, transcripts in order.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "models/budget.h"
#include "models/providers/folder.h"
#include "models/providers/make_provider.h"
#include "models/providers/recorder.h"
#include "models/providers/replay.h"
#include "models/secret.h"
#include "support/files.h"
#include "support/process.h"
#include "support/source.h"

namespace kw::models {
namespace {

namespace fs = std::filesystem;

Request request(int sample, int attempt = 1) {
  Request r;
  r.stage = "transfer";
  r.user = "u";
  r.sample = sample;
  r.attempt = attempt;
  r.most_tokens = 1000;
  return r;
}

// Answers with its sample's number; later samples are first.
class Backwards : public Provider {
 public:
  explicit Backwards(int samples) : next_(samples) {}
  Answer ask(const Request& r, const std::function<void(size_t)>&) override {
    while (next_ != r.sample) std::this_thread::yield();
    return {"answer " + std::to_string(r.sample), "m"};
  }
  std::atomic<int> next_;
};

TEST(Recorder, AnswersInAnyOrderGiveOneTranscript) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "t.jsonl";
  constexpr int kSamples = 8;
  std::string as_it_came;
  {
    auto provider = std::make_unique<Backwards>(kSamples);
    Backwards& turns = *provider;
    Recorder recorder(std::move(provider), file);
    std::vector<std::jthread> threads;
    for (int s = 1; s <= kSamples; ++s)
      threads.emplace_back([&, s] {
        recorder.ask(request(s), {});
        --turns.next_;
      });
    threads.clear();
    as_it_came = read_source(file.string())->text;  // each was written when it was there
  }
  const std::vector<Record> records = read_transcript(file);
  ASSERT_EQ(records.size(), size_t{kSamples});
  for (int s = 1; s <= kSamples; ++s) EXPECT_EQ(records[s - 1].request.sample, s);
  EXPECT_EQ(as_it_came.size(), read_source(file.string())->text.size());
  EXPECT_NE(as_it_came, read_source(file.string())->text);
}

class Throwing : public Provider {
 public:
  Answer ask(const Request&, const std::function<void(size_t)>& heard) override {
    heard(1);
    throw ProviderError(ProviderError::Kind::server, "down");
  }
};

TEST(Recorder, ErrorsAreRecordedAndCancellationsAreNot) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "t.jsonl";
  {
    Recorder recorder(std::make_unique<Throwing>(), file);
    EXPECT_THROW(recorder.ask(request(1), [](size_t) {}), ProviderError);
    EXPECT_THROW(recorder.ask(request(2), [](size_t) { throw 42; }), int);
  }
  const std::vector<Record> records = read_transcript(file);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].error->kind, ProviderError::Kind::server);
}

TEST(Replay, RepeatedRequestsGetTheirAnswersInOrderAndThenNone) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "t.jsonl";
  std::ofstream(file) << to_line({request(1), Answer{"one", "m"}, {}}) << "\n"
                      << to_line({request(2), Answer{"other", "m"}, {}}) << "\n"
                      << to_line({request(1), Answer{"two", "m"}, {}}) << "\n";
  const auto replay = make_replay(file, std::make_shared<Budget>(Settings{}));
  EXPECT_EQ(replay->ask(request(1), {}).text, "one");
  EXPECT_EQ(replay->ask(request(2), {}).text, "other");
  EXPECT_EQ(replay->ask(request(1), {}).text, "two");
  try {
    replay->ask(request(1), {});
    FAIL();
  } catch (const ProviderError& e) {
    EXPECT_NE(std::string(e.what()).find("asked once more"), std::string::npos) << e.what();
  }
  try {
    replay->ask(request(1, 2), {});
    FAIL();
  } catch (const ProviderError& e) {
    EXPECT_NE(std::string(e.what()).find("'attempt' at byte 0: asked '2', recorded '1'"),
              std::string::npos)
        << e.what();
  }
}

TEST(Budget, ParallelRequestsNeverOverrunIt) {
  Settings s;
  s.budget_tokens = 10 * (1000 + guess(request(1)).tokens_in) + 500;
  Budget budget(s);
  std::atomic<int> open = 0, refused = 0;
  std::latch all(16);
  std::vector<std::jthread> threads;
  for (int k = 0; k < 16; ++k)
    threads.emplace_back([&] {
      try {
        const Budget::Hold hold = budget.hold(request(1));
        ++open;
        all.arrive_and_wait();
      } catch (const ProviderError&) {
        ++refused;
        all.arrive_and_wait();
      }
    });
  threads.clear();
  EXPECT_EQ(open, 10);
  EXPECT_EQ(refused, 6);
  budget.hold(request(1)).charge({9900, 0});  // what was held and not charged is free again
  EXPECT_THROW(budget.hold(request(1)).charge({1, 1}), ProviderError);
}

TEST(Folder, RequestsOfManyThreadsHaveNumbersOfTheirOwn) {
  const TemporaryFolder folder;
  const auto provider = make_folder(folder.path(), 0, std::make_shared<Budget>(Settings{}));
  {
    std::vector<std::jthread> threads;
    for (int s = 1; s <= 8; ++s)
      threads.emplace_back(
          [&, s] { EXPECT_THROW(provider->ask(request(s % 4), {}), ProviderError); });
  }
  std::set<std::string> pages;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    ++files;
    pages.insert(read_source(entry.path().string())->text);
  }
  EXPECT_EQ(files, 8);  // the same question twice is two questions
  EXPECT_EQ(pages.size(), 4u);
}

TEST(Folder, AFifoIsNoAnswerAndIsNotWaitedFor) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "001.request.md").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder.path() / "002.answer.md").c_str(), 0600), 0);
  const auto provider = make_folder(folder.path(), 0, std::make_shared<Budget>(Settings{}));
  EXPECT_THROW(provider->ask(request(1), {}), ProviderError);
  EXPECT_TRUE(fs::is_regular_file(folder.path() / "002.request.md"));
}

TEST(Secret, AChildDoesNotInheritIt) {
  setenv("KW_TEST_KEY", "k-123456789", 1);
  EXPECT_EQ(secret_of_environment("KW_TEST_KEY").reveal(), "k-123456789");
  EXPECT_EQ(run_process({"sh", "-c", "echo ${KW_TEST_KEY-gone}"}).out, "gone\n");
  EXPECT_EQ(secret_of_environment("KW_TEST_KEY").reveal(), "k-123456789");  // a second provider
}

TEST(MakeProvider, GivesWhatTheOptionsName) {
  const TemporaryFolder folder;
  Options options;
  EXPECT_FALSE(options.given());
  options.said["api"] = "folder:" + (folder.path() / "f").string();
  EXPECT_TRUE(options.given());
  EXPECT_THROW(make_provider(options)->ask(request(1), {}), ProviderError);
  EXPECT_TRUE(fs::exists(folder.path() / "f/001.request.md"));
}

}  // namespace
}  // namespace kw::models
