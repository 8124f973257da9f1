// The schedules reading: is a program right in every order that its agents can run in?
//
// What is decided: no two accesses of shared memory race, every wait and arrival belongs to one
// definite phase in all orders, nobody waits for ever, what is read has come and is initialised,
// nothing is overwritten before it is released, fences between the generic and the asynchronous
// proxy are there, the CTAs of a cluster begin and end together, no work is under way at the end,
// and registers are left alone while a product owns them. Then the program has one outcome, and
// the values reading, which runs one order, has computed it.
//
// For which launches: *instances*, sequences of blocks that real launches of the program contain,
// and from there all (closure.h). A block's number of key blocks is looked at up to 8 and
// beyond only as a repetition.
//
// Findings are Diagnostics with codes "schedule.<what>", each with the statement and the other one:
//   race · deadlock · not_arrived: read before the copy has come · overwrite: before its release ·
//   phase: a waiter that may be two phases behind · arrival: one that may count for another phase,
//   or one too many · fence · cluster: a CTA that may not have begun or may have ended · exit: work
//   under way at the end · uninitialised · stale: another use than the one read · in_flight
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "exec/exec.h"

namespace kw::exec {

struct ScheduleOptions {
  bool close = true;         // from the instances to all sequences of blocks
  int tiles = 16;            // of queries and keys, at most, in the launches that are looked at
  bool explore = false;      // and the exhaustive checker on small instances
  int most_states = 40'000;  // of the closure
  int threads = 2;           // that follow its states; the result does not depend on them
  int64_t most_explored = 2'000'000;
  std::map<std::string, int64_t> params;  // overrides of `param`s and toggles
};

struct ScheduleReport {
  std::vector<Diagnostic> findings;  // empty, or one
  std::string unable;                // why nothing could be said, where nothing could
  int agents = 0;
  int64_t events = 0;  // of all instances
  std::vector<std::string> instances;
  int profiles = 0;        // kinds of blocks
  int states = 0;          // of the closure, over sequences of blocks
  bool closed = false;     // all sequences of those kinds of blocks
  int period = 0;          // key blocks after which a long block repeats; 0: it was not seen to
  bool bounded = false;    // a block of many more keys does what one of those kinds does
  std::string not_closed;  // why not
  std::map<const tl::Stmt*, int64_t> turns;  // of each loop, the most in a kind of block
  std::set<const tl::Stmt*> repeated;        // loops of which more turns are repetitions
  std::string longer;        // a loop that may make more turns than that, and does not repeat
  int64_t explored = 0;      // states of the exhaustive checker
  bool cut = false;          // it stopped at most_explored
  int64_t queue_states = 0;  // of the counter that hands out blocks, explored over clusters
  double seconds = 0;

  bool holds() const { return findings.empty() && unable.empty(); }
  // Whatever the number of key blocks.
  bool any_length() const { return (period > 0 || bounded) && longer.empty(); }
};

ScheduleReport check_schedules(const tl::Program& program, const ScheduleOptions& options = {});

// Both checkers on the same small instances: what each says, for tests that hold them against each
// other. `agents`: how many agents stand for a warpgroup's four warps.
struct ScheduleAgreement {
  std::string clocks, explored;  // codes; empty: nothing found
  std::string walk;              // what the walk itself refused
  int64_t states = 0;
  bool cut = false;
  bool agree() const { return cut || clocks.empty() == explored.empty(); }
};
ScheduleAgreement compare_checkers(const tl::Program& program,
                                   const std::map<std::string, int64_t>& params,
                                   const std::vector<size_t>& sequence, int agents, int64_t most);

// A number for all that the agents of a program do to shared memory and barriers in the blocks that
// are looked at: programs with the same one act alike. 0 where nothing can be said.
uint64_t schedule_signature(const tl::Program& program);

// One line for a person.
std::string print(const ScheduleReport& report);
nlohmann::json to_json(const ScheduleReport& report);

}  // namespace kw::exec
