// What all requests of a provider together may cost.
//
// Requests run in parallel, so each first sets aside the most that it may cost, and gives back what
// it did not use; the budget is never overrun, save by prompts whose size was guessed too low. One
// token is taken to be three bytes of text where no endpoint has counted.
#pragma once
#include <mutex>

#include "models/providers/provider.h"
#include "models/settings.h"

namespace kw::models {

// As an endpoint counts, or as guessed.
struct Usage {
  long tokens_in = 0, tokens_out = 0;
};

class Budget {
 public:
  explicit Budget(const Settings& settings);

  // One request, from before it is sent until its cost is known.
  class Hold {
   public:
    Hold(Budget& budget, Usage most) : budget_(budget), most_(most) {}
    ~Hold();  // nothing was charged: nothing was used
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    // What it cost. Returns the dollars: 0 where no price is known.
    double charge(Usage used);

   private:
    Budget& budget_;
    Usage most_;
    bool open_ = true;
  };

  // Throws ProviderError (budget) when the request could overrun what is left; `budget_calls`
  // counts every hold.
  Hold hold(const Request& request);

  double dollars(Usage used) const;

 private:
  const long calls_, tokens_;
  const double dollars_, price_in_, price_out_;
  std::mutex mutex_;
  long calls_made_ = 0;
  Usage used_, held_;
};

// Three bytes a token, and a few tokens around each message.
Usage guess(const Request& request);
long guess_tokens(size_t bytes);

}  // namespace kw::models
