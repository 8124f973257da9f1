// A tile on its way from global to shared memory: what tma_load and tma_load_multicast have in
// common.
#pragma once
#include "exec/ops/exec_ops.h"

namespace kw::exec {

struct TileCopy {
  const Global* tensor = nullptr;
  Place place;         // the tile's rows in the tensor
  SharedUse to;        // slot is null after a fault
  BarrierUse full;     // arrives when the tile has come
  int64_t column = 0;  // where its columns begin
};

// The statement's operands; faults where they do not fit. Of pages the batch entry is the table's.
TileCopy tile_copy_of(Machine& m, Agent& a, const tl::Stmt& s, const Tensor* table = nullptr);
// The tile, zero past the end of the tensor; of_rows and of_columns say what it is.
Tile fetch(const TileCopy& copy);
// Whether `columns` columns from `column` on are whole panels inside of the tile, or half of one.
bool columns_are_panels(Machine& m, const tl::Stmt& s, const Tile& tile, int64_t column,
                        int64_t columns, bool or_half = false);
// Nobody may still read, or wait for, what a slot holds.
bool may_fill(Machine& m, const tl::Stmt& s, const SharedSlot& slot);
// Rows of a tensor that whole warpgroups copy: place.tensor and of_rows as above; slot null after a
// fault.
TileCopy warpgroup_copy_of(Machine& m, Agent& a, const tl::Stmt& s, tl::Hole tile, bool out);
// Values of consecutive rows, one a row, and a slot of a row ring; slot null after a fault.
TileCopy rows_copy_of(Machine& m, Agent& a, const tl::Stmt& s);
Tile fetch_rows(const TileCopy& copy);
// Writes the tile's rows to the tensor: of `by` warpgroups, those of the one that asks.
void write_rows(Machine& m, const Agent& a, const tl::Stmt& s, const TileCopy& copy, int64_t by);
// The slot that one thread hands to the copy engine, or null after a fault.
SharedSlot* leaving(Machine& m, Agent& a, const tl::Stmt& s);
// Arrives at the barrier, whose use completes when the slot has been filled.
void announce(Machine& m, Agent& a, const tl::Stmt& s, const TileCopy& copy);

}  // namespace kw::exec
