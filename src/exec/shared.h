// Shared memory and barriers of one CTA, as the hardware has them.
//
// A barrier of a ring is an mbarrier a slot: it counts arrivals and outstanding bytes, and a phase
// completes when both are there. The hardware tells phases apart by one bit; the model counts them,
// so an agent that would be fooled by the bit (two phases ahead or behind) is a fault instead of a
// coincidence. A copy's bytes arrive when somebody waits for them: as late as possible, so that
// nobody who forgot the wait sees the data.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "exec/tiles.h"
#include "tl/program.h"

namespace kw::exec {

struct Barriers;

// A barrier's phase: whoever has waited for it has seen what came before the arrival.
struct Handover {
  const Barriers* barriers;
  int64_t slot, phase;
  bool published;  // what was stored, before the arrival
};

struct SharedSlot {
  Tile tile;
  int64_t address = 0;  // of a row ring: bytes from the beginning of shared memory
  int64_t use = -1;     // the ring index it was filled under; -1 when not by a copy
  // Of a slot filled by a copy: the barrier's slot and phase that say it has arrived.
  const Barriers* filled_by = nullptr;
  int64_t barrier_slot = 0, phase = 0;
  bool arriving = false;
  // Of a slot that whole warpgroups copy: the warpgroups that must, those that have waited for
  // their part, and those that have come to a sync since. All needed before anybody reads it.
  uint32_t copiers = 0, opened = 0, copied = 0, synced = 0;
  // Of a slot that the CTAs of a cluster fill together: who has sent its part and who must, a bit
  // for each CTA. One that a single copy fills has no parts.
  uint32_t parts = 0, parts_due = 0;
  int products = 0, stores = 0;     // in flight and reading it
  SharedSlot* sent_from = nullptr;  // of a slot that another CTA fills: read until it has arrived
  // Of a slot that a warpgroup has stored (filled_by is null then): which agent, whether it has
  // published it, and the phases at which it has arrived since the store.
  int stored_by = -1;
  bool published = false;
  std::vector<Handover> handed_over;
  const tl::Stmt* writer = nullptr;
  const tl::Stmt* reader = nullptr;
};

// tile NAME[members]: ring(length) of ...
struct SharedArray {
  bool is_array = false, is_ring = false;
  int64_t members = 1, ring = 1;
  std::vector<SharedSlot> slots;  // [members][ring]
};

struct BarrierSlot {
  int64_t completed = 0;  // phases
  int64_t arrived = 0;
  std::vector<SharedSlot*> copies;  // asked for, not yet arrived
};

struct Barriers {
  std::string name;
  int64_t ring = 1, arrivals = 1;
  bool in_cluster = false;  // an arrival counts in every CTA
  bool initialised = false;
  std::vector<BarrierSlot> slots;

  Barriers() = default;
  Barriers(std::string name, int64_t ring, int64_t arrivals)
      : name(std::move(name)), ring(ring), arrivals(arrivals), slots(ring) {}
  // Completes the phase if all is there; its copies have arrived then and not before.
  void settle(int64_t slot);
};

struct BlockQueue {
  Barriers full, free;
  std::vector<int64_t> values;
};

// bar.sync and bar.arrive: `arrived` threads of this generation.
struct NamedBarrier {
  int64_t generation = 0;
  int arrived = 0;
  const tl::Stmt* last = nullptr;
};

struct ThreadBlock {
  int index = 0;
  int rank = 0;                       // in its cluster
  std::vector<ThreadBlock*> cluster;  // by rank, itself among them
  bool begun = false;                 // of rank 0: the cluster has its shared memory
  int running = 0;                    // of rank 0: agents of the cluster that are not done
  NamedBarrier together;              // of rank 0: sync_cluster
  std::map<std::string, SharedArray> arrays;
  std::map<std::string, Barriers> barriers;
  std::map<std::string, BlockQueue> queues;
  int64_t shared_bytes = 0;  // of what is declared so far
  std::map<int64_t, NamedBarrier> named;
};

}  // namespace kw::exec
