// The machine that runs a program: what the module declares, the CTAs, the agents.
//
// An agent is one thread of a loader, or a consumer as a whole (its four warps run in step; a
// `thread k:` inside it is a guard). It holds a stack of frames, one for each block of statements
// it is inside. A statement's function does its work and says what comes next: on to the next
// statement, into a block, or blocked, in which case it is simply run again later; so a function
// changes nothing before it is sure not to block. A loop's function runs again after its body.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/exec.h"
#include "exec/faults.h"
#include "exec/shared.h"
#include "exec/value.h"

namespace kw::exec {

// Who has added to an element of a scratch: of this tile of the output, or of this CTA (-1 - its
// number), this warpgroup, and of its threads the one that has this row of its lane sum. Additions
// by one of them follow each other; those of two may come in either order.
struct Adder {
  int64_t tile = 0;
  int warpgroup = 0, row = -1;  // -1: nobody
  const tl::Stmt* stmt = nullptr;
  bool operator==(const Adder& o) const {
    return tile == o.tile && warpgroup == o.warpgroup && row == o.row;
  }
};

// The CTAs that passed a turn on, -1: the pre-pass; and that has it, -1: none yet.
struct Turns {
  int64_t passed_by = -1, taken_by = -1;
};

// A tensor in global memory.
struct Global {
  Tensor data;
  bool tiled = false, writes = false;
  bool scratch = false;  // the pre-pass writes it, the kernel reads it
  std::vector<std::string> dims;
  const tl::Stmt* declared = nullptr;
  std::vector<uint8_t> written;       // of an output or a scratch, one an element
  std::vector<exact::Element> exact;  // in the exact reading
  std::vector<Adder> adders;          // of a scratch to which add_rows adds, one an element
  std::vector<Turns> turns;           // of a scratch with turns, one an element
};

// Words that the pre-pass writes and the kernel reads: no value until it is written.
using Scratch = std::vector<std::optional<int64_t>>;

// What a scratch holds where the kernel writes reals that the pass behind it reads.
struct Parts {
  std::vector<float> x;
  std::vector<exact::Element> e;
  std::vector<uint8_t> written;
};

enum class Next { on, entered, again, blocked };  // again: entered, and run me again afterwards

struct Frame {
  const std::vector<tl::Stmt>* body;
  ScopePtr scope;
  size_t at = 0;
  bool guard = false;  // of a single thread
};

// State of a loop between two runs of its statement.
struct Loop {
  int64_t n = 0, use = 0;
  bool body_done = false;
};

// A product that has been issued.
struct Product {
  std::shared_ptr<Tile> accumulator, operand;  // operand null: the left side is a shared tile
  std::vector<SharedSlot*> reads;
  const tl::Stmt* stmt;
  bool complete = false;
};

// What a blocked agent waits for; `barrier` is its name in the program's text.
struct Wait {
  const tl::Stmt* stmt = nullptr;
  std::string barrier, state;
};

struct Agent {
  int index = 0;
  int warpgroup = 0;
  int thread = -1;  // warp number of a loader's thread; -1: the whole warpgroup
  ThreadBlock* block = nullptr;
  std::vector<Frame> frames;
  std::map<const tl::Stmt*, Loop> loops;
  std::vector<Product> products;  // issued and not yet named by a wgmma_wait, in order
  std::vector<SharedSlot*> stores_reading, stores;
  // Copies that this warpgroup takes part in: not yet committed, and by commit, in order.
  std::vector<SharedSlot*> copies;
  std::vector<std::vector<SharedSlot*>> commits;
  std::vector<SharedSlot*> unsynced;  // come, or stored, since its last sync
  std::vector<SharedSlot*> stored;    // by the warpgroup's own store; some may be filled anew since
  std::map<std::pair<const Barriers*, int64_t>, int64_t> waited;  // (barrier, slot) -> phases seen
  std::optional<int64_t> turn;        // the generation of the named barrier that it waits at
  bool met = false;                   // its cluster, since init: the other CTAs are ready
  const tl::Stmt* reached = nullptr;  // where it last reached into another CTA since it met them
  bool pause = false;                 // let the others run first
  Wait wait;

  bool done() const { return frames.empty(); }
  bool guarded() const;
  ScopePtr scope() const { return frames.back().scope; }
  // Arrivals that one `arrive` of this agent counts for: one a warp.
  int warps() const { return thread >= 0 || guarded() ? 1 : 4; }
  std::string name() const;
};

struct Machine {
  Machine(const tl::Program& program, const Launch& launch, Observer* observer);

  const tl::Program& program;
  const Launch& launch;
  Observer* observer;
  const exact::Algebra* const algebra;  // null: the values reading
  uint64_t drawn = 0;                   // what the exact reading has left to chance so far
  Faults faults;
  Outcome outcome;

  // The module.
  Dtype element = Dtype::bf16;
  std::map<std::string, Value> constants;  // params, toggles, sizes, scalar arguments
  std::map<std::string, Global> tensors;
  std::map<std::string, std::vector<int64_t>> workspaces;
  std::map<std::string, Scratch> scratches;
  std::map<std::string, const tl::Stmt*> defs, records;
  const tl::Stmt* kernel = nullptr;
  const tl::Stmt* lists = nullptr;     // the pre-pass that lists blocks
  const tl::Stmt* rows = nullptr;      // the one over rows of operands
  const tl::Stmt* after = nullptr;     // the pass behind the kernel
  const tl::Stmt* behind = nullptr;    // the one over rows behind it
  bool is_behind = false;              // whether that runs
  std::set<std::string> of_this_row;   // tensors whose row a pass has written before it reads it
  std::map<std::string, Parts> parts;  // by scratch
  int ctas = 1;                        // CTAs of a cluster

  std::vector<std::unique_ptr<ThreadBlock>> blocks;
  std::vector<Agent> agents;

  void run();

 private:
  bool start();
  void add_cluster(int first);
  int64_t clusters();
  void add_agents(ThreadBlock& block);
  void begin(ThreadBlock& block);
  void end(ThreadBlock& block);
  bool turn(Agent& agent);
  void step(Agent& agent);
  void report_deadlock();
  void check_end();
};

// Reads the declarations at the head of the module and binds the launch to them.
bool declare(Machine& m);
// Makes the shared memory of one CTA.
void declare_shared_memory(Machine& m, ThreadBlock& block);

// Run the pre-passes of a declared module, as far as it has them.
void run_lists(Machine& m);
void run_rows(Machine& m);
void run_after(Machine& m);   // when all agents have ended
void run_behind(Machine& m);  // and then

// One function a statement that stands in a body.
Next execute(Machine& m, Agent& a, const tl::Stmt& s);

// ---- for the statements' functions

// Runs s's block next, its names on top of `parent`.
void enter(Agent& a, const std::vector<tl::Stmt>& body, ScopePtr scope);
// Blocked, with what to say if nobody ever comes.
Next block_on(Agent& a, const tl::Stmt& s, const std::string& barrier, const std::string& state);
// What a statement of `pass`, another kernel of the module, gets where the kernel runs it: a fault.
Next outside(Machine& m, const tl::Stmt& s, const char* pass);

struct Context {
  Machine& m;
  Scope* scope;  // null: only the module's names
  const tl::Stmt* at;
  ThreadBlock* block = nullptr;
  bool wide = false;      // a launcher's arithmetic: 64-bit integers
  bool compared = false;  // within a comparison, whose sums are never fused
};
inline Context context(Machine& m, Agent& a, const tl::Stmt& s) {
  return {m, a.scope().get(), &s, a.block};
}
// A scalar's value; after a fault the value means nothing.
Value evaluate(const Context& c, const tl::ExprPtr& e);
// What a function's or a step's parameter stands for. A negative index is the fault exec.negative.
Value argument_of(const Context& c, const tl::Item& param, const tl::ExprPtr& e);
// Binds the names of a `let` in c.scope, one after the other.
void bind_lets(const Context& c, const tl::Stmt& let);
int64_t integer_of(const Context& c, const tl::ExprPtr& e);
Value real_of(const Context& c, const tl::ExprPtr& e);
bool condition_of(const Context& c, const tl::ExprPtr& e);

// Whether a kernel may leave it in a scratch, for a pass behind it.
constexpr bool leaves_for_a_pass(tl::Op op) {
  return op == tl::Op::tma_store || op == tl::Op::copy_out || op == tl::Op::store_rows ||
         op == tl::Op::store_accumulator;
}
// A combine_parts, a sum_over and a sum_tiles of the pass behind the kernel.
void combine_parts(Machine& m, const tl::Stmt& s, const Context& c);
void sum_over(Machine& m, const tl::Stmt& s);
void sum_tiles(Machine& m, const tl::Stmt& s, const Context& c);

// The values of a scratch with one a row, at the statement's batch entry and head. of: null after a
// fault.
struct Values {
  Global* of = nullptr;
  int64_t first = 0, count = 0;  // of that head's
  std::string place;             // for messages: "part[0, 1, "
};
Values values_of(Machine& m, Agent& a, const tl::Stmt& s);
// Whether a pre-pass has written the element of a scratch; a fault if not.
bool was_written(Machine& m, const tl::Stmt& s, const Global& g, int64_t at);

// An element of an output, a scratch or its parts is written: a fault if it was before. `written`:
// of that element.
void note_written(Machine& m, const tl::Stmt& s, uint8_t& written);

// A register tile by name, with the role the statement needs and no product in flight on it; null
// after a fault. `defined`: it must have been written.
std::shared_ptr<Tile> tile_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole, Role role,
                              bool defined);
std::shared_ptr<Row> row_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole, bool defined);
std::shared_ptr<Row> line_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole, bool defined);

// A place in shared memory, `q_s[me][u]`.
struct SharedUse {
  SharedSlot* slot = nullptr;  // null after a fault
  int64_t use = 0;
  bool ring = false;
  std::string array;  // the slot is number `index` of this array, in every CTA
  size_t index = 0;
};
SharedUse shared_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole);
// The same, about to be read: arrived, of this use, and waited for by this agent.
SharedSlot* readable_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole);

// One use of a ring of barriers, `k_full[t]`.
struct BarrierUse {
  Barriers* barriers = nullptr;  // null after a fault
  int64_t slot = 0, phase = 0, use = 0;
};
BarrierUse barrier_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole hole);
// False: not yet. Faults when the phase cannot come.
bool passed(Machine& m, Agent& a, const tl::Stmt& s, const BarrierUse& b);
bool is_free(Machine& m, Agent& a, const tl::Stmt& s, const BarrierUse& b);
void arrive_at(Machine& m, Agent& a, const tl::Stmt& s, const BarrierUse& b, int arrivals);
// Whether the agent may reach into that CTA of its cluster: the cluster must have met. It
// must meet once more before it ends (check_end).
bool may_reach(Machine& m, Agent& a, const tl::Stmt& s, const ThreadBlock& block);
// The barrier at the same place in another CTA of the cluster; barriers is null after a
// fault.
BarrierUse barrier_in(Machine& m, Agent& a, const tl::Stmt& s, ThreadBlock& block,
                      const BarrierUse& b);
// Faults where a number of CTAs, `k`, is not the cluster's.
bool ctas_agree(Machine& m, const tl::Stmt& s);
std::string state_of(const BarrierUse& b);

// bar.sync: arrives once, then waits for the others of its generation (exec_sync.cpp). What a
// warpgroup has copied becomes visible to the others when it comes (exec_warpgroups.cpp).
Next sync_named(Machine& m, Agent& a, const tl::Stmt& s, int64_t id, int threads);
void publish_at_sync(Agent& a);

// Global coordinates of a tile's first element, as ints or as reals.
struct Origin {
  int64_t i = 0, j = 0;
  bool real = false;
};
// Whether a tile in registers starts there, as its products say; a fault otherwise.
bool is_true_origin(Machine& m, const tl::Stmt& s, const Tile& t, const Origin& at);
// The map body of `s` for every element of the target, which stands in it as `name`.
void run_map(Machine& m, Agent& a, const tl::Stmt& s, Tile& target, const std::string& name,
             std::optional<Origin> origin);
// The body of c.at at columns 0 to width - 1: reals, in x or, of the exact reading, in e.
struct Columns {
  std::vector<double> x;
  std::vector<exact::Element> e;
};
Columns run_columns(const Context& c, int width);
// The ints that the body of `s` gives for each element of a tile of so many rows and columns.
std::vector<int64_t> run_numbers(Machine& m, Agent& a, const tl::Stmt& s, int rows, int columns,
                                 const Origin& origin);
// The ints that it gives along d, from `first` on.
std::vector<int64_t> run_numbers_along(Machine& m, Agent& a, const tl::Stmt& s, int64_t first,
                                       int count);
void run_row_map(Machine& m, Agent& a, const tl::Stmt& s, Row& target, const std::string& name);
// The body of `s` for every element of a vector; `coordinate`, i or j, is `first` at its first.
void run_setting(Machine& m, Agent& a, const tl::Stmt& s, Row& target,
                 const std::string& coordinate, int64_t first);

}  // namespace kw::exec
