// What a backward kernel reads: the output as it is before it is rounded, beside the log-sums.
//
//   store_rows lse_r -> ...   ->   the same, and behind the map that divides the output by its sum
//                                  store_accumulator acc -> o_f32[c.b, c.h, i0]
//   slack: f32 = 8.0 / scale  ->   slack: f32 = 0.0
//   toggle CHECK_LATE = true  ->   toggle CHECK_LATE = false
//
// When     the form saves (a forward kernel of training).
// Effect   none on the output. The reference of a row follows its maximum at once: the weight of
// its
//          largest score is then exactly 1 and loses nothing where weights are rounded to the
//          values' type. Gradients of a row in which one key outweighs all others need that: what
//          they are made of is do . v - do . o, which nearly cancel there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transfer/editing/declarations.h"
#include "transfer/families/attention/rules/rules.h"

namespace kw::transfer {
namespace {

using tl::Op;
using tl::Stmt;

bool follow_the_maximum(Edit& edit) {
  const Stmt* online_max = nullptr;
  tl::walk(edit.program.body, [&](const Stmt& s) {
    if (s.op == Op::online_max) online_max = &s;
  });
  if (!online_max || online_max->threshold()->kind != tl::ExprKind::name)
    return edit.refuse("transfer.kernel", {},
                       "this kernel has no `online_max` with an argument as its threshold", "");
  for (Stmt& a : args_of(edit.program).body)
    if (a.op == Op::arg_f32)
      for (tl::Item& item : a.names())
        if (item.name == online_max->threshold()->text) item.expr = tl::real(0);
  if (tl::Item* late = constant_named(edit.program, "CHECK_LATE")) late->expr = tl::name("false");
  return true;
}

}  // namespace

bool rule_saves(Edit& edit) {
  if (!edit.form.saves) return true;
  const Stmt* store = nullptr;
  tl::walk(edit.program.body, [&](const Stmt& s) {
    if (s.op == Op::store_rows && tl::base_name(s.tensor()) == edit.facts.lse) store = &s;
  });
  const Stmt *map = output_map_of(edit.program),
             *o = declaration_of_argument(edit.program, edit.facts.o);
  if (!store || !map || !o || edit.group > 1)
    return edit.refuse("transfer.kernel", {},
                       edit.group > 1 ? "rows of one query are heads here, of which none is saved"
                                      : "this kernel has no map of its output",
                       "");
  if (edit.fresh({"o_f32"}) != "o_f32")
    return edit.refuse("transfer.kernel", {}, "this kernel has a name 'o_f32' of its own", "");
  std::vector<std::string> dims;
  for (const tl::Item& d : o->dims()) dims.push_back(d.name);
  const std::string argument = fmt::format("o_f32: out f32[{}]", fmt::join(dims, ", ")),
                    text = fmt::format("store_accumulator {} -> o_f32[{}, {}, {}]",
                                       tl::base_name(map->target()), tl::print(store->batch()),
                                       tl::print(store->head()), tl::print(store->row()));
  Place behind{nullptr, 0};
  tl::walk(edit.program.body, [&](Stmt& s) {
    for (size_t n = 0; n < s.body.size(); ++n)
      if (&s.body[n] == map) behind = {&s.body, n + 1};
  });
  std::vector<Stmt>& args = args_of(edit.program).body;
  size_t at = 0;
  while (at < args.size() && (args[at].op == Op::arg_tiled || args[at].op == Op::arg_tensor)) ++at;
  if (!behind.block || !edit.insert(behind, text) || !edit.insert({&args, at}, argument))
    return false;
  edit.result.bindings.push_back({edit.facts.lse, "", {0, 1, 2}});
  edit.result.bindings.push_back({"o_f32", "", {0, 1, 2, 3}});
  return edit.normaliser != spec::Normaliser::softmax || follow_the_maximum(edit);
}

}  // namespace kw::transfer
