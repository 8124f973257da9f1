// All samples of all arms, side by side; each is a conversation of its own.
#include <atomic>
#include <mutex>
#include <optional>

#include "eval/eval.h"
#include "support/threads.h"

namespace kw::eval {

std::string_view name(Arm arm) {
  static constexpr std::string_view names[] = {"cuda", "tl", "one-step", "two-steps", "cute"};
  return names[static_cast<size_t>(arm)];
}

bool edits(Arm arm) { return arm == Arm::cuda || arm == Arm::tl; }

bool passed(const Conversation& conversation) {
  return !conversation.empty() && conversation.back().code.empty() && conversation.back().whole;
}

bool undecided(const Conversation& conversation) {
  return !conversation.empty() && conversation.back().code.ends_with(".inconclusive");
}

bool measure(const std::string& function, const Converse& converse, models::Provider& provider,
             const Options& options, std::vector<Measured>& all, Diagnostics& diagnostics) {
  const size_t first = all.size();
  for (const Arm arm : options.arms)
    all.push_back({function, arm, std::vector<Conversation>(options.samples)});
  const int count = static_cast<int>(options.arms.size()) * options.samples;
  std::atomic<int> next{0};
  std::mutex mutex;
  std::optional<models::ProviderError> unanswered;
  Diagnostics found;
  const auto work = [&] {
    for (int n = next++; n < count; n = next++) {
      Measured& row = all[first + n / options.samples];
      Watched own(provider, "eval." + std::string(name(row.arm)), n % options.samples + 1);
      Diagnostics said;
      try {
        row.samples[n % options.samples] = converse(row.arm, own, said);
      } catch (const models::ProviderError& e) {
        const std::lock_guard lock(mutex);
        if (!unanswered) unanswered = e;
      }
      const std::lock_guard lock(mutex);
      if (said.has_errors() && !found.has_errors()) found = said;
      if (unanswered || found.has_errors()) next = count;  // the rest would end likewise
    }
  };
  on_threads(std::min(options.jobs, count), work);
  if (unanswered) throw *unanswered;
  for (const Diagnostic& d : found.all()) diagnostics.add(d);
  return !found.has_errors();
}

}  // namespace kw::eval
