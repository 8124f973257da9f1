// What one law_<word> sees: a statement, the names it may use, the blocks around it, and the facts
// that the whole module adds up to. Internal to laws_*.cpp.
#pragma once
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tl/laws/laws.h"
#include "tl/scope/functions.h"
#include "tl/scope/scope.h"
#include "tl/syntax/table.h"
#include "tl/traits.h"

namespace kw::tl {

// The agents of a kernel run concurrently: each `thread` of the producer, and the warpgroups of
// the warpgroups block; where they have roles (an `if` that asks for the warpgroup's number alone),
// those of each role. Named by the statement of their block.
using Agent = const Stmt*;

// One mention of a barrier or queue.
struct BarrierUse {
  const Stmt* stmt;
  Agent agent;
  int64_t arrivals;              // of one execution: 4 by a warpgroup, 1 by a thread or a copy
  std::string index;             // as written: "t + 1"
  const Stmt* loop;              // the innermost loop that changes a name of the index, or null
  std::optional<int64_t> times;  // executions for one use; none if not constant
  bool conditional;              // under an if
  Span span;
};

struct BarrierFacts {
  Symbol symbol;
  std::optional<int64_t> slots, arrivals;  // arrivals of one CTA
  // tma_load or tma_load_multicast, arrive, wait, wait_free
  std::vector<BarrierUse> copies, arrives, waits, frees;
};
struct QueueFacts {
  Symbol symbol;
  std::optional<int64_t> takers;
  std::vector<const Stmt*> offers, takes;
  int64_t counted = 0;  // takers that the program has
};
// A tensor that is moved tile by tile: the first copy, its tile and between how many CTAs it is
// divided.
struct MovedTensor {
  const Stmt* stmt;
  int64_t rows, columns, ctas;
  int64_t page = 0;  // rows of a page; 0 where it is not in pages
};
constexpr int64_t kPartOfRows = 0;  // its columns, where copies move parts of wider rows
// A mention of a number of CTAs, to be held against the kernel's: "static_tiles", "C1" and how
// many.
struct CtasUse {
  const Stmt* stmt;
  const char* label;
  int64_t ctas;
};

// Gathered while the statements are visited, judged at the end (sync.cpp).
struct Facts {
  std::string level = "scheduled";
  const Stmt* args = nullptr;
  const Stmt* shared = nullptr;
  const Stmt* element = nullptr;
  const Stmt* lists = nullptr;        // the pre-pass that lists key blocks
  const Stmt* rows = nullptr;         // the one over rows
  const Stmt* rows_behind = nullptr;  // the pass over rows behind the kernel
  // Tensors of scratch that the kernel, or the pass that rounds sums, leaves there; and that the
  // pass over rows behind it reads.
  std::map<std::string, const Stmt*> left, read_behind;
  const Stmt* after = nullptr;                                   // the pass behind the kernel
  std::map<std::string, const Stmt*> parts_stored, parts_added;  // by scratch
  // By scratch tensor: the results of parts, and by whom they are combined.
  std::map<std::string, const Stmt*> parts_left, parts_combined;
  std::map<std::string, const Stmt*> sums_added, sums_rounded, tiles_summed;  // by scratch tensor
  std::map<std::string, const Stmt*> values_added, summed_over;               // likewise
  // Of a tma_add or add_tile, for each CTA of the cluster and turn of the loop around it: the first
  // column and the one past the last, where they are constant.
  std::map<const Stmt*, std::vector<std::optional<std::pair<int64_t, int64_t>>>> columns_added;
  std::map<std::string, const Stmt*> values_written, values_loaded;
  std::map<std::string, const Stmt*> transposed;  // by the tile that some store_transposed writes
  std::string element_type = "bf16";
  int64_t threads = 0, loader_registers = 0;
  bool alike = false;  // no warpgroup loads: a warpgroups_kernel
  int64_t shared_bytes = 0;
  bool has_turns = false;   // some wait_turn or pass_turn
  bool incomplete = false;  // a statement was refused before its facts were noted
  const Stmt* cluster = nullptr;
  int64_t ctas = 1;  // of a cluster
  std::vector<CtasUse> ctas_uses;
  std::vector<const Stmt*> deals;
  std::map<std::string, BarrierFacts> barriers;
  std::map<std::string, QueueFacts> queues;
  std::map<std::string, std::vector<const Stmt*>> initialised;
  std::map<std::string, MovedTensor> moved;
  // Which barrier gives a ring's slots back: wait_free before tma_load, in one thread; or of a
  // ring that nothing is loaded into, where the thread that stores its tiles arrives.
  std::map<std::string, std::string> freed_by;
  // Which ring a barrier tells of: tma_load and tma_load_multicast arrive there.
  std::map<std::string, std::string> fills;
  // Tiles that some tma_store moves to global memory; others leave in no way.
  std::set<std::string> stored;
  // The copies out of a thread of the loader that has waited for the barrier.
  std::map<std::string, std::vector<const Stmt*>> hands_over;
  std::map<std::string, ExprPtr> toggles;
  // Branches on the warpgroup's number alone, in the order of the text: which warpgroups take them,
  // a bit each.
  std::vector<std::pair<const Stmt*, uint32_t>> roles;
  // By warpgroup, what registers_up gives it; the others have warpgroups_registers.
  std::map<int64_t, int64_t> registers;
  int64_t warpgroups_registers = 0;
  std::set<const Stmt*> flags_set;  // flag statements that some online_max sets

  // Of the warpgroups block; known unless kernel.C1 is broken.
  bool warpgroups_are_known() const { return threads > 0; }
  int64_t warpgroups() const { return threads / 128 - (alike ? 0 : 1); }
};

class Check {
 public:
  const Stmt& stmt;
  const Scope& scope;
  const std::vector<const Stmt*>& parents;  // outermost first
  Facts& facts;
  Diagnostics& diagnostics;

  // Reports that stmt breaks its own law, or one of `names` or `types`.
  Diagnostic& broken(const char* label, Span span, std::string message);
  Diagnostic& broken_as(const char* family, const char* label, Span span, std::string message);

  // The innermost block of this op around the statement, or null.
  const Stmt* inside(Op op) const;
  // The block that all consumers run: `warpgroups`, or a kernel whose warpgroups are all alike.
  const Stmt* warpgroups_block() const;
  // Which of the warpgroups come to the statement, a bit each: all, but in roles.
  uint32_t who() const;
  // How many warps of warpgroups do.
  int64_t warps() const;
  // The single thread, the role or the warpgroups that run it; null outside.
  Agent agent() const;
  bool by_one_thread() const { return inside(Op::thread) != nullptr; }

  const Symbol* find(const ExprPtr& e) const;  // of the name at the base of q_s[r][u]
  const Symbol* find(const Item& item) const { return scope.find(item.name); }
  std::optional<int64_t> constant(const ExprPtr& e) const;
  // Rows or columns (0, 1) of a tile or row vector; none if unknown.
  std::optional<int64_t> extent(const Symbol* tile, size_t axis) const;
};

// names.cpp. Whether every hole that wants a shared tile, a barrier, an accumulator, ... has
// one, completely indexed. Reports <word>.C1 otherwise.
bool operands_are_right(Check& c);
// The names that the statement has just added to `block`, those from number `before` on.
void names_are_unique(Check& c, const Scope& block, size_t before);

// lists.cpp. A pre-pass is whole warps (C1); and, by the law `once`, the only one of its kind,
// `known`, and before the kernel.
void pass_has_warps(Check& c, const char* once, const char* second, const Stmt*& known);
// Whoever launches has few functions: + - * / // % min max ceil_div rsqrt heads_at_once f32.
void launcher_computes(Check& c, const char* label, const ExprPtr& e, const std::string& what);
void pre_pass_is_possible(Check& c, const char* once, const char* second, const Stmt*& known);

// names.cpp. Whether the symbol is an operand of bf16, f16 or bool, which no product reads;
// and the report, operand.C4, of what is neither a map nor set_tile and names it.
bool holds_data(const Symbol& s);
// A shared tile that no product reads, and one statement fills and one reads: of e4m3 cp_async and
// upcast, of f32 store and tma_add. And the report, tile.C3 or tile.C4, of another statement.
bool has_own_statements(const Symbol& s);
void tile_is_for_its_own(Check& c, const Symbol& s, Span span);
void data_is_for_maps(Check& c, const Symbol& s, Span span);

// types.cpp. The type of an expression, reporting what does not fit; unknown after a report.
// `map` is the target of the map whose body e is part of: s[i, j] then is a real.
struct MapTarget {
  Op op;
  std::string target;
};
Type checked_type(Check& c, const ExprPtr& e, const Scope& scope, const MapTarget* map = nullptr);
// Every expression of the statement has the type of its place: types.C6.
void expressions_have_types(Check& c);
// A list of values against parameters (of a def or step).
void arguments_fit(Check& c, const char* family, const char* label, Span span,
                   const std::string& callee, const std::vector<Item>& params,
                   const std::vector<ExprPtr>& arguments, const Scope& scope, const MapTarget* map);
std::string text(const Type& type);  // "an int"

// "in", "out" or "scratch", of a tensor.
inline std::string_view word_of_access(const Symbol& tensor) {
  return tensor.scratch ? "scratch" : tensor.written ? "out" : "in";
}
// types.cpp. The report that another tensor is due at `at`: "`lse` is `in f32` with 3 dimensions".
void another_tensor_is_due(Check& c, const char* label, const ExprPtr& at, const Symbol& tensor);

// Notes the columns that the statement adds a tile to (Facts::columns_added).
void note_columns_added(Check& c, const Symbol& tile);

// cluster.cpp. Notes that the statement's `k` is to be the kernel's number of CTAs; label is
// its law that says so.
void note_ctas(Check& c, const char* label);
void judge_ctas(const Facts& facts, Diagnostics& diagnostics);
// launch.cpp. Whether an expression may have other values in other launches or for other blocks: it
// mentions a size, a counter, a block of the output, data. And the two laws that ask it.
bool depends_on_launch(const ExprPtr& e, const Scope& scope);

// uses.C1, uses.C2: the last index of a ring is its use, the first of an array its place.
void indices_are_possible(Check& c, const Symbol& s, const ExprPtr& e);
void branch_leaves_nothing_out(Check& c);                                 // if.C2
void steps_are_told_nothing_of_the_launch(Check& c, const Symbol& step);  // call.C2
// sync.cpp. Notes that a copy arrives at its barrier.
void note_copy(Check& c);
// Barriers and queues as a whole, after every statement was seen.
void judge_module(const Program& program, Facts& facts, Diagnostics& diagnostics);
// Of a condition over toggles alone; none if something else decides it.
std::optional<bool> decided(const Facts& facts, const ExprPtr& condition);
// parts.cpp. Parts that are stored are added up, and the other way round.
void judge_parts(const Facts& facts, Diagnostics& diagnostics);
// combine.cpp. Results of parts are left and combined, and nobody else knows them.
void judge_combined(const Program& program, const Facts& facts, Diagnostics& diagnostics);
// turns.cpp. What is added in turn.
void judge_turns(const Program& program, const Facts& facts, Diagnostics& diagnostics);
void judge_rows_behind(const Program& program, const Facts& facts, Diagnostics& diagnostics);
// stores.cpp. The thread of the loader that stores: what it waits for, and before what.
void judge_storing_thread(const Stmt& thread, const Facts& facts, Diagnostics& diagnostics);
// flow.cpp. What happens along the paths of a warpgroups block.
void judge_flow(const Stmt& warpgroups, const Facts& facts, Diagnostics& diagnostics);

// plan.cpp. Whether the statement is a sketch's, whose tiles have no sizes; and what must hold
// of it then. `made`: what the statements before it have written.
bool in_sketch(const Check& c);
void judge_sketched(Check& c, std::set<std::string>& made);

// One function for each statement; a word without one does not link.
#define OP(word, level, where, holds, ...) void law_##word(Check& c);
#include "tl/ops.def"

}  // namespace kw::tl
