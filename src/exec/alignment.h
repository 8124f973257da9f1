// Addresses: what the device reads or writes several bytes at a time begins at a multiple of them.
//
// A bulk copy takes 16 bytes and more, a thread's vectors 4, 8 or 16; at another address a GPU ends
// the kernel (CUDA_ERROR_MISALIGNED_ADDRESS). Where an argument lies, and how far its rows are
// apart, conditions of the launch say, and launches are refused. A scratch begins where a launch
// gives it 16 bytes and more, its rows follow each other, and nobody asks how long they are: the
// program says so, and here it is looked at. In shared memory tiles begin at multiples of 1024, and
// what else there is follows in the order of the declarations, each at a multiple of its words.
#pragma once
#include "exec/machine.h"

namespace kw::exec {

// Each reports the fault exec.alignment where it is not so.

// A bulk copy from element `at` of a scratch to all of a slot of a row ring.
bool may_copy_rows(Machine& m, const tl::Stmt& s, int64_t at, const SharedSlot& to);
// Rows of a tensor of which eight elements are copied at a time, or more, by threads or by the copy
// engine: of a scratch, each begins at a multiple of their bytes.
bool rows_are_chunks(Machine& m, const tl::Stmt& s, const Global& g);
// Rows that a warp writes two elements at a time.
bool rows_are_pairs(Machine& m, const tl::Stmt& s, const Global& g);

// Where `bytes` bytes of shared memory lie that begin at a multiple of `word`, behind what the
// thread block has so far.
int64_t place_shared(ThreadBlock& block, int64_t word, int64_t bytes);

}  // namespace kw::exec
