// The self-test of what runs on a CPU: wrong programs that check must not accept, right ones that
// it must.
//
// The programs are tests/wrong/*/*.edit of the corpus (wrong numbers, wrong masks, and
// orchestration: waits, arrivals, releases and fences that are missing, late or of another barrier)
// and tests/wrong/right/*.edit. Every tool build runs it once (support/self_test_record.h): `make`
// and `check` certify nothing after a failed one, and say so when there was none.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "driver/environment/home.h"

namespace kw::driver {

struct CpuSelfTest {
  int wrong = 0, right = 0;            // programs that ran
  std::vector<std::string> surprises;  // "NAME: what it should have been, what it was"
  double seconds = 0;
};

// Every step-th wrong program, in the order of their names; 1 is all. Reports edit.* and
// self_test.programs when there are none.
std::optional<CpuSelfTest> run_cpu_self_test(const Home& home, int step,
                                             const std::function<void(const std::string&)>& say,
                                             Diagnostics& diagnostics);

nlohmann::json to_json(const CpuSelfTest& result);

// What a stage says of the self-test of this build: empty when it has passed.
std::string cpu_doubt();
// Reports self_test.failed and returns false where it has failed: nothing may then be certified.
bool may_certify(Diagnostics& diagnostics);

}  // namespace kw::driver
