#include "models/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::models {
namespace {

constexpr size_t kBytesPerToken = 3;
constexpr long kAroundMessages = 32;

Usage operator+(Usage a, Usage b) {
  return {a.tokens_in + b.tokens_in, a.tokens_out + b.tokens_out};
}
Usage operator-(Usage a, Usage b) {
  return {a.tokens_in - b.tokens_in, a.tokens_out - b.tokens_out};
}

}  // namespace

long guess_tokens(size_t bytes) {
  return static_cast<long>((bytes + kBytesPerToken - 1) / kBytesPerToken);
}

Usage guess(const Request& request) {
  const size_t schema = request.schema.is_null() ? 0 : request.schema.dump().size();
  return {guess_tokens(request.system.size() + request.user.size() + schema) + kAroundMessages,
          request.most_tokens};
}

Budget::Budget(const Settings& s)
    : calls_(s.budget_calls),
      tokens_(s.budget_tokens),
      dollars_(s.budget_dollars),
      price_in_(std::max(0.0, s.price_in)),
      price_out_(std::max(0.0, s.price_out)) {}

double Budget::dollars(Usage used) const {
  return (used.tokens_in * price_in_ + used.tokens_out * price_out_) / 1e6;
}

Budget::Hold Budget::hold(const Request& request) {
  const std::lock_guard lock(mutex_);
  const Usage most = guess(request), then = used_ + held_ + most;
  const auto refuse = [](const std::string& line) {
    throw ProviderError(ProviderError::Kind::budget, line);
  };
  if (calls_ > 0 && calls_made_ >= calls_)
    refuse(fmt::format("{} requests are made, and the budget is {}: raise --budget-calls",
                       calls_made_, calls_));
  const long tokens = then.tokens_in + then.tokens_out,
             most_tokens = most.tokens_in + most.tokens_out;
  if (tokens_ > 0 && tokens > tokens_)
    refuse(
        fmt::format("{} tokens are used or set aside, the next request may take {}, and the "
                    "budget is {}: raise --budget-tokens",
                    tokens - most_tokens, most_tokens, tokens_));
  if (dollars_ > 0 && dollars(then) > dollars_)
    refuse(
        fmt::format("{:.4f} dollars are spent or set aside, the next request may cost {:.4f}, "
                    "and the budget is {}: raise --budget-dollars",
                    dollars(then) - dollars(most), dollars(most), dollars_));
  ++calls_made_;
  held_ = held_ + most;
  return {*this, most};
}

Budget::Hold::~Hold() {
  if (!open_) return;
  const std::lock_guard lock(budget_.mutex_);
  budget_.held_ = budget_.held_ - most_;
}

double Budget::Hold::charge(Usage used) {
  const std::lock_guard lock(budget_.mutex_);
  open_ = false;
  budget_.held_ = budget_.held_ - most_;
  budget_.used_ = budget_.used_ + used;
  return budget_.dollars(used);
}

}  // namespace kw::models
