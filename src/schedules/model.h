// The schedules reading: what the agents of a program do to each other, whatever order they run in.
//
// A *model* is one straight list of events for each warp of a consumer and each thread of the
// loader. It is written by the executor's own walk over the program (walk.cpp) for a given
// sequence of blocks; nothing about a kernel is transcribed by hand. An agent's list does not
// depend on the others: loops and branches read sizes, indices and arguments, and the one branch on
// data, `if raised`, is given both values. So the list is written without running anybody else, and
// what remains is the question in which orders the lists can be interleaved.
//
// Two checkers answer it with code of their own: vector clocks on one schedule (clocks.h),
// which decides all schedules where barriers pair definitely, and exhaustive exploration of small
// instances (explore.h).
//
// Barriers and tiles come in rings; an event names the use, and slot and phase follow from it, as
// on the device. Memory is divided into cells: the parts of a tile that some statement touches
// apart from the others (a warp's rows, a CTA's part of a multicast).
#pragma once
#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::exec::schedule {

enum class Kind : uint8_t {
  mark,                 // a block of the output begins, or the loop over blocks ends
  lap,                  // a loop over a ring goes round
  ready,                // barriers of ring `object` are initialised
  wait,                 // until the use is complete
  wait_free,            // until the use of this slot before it is complete
  arrive,               // `count` arrivals at the use
  expect,               // one arrival, which also announces `count` parts of a tile
  fill,                 // the copy engine writes a region; it counts at use `bar_use` of ring `bar`
  sent,                 // the copy engine reads a region until the next event, a fill, has landed
  read,                 // by the agent itself
  write,                //
  copy,                 // cp.async: a write that is done at a later cp_async_wait
  commit,               //
  cp_async_wait,        // all but the latest `count` commits
  operand,              // the next product reads this region
  issue,                // a product: everything named by `operand` since the last
  wgmma_wait,           // all products but the latest `count`
  store,                // the copy engine reads a region
  tma_store_wait_read,  //
  tma_store_wait,       //
  fence_async,          // generic writes before it are seen by the copy engine and the tensor cores
  sync,                 // named barrier `object`: arrives and waits
  give,                 // named barrier `object`: arrives
  compute,              // on its own registers, `work`; only where the walk measures
};

struct Event {
  Kind kind;
  int8_t counter = -1;  // of `use` and `bar_use`: -1 none, 0 the blocks, 1... the agent's vars
  bool one_thread = false;
  int16_t object = -1;  // ring of barriers, strand of tiles, named barrier
  int16_t region = -1;  // Tables::regions
  int16_t bar = -1;
  int16_t work = -1;  // Tables::works: of compute and issue, where the walk measures
  int32_t count = 0;
  int64_t use = 0, bar_use = 0;
  const tl::Stmt* stmt = nullptr;
};

// A ring of barriers in one CTA. Its slots are numbers first ... first + length - 1.
struct Ring {
  std::string name;
  int cta = 0, length = 1, arrivals = 1, first = 0;
};

// A ring of tiles, one member of an array, in one CTA. Its slots' cells start at `first`.
struct Strand {
  std::string name;
  int cta = 0, length = 1, array = 0;
  bool tagged = false;  // of a ring: a use is read as the use that was written
  int cells = 1, first = 0;
};

struct Named {
  std::string name;
  int cta = 0, warps = 0;
};

struct Actor {
  std::string name;
  int cta = 0, warpgroup = 0, unit = 0;  // warp of a warpgroup, thread of the loader
  bool warp = false;
  int weight = 1;  // warps that it stands for
};

using Cells = uint64_t;           // of one slot
using Region = std::bitset<512>;  // groups of 4 rows times panels
constexpr int kMostCells = 64;

// What is common to all instances of a program: who there is, and what they share.
struct Tables {
  int ctas = 1;
  std::vector<Actor> actors;
  std::vector<Ring> rings;
  std::vector<Strand> strands;
  std::vector<Named> named;
  std::map<std::pair<int, int64_t>, int> named_at;  // (CTA, id)
  struct Shape {
    int groups = 1, panels = 1;
    int rows = 4, columns = 64;
    int bytes = 2;  // of an element
  };
  std::vector<Shape> arrays;
  struct Use {
    int array;
    Region region;
  };
  std::vector<Use> regions;
  // What a statement computes: elements of a register tile or vector, or a product rows x columns
  // over `depth`.
  struct Work {
    int rows = 0, columns = 1, depth = 0;
    bool operator==(const Work&) const = default;
  };
  std::vector<Work> works;
  std::set<std::string> operands;  // names of operands and diagonal vectors, which maps read
  std::vector<Cells> cells;        // of each region, once divide() has run
  int slots = 0, total_cells = 0;

  int region(int array, const Region& r);
  int work(const Work& w);
  // Divides every array into the cells that its regions are unions of. False: more than 64.
  bool divide();
};

// What one agent does for a sequence of blocks.
using Stream = std::vector<Event>;

struct Model {
  const Tables* tables = nullptr;
  std::vector<Stream> streams;  // by actor
  std::string instance;         // in words
  int64_t events() const {
    int64_t n = 0;
    for (const Stream& s : streams) n += int64_t(s.size());
    return n;
  }
};

// "warp 2 of warpgroup 1", with the CTA where there are several.
std::string name(const Tables& tables, int actor);
// "k_s[3]", "q_s[1][0]": a use of a strand, with its CTA where there are several.
std::string name(const Tables& tables, const Strand& strand, int64_t use);

}  // namespace kw::exec::schedule
