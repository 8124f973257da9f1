// Before   q: in element[B, H, M, D]; B, H, G, M, N: size; blocks: size = ceil_div(M, BM) * H * B;
//          let g = c.h // (H // G)
// After    q: in element[B, G, R, D]; B, G, R, N: size; blocks: size = ceil_div(R, BM) * G * B;
//          let g = c.h
// When     the user's code fixes one query, and several heads share a key head. Scores, masks and
//          outputs that read a head's number are left as they are, one head a tile.
// Effect   none: the same sums in the same order, of other rows of a tile.
#include "transfer/families/attention/pack.h"

#include <algorithm>

namespace kw::transfer {
namespace {

using spec::Kind;
using tl::ExprPtr;

// As a packed kernel has it: the one query is 0, and the key head, h // (H // G), is the kernel's
// own head, h. Null where the head's number is read otherwise, which a row of the kernel has no
// name for.
spec::ExprPtr in_packed(const spec::ExprPtr& e, int64_t group) {
  const auto index = [](const char* name) {
    return spec::leaf(Kind::index, spec::Type::integer, name);
  };
  const spec::ExprPtr key_head = spec::binary("//", index("h"), spec::integer(group));
  const spec::ExprPtr own = index("own");
  const spec::ExprPtr out = spec::rewrite(e, [&](const spec::ExprPtr& x) -> spec::ExprPtr {
    if (spec::equal(x, key_head)) return own;
    return spec::equal(x, index("i")) ? spec::integer(0) : nullptr;
  });
  if (spec::mentions(out, Kind::index, "h")) return nullptr;
  return spec::rewrite(
      out, [&](const spec::ExprPtr& x) { return spec::equal(x, own) ? index("h") : nullptr; });
}

// The key head of k and v is the packed kernel's own head.
void at_key_head(spec::Operand& operand) {
  for (spec::ExprPtr& e : operand.indices)
    if (e->kind == Kind::binary && e->name == "//") e = e->args[0];
}

std::string free_letter(const tl::Program& program, const Facts& facts) {
  for (const char* letter : {"R", "Q", "P"}) {
    const bool taken = declaration_of_argument(program, letter) ||
                       constant_named(program, letter) || facts.batch == letter;
    if (!taken) return letter;
  }
  return "R";
}

// n // n is 1, and x // 1 is x.
ExprPtr folded(const ExprPtr& e) {
  if (e->kind != tl::ExprKind::binary || e->text != "//") return nullptr;
  const ExprPtr &a = e->args[0], &b = e->args[1];
  if (a->kind == tl::ExprKind::name && tl::equal(a, b)) return tl::integer(1);
  return b->kind == tl::ExprKind::integer && b->text == "1" ? a : nullptr;
}

}  // namespace

int64_t group_of(const spec::Form& form) {
  return form.G.constant > 0 ? form.H.constant / form.G.constant : 1;
}

bool is_packed(const Facts& facts) { return facts.heads == facts.groups; }

std::optional<spec::Form> packed_form(const spec::Form& form) {
  const bool one_query = form.M.name.empty() && form.M.constant == 1;
  if (!one_query || group_of(form) < 2 || form.terms.size() != 1) return {};
  spec::Form out = form;
  out.H = form.G;
  out.M = {"R", 0};
  spec::Term& term = out.terms[0];
  if (term.q.row || term.k.row || term.v.row) return {};
  for (spec::ExprPtr* e : {&term.score, &term.keep, &term.sink, &term.factor, &out.epilogue}) {
    if (!*e) continue;
    *e = in_packed(*e, group_of(form));
    if (!*e) return {};
  }
  at_key_head(term.k);
  at_key_head(term.v);
  return out;
}

tl::Program packed(const tl::Program& program, const Facts& facts) {
  tl::Program out = program;
  const std::string rows = free_letter(program, facts);
  const auto renamed = [&](const std::string& letter) {
    return letter == facts.heads ? facts.groups : letter == facts.queries ? rows : letter;
  };
  const auto change = [&](const ExprPtr& e) -> ExprPtr {
    if (e->kind == tl::ExprKind::name && renamed(e->text) != e->text)
      return tl::name(renamed(e->text));
    return folded(e);
  };
  tl::walk(out.body, [&](tl::Stmt& s) {
    tl::each_expression(s, [&](ExprPtr& e) { e = tl::rewrite(e, change); });
    if (s.op == tl::Op::arg_tensor || s.op == tl::Op::arg_tiled)
      for (tl::Item& dim : s.dims()) dim.name = renamed(dim.name);
    if (s.op != tl::Op::arg_size) return;
    std::vector<tl::Item>& sizes = s.names();
    std::erase_if(sizes, [&](const tl::Item& d) { return d.name == facts.heads; });
    for (tl::Item& d : sizes) d.name = renamed(d.name);
  });
  return out;
}

}  // namespace kw::transfer
