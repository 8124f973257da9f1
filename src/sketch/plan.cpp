#include "sketch/plan.h"

#include <fmt/format.h>

#include "tl/analysis/effects.h"
#include "tl/scope/scope.h"

namespace kw::sketch {
using tl::Op;
using tl::Stmt;

std::string level_of(const tl::Program& program) {
  const Stmt* s = program.find(Op::level);
  return s ? s->name() : "scheduled";
}

std::optional<Plan> read_plan(const tl::Program& program, const std::string& level,
                              Diagnostics& diagnostics) {
  const Span all{program.source, 0, 0};
  if (level_of(program) != level) {
    const Stmt* at = program.find(Op::level);
    diagnostics
        .error("sketch.level", at ? at->span : all,
               fmt::format("the module is {}, and {} is due here", level_of(program), level))
        .hint = "`size` makes a sketch sized, `schedule` a sized program scheduled";
    return std::nullopt;
  }
  Plan p;
  const bool is_sized = level == "sized";
  const auto refuse = [&](const Span& span, const std::string& what) {
    diagnostics.error("sketch.shape", span, what).hint =
        "a plan is one `grid` with one loop over `blocks` in it; docs/sketches.md shows one";
    return std::nullopt;
  };
  p.plan = program.find(Op::plan);
  if (!p.plan) return refuse(all, "the module has no plan");
  for (const Stmt& s : p.plan->body) {
    if (p.grid) return refuse(s.span, "the plan ends with its grid, and this stands after it");
    if (s.op == Op::grid)
      p.grid = &s;
    else
      p.declared.push_back(&s);
  }
  if (!p.grid) return refuse(p.plan->span, "the plan has no grid");
  for (const Stmt& s : p.grid->body) {
    if (s.op == Op::blocks) {
      if (p.loop) return refuse(s.span, "a second loop over blocks");
      p.loop = &s;
    } else if (!s.body.empty() && !(is_sized && p.loop && s.op == Op::if_)) {
      return refuse(s.span, fmt::format("`{}` stands in the grid, which has room for the loop "
                                        "over blocks alone",
                                        tl::print_head(s)));
    } else {
      (p.loop ? p.after : p.before).push_back(&s);
    }
  }
  if (!p.loop) return refuse(p.grid->span, "the grid has no loop over blocks of keys");
  for (const Stmt& s : p.loop->body) {
    if (!s.body.empty() && !(is_sized && s.op == Op::range))
      return refuse(s.span, fmt::format("`{}` stands in the loop over blocks", tl::print_head(s)));
    p.inside.push_back(&s);
  }
  p.counter = p.loop->index();
  for (const tl::Item& d : p.grid->names()) p.counters.push_back(d.name);
  for (const tl::Item& a : p.grid->extents()) p.extents.push_back(a.expr);
  return p;
}

std::map<std::string, int64_t> parameters(const tl::Program& program) {
  std::map<std::string, int64_t> values;
  tl::Scope scope;
  for (const Stmt& s : program.body) {
    if (s.op != Op::param) continue;
    tl::declare(scope, s);
    for (const tl::Item& d : s.names())
      values[d.name] = tl::interval_of(tl::name(d.name), scope).lo;
  }
  return values;
}

const Stmt* tensor_named(const tl::Program& program, const std::string& name) {
  const Stmt* found = nullptr;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::arg_tensor && s.op != Op::arg_tiled) return;
    for (const tl::Item& d : s.names())
      if (d.name == name) found = &s;
  });
  return found;
}

std::string dimension(const Stmt& tensor, size_t n) {
  const auto& dims = tensor.dims();
  return n < dims.size() ? dims[n].name : "";
}

bool is_output(const Stmt& tensor) { return tensor.access().at(0).name == "out"; }

std::string fresh_name(const tl::Program& program, std::string name) {
  const auto taken = [&] {
    bool found = false;
    tl::walk(program.body, [&](const Stmt& s) {
      found = found || tl::reads(s, name) || tl::writes(s, name);
      for (const tl::Field& f : s.fields)
        for (const tl::Item& item : f.items) found = found || item.name == name;
    });
    return found;
  };
  while (taken()) name += "_";
  return name;
}

}  // namespace kw::sketch
