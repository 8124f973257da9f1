#include "sketch/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sketch/tiles.h"

namespace kw::sketch {
namespace {

using tl::Op;
using tl::Stmt;

constexpr std::array<int64_t, 3> kCuts = {256, 128, 64};
constexpr int64_t kStep = 64;

// What the scores are summed over, "D", where whole rows are copied for them; else "".
std::string summed_over(const tl::Program& program, const Plan& plan, const Placed& placed) {
  std::string right, columns;
  for (const Stmt* s : plan.inside)
    if (s->op == Op::mma) right = tl::base_name(s->b());
  for (const auto* body : {&plan.before, &plan.inside})
    for (const Stmt* s : *body) {
      if (s->op != Op::copy) continue;
      const std::string tile = tl::base_name(s->dst());
      if (tile != right && tile != placed.left) continue;
      if (s->src()->args.size() > 4) return "";
      columns = dimension(*tensor_named(program, tl::base_name(s->src())), 3);
    }
  return columns;
}

// The columns of what leaves, "V"; "" where nothing does.
std::string output_columns(const Plan& plan, const Placed& placed) {
  for (const Stmt* s : plan.after)
    if (s->op == Op::copy)
      if (const Tile* tile = placed.find(tl::base_name(s->src()))) return tile->columns;
  return "";
}

Placed in_parts(const tl::Program& program, const Placed& whole, const std::string& summed,
                const std::string& output) {
  Placed p = whole;
  p.steps = summed;
  for (Tile& t : p.tiles) {
    const bool of_scores = t.name == p.left || (t.of_keys && t.first_read == 0);
    if (of_scores)
      t.columns = "STEP";  // K2
    else if (t.columns == output)
      t.columns = "CUT";
  }
  for (size_t n = 1; n < p.products.size(); ++n) p.products[n] = "CUT";
  if (p.leaves == p.left) {  // K3
    p.leaves = fresh_name(program, p, "o_s");
    p.tiles.push_back({p.leaves, Space::shared, false, "CUT"});
  }
  return p;
}

}  // namespace

bool cut(tl::Program& program, Plan& plan, Placed& placed, Work& work, const Machine& machine) {
  if (machine.style == Style::engine || some_tiles_fit(machine, work)) return false;
  const std::string summed = summed_over(program, plan, placed);
  const std::string output = output_columns(plan, placed);
  const auto values = parameters(program);
  if (!values.contains(summed) || !values.contains(output)) return false;
  const int64_t over = values.at(summed), wide = values.at(output);
  if (over % kStep != 0) return false;
  for (const int64_t part : kCuts) {
    if (wide % part != 0 || part >= wide) continue;
    Diagnostics none;
    const auto line = tl::parse_statement(
        fmt::format("param CUT = {}, CUTS = {} // CUT, STEP = {}, STEPS = {} // "
                    "STEP",
                    part, output, kStep, summed),
        none);
    if (!line) return false;
    tl::Program changed = program;
    size_t at = 0;
    for (size_t n = 0; n < changed.body.size(); ++n)
      if (changed.body[n].op == Op::param) at = n + 1;
    changed.body.insert(changed.body.begin() + std::ptrdiff_t(at), *line);
    const Placed parts = in_parts(program, placed, summed, output);
    const Work of_part = work_of(changed, parts, machine);
    if (!some_tiles_fit(machine, of_part)) continue;
    program = std::move(changed);
    plan = *read_plan(program, "sketch", none);
    placed = parts;
    work = of_part;
    return true;
  }
  return false;
}

}  // namespace kw::sketch
