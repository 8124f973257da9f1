// What the rules take for granted, the element type, and which argument is which.
//
//   element bf16  ->  element f16
//
// When     always. A left side whose rows do not follow each other in memory (a transposed one)
//          is refused: 16 bytes of a row are copied at once.
// Effect   none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "transfer/families/gemm/rows.h"
#include "transfer/families/gemm/rules/rules.h"

namespace kw::transfer::gemm {

using tl::Op;
using tl::Stmt;

bool rule_product(Edit& edit) {
  const spec::Product& p = *edit.form.product;
  edit.right_rows = edit.has_right_rows || sums_along_rows(p.b, edit.form);
  if (!edit.bind(p.a, edit.f.a, "i", "d") ||
      !(edit.right_rows ? edit.bind(p.b, edit.f.b, "j", "d") : edit.bind(p.b, edit.f.b, "d", "j")))
    return false;
  if (edit.form.returns("o"))
    edit.result.bindings.push_back({edit.f.o, "", edit.dims_of_output(true)});
  for (Stmt& s : edit.result.program.body)
    if (s.op == Op::element && s.type() != kw::name(edit.form.dtype)) {
      std::optional<Stmt> own = tl::parse_statement(
          fmt::format("element {}", kw::name(edit.form.dtype)), edit.diagnostics);
      if (!own) return false;
      s = std::move(*own);
    }
  const std::pair<const spec::Size*, std::string> sizes[] = {{&edit.form.B, edit.f.batch},
                                                             {&edit.form.H, edit.f.head},
                                                             {&edit.form.M, edit.f.rows},
                                                             {&edit.form.N, edit.f.columns},
                                                             {&edit.form.D, edit.f.sum}};
  std::map<std::string, std::string> seen;
  for (const auto& [size, letter] : sizes) {
    if (size->name.empty()) {
      if (!edit.condition(fmt::format("{} == {}", letter, size->constant),
                          "the function fixes this size"))
        return false;
      continue;
    }
    const auto [at, fresh] = seen.emplace(size->name, letter);
    if (!fresh && !edit.condition(fmt::format("{} == {}", letter, at->second),
                                  "the function has one size for both"))
      return false;
    edit.letters.emplace(size->name, letter);
  }
  for (const std::string& letter : {edit.f.sum, edit.f.columns})
    if ((letter == edit.f.sum || !edit.right_rows || edit.form.returns("o")) &&
        !edit.condition(letter + " % 8 == 0", "16 bytes of a row are copied at once"))
      return false;
  return true;
}

}  // namespace kw::transfer::gemm
