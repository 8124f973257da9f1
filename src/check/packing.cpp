#include "check/packing.h"

#include <algorithm>

namespace kw::check {
namespace {

// The letter of the heads of this argument; "" for what has none.
std::string heads_of(const tl::Program& program, const std::string& argument) {
  const tl::Stmt* args = program.find(tl::Op::args);
  if (!args) return "";
  for (const tl::Stmt& s : args->body) {
    if (s.op != tl::Op::arg_tensor && s.op != tl::Op::arg_tiled) continue;
    for (const tl::Item& d : s.names())
      if (d.name == argument && s.dims().size() == 4) return s.dims()[1].name;
  }
  return "";
}

int64_t rows_of(const Case& c, int64_t queries) {
  return static_cast<int64_t>(c.heads.size()) / c.key_heads * queries;
}

}  // namespace

bool packs_heads(const tl::Program& program) {
  const std::string q = heads_of(program, "q");
  return !q.empty() && q == heads_of(program, "k");
}

UserRow user_row(const Case& c, int64_t queries, int64_t head, int64_t row) {
  if (!c.packed) return {head, row};
  const int64_t group = static_cast<int64_t>(c.heads.size()) / c.key_heads;
  return {head * group + row / queries, row % queries};
}

void pack_rows(const Case& c, Tensor& t) {
  if (!c.packed) return;
  t.shape[2] = rows_of(c, t.shape[2]);
  t.shape[1] = c.key_heads;
}

void unpack_rows(const Case& c, int64_t queries, Tensor& t) {
  const bool fits = t.rank() >= 3 && t.shape[1] == c.key_heads && t.shape[2] == rows_of(c, queries);
  if (!c.packed || !fits) return;
  t.shape[1] = static_cast<int64_t>(c.heads.size());
  t.shape[2] = queries;
}

void unpack(const Case& c, int64_t queries, exec::Outcome& run) {
  if (!c.packed) return;
  for (auto& [name, t] : run.outputs) unpack_rows(c, queries, t);
}

std::vector<Visit> visits_of(const Case& c, int64_t queries, const exec::Outcome& run) {
  std::vector<Visit> out;
  for (const exec::Contraction& e : run.contractions) {
    const int64_t first = e.rows.first, end = std::min(first + e.row_count, rows_of(c, queries));
    Visit visit{batch_of(e.rows), head_of(e.rows), first,    e.row_count,
                e.summed.first,   e.summed_count,  e.masked, e.into};
    if (!c.packed) out.push_back(visit);
    for (int64_t row = first; c.packed && row < end; ++row) {
      const UserRow at = user_row(c, queries, head_of(e.rows), row);
      visit.head = at.head, visit.row = at.query, visit.rows = 1;
      out.push_back(visit);
    }
  }
  return out;
}

}  // namespace kw::check
