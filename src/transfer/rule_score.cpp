// What the score is beyond a multiple of s: written before the mask, in every block.
//
//   if mixed: ...   ->   map s[i, j] = tanh(s[i, j] * 0.02)
//                        if mixed: ...
//   if mixed: ...   ->   map_real s[i, j] from (i0, n * BN) = s[i, j] + slope * (j - i)
//                        if mixed: ...
//   with `unscale: f32 = log2e / scale` and `let slope = slopes[c.h] * unscale`
//
// When     score = c * core + bias (rule_scale took c), with a core other than s or a bias. The
// tile
//          becomes core + bias / c, so that the exponent scale * s is the score times log2e.
//          Factors that depend on the block alone are computed once for each block.
// Effect   bias / c is one rounding more than bias; `unscale` is 1 / c rounded twice. tanh and the
//          other functions are the device's approximations (tanh: 2^-11 relative). Coordinates are
//          reals, exact while M and N are at most 2^24 (a condition of the launch); where they
//          stand in // or % they are integers (map_at).
#include <fmt/format.h>

#include "spec/expr_fold.h"
#include "transfer/coordinates.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

// A node as it stands: the order of factors is chosen here.
ExprPtr node(const char* op, const ExprPtr& a, const ExprPtr& b) {
  spec::Expr e{Kind::binary, Type::real, op};
  e.args = {a, b};
  return spec::make(std::move(e));
}

ExprPtr product(const ExprPtr& a, const ExprPtr& b) { return !a ? b : !b ? a : node("*", a, b); }

bool is(const ExprPtr& e, const char* op) {
  return (e->kind == Kind::binary || e->kind == Kind::unary) && e->name == op;
}

struct Addend {
  bool negative;
  ExprPtr value;
};

void addends(const ExprPtr& e, bool negative, std::vector<Addend>& out) {
  if (e->type == Type::real && e->kind == Kind::binary && (is(e, "+") || is(e, "-"))) {
    addends(e->args[0], negative, out);
    addends(e->args[1], negative != is(e, "-"), out);
  } else if (e->type == Type::real && e->kind == Kind::unary && is(e, "-")) {
    addends(e->args[0], !negative, out);
  } else {
    out.push_back({negative, e});
  }
}

// The factors of a product, in two groups.
void factors(const ExprPtr& e, ExprPtr& of_block, ExprPtr& of_element) {
  if (e->type == Type::real && e->kind == Kind::binary && is(e, "*")) {
    factors(e->args[0], of_block, of_element);
    factors(e->args[1], of_block, of_element);
  } else if (has_coordinate(e)) {
    of_element = product(of_element, e);
  } else {
    of_block = product(of_block, e);
  }
}

std::string first_read(const ExprPtr& e) {
  if (e->kind == Kind::read) return e->name;
  for (const ExprPtr& a : e->args)
    if (std::string name = first_read(a); !name.empty()) return name;
  return "";
}

// Replaces the largest parts that depend on the block alone, and read or compute something from the
// batch or the head, by names of `let`s; b and h themselves are read where they stand.
ExprPtr hoist_parts(Edit& edit, const ExprPtr& e, const std::string& name) {
  if (e->kind == Kind::index) return e;
  const bool of_block =
      !varies_in_a_block(e) && (spec::mentions(e, Kind::read) || spec::mentions(e, Kind::index));
  if (of_block) {
    const std::string read = first_read(e);
    if (read.empty()) return edit.hoist(e, {name});
    return edit.hoist(e, {singular(read), name, read + "_value"});
  }
  if (e->args.empty()) return e;
  spec::Expr out = *e;
  for (ExprPtr& a : out.args) {
    a = hoist_parts(edit, a, e->kind == Kind::read ? "place" : name);
    if (!a) return nullptr;
  }
  return spec::make(std::move(out));
}

// bias / c as a sum of addends, each (what depends on the block) * (what depends on the element).
ExprPtr with_bias(Edit& edit, ExprPtr sum) {
  const ExprPtr unscale =
      edit.unscale.empty() ? nullptr : spec::leaf(Kind::argument, Type::real, edit.unscale);
  std::vector<Addend> parts;
  addends(edit.parts.bias, false, parts);
  for (const Addend& part : parts) {
    ExprPtr of_block, of_element;
    factors(part.value, of_block, of_element);
    const ExprPtr value = product(product(of_block, unscale), of_element);
    const ExprPtr hoisted = hoist_parts(edit, value, of_element ? "slope" : "bias");
    if (!hoisted) return nullptr;
    sum = node(part.negative ? "-" : "+", sum, hoisted);
  }
  return sum;
}

bool declare_unscale(Edit& edit) {
  if (const auto c = spec::constant(edit.parts.factor); c && *c == 1) return true;
  edit.unscale = edit.fresh({"unscale"});
  std::vector<tl::Stmt>& args = args_of(edit.program).body;
  const tl::Stmt* scale = declaration_of_argument(edit.program, edit.facts.scale);
  return edit.insert({&args, static_cast<size_t>(scale - args.data()) + 1},
                     fmt::format("{}: f32 = log2e / {}", edit.unscale, edit.facts.scale));
}

bool exact_coordinates(Edit& edit) {
  for (const std::string& size : {edit.facts.queries, edit.facts.keys})
    if (!edit.condition(size + " <= 16777216", "the score map computes coordinates as f32"))
      return false;
  return true;
}

}  // namespace

bool rule_score(Edit& edit) {
  if (edit.parts.core->kind == Kind::score && !edit.parts.bias) return true;
  ExprPtr value = hoist_parts(edit, edit.parts.core, "weight");
  if (value && edit.parts.bias) value = declare_unscale(edit) ? with_bias(edit, value) : nullptr;
  if (!value) return false;

  const bool integers = needs_integer_coordinates(value), at = has_coordinate(value);
  if (at && !integers && !exact_coordinates(edit)) return false;
  const std::optional<std::string> body = edit.in_map(value, at && !integers);
  if (!body) return false;
  const Facts& f = edit.facts;
  const std::string from =
      at ? fmt::format(" from ({}, {})", tl::print(f.i0), tl::print(f.j0)) : "";
  return edit.insert(mask_of(edit.program, f), fmt::format("map{} {}[i, j]{} = {}",
                                                           !at        ? ""
                                                           : integers ? "_at"
                                                                      : "_real",
                                                           f.score, from, *body));
}

}  // namespace kw::transfer
