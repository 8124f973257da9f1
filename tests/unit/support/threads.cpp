#include "support/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace kw {
namespace {

TEST(Threads, run_the_work_as_often_as_asked) {
  for (int threads : {-1, 0, 1, 5}) {
    std::atomic<int> ran{0};
    on_threads(threads, [&] { ++ran; });
    EXPECT_EQ(ran, std::max(threads, 1));
  }
}

TEST(Threads, give_the_caller_what_any_of_them_throws_when_all_have_ended) {
  for (int thrower = 0; thrower < 4; ++thrower) {
    std::atomic<int> next{0}, ran{0};
    const auto work = [&] {
      for (int n = next++; n < 64; n = next++) {
        if (n % 4 == thrower && n < 8) throw std::runtime_error("of work");
        ++ran;
      }
    };
    EXPECT_THROW(on_threads(4, work), std::runtime_error);
    EXPECT_EQ(ran, 62);  // two of the four have ended early
  }
}

TEST(Threads, all_of_which_throw_are_one_error) {
  EXPECT_THROW(on_threads(4, [] { throw std::runtime_error("of each"); }), std::runtime_error);
}

}  // namespace
}  // namespace kw
