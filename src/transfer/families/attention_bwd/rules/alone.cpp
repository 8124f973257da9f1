// Heads that share nothing: no block of keys has more than one head's queries.
//
//   let group = H // G                              ->
//   for t, x in range_down_rolled(group * queries.count - 1, 0):
//                                                   ->   ... (queries.count - 1, 0):
//   let h = c.g * group + x // queries.count        ->   let h = c.g
//   let m = queries.first + x % queries.count       ->   let m = queries.first + x
//
// When     the function has as many heads of keys as of queries. The launch is held to H == G then,
//          as it is to the heads of every other form.
// Why      a division by a number that the compiler does not know takes some twenty instructions
//          for each block of queries, in the loader and in the consumers: 1.4 % of a causal kernel.
// Effect   none: x is below queries.count.
#include "tl/traits.h"
#include "transfer/families/attention_bwd/edit.h"

namespace kw::transfer::bwd {
namespace {

bool is_integer(const tl::ExprPtr& e, const char* text) {
  return e->kind == tl::ExprKind::integer && e->text == text;
}

// Of a group of one; null where it says nothing else then.
tl::ExprPtr of_one(const tl::ExprPtr& e, const std::string& group) {
  if (e->is_name(group)) return tl::integer(1);
  if (e->kind != tl::ExprKind::binary) return nullptr;
  const tl::ExprPtr &a = e->args[0], &b = e->args[1];
  if (e->text == "*" && is_integer(a, "1")) return b;
  if ((e->text == "*" || e->text == "//") && is_integer(b, "1")) return a;
  if (e->text == "%" && is_integer(b, "1")) return tl::integer(0);
  if (e->text == "+" && is_integer(b, "0")) return a;
  if (tl::print(b) != "queries.count") return nullptr;
  if (e->text == "//") return tl::integer(0);
  return e->text == "%" ? a : nullptr;
}

}  // namespace

bool rule_alone(Edit& edit) {
  const int64_t heads = edit.form.H.constant;
  if (heads <= 0 || heads != edit.form.G.constant) return true;
  tl::Stmt* const kernel = edit.program.kernel();
  if (!kernel) return true;
  std::vector<tl::Stmt>& body = kernel->body;
  for (size_t n = 0; n < body.size(); ++n) {
    if (body[n].op != tl::Op::let || body[n].names().size() != 1 ||
        tl::print(body[n].names()[0].expr) != "H // G")
      continue;
    const std::string group = body[n].names()[0].name;
    body.erase(body.begin() + std::ptrdiff_t(n));
    tl::walk(body, [&](tl::Stmt& s) {
      tl::each_expression(s, [&](tl::ExprPtr& e) {
        e = tl::rewrite(e, [&](const tl::ExprPtr& part) { return of_one(part, group); });
      });
    });
    return true;
  }
  return true;
}

}  // namespace kw::transfer::bwd
