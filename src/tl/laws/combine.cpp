// Results of parts: warpgroups leave outputs and their log-sums in two scratches, and a pass behind
// the kernel makes one result of those of a row. Each half is judged by itself, and that the other
// half is there, and nobody else, at the end of the module.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

bool is_scratch(const Symbol& t, size_t dimensions) {
  return t.scratch && t.element == "f32" && t.dims.size() == dimensions &&
         t.category == Category::tensor;
}

// Whether a has the first of b's dimensions, as many as it has.
bool begins(const Symbol& a, const Symbol& b) {
  return a.dims.size() <= b.dims.size() && std::equal(a.dims.begin(), a.dims.end(), b.dims.begin());
}

void dimensions_differ(Check& c, const char* label, const ExprPtr& at, const Symbol& a,
                       const Symbol& b) {
  c.broken(label, at->span,
           fmt::format("`{}` has dimensions {}, `{}` has {}", a.name, fmt::join(a.dims, ", "),
                       b.name, fmt::join(b.dims, ", ")))
      .notes.push_back({fmt::format("`{}` is declared here", b.name), b.span});
}

void reads_parts(Check& c, const Symbol& from, const Symbol& sums) {
  if (!is_scratch(from, 4)) return another_tensor_is_due(c, "C1", c.stmt.src(), from);
  if (!is_scratch(sums, 3)) return another_tensor_is_due(c, "C1", c.stmt.src_sums(), sums);
  if (!begins(sums, from)) dimensions_differ(c, "C1", c.stmt.src_sums(), sums, from);
}

void writes_results(Check& c, const Symbol& from, const Symbol& to, const Symbol& sums) {
  if (!to.written || to.element != "element" || to.dims.size() != 4 ||
      to.category != Category::tensor)
    return another_tensor_is_due(c, "C2", c.stmt.tensor(), to);
  if (!sums.written || sums.element != "f32" || sums.dims.size() != 3)
    return another_tensor_is_due(c, "C2", c.stmt.sums(), sums);
  if (!begins(sums, to)) return dimensions_differ(c, "C2", c.stmt.sums(), sums, to);
  std::vector<std::string> due = from.dims;
  if (due.size() == 4) due[1] = to.dims[1];
  if (due != to.dims) dimensions_differ(c, "C2", c.stmt.tensor(), to, from);
}

}  // namespace

void law_combine_parts(Check& c) {
  const Symbol *from = c.find(c.stmt.src()), *from_sums = c.find(c.stmt.src_sums()),
               *to = c.find(c.stmt.tensor()), *to_sums = c.find(c.stmt.sums());
  if (from && from_sums) reads_parts(c, *from, *from_sums);
  if (from && to && to_sums) writes_results(c, *from, *to, *to_sums);
  if (!c.inside(Op::after))
    c.broken("C3", c.stmt.span, "parts are combined outside a pass behind the kernel");
  for (const Symbol* parts : {from, from_sums})
    if (parts) c.facts.parts_combined.emplace(parts->name, &c.stmt);
}

void judge_combined(const Program& program, const Facts& facts, Diagnostics& diagnostics) {
  if (facts.incomplete) return;
  const auto report = [&](const std::string& code, const Stmt& s, std::string message) {
    Diagnostic& d = diagnostics.error(code, s.span, std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
  };
  for (const auto& [name, s] : facts.parts_left) {
    const auto combined = facts.parts_combined.find(name);
    const bool rows = s->op == Op::store_rows;
    if (combined == facts.parts_combined.end() ||
        base_name(rows ? combined->second->src_sums() : combined->second->src()) != name)
      report(rows ? "store_rows.C2" : "store_accumulator.C3", *s,
             fmt::format("nothing combines what is left in `{}`", name));
  }
  for (const auto& [name, s] : facts.parts_combined)
    if (!facts.parts_left.contains(name))
      report("combine_parts.C4", *s, fmt::format("no warpgroup leaves anything in `{}`", name));
  walk(program.body, [&](const Stmt& s) {
    if (s.op == Op::combine_parts || s.op == Op::store_rows || s.op == Op::store_accumulator)
      return;
    each_expression(s, [&](const ExprPtr& e) {
      for (const auto& [name, combined] : facts.parts_combined)
        if (mentions(e, name))
          report("combine_parts.C5", s, fmt::format("`{}` is left for the pass", name));
    });
  });
}

}  // namespace kw::tl
