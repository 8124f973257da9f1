#include "transfer/write_map.h"

#include <fmt/format.h>

#include "spec/expr_fold.h"

namespace kw::transfer {

using spec::ExprPtr;
using spec::Kind;
using spec::Type;

namespace {

std::string first_read(const ExprPtr& e) {
  if (e->kind == Kind::read) return e->name;
  for (const ExprPtr& a : e->args)
    if (std::string name = first_read(a); !name.empty()) return name;
  return "";
}

// A function of a size, other than the size as a real.
bool computes_from_sizes(const ExprPtr& e) {
  return e->kind == Kind::unary && e->name != "float" && e->name != "-" &&
         spec::mentions(e, Kind::size);
}

bool exact_coordinates(Edit& edit) {
  for (const std::string& size : {edit.facts.queries, edit.facts.keys})
    if (!edit.condition(size + " <= 16777216", "the score map computes coordinates as f32"))
      return false;
  return true;
}

}  // namespace

ExprPtr hoist_parts(Edit& edit, const ExprPtr& e, const std::string& name, Hoist what) {
  if (e->kind == Kind::index) return e;
  const bool worth = spec::mentions(e, Kind::read) || spec::mentions(e, Kind::index) ||
                     (what == Hoist::sizes && computes_from_sizes(e));
  if (worth && !varies_in_a_block(e)) {
    const std::string read = first_read(e);
    return read.empty() ? edit.hoist(e, {name})
                        : edit.hoist(e, {singular(read), name, read + "_value"});
  }
  if (e->args.empty()) return e;
  spec::Expr out = *e;
  for (ExprPtr& a : out.args) {
    a = hoist_parts(edit, a, e->kind == Kind::read ? "place" : name, what);
    if (!a) return nullptr;
  }
  return spec::make(std::move(out));
}

bool declare_unscale(Edit& edit) {
  if (const auto c = spec::constant(edit.parts.factor); c && *c == 1) return true;
  edit.unscale = edit.fresh({"unscale"});
  std::vector<tl::Stmt>& args = args_of(edit.program).body;
  const tl::Stmt* scale = declaration_of_argument(edit.program, edit.facts.scale);
  return edit.insert({&args, static_cast<size_t>(scale - args.data()) + 1},
                     fmt::format("{}: f32 = log2e / {}", edit.unscale, edit.facts.scale));
}

bool write_score_map(Edit& edit, const ExprPtr& value) {
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
