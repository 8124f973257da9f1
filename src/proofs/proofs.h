// What a program does with integers, proved for every size against the specification.
//
// Cases show sizes up to a few hundred; whether a mask drops what the specification drops at key
// 100,000 is a statement about integers, and a solver decides those. Each is an *obligation*:
// proved; refuted, with sizes and indices where the two differ; or open, with the reason. This
// layer reads programs and specifications, and shares nothing with what writes programs or runs
// them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/form.h"
#include "proofs/reals/rounding.h"
#include "proofs/solver/solver.h"
#include "tl/program.h"

namespace kw::proofs {

struct Obligation {
  std::string what;  // "each visited key block keeps what the specification keeps"
  Answer answer = Answer::unknown;
  std::string why;  // of an open one
  // Of a refuted one: where, by name (M, N, i, j, h, b), and what each side says there.
  std::map<std::string, int64_t> at;
  std::string message;
  Span span;  // the statement of the program
  double seconds = 0;
};

// What every launch must keep to, for what is proved to be so: "M <= 46340", "H == G * 4". Of the
// program's sizes.
struct Limit {
  tl::ExprPtr holds;
};

std::string print(const Limit& limit);  // as TL says it
// Whether a launch with so many heads keeps to it; as one about other sizes, always.
bool admits(const Limit& limit, int64_t query_heads, int64_t key_heads);
// Whether a launch with so many heads keeps to it; as one about other sizes, always.
bool admits(const Limit& limit, int64_t query_heads, int64_t key_heads);

// A loop of the kernel over blocks, and the most turns that it makes in any launch; -1: nothing
// bounds them.
struct Bound {
  const tl::Stmt* loop = nullptr;
  int64_t most = -1;
};

struct Report {
  std::string not_run;  // why nothing was asked
  std::vector<Obligation> obligations;
  std::vector<Limit> limits;
  bool small_reals = false;  // those that become reals lie within 2^24, which fp32 holds
  bool small_data = false;   // integers of the data lie within 2^29, where what is proved is so
  std::optional<Rounding> rounding;
  std::vector<Bound> loops;                 // each once
  std::vector<const tl::Stmt*> statements;  // of the kernel, that some launch may run
  std::string solver;                       // "Z3 4.8.12"
  double seconds = 0;

  int proved() const;
  bool complete() const;  // there are some, and each is proved
  // The first of this answer, or null.
  const Obligation* first(Answer answer) const;
};

// How much the solver may do for one obligation, and then for its smallest counterexample.
inline constexpr int64_t kEffort = 10'000'000;

// For attention with one term, on a program of the corpus' shape:
//   - what a visited key block keeps is what the specification keeps of it (masked or whole);
//   - each key block of which a row keeps something is visited exactly once;
//   - what maps compute of indices fits 32 bits; where it does not (i * j of long sequences), up to
//     the limits that the report then has;
//   - addresses, scores and conditions are made of the specification's integers (integers.h);
//   - all agents take the same key blocks in the same order: a place of a ring is filled and used
//     in the same turn;
//   - each block of the output is computed once (order.h); reals stay in range, a turn of the loops
//     is one of an online softmax, and how much it rounds is bounded (reals/).
// Under: sizes from 1 to 2^24, any int32 as data, any numbers of heads where the function uses them
// alike (heads.h; less is a limit), and a block of the output that lies in it.
Report prove_attention(const tl::Program& program, const spec::Form& form, const Solver& solver);

// "11 of 11 obligations proved by Z3 4.8.12", and what is open.
std::string print(const Report& report);

}  // namespace kw::proofs
