// Which blocks a program's instances are made of.
//
// Sizes come from the program: a dimension along which tiles are copied is tried at 1 ... 16 tiles,
// the others at 1. Every block of every such launch is walked once; blocks whose agents do the same
// are one *profile*. For full attention those are n = 1 ... 16 key blocks; for causal attention
// also how many of them each warpgroup skips.
#pragma once
#include "schedules/walk.h"

namespace kw::exec::schedule {

// The launch with these sizes, declared; null where the program does not fit it. Integer arguments
// are those that `sizes` names, else `argument`.
std::shared_ptr<Sized> size(const tl::Program& program, const std::map<std::string, int64_t>& sizes,
                            int64_t argument, const std::map<std::string, int64_t>& params);

// How many blocks a launch has, as its loops see it, the least or the most of them: those who
// disagree are found by running.
int64_t blocks_of(const tl::Program& program, Machine& m, bool least);

// Of launches with 1 ... tiles tiles: blocks that differ, shortest first. Empty with a fault where
// there is none.
struct Profiles {
  int tiles = 0;
  std::vector<Block> blocks;
  std::unique_ptr<Walker> walker;
  std::optional<Diagnostic> fault;
  bool cut = false;                          // there are more
  std::optional<Block> longest;              // of many key blocks, for the period
  std::map<const tl::Stmt*, int64_t> turns;  // of each loop, the most in one of `blocks`
  bool longest_is_known = false;  // all such do what one of `blocks` does: more are not visited
};
// What the agents do, as a number; places in tensors and statements' texts do not count.
uint64_t signature(const Walked& walked);
Profiles find_profiles(const tl::Program& program, const std::map<std::string, int64_t>& params,
                       int tiles);

}  // namespace kw::exec::schedule
