// A provider seen from outside: which conversation asks, and when.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "models/providers/provider.h"

namespace kw::eval {

// Passes questions on under the number and stage of its conversation, which a transcript goes by,
// and writes down when each was asked. For one thread.
class Watched : public models::Provider {
 public:
  Watched(models::Provider& provider, std::string stage, int sample)
      : provider_(provider), stage_(std::move(stage)), sample_(sample) {}

  models::Answer ask(const models::Request& request,
                     const std::function<void(size_t)>& heard) override {
    asked_.push_back(Clock::now());
    models::Request numbered = request;
    numbered.stage = stage_;
    numbered.sample = sample_;
    return provider_.ask(numbered, heard);
  }

  // Seconds from question n, from 0, to the next one, or until now.
  double seconds(size_t n) const {
    if (n >= asked_.size()) return 0;
    const Clock::time_point end = n + 1 < asked_.size() ? asked_[n + 1] : Clock::now();
    return std::chrono::duration<double>(end - asked_[n]).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  models::Provider& provider_;
  const std::string stage_;
  const int sample_;
  std::vector<Clock::time_point> asked_;
};

}  // namespace kw::eval
