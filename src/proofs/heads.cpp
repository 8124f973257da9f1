#include "proofs/heads.h"

#include <algorithm>

#include "operator/family.h"

namespace kw::proofs {
namespace {

using spec::Kind;
using SpecPtr = spec::ExprPtr;

// The dimension along which an operand has its heads, or -1 where it has one for all.
int place_of_heads(const spec::Operand& o) {
  for (size_t n = 0; n < o.indices.size(); ++n)
    if (spec::mentions(o.indices[n], Kind::index, "h")) return int(n);
  return -1;
}

bool is_of_queries(const spec::Operand& o) {
  return std::any_of(o.indices.begin(), o.indices.end(),
                     [](const SpecPtr& e) { return spec::mentions(e, Kind::index, "i"); });
}

}  // namespace

bool may_vary(const spec::Form& form) {
  return !form.terms.empty() && form.H.name.empty() && form.G.name.empty() && form.H.constant > 1 &&
         spec::heads_are_alike(form) && form.heads != spec::Form::Heads::own;
}

spec::Form with_heads(const spec::Form& form, Heads which) {
  spec::Form out = form;
  if (which == Heads::own) return out;
  const spec::Size all{heads::kQueries, 0},
      groups = form.G.constant == 1 ? form.G : spec::Size{heads::kKeys, 0};
  const auto extent = [&](const std::string& argument, size_t d) -> spec::Size* {
    for (spec::Argument& a : out.arguments)
      if (a.name == argument && d < a.dims.size()) return &a.dims[d];
    return nullptr;
  };
  const auto has = [](const spec::Size* s, const spec::Size& of) {
    return s && s->name.empty() && s->constant == of.constant;
  };
  out.H = all;
  out.G = groups;
  const SpecPtr shared = spec::binary(
      "//", spec::leaf(Kind::index, spec::Type::integer, "h"),
      which == Heads::grouped ? spec::integer(form.H.constant / form.G.constant)
                              : spec::leaf(Kind::size, spec::Type::integer, heads::kRatio));
  const spec::Family& family = spec::Family::of(form);
  family.each_operand(out, [&](spec::Operand& o) {
    const int d = place_of_heads(o);
    if (d < 0) return;
    const bool queries = is_of_queries(o);
    spec::Size* const dim = extent(o.argument, d);
    if (has(dim, queries ? form.H : form.G)) *dim = queries ? all : groups;
    if (!queries) o.indices[d] = shared;
  });
  family.each_expression(out, [&](SpecPtr& e, const spec::Extents&) {
    if (!e) return;
    spec::rewrite(e, [&](const SpecPtr& x) {
      if (x->kind != Kind::read) return SpecPtr();
      for (size_t d = 0; d < x->args.size(); ++d)
        if (x->args[d]->kind == Kind::index && x->args[d]->name == "h")
          if (spec::Size* const dim = extent(x->name, d); has(dim, form.H)) *dim = all;
      return SpecPtr();
    });
  });
  return out;
}

bool counts_heads(const std::string& term) { return term.find("heads.") != std::string::npos; }

}  // namespace kw::proofs
