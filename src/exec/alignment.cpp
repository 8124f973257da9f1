#include "exec/alignment.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::exec {

using tl::Stmt;

namespace {

constexpr int64_t kBulk = 16, kChunk = 8;  // bytes; elements
constexpr int64_t kFloat = 4;

bool misaligned(Machine& m, const Stmt& s, const std::string& what, int64_t bytes, int64_t due) {
  m.faults.raise(
      "exec.alignment", &s,
      fmt::format("{}: {} {} bytes, which is no multiple of {}", cite(s), what, bytes, due));
  return false;
}

// Rows of a scratch, each `row` bytes, of which `due` bytes are moved at a time.
bool rows_are_multiples(Machine& m, const Stmt& s, const Global& g, int64_t due) {
  if (!g.scratch || g.data.rank() < 2) return true;
  const int64_t row = g.data.shape.back() * int64_t(bytes(g.data.dtype));
  return row % due == 0 || misaligned(m, s, "a row of the scratch takes", row, due);
}

}  // namespace

bool may_copy_rows(Machine& m, const Stmt& s, int64_t at, const SharedSlot& to) {
  if (at * kFloat % kBulk)
    return misaligned(m, s, "it copies from a scratch from", at * kFloat, kBulk);
  if (to.tile.rows * kFloat % kBulk)
    return misaligned(m, s, "it copies", to.tile.rows * kFloat, kBulk);
  if (to.address % kBulk)
    return misaligned(m, s, "the slot begins in shared memory at", to.address, kBulk);
  return true;
}

bool rows_are_chunks(Machine& m, const Stmt& s, const Global& g) {
  return rows_are_multiples(m, s, g, std::max(kChunk * int64_t(bytes(g.data.dtype)), kChunk));
}

bool rows_are_pairs(Machine& m, const Stmt& s, const Global& g) {
  return rows_are_multiples(m, s, g, 2 * int64_t(bytes(g.data.dtype)));
}

int64_t place_shared(ThreadBlock& block, int64_t word, int64_t bytes) {
  const int64_t at = (block.shared_bytes + word - 1) / word * word;
  block.shared_bytes = at + bytes;
  return at;
}

}  // namespace kw::exec
