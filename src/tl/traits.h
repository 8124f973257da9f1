// What a statement is. This is the only place where statements are classified: the columns of
// ops.def as a table.
//
//   traits(Op::cp_async)             {copy_in, by a warpgroup, cp_async, needs sm_80}
//   access(Op::cp_async, Hole::dst)  write
//
// Whoever asks "is this a product", "can one thread do it", "does it write d" asks here, so that a
// new row of ops.def is known to all of them at once: laws, schedules, mutants, printers, rules. A
// switch over Op elsewhere says what each statement does, never what it is.
#pragma once
#include <string_view>

#include "tl/program.h"

namespace kw::tl {

enum class Family {
  module,     // of the text as a whole: include, element, level
  constant,   // param, toggle
  section,    // args, shared: they hold declarations
  tensor,     // arg_tensor, arg_tiled
  argument,   // the other arguments
  memory,     // tiles and row rings in shared memory
  barrier,    // barriers and queues in shared memory
  function,   // record, def
  kernel,     // kernel, warpgroups_kernel
  pass,       // a kernel before or behind it: lists, rows, after
  plan,       // of a plan that is not scheduled yet: plan, grid, blocks, copy
  role,       // who does it: cluster, warpgroup, warpgroups, thread, registers_up
  rows,       // the statements of the passes before
  tiles,      // which tiles of the output: static_tiles, take, dynamic_tiles_warp, offer
  loop,       // counted loops
  branch,     // if, steps and their calls, return
  value,      // scalars of an agent: let, var, flag, count
  registers,  // tiles and vectors in registers
  sync,       // it orders agents, copies and products
  copy_in,    // from a tensor to shared memory
  copy_out,   // from shared memory to a tensor
  move,       // between shared memory and registers, or in shared memory
  result,     // from registers to a tensor, and what adds such results up
  contract,   // products of matrices
  map,        // element by element of what is in registers
  gather,     // sets a vector or a tile from tensors
  reduce,     // along rows
};

// Who runs a statement. From `warp` on all of them do so together.
enum class By { none, any, thread, warp, warpgroup, block, cluster };

// What completes later: a copy by the copy engine, an asynchronous copy of threads, a product.
enum class Async { none, tma, cp_async, wgmma };

// The first GPU that has a statement's instructions: sm_75, sm_80, sm_89, sm_90a.
enum class Needs { any, ampere, fp8, hopper };

// What a statement does to what one of its holes names. `update` reads and writes.
enum class Access { none, read, write, update };

struct Traits {
  Op op;
  Family family;
  By by;
  Async async;
  Needs needs;
  bool holds;                // a block of its own
  bool transposed;           // a product whose right side is: `a @ b.T`
  bool left_transposed;      // and one whose left side is: `a.T @ b`
  bool part_of_rows;         // a copy from column j on: `m[b, h, r, j]`
  std::string_view effects;  // as in ops.def
};

namespace detail {
inline constexpr std::string_view kHoles[] = {
#define HOLE(word, what, meaning) #word,
#include "tl/holes.def"
};

namespace columns {  // the words of ops.def: two enums have some in common
inline constexpr bool none = false, args = true, shared = true, body = true;
}

inline constexpr Traits kTraits[] = {
#define OP(WORD, LEVEL, WHERE, HOLDS, FAMILY, BY, EFFECTS, ASYNC, NEEDS, CUDA, TL, AFTER) \
  {Op::WORD,                                                                              \
   Family::FAMILY,                                                                        \
   By::BY,                                                                                \
   Async::ASYNC,                                                                          \
   Needs::NEEDS,                                                                          \
   columns::HOLDS,                                                                        \
   std::string_view(TL).ends_with(".T"),                                                  \
   std::string_view(TL).find("$a.T @") != std::string_view::npos,                         \
   std::string_view(TL).find(", $column]") != std::string_view::npos,                     \
   EFFECTS},
#include "tl/ops.def"
};

// Where "dst:w" stands in "src:r dst:w"; npos if the hole is not mentioned.
constexpr size_t mention(std::string_view effects, std::string_view hole) {
  for (size_t at = 0; at < effects.size();) {
    const size_t colon = effects.find(':', at);
    if (effects.substr(at, colon - at) == hole) return at;
    at = colon + 3;
  }
  return std::string_view::npos;
}

// "src:r dst:w": holes, each with one of r, w, u and -, one space between two.
constexpr bool is_well_formed(std::string_view effects) {
  for (size_t at = 0; at < effects.size();) {
    const size_t colon = effects.find(':', at), space = effects.find(' ', at);
    if (colon == at || colon == std::string_view::npos || colon + 1 >= effects.size()) return false;
    if (std::string_view("rwu-").find(effects[colon + 1]) == std::string_view::npos) return false;
    if (space != std::string_view::npos && (space != colon + 2 || space + 1 == effects.size()))
      return false;
    if (space == std::string_view::npos && colon + 2 != effects.size()) return false;
    at = colon + 3;
  }
  return true;
}

constexpr bool all_are_well_formed() {
  for (const Traits& t : kTraits)
    if (!is_well_formed(t.effects)) return false;
  return true;
}
static_assert(all_are_well_formed(), "a row of ops.def has effects that cannot be read");
}  // namespace detail

constexpr const Traits& traits(Op op) { return detail::kTraits[static_cast<size_t>(op)]; }

constexpr bool is(Op op, Family family) { return traits(op).family == family; }

// Read where the row does not mention the hole: an expression's names, or none.
constexpr Access access(Op op, Hole hole) {
  const std::string_view effects = traits(op).effects, name = detail::kHoles[size_t(hole)];
  const size_t at = detail::mention(effects, name);
  if (at == std::string_view::npos) return Access::read;
  switch (effects[at + name.size() + 1]) {
    case 'w':
      return Access::write;
    case 'u':
      return Access::update;
    case '-':
      return Access::none;
  }
  return Access::read;
}
constexpr bool reads(Access a) { return a == Access::read || a == Access::update; }
constexpr bool writes(Access a) { return a == Access::write || a == Access::update; }

// What all lanes of a warp, all warps of a warpgroup or all warpgroups do together.
constexpr bool needs_all_lanes(Op op) { return traits(op).by >= By::warp; }

// Runs its block as often as it says.
constexpr bool is_loop(Op op) {
  return is(op, Family::loop) || (is(op, Family::tiles) && traits(op).holds);
}

// A map of what its target holds, in contrast to a statement that sets it: its lambda is given the
// element as it is.
constexpr bool has_element(Op op) { return access(op, Hole::target) == Access::update; }

// Between a tensor and shared memory.
constexpr bool is_copy(Op op) { return is(op, Family::copy_in) || is(op, Family::copy_out); }

// Adds to what is there: acc += p @ v.
constexpr bool adds_product(Op op) {
  return is(op, Family::contract) && access(op, Hole::acc) == Access::update;
}

// Makes a tile of scores: anew, or by adding to what a row began it with (transposed).
constexpr bool begins_scores(Op op) {
  return is(op, Family::contract) && (!adds_product(op) || traits(op).transposed);
}

}  // namespace kw::tl
