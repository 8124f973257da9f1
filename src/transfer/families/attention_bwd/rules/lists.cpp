// Query blocks in which a block of keys keeps nothing are not visited where it is the data that
// says so: the forward rule (attention/rules/lists.cpp) with rows and columns exchanged.
//
//   let m = queries.first + x % queries.count   ->   let m = query_block(c, x % queries.count)
//   def query_blocks(c: Block):
//       ...                                     ->   let list = first_word(c)
//                                                    return visits[list + 1], max(1, visits[list])
//   record Queries: first, count                ->   record Queries: full, count
//   if (c.n + 1) * BN > N or ...:               ->   if (c.n + 1) * BN > N or
//                                                       x % queries.count >= queries.full:
//   with the pre-pass of transfer/editing/lists.h, and `def query_block(c: Block, n: index)`
//
// When     the form's keep predicate reads ints or bools at positions that depend on the query or
//          the key, and its intervals over a tile depend on what is read; and it is the same for
//          all heads, since those that share keys have one list. A block of keys that no query sees
//          has one visit all the same, of block 0, in which all is masked.
// Effect   none: blocks that keep nothing are left out, blocks that keep all are not masked.
#include "transfer/editing/lists.h"

#include <fmt/format.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention_bwd/edit.h"
#include "transfer/masks/sparse.h"

namespace kw::transfer::bwd {
namespace {

using tl::Op;
using tl::Stmt;

ListPlan plan_of(Edit& edit) {
  return {exchanged(edit.keep),
          "N",
          "M",
          tl::name("BN"),
          tl::name("BM"),
          "B",
          "H",
          edit.queries_def()->params().at(0),
          "n",
          "g",
          "b",
          nullptr,
          "query_blocks"};
}

// Where a block of queries is counted, its number is a list's entry.
int number_blocks(std::vector<Stmt>& body, const std::string& numbered) {
  int found = 0;
  for (Stmt& s : body) {
    if (s.op == Op::let)
      for (tl::Item& d : s.names())
        if (d.name == "m" && tl::print(d.expr) == "queries.first + x % queries.count") {
          d.expr = tl::call(numbered, {tl::name("c"), d.expr->args[1]});
          ++found;
        }
    found += number_blocks(s.body, numbered);
  }
  return found;
}

bool write_functions(Edit& edit, const ListWriter& list, const tl::Item& block,
                     const std::string& numbered) {
  const std::string first = fmt::format("let list = {}({})", list.first_word(), block.name);
  Stmt* record = nullptr;
  for (Stmt& s : edit.program.body)
    if (s.op == Op::record && s.name() == edit.queries_def()->result()) record = &s;
  if (!record || record->names().size() != 2) return false;
  record->names()[0].name = "full";
  std::vector<tl::Item> parameters(2, block);
  parameters[1].name = "n";
  parameters[1].type = "index";
  const std::vector<std::string> of_block = {
      first, fmt::format("return {0}[list + 1], max(1, {0}[list])", list.visits())};
  const std::vector<std::string> of_visit = {
      first, fmt::format("return where({0}[list] == 0, 0, {0}[list + {1} + n])", list.visits(),
                         list.header())};
  return edit.replace(edit.queries_def()->body, of_block) &&
         insert_function(edit, "query_blocks", numbered, parameters, "index", of_visit);
}

}  // namespace

bool rule_lists(Edit& edit) {
  if (!edit.keep || spec::mentions(edit.keep, spec::Kind::index, "h")) return true;
  const ListPlan plan = plan_of(edit);
  if (!reads_the_tile(plan.keep)) return true;
  ListWriter list(edit, plan);
  if (!list.says_something()) return true;
  const tl::ExprPtr masked =
      tl::parse_expr("(c.n + 1) * BN > N or x % queries.count >= queries.full", edit.diagnostics);
  const std::string numbered = edit.fresh({"query_block", "visited_block"});
  if (!masked || !list.write() || !write_functions(edit, list, plan.block, numbered)) return false;
  // By whoever loads and whoever multiplies, and where another adds dQ, there too.
  if (number_blocks(edit.program.body, numbered) < 2)
    return edit.refuse_kernel(
        "does not count its blocks of queries for loader and consumers alike");
  edit.seen = Edit::Seen::listed;
  edit.mask().items(tl::Hole::condition).at(0).expr = masked;
  edit.result.notes.push_back(
      "which blocks of queries are visited depends on data: a pre-pass lists them before the "
      "kernel");
  return true;
}

}  // namespace kw::transfer::bwd
