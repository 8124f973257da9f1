// The loop's check: quick, of all three readings, on inputs of its own.
#pragma once
#include <string>

#include "check/check.h"
#include "propose/answer.h"

namespace kw::propose {

struct Judged {
  Refusal refusal;      // empty: it holds. check.refuted, check.inconclusive, check.invalid
  std::string details;  // the counterexample as a person reads it
};

// Quick, with schedules, on inputs of its own (check::Options::rehearsal).
check::Options rehearsal_check();

Judged rehearse(const tl::Program& program, const spec::Capture& capture,
                const check::Options& options);

}  // namespace kw::propose
