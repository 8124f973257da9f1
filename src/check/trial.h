// One run of a program on one case, judged.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "check/check.h"
#include "exec/exec.h"

namespace kw::check {

// Sizes, inputs by seed, the heads that run, and where the user's own error comes from.
enum class Planted {  // planted.h
  none,
  bits,
  zeros,
  equal,
  spike,
  tiny,
  below,
  above,
  spread,
  alike,
  runs,
  small,
  large,
  far_below,
  far_above,
  balanced,
  reach,
  products,
  ends,
  compared
};
std::string_view name(Planted what);

struct Case {
  std::map<std::string, int64_t> sizes;
  spec::Draws draws;
  std::vector<int64_t> heads;  // the user's query heads, in groups of one key head each
  int64_t key_heads = 0;
  bool packed = false;  // heads of one key head are rows of the program's tiles (packing.h)
  const spec::GoldenCase* golden = nullptr;  // of these sizes, or the nearest
  bool exact = true;                         // of these sizes
  int grid = 1;
  Planted planted = Planted::none;
  exec::Fused fused = exec::Fused::none;
};

// The key head of the user's that the h-th head of a case reads; whether it is the last of a case's
// heads that does.
int64_t key_head_of(const spec::Form& form, const Case& c, size_t h);
bool ends_group(const spec::Form& form, const Case& c, size_t h);

// "B 1, M 200, N 300, 8 query / 2 key heads, grid 2, seed 20240502", with what is drawn larger than
// in the golden cases: enough to run it again.
std::string describe(const Case& c);

// A case of these sizes, as far as the form leaves them open, drawn like the nearest golden one
// with another seed; without heads yet.
Case case_of(const spec::Capture& capture, int64_t b, int64_t m, int64_t n, uint64_t salt);
// How much work a case is: elements of its scores, or as much.
int64_t scores_of(const spec::Form& form, const Case& c);
// Inputs have the heads of the form, whichever of them run. A case of many rows of which few heads
// run is one of a form with as many, where there is one.
struct FewHeads {
  spec::Form form;
  Case c;
};
FewHeads few_heads(const spec::Form& form, const Case& c);

// How many elements its inputs have, and what runs of its queries and keys; and of how many a case
// is made. A value is a double, of which a run has two or three. Cases of many run one at a time.
int64_t elements_of(const FewHeads& few);
constexpr int64_t kMostElements = int64_t{1} << 27;
constexpr int64_t kManyElements = kMostElements / 8;

// The cases of a check, goldens first. Reports and returns nothing when the form cannot be checked.
std::vector<Case> make_cases(const spec::Capture& capture, const Options& options);

// Heads for a case: the golden heads' groups, or all.
void choose_heads(const spec::Form& form, Case& c, bool all);
// The first of these alone, where all are alike.
void keep_one_head(const spec::Form& form, Case& c);

// Gives cases as many heads as every launch has by what is proved: as many a group as the user's,
// or all of them. Cases that become more work than `scores` together are left out.
void keep_to_limits(const spec::Form& form, const std::optional<proofs::Report>& proved,
                    int64_t scores, std::vector<Case>& cases);

// The program's launch for a problem: operands rearranged to the program's order, heads picked, the
// user's other arguments by name. Reports check.binding and returns nothing when they do not fit.
std::optional<exec::Launch> bind(const tl::Program& program, const spec::Form& form,
                                 const spec::Problem& problem, const Case& c,
                                 Diagnostics& diagnostics);

// What is wrong with one run; nothing when it is right.
struct Failure {
  Counterexample what;
  std::optional<Diagnostic> fault;
  uint8_t opaque = 0;  // exact::Opaque on the path of a difference: it proves nothing
};

struct Trial {
  bool valid = true;  // false: the case could not be run; `diagnostics` says why
  Diagnostics diagnostics;
  std::optional<Failure> failure;
  int rows = 0, key_blocks = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> integers;  // of the data: least and greatest
  double worst = 0;
  // Of the exact reading: how probable it is that a difference was missed, and what was opaque.
  double error_bound = 0;
  uint8_t opaque = 0;
  int draws = 0;                            // that agreed
  std::unordered_set<const tl::Stmt*> ran;  // statements of the kernel
};

// Where a failure is; h is a head of the case.
Counterexample blame(const Case& c, const std::string& output, int64_t b, int64_t h, int64_t i);
// Whether the run gave outputs to compare; otherwise the trial says why not.
bool ran(const Case& c, const spec::Form& form, const exec::Outcome& run, Trial& trial);

// The elements that are furthest off, at most four.
void show_worst(Counterexample& e, const double* got, const double* want, int64_t length);

Trial run_trial(const tl::Program& program, const spec::Capture& capture, const Case& c);

// ---- the exact reading (exec/exact.h, operator/evaluate/exact.h)
// A few small cases; they need no goldens. Where a row is combined of `parts`, one more, of more
// batch entries: of one entry each key block is a part of its own, and of many all are one.
std::vector<Case> make_exact_cases(const spec::Capture& capture, const Options& options,
                                   bool parts = false);
// The same, with zero tolerance: every element of every output. `draw` chooses the primes and the
// seed. A failure that an opaque operation may have made is `uncertain`.
// With `general`, integers that become reals are drawn (Algebra::of_integer).
Trial run_exact_trial(const tl::Program& program, const spec::Capture& capture, const Case& c,
                      int draw, bool general = false);

// The smallest case found on which `run` still fails, and its failure.
using RunCase = std::function<Trial(const Case&)>;
std::pair<Case, Failure> shrink(const RunCase& run, const spec::Capture& capture, Case c,
                                Failure failure);

// Runs cases on several threads. Those after the first that fails may be left out.
std::vector<Trial> run_cases(const RunCase& run, const std::vector<Case>& cases, int threads);

// Runs the exact reading and adds to the report what it found.
void check_exact(const tl::Program& program, const spec::Capture& capture, const Options& options,
                 Report& report);

// Runs the failing case again, watched, in the exact reading, and fills in the first statement that
// differs.
void locate_exact(const tl::Program& program, const spec::Capture& capture, const Case& c, int draw,
                  Counterexample& what);

// Says that this statement is the first that differs, if there is one.
void name_statement(const tl::Program& program, const tl::Stmt* statement, const std::string& text,
                    Counterexample& what);

// The line of a statement in the program's canonical text, from 1; 0 when it is not of the program.
int canonical_line(const tl::Program& program, const tl::Stmt* statement);

}  // namespace kw::check
