// The verdict on a TL program: does it compute what the user's function means?
//
// The program must obey the laws of TL. It runs on the executor; the truth is the captured form in
// fp64. The cases are the capture's golden ones and a few larger shapes, so that every ring turns
// over. Of each run:
//   - no fault: no deadlock, no early read, no false origin (exec/exec.h lists them);
//   - every key block that a row skips keeps nothing, and every one without a mask keeps
//     everything, by the keep predicate evaluated densely;
//   - every row of the output is within the accepted error, 2 * max(the error of the user's own
//     function on that row, half an ulp of the output type), relative L2 (of a row that vanishes in
//     the output's type, relative to the least: num/compare.h); a row without a key is 0;
//   - the log of the sum of exponentials, where the program gives it, within 1e-4 + 1e-5 |lse|
//     (fp32, scores up to a few hundred); -inf without a key.
// What the one order of a run cannot show is decided next to it, by the schedules reading: no race,
// no deadlock, no missing fence in any order of the agents. A finding there refutes, too.
//
// The evaluator itself is first held against PyTorch's goldens (x = x).
//
// What holds so is read again in the exact algebra (num/exact.h), where rounding does not exist and
// no tolerance is needed: on a few small cases every element of the output and every log-sum must
// be the very one that the form gives. A difference refutes, unless an opaque operation is on its
// path: then the check is inconclusive. Each case is drawn until the probability that a difference
// was missed is at most 2^-100, in a quick check 2^-50 (docs/soundness.md).
//
// Heads. Head counts are constants of a form and sizes of a program. A case runs two groups of
// heads (the golden ones), each with the key head it shares and up to four of its query heads,
// through the same program with H and G made smaller, the group's ratio kept where it is at most
// four. That is sound where the form uses a head's number only to choose elements of its arguments
// (slopes[h]): a kernel cannot then tell a head from its place. Where a score or mask computes with
// h, every case runs all heads; the smallest case always does. An argument with a dimension of
// heads says so by the letter H (or G) in the program's signature.
//
// A refutation is made small (batch, heads, queries, keys, greedily) and run once more with an
// observer that compares at statements: scores after a product, scores after the maps, weights,
// sums and accumulators against the reference at hand. The first that differs is named.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "operator/capture/capture.h"
#include "proofs/proofs.h"
#include "schedules/schedule.h"
#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::check {

enum class Verdict { holds, refuted, inconclusive, invalid };
std::string_view name(Verdict v);

// For which launches a verdict "holds" was found: all of them, where the schedules reading closed
// its instances over every sequence of blocks and number of key blocks, and the solver proved what
// the program does with integers; for the sizes and data that ran, where an obligation is open or a
// number of the specification was not reached (turning_points.h); those that the schedules
// explored, where they could not be closed; or as many as one order of the agents shows, where they
// did not run.
enum class Scope { every_launch, sizes_that_ran, explored, one_order };
std::string_view name(Scope s);  // "every launch", "the launches explored", ...

// quick: an edit's first answer, in seconds: few cases, no schedules. full: and the exhaustive
// checker of schedules. The report and the certificate say which it was.
enum class Effort { quick, usual, full };
std::string_view name(Effort e);  // "quick", "default", "full"

struct Options {
  Effort effort = Effort::usual;
  bool laws = true;                  // a program that breaks a law is invalid and does not run
  bool values = true, exact = true;  // which readings run
  int cases = 64;                    // of the values reading, at most
  int64_t scores = 64'000'000;       // of all of them together, above which there are fewer
  // And of the cases around the numbers that the program and the form are written with
  // (turning_points.h).
  int64_t further_scores = 24'000'000;
  int exact_cases = 3;
  double missed = 0x1p-100;  // with which probability the exact reading may miss a difference
  int threads = 2;
  int self_check_step = 3;  // every n-th golden case is held against the evaluator; 0: none
  bool shrink = true;
  bool examine = true;             // whether the cases see numbers that are changed (unseen.h)
  bool leave_out = false;          // and statements that are not there
  bool proofs = true;              // what is done with integers, for every size (proofs/proofs.h)
  bool require_proof = false;      // what is not proved for every launch is inconclusive
  bool schedules = true;           // every order in which the agents can run (schedules/schedule.h)
  bool explore_schedules = false;  // and the exhaustive checker beside it
  // Not 0: a check whose findings go to who proposed the program. It draws inputs of its own, by
  // this number, and none of the golden ones, so that those of a verdict stay unseen.
  uint64_t rehearsal = 0;
};

Options options_for(Effort effort);

struct Counterexample {
  std::map<std::string, int64_t> sizes;
  int64_t heads = 0, key_heads = 0;  // how many the program ran with
  std::string output;                // "o", "lse", "key blocks" or the fault's code
  bool exact = false;                // in the exact reading, where values do not count
  int64_t b = -1, h = -1, i = -1;    // the row; h is the user's head
  std::vector<double> got, want;     // the worst elements first, at most four
  std::vector<int64_t> columns;      // which they are
  double error = 0, allowed = 0;
  std::string message;  // what disagrees, in a sentence
  // The first statement whose value already differs: its text, its line in the program's canonical
  // text, and the place it was read from (a .tl file or a CUDA source), if it was.
  std::string statement;
  int line = 0;
  Span span;
  std::string difference;  // what differs there
};

// What the exact reading did.
struct ExactReport {
  bool ran = false;
  std::string not_run;              // why not
  std::vector<std::string> shapes;  // of the cases that ran, with their seeds
  int cases = 0, runs = 0;          // runs: of all cases, each with primes and a seed of its own
  int rows = 0;                     // compared, in all runs
  // For a program that differs on one of the cases, the probability that no run of it showed it.
  double error_bound = 1;
  std::string opaque;  // which operations some result depends on: "order, root"
  // Where integers become reals: whether program and function are one formula of any integers in
  // their places, and with these numbers of the function's scores made small in both
  // (made_small.h). And else with what they are not: "integers drawn as data are".
  bool general = false;
  std::vector<int64_t> made_small;
  std::string apart;
  double seconds = 0;
};

// What the cases would not see of it (unseen.h).
struct Unseen {
  int numbers = 0, comparisons = 0, kinds = 0;  // of the form's, and of statements: changed in turn
  std::vector<std::string> changes;  // that no case shows: "1025 for 1024 in i - 1024 < j"
  // Of these, comparisons in scores and what follows them: those of masks are the proofs', and a
  // number that is no condition's the exact reading sees.
  std::vector<std::string> undecided;
};

struct Report {
  Verdict verdict = Verdict::inconclusive;
  Effort effort = Effort::usual;
  bool values = true;               // ran
  int cases = 0;                    // run
  std::vector<std::string> shapes;  // of those, with their seeds
  int rows = 0;                     // compared
  int key_blocks = 0;               // skipped or unmasked ones, held against the keep predicate
  // Numbers that program or specification are written with, and that no case reaches in rows and
  // keys: the verdict is about the sizes and data that ran.
  std::vector<int64_t> unreached;
  // Statements of the kernel that ran in some case; and one that some launch may run, and none did,
  // and where.
  std::unordered_set<const tl::Stmt*> ran;
  std::string never_run;
  std::string unasked;  // a comparison of reals that the function has not (equalities.h)
  // What the integers of the data were in the cases that ran, "chosen 0 to 42".
  std::vector<std::string> integers;
  double worst = 0;  // largest error / allowed over all rows, when it holds
  double seconds = 0;
  ExactReport exact;
  std::optional<Counterexample> counterexample;
  std::optional<Unseen> unseen;  // where it was asked, of what holds
  std::optional<proofs::Report> indices;
  std::optional<exec::ScheduleReport> schedules;
  Diagnostics diagnostics;  // why invalid or inconclusive; the fault of a refutation
};

Report check(const tl::Program& program, const spec::Capture& capture, const Options& options = {});

Scope scope(const Report& report);
std::string headline(const Report& report);  // "holds for the launches explored (full check)"
// Why it is not proved for every size: the first obligation that is open, or what stands in for it.
// "": it is.
std::string not_proved(const Report& report);

// One screen for a person; the same facts for a program.
std::string print(const Report& report);
nlohmann::json to_json(const Report& report);
nlohmann::json to_json(const ExactReport& exact);
nlohmann::json to_json(const proofs::Report& indices);
std::string print_bound(const ExactReport& exact);  // "below 2^-113"

}  // namespace kw::check
