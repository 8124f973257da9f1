// Times the candidates of a tuning folder beside each other, on one GPU.
//
// Each candidate is first held against prove.json's cases, then launched on the timed case's inputs
// (drawn, not zeros: power, and so the clock, follows the data) and its outputs compared with those
// of the first candidate that was right. What differs is wrong and is not timed. Then come the
// rounds, interleaved, each in an order of its own from a fixed seed, as docs/measuring.md has it:
// a candidate's turn is 150 ms alone, untimed, in its own heat, and then 200 ms between two events,
// with launches queued in batches of about 10 ms, of which the older of two is waited for.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/launch/driver_api.h"

namespace kw::runtime {

struct TimingOptions {
  int rounds = 5;
  double settle_ms = 150, stretch_ms = 200, batch_ms = 10;
  uint64_t seed = 1;
};

// Whoever supervises gets an event for each step, so that it knows whose fault a hang is:
//   {"begin": NAME}                                        what follows is about this candidate
//   {"judged": NAME, "verdict": "ok" | "wrong" | "crashed", "why": TEXT}
//   {"time": NAME, "ms": MS}                               one launch of a round, in order
using SendEvent = std::function<void(const nlohmann::json&)>;

// `names` are the candidates to time. Returns false when the context was lost, after a candidate
// was judged crashed: the process is of no further use. Reports what keeps all of them from being
// timed (launch.*, prove.json, driver.call).
bool time_candidates(const std::shared_ptr<const Driver>& driver, const std::string& folder,
                     const std::vector<std::string>& names, const TimingOptions& options,
                     const SendEvent& send, Diagnostics& diagnostics);

}  // namespace kw::runtime
