// The executor: what a TL program computes, on a CPU. Reading 1, values: every stored value is
// rounded as the GPU rounds it. Reading 2, exact: a real is an element of an algebra
// (num/exact.h), in which programs that are equal as formulas give equal outputs; see exact.h.
//
// It is the meaning of TL, written to be read: one function a statement (exec_<word>), dispatched
// from ops.def so that a forgotten one does not link, and no code shared with what makes CUDA.
// Every thread of a loader and every consumer is an agent that runs until it must wait; agents
// take turns in one fixed order, so a run is deterministic. Real arithmetic is fp32, each operation
// rounded once; a product accumulates over ascending k in fp32; exp2, log2, tanh, reciprocal and
// rsqrt are correctly rounded (what the GPU's approximations lose is measured on the GPU).
//
// What cannot go on, or could not be trusted on another schedule, is a fault: a Diagnostic whose
// code is "exec.<what>", with the statement and the other place. The first fault ends the run.
//   deadlock: every agent waits · not_arrived: a tile is read without its wait · stale: its slot
//   holds another use, or a flag was decided about scores that are gone · uninitialised: read
//   before written, or a barrier that may not be ready · overwrite: a slot filled while in use ·
//   in_flight: a product's tile touched early · phase: a barrier used out of its turn · origin:
//   coordinates that are not true · written_twice, unwritten: outputs · order:
//   additions to one element by several threads, in any order · multicast: parts of
//   different tiles · exited: a reach into a CTA that may have ended · layout, shape:
//   tiles that do not fit · bounds, negative, overflow: integers · queue, sync, cluster, launch,
//   name, type, endless
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "exec/tiles.h"
#include "num/tensor.h"
#include "support/diagnostic.h"
#include "tl/program.h"

namespace kw::exec {

// A compiler makes one fma of a product of reals and the sum that it stands in, and where both
// sides are products it takes either. A program must be right with each, and with none.
enum class Fused { none, left, right };

struct Launch {
  // Inputs by argument name, dimensions in the order of the TL signature. Sizes come from them.
  std::map<std::string, Tensor> tensors;
  // Scalar arguments without a value of their own, and overrides of those with one; sizes that no
  // input has.
  std::map<std::string, double> scalars;
  std::map<std::string, int64_t> params;  // overrides of `param`s
  // Clusters (CTAs, where the kernel declares no cluster); they share the queue and take
  // turns.
  int grid = 1;
  // The exact reading: real tensors and the scalars in `named` hold the numbers by which this draws
  // their elements. Null: values.
  const exact::Algebra* algebra = nullptr;
  std::set<std::string> named;
  // Tensors of a 16-bit type have shapes and no values, as nobody will look at them.
  bool shapes_only = false;
  bool any_lists = false;  // a pre-pass writes lists of every shape, whatever the tensors say
  Fused fused =
      Fused::none;    // within an expression; not in comparisons, whose sums are never fused
  uint64_t seed = 0;  // of what the exact reading leaves open: references, flags
};

// A product of tiles that was added to an accumulator: rows of the left side, and the rows of the
// right side that it summed over.
struct Contraction {
  Place rows, summed;
  int64_t row_count = 0, summed_count = 0;
  bool masked = false;  // a map that can write -inf ran on the left side
  std::string into;     // the accumulator
};

struct Outcome {
  std::map<std::string, Tensor> outputs;
  std::map<std::string, std::vector<exact::Element>> exact;  // outputs of the exact reading
  uint8_t branches = 0;                   // exact::Opaque of comparisons that decided what ran
  std::vector<Diagnostic> faults;         // empty, or one
  std::vector<Contraction> contractions;  // of tiles whose places are known, as they were executed
  int64_t statements = 0;                 // executed
  std::unordered_set<const tl::Stmt*> ran;  // which of them, of the kernel
};

// What an observer sees at a statement: the names visible there.
class View {
 public:
  virtual ~View() = default;
  virtual const Tile* tile(const std::string& name) const = 0;  // accumulator or operand, or null
  virtual const Row* row(const std::string& name) const = 0;    // row vector or lane sum, or null
  virtual double value(const tl::ExprPtr& scalar) const = 0;    // NaN when it has none
  virtual exact::Element element(const tl::ExprPtr& real) const = 0;  // of the exact reading
  virtual int agent() const = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(const tl::Stmt&, const View&) {}
  virtual void after(const tl::Stmt&, const View&) {}
};

// Runs the program's kernel once. A launch that does not fit the signature is a fault too
// (exec.launch). `observer` may be null.
Outcome run(const tl::Program& program, const Launch& launch, Observer* observer = nullptr);

}  // namespace kw::exec
