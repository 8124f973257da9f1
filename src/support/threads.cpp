#include "support/threads.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kw {

void on_threads(int threads, const std::function<void()>& work) {
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto guarded = [&]() noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;  // joined also where one of them cannot begin
    for (int t = 1; t < threads; ++t) others.emplace_back(guarded);
    guarded();
  }
  if (thrown) std::rethrow_exception(thrown);
}

void each_on_threads(int threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  on_threads(threads, [&] {
    for (size_t n = next++; n < count; n = next++) work(n);
  });
}

}  // namespace kw
