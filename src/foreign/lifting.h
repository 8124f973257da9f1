// Lift by a model: three questions about a foreign kernel, and the checker's verdict on the answer.
//
// The program that comes of it must obey the laws of TL and compute the reference semantics, the
// function that the source kernel is said to compute: values, exact formula, every schedule. On a
// GPU it is held against the source kernel's own output besides (docs/llm/foreign.md). State is
// saved after each answer that was taken, so that a lift which ended early goes on where it was.
#pragma once
#include <functional>

#include "check/check.h"
#include "foreign/ask.h"
#include "foreign/lift.h"

namespace kw::foreign {

// The files prompts/foreign.*.md.
struct LiftPrompts {
  std::string system, notes, regions, parts;
};

struct LiftTask {
  const Description& description;
  const Sources& sources;
  const spec::Capture& reference;  // what the source kernel computes
  const LiftPrompts& prompts;
  check::Effort effort = check::Effort::usual;
};

struct Lifted {
  bool holds = false;
  check::Report report;  // of the last check that ran
};

// Goes on from `lift`; `save` is called whenever it has changed. Reports prompt.slot.
Lifted lift_on(const LiftTask& task, Lift& lift, Asker& asker, const std::function<void()>& save,
               Diagnostics& diagnostics);

// The program of a lift that is complete and obeys the laws; else why not: lift.missing, tl.syntax,
// lift.canonical (a line is not as it is printed), the number of a law.
std::optional<tl::Program> program_of(const Lift& lift, Complaint& complaint);

}  // namespace kw::foreign
