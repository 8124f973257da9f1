// Views: the element is an element of the operand, at other indices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "operator/graph/normalise.h"

namespace kw::spec {
namespace {

ExprPtr same(Elements& g, const Node& n, const Indices& at) {
  return g.element(n.args[0].node, at);
}

// Whether a root or a logarithm in it may be of a number below 0.
bool may_be_none(const ExprPtr& e) {
  const bool of_positive =
      (e->kind == Kind::unary && (e->name == "sqrt" || e->name == "rsqrt" || e->name == "log" ||
                                  e->name == "log2" || e->name == "log1p")) ||
      (e->kind == Kind::binary && e->name == "**" &&
       !(e->args[1]->kind == Kind::number && std::trunc(e->args[1]->value) == e->args[1]->value));
  return of_positive || std::any_of(e->args.begin(), e->args.end(), may_be_none);
}

// Rows without a key are zero here already; infinities become the largest numbers there are.
ExprPtr finite(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr of = same(g, n, at);
  if (of && may_be_none(of))
    return g.refuse(n,
                    "aten.nan_to_num is read as what it leaves of numbers, and a root or a "
                    "logarithm in its operand may be none",
                    "clamp what the root or the logarithm is taken of");
  return rewrite(of, [](const ExprPtr& e) -> ExprPtr {
    return e->kind == Kind::infinity ? real(std::numeric_limits<float>::max()) : nullptr;
  });
}

// Where groups of dimensions of two shapes with the same product end.
struct Group {
  size_t from, to;
};

// Null when the products do not meet. Grows the side whose product divides the other's.
std::optional<Group> next_group(const std::vector<ExprPtr>& from, size_t a,
                                const std::vector<ExprPtr>& to, size_t b) {
  ExprPtr left = a < from.size() ? from[a++] : integer(1);
  ExprPtr right = b < to.size() ? to[b++] : integer(1);
  while (!equal(left, right)) {
    const bool grow_left = a < from.size() && (b == to.size() || divides(left, right));
    if (grow_left)
      left = binary("*", left, from[a++]);
    else if (b < to.size())
      right = binary("*", right, to[b++]);
    else
      return std::nullopt;
  }
  return Group{a, b};
}

// The flat index over a group of the result's dimensions is taken apart into the operand's.
ExprPtr reshape(Elements& g, const Node& n, const Indices& at) {
  const std::vector<ExprPtr>& from = g.node(n.args[0].node).shape;
  Indices out(from.size());
  size_t a = 0, b = 0;  // dimensions of `from` and of n.shape that are done
  while (a < from.size() || b < n.shape.size()) {
    const std::optional<Group> end = next_group(from, a, n.shape, b);
    if (!end)
      return g.refuse(n,
                      fmt::format("aten.{} rearranges sizes in a way that is not supported", n.op));
    ExprPtr flat = integer(0);
    for (; b < end->to; ++b) flat = binary("+", binary("*", flat, n.shape[b]), at[b]);
    for (size_t d = end->from; d-- > a;) {
      if (is_number(from[d], 1)) {
        out[d] = integer(0);
      } else if (d == a) {
        out[d] = flat;
      } else {
        const Elements::Split s = g.split(flat, from[d]);
        out[d] = s.remainder;
        flat = s.quotient;
      }
    }
    a = end->from;
  }
  return g.element(n.args[0].node, out);
}

ExprPtr expand(Elements& g, const Node& n, const Indices& at) { return g.broadcast(n.args[0], at); }

ExprPtr unsqueeze(Elements& g, const Node& n, const Indices& at) {
  Indices out = at;
  out.erase(out.begin() + wrap(n.args[1].integer, n.rank()));
  return g.element(n.args[0].node, out);
}

ExprPtr squeeze(Elements& g, const Node& n, const Indices& at) {
  const Node& x = g.node(n.args[0].node);
  std::vector<bool> dropped(x.rank(), n.args.size() < 2);
  if (n.args.size() > 1 && n.args[1].kind == Value::Kind::list)
    for (const Value& d : n.args[1].list) dropped[wrap(d.integer, x.rank())] = true;
  else if (n.args.size() > 1)
    dropped[wrap(n.args[1].integer, x.rank())] = true;
  Indices out;
  size_t next = 0;
  for (int d = 0; d < x.rank(); ++d)
    out.push_back(dropped[d] && is_number(x.shape[d], 1) ? integer(0) : at[next++]);
  return g.element(n.args[0].node, out);
}

ExprPtr swapped(Elements& g, const Node& n, Indices at, int64_t a, int64_t b) {
  std::swap(at[wrap(a, n.rank())], at[wrap(b, n.rank())]);
  return g.element(n.args[0].node, at);
}

ExprPtr transpose(Elements& g, const Node& n, const Indices& at) {
  return swapped(g, n, at, n.args[1].integer, n.args[2].integer);
}

ExprPtr transpose_last(Elements& g, const Node& n, const Indices& at) {
  return n.rank() < 2 ? same(g, n, at) : swapped(g, n, at, -1, -2);
}

ExprPtr permute(Elements& g, const Node& n, const Indices& at) {
  Indices out(at.size());
  for (size_t d = 0; d < at.size(); ++d) out[wrap(n.args[1].list[d].integer, n.rank())] = at[d];
  return g.element(n.args[0].node, out);
}

ExprPtr movedim(Elements& g, const Node& n, const Indices& at) {
  if (n.overload != "int")
    return g.refuse(n, "aten.movedim of several dimensions is not supported", "use permute");
  const int from = wrap(n.args[1].integer, n.rank()), to = wrap(n.args[2].integer, n.rank());
  Indices out = at;
  const ExprPtr moved = out[to];
  out.erase(out.begin() + to);
  out.insert(out.begin() + from, moved);
  return g.element(n.args[0].node, out);
}

// slice(x, dim, start, end, step): a negative start counts from the end.
ExprPtr slice(Elements& g, const Node& n, const Indices& at) {
  const int d = wrap(n.integer(1, "dim", 0), n.rank());
  ExprPtr start = n.arg(2, "start").expr();
  if (!start) start = integer(0);
  if (start->kind == Kind::number && start->integer < 0)
    start = binary("+", g.node(n.args[0].node).shape[d], start);
  Indices out = at;
  out[d] = binary("+", binary("*", at[d], integer(n.integer(4, "step", 1))), start);
  return g.element(n.args[0].node, out);
}

ExprPtr select(Elements& g, const Node& n, const Indices& at) {
  const int rank = n.rank() + 1, d = wrap(n.args[1].integer, rank);
  ExprPtr position = n.args[2].expr();
  if (!position) return g.refuse(n, "aten.select at an index that is a tensor is not supported");
  if (position->kind == Kind::number && position->integer < 0)
    position = binary("+", g.node(n.args[0].node).shape[d], position);
  Indices out = at;
  out.insert(out.begin() + d, position);
  return g.element(n.args[0].node, out);
}

// unbind, split and chunk make several tensors, taken by getitem.
ExprPtr getitem(Elements& g, const Node& n, const Indices& at) {
  const Node& several = g.node(n.args[0].node);
  const Node& x = g.node(several.args[0].node);
  const int64_t which = n.args[1].integer;
  Indices out = at;
  if (several.op == "unbind") {
    out.insert(out.begin() + wrap(several.integer(1, "dim", 0), x.rank()), integer(which));
    return g.element(several.args[0].node, out);
  }
  if (several.op == "max" && which == 0) return g.element(n.args[0].node, at);
  const bool equal_parts =
      several.op == "chunk" || (several.op == "split" && several.args[1].kind != Value::Kind::list);
  if (!equal_parts)
    return g.refuse(
        several,
        fmt::format("aten.{} makes several tensors in a way that is not supported", several.op));
  const int d = wrap(several.integer(2, "dim", 0), x.rank());
  // All parts but the last are as long as the first, which is the length that the graph gives.
  out[d] = binary("+", at[d], binary("*", several.shape[d], integer(which)));
  return g.element(several.args[0].node, out);
}

ExprPtr repeat(Elements& g, const Node& n, const Indices& at) {
  const Node& x = g.node(n.args[0].node);
  const size_t added = at.size() - x.rank();
  Indices out;
  for (int d = 0; d < x.rank(); ++d) {
    const bool once =
        n.args[1].list[added + d].expr() && is_number(n.args[1].list[added + d].expr(), 1);
    out.push_back(is_number(x.shape[d], 1) ? integer(0)
                  : once                   ? at[added + d]
                                           : g.split(at[added + d], x.shape[d]).remainder);
  }
  return g.element(n.args[0].node, out);
}

ExprPtr repeat_interleave(Elements& g, const Node& n, const Indices& at) {
  const ExprPtr times = n.args.size() > 1 ? n.args[1].expr() : nullptr;
  const Value& dim = n.arg(2, "dim");
  if (!times || !dim.is_number())
    return g.refuse(n, "aten.repeat_interleave needs one number of repeats and a dimension");
  const int d = wrap(dim.integer, n.rank());
  Indices out = at;
  out[d] = g.split(at[d], times).quotient;
  return g.element(n.args[0].node, out);
}

ExprPtr flip(Elements& g, const Node& n, const Indices& at) {
  Indices out = at;
  for (const Value& v : n.args[1].list) {
    const int d = wrap(v.integer, n.rank());
    out[d] = binary("-", binary("-", n.shape[d], integer(1)), at[d]);
  }
  return g.element(n.args[0].node, out);
}

// cat([a, b, ...], dim): the first of them that the index lies in.
ExprPtr cat(Elements& g, const Node& n, const Indices& at) {
  const int d = wrap(n.integer(1, "dim", 0), n.rank());
  const std::vector<Value>& parts = n.args[0].list;
  ExprPtr end = integer(0);
  std::vector<ExprPtr> starts;
  for (const Value& part : parts) {
    starts.push_back(end);
    end = binary("+", end, g.node(part.node).shape[d]);
  }
  ExprPtr out;
  for (size_t p = parts.size(); p-- > 0;) {
    Indices own = at;
    own[d] = binary("-", at[d], starts[p]);
    const ExprPtr x = g.element(parts[p].node, own);
    out = out ? where(binary("<", at[d], starts[p + 1]), x, out) : x;
  }
  return out ? out : g.refuse(n, "aten.cat of nothing");
}

// stack([a, b, ...], dim): the one whose number the index of the new dimension is.
ExprPtr stack(Elements& g, const Node& n, const Indices& at) {
  const int d = wrap(n.integer(1, "dim", 0), n.rank());
  const std::vector<Value>& parts = n.args[0].list;
  Indices own = at;
  own.erase(own.begin() + d);
  ExprPtr out;
  for (size_t p = parts.size(); p-- > 0;) {
    const ExprPtr x = g.element(parts[p].node, own);
    out = out ? where(binary("==", at[d], integer(static_cast<int64_t>(p))), x, out) : x;
  }
  return out ? out : g.refuse(n, "aten.stack of nothing");
}

// pad(x, [before, after of the last dimension, then of the one before, ...], value)
ExprPtr pad(Elements& g, const Node& n, const Indices& at) {
  const bool constant = n.op == "constant_pad_nd" || n.arg(2, "mode").kind != Value::Kind::text ||
                        n.arg(2, "mode").text == "constant";
  if (!constant) return g.refuse(n, "padding with values of the tensor is not supported");
  const Value& given = n.arg(n.op == "pad" ? 3 : 2, "value");
  const ExprPtr filling = given.kind == Value::Kind::none ? real(0) : given.expr();
  Indices own = at;
  ExprPtr inside = boolean(true);
  const std::vector<Value>& widths = n.args[1].list;
  for (size_t w = 0; w + 1 < widths.size(); w += 2) {
    const int d = n.rank() - 1 - static_cast<int>(w / 2);
    const ExprPtr before = widths[w].expr(), size = g.node(n.args[0].node).shape[d];
    if (!before) return g.refuse(n, "padding by a tensor's value is not supported");
    own[d] = binary("-", at[d], before);
    inside = binary("and", inside, binary("<=", before, at[d]));
    inside = binary("and", inside, binary("<", own[d], size));
  }
  return where(inside, g.element(n.args[0].node, own), filling);
}

}  // namespace

const std::map<std::string_view, ElementOf>& view_operators() {
  static const std::map<std::string_view, ElementOf> table = {
      {"view", reshape},
      {"reshape", reshape},
      {"_unsafe_view", reshape},
      {"flatten", reshape},
      {"unflatten", reshape},
      {"expand", expand},
      {"expand_as", expand},
      {"broadcast_to", expand},
      {"unsqueeze", unsqueeze},
      {"squeeze", squeeze},
      {"transpose", transpose},
      {"swapaxes", transpose},
      {"swapdims", transpose},
      {"t", transpose_last},
      {"mT", transpose_last},
      {"mH", transpose_last},
      {"adjoint", transpose_last},
      {"permute", permute},
      {"movedim", movedim},
      {"slice", slice},
      {"narrow", [](Elements& g, const Node& n, const Indices& at) { return slice(g, n, at); }},
      {"select", select},
      {"getitem", getitem},
      {"repeat", repeat},
      {"repeat_interleave", repeat_interleave},
      {"flip", flip},
      {"cat", cat},
      {"concat", cat},
      {"concatenate", cat},
      {"stack", stack},
      {"pad", pad},
      {"constant_pad_nd", pad},
      // The same elements in other memory.
      {"clone", same},
      {"contiguous", same},
      {"alias", same},
      {"detach", same},
      {"detach_", same},
      {"lift_fresh_copy", same},
      {"lift_fresh", same},
      {"dropout", same},  // capture lets it pass only where it does nothing
      {"nan_to_num", finite},
  };
  return table;
}

}  // namespace kw::spec
