// clang-format off
// A side without a batch is the same for all of them.
//
//   b: in element[B, H, K, N]                        ->  b: in element[E, F, K, N]
//   cp_async_tile b[c.b, c.h, k * BK, n * BN] ...  ->  cp_async_tile b[0, 0, k * BK, n * BN]
//   with E, F: size
//
// When     the function reads the side at no batch (or head), while the other side has one.
// Effect   none.
// clang-format on
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "transfer/editing/declarations.h"
#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

using spec::ExprPtr;
using tl::Op;
using tl::Stmt;

namespace {

bool shared(Edit& edit, const spec::Operand& operand, const std::string& name) {
  const auto lacks = [&](const char* index, const spec::Size& size) {
    const bool one = size.name.empty() && size.constant == 1;
    return !one && std::none_of(operand.indices.begin(), operand.indices.end(),
                                [&](const ExprPtr& e) { return e->name == index; });
  };
  const bool no_batch = lacks("b", edit.form.B), no_head = lacks("h", edit.form.H);
  if (!no_batch && !no_head) return true;
  const Stmt* declared = declaration_of_argument(edit.result.program, name);
  std::string dims;
  std::vector<std::string> added;
  for (size_t n = 0; n < 4; ++n) {
    std::string letter = declared->dims()[n].name;
    if ((n == 0 && no_batch) || (n == 1 && no_head)) {
      letter = edit.fresh_letter();
      added.push_back(letter);
    }
    dims += (n ? ", " : "") + letter;
  }
  const bool tiled = declared->op == Op::arg_tiled;
  const Found at =
      place_of(edit.result.program.body, [&](const Stmt& s) { return &s == declared; });
  at.block->erase(at.block->begin() + at.at);
  if (!edit.insert(at, fmt::format("{}: {}in element[{}]", name, tiled ? "tiled " : "", dims)))
    return false;
  for (const std::string& letter : added) {
    if (!edit.add_argument(Op::arg_size, letter + ": size") ||
        !edit.condition(letter + " == 1", "this side is the same in all batches"))
      return false;
  }
  tl::walk(edit.result.program.body, [&](Stmt& s) {
    if (!copies_in(s.op) || tl::base_name(s.tensor()) != name) return;
    if (no_batch) s.batch() = tl::integer(0);
    if (no_head) s.head() = tl::integer(0);
  });
  return true;
}

}  // namespace

bool rule_batches(Edit& edit) {
  for (const auto& [operand, name] :
       {std::pair(&edit.form.product->a, edit.f.a), {&edit.form.product->b, edit.f.b}})
    if (!shared(edit, *operand, name)) return false;
  return true;
}

}  // namespace kw::transfer::gemm
