#include "transfer/editing/write_map.h"

#include <fmt/format.h>

#include "operator/expr/fold.h"
#include "transfer/editing/spell.h"

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

}  // namespace

Coordinates coordinates_of(const ExprPtr& value) {
  if (!has_coordinate(value)) return Coordinates::none;
  return needs_integer_coordinates(value) ? Coordinates::integer : Coordinates::real;
}

bool exact_coordinates(Editing& edit, Coordinates coordinates, const std::string& queries,
                       const std::string& keys) {
  if (coordinates != Coordinates::real) return true;
  for (const std::string& size : {queries, keys})
    if (!edit.condition(size + " <= 16777216", "a map computes coordinates as f32")) return false;
  return true;
}

std::string map_text(Coordinates coordinates, const std::string& tile, const std::string& i0,
                     const std::string& j0, const std::string& body) {
  if (coordinates == Coordinates::none) return fmt::format("map {}[i, j] = {}", tile, body);
  return fmt::format("map_{} {}[i, j] from ({}, {}) = {}",
                     coordinates == Coordinates::real ? "real" : "at", tile, i0, j0, body);
}

ExprPtr hoist_parts(Editing& edit, const ExprPtr& e, const std::string& name, Hoist what) {
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

}  // namespace kw::transfer
