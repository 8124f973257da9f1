// Sums of rows in parts: what warpgroups leave in a scratch, a pass behind the kernel adds up. Each
// half is judged by itself, and that the other half is there at the end of the module.
#include "tl/laws/laws_check.h"

namespace kw::tl {

void law_after(Check& c) {
  const std::optional<int64_t> threads = c.constant(c.stmt.threads());
  if (!threads || *threads % 32 || *threads < 32 || *threads > 1024)
    c.broken("C1", c.stmt.threads()->span,
             threads ? fmt::format("{} threads: not 1 to 32 warps of 32", *threads)
                     : "the number of threads is not constant");
  for (const Stmt& s : c.stmt.body)
    if (s.op != Op::add_parts && s.op != Op::round_sums)
      c.broken("C2", s.span, fmt::format("`{}` stands where parts are added up", word(s.op)));
  if (c.facts.after)
    c.broken("C3", c.stmt.span, "a second pass behind the kernel")
        .notes.push_back({"the first is here", c.facts.after->span});
  else if (!c.facts.threads)
    c.broken("C3", c.stmt.span, "the pass stands before the kernel");
  c.facts.after = &c.stmt;
}

void law_store_part(Check& c) {
  if (!c.warpgroups_block())
    c.broken("C2", c.stmt.span, "parts are stored outside the warpgroups block");
  if (const Symbol* parts = c.find(c.stmt.scratch()))
    c.facts.parts_stored.emplace(parts->name, &c.stmt);
}

void law_add_parts(Check& c) {
  const Symbol* tensor = c.find(c.stmt.tensor());
  if (tensor && (!tensor->written || tensor->element != "f32" || tensor->dims.size() != 3))
    another_tensor_is_due(c, "C1", c.stmt.tensor(), *tensor);
  if (!c.inside(Op::after))
    c.broken("C2", c.stmt.span, "parts are added up outside a pass behind the kernel");
  if (const Symbol* parts = c.find(c.stmt.scratch()))
    c.facts.parts_added.emplace(parts->name, &c.stmt);
}

void law_round_sums(Check& c) {
  const Symbol *sums = c.find(c.stmt.src()), *tensor = c.find(c.stmt.tensor());
  if (sums && (!sums->scratch || sums->element != "f32" || sums->dims.size() != 4))
    another_tensor_is_due(c, "C1", c.stmt.src(), *sums);
  if (tensor && (!tensor->written || tensor->element != "element" || tensor->dims.size() != 4))
    another_tensor_is_due(c, "C2", c.stmt.tensor(), *tensor);
  if (!c.inside(Op::after))
    c.broken("C3", c.stmt.span, "sums are rounded outside a pass behind the kernel");
  if (sums) c.facts.sums_rounded.emplace(sums->name, &c.stmt);
}

void judge_parts(const Facts& facts, Diagnostics& diagnostics) {
  if (facts.incomplete) return;
  const auto report = [&](const char* code, const Stmt& s, std::string message) {
    Diagnostic& d = diagnostics.error(code, s.span, std::move(message));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
  };
  for (const auto& [name, s] : facts.parts_stored)
    if (!facts.parts_added.count(name))
      report("store_part.C3", *s, fmt::format("nothing adds up the parts in `{}`", name));
  for (const auto& [name, s] : facts.parts_added)
    if (!facts.parts_stored.count(name))
      report("add_parts.C3", *s, fmt::format("no `store_part` writes `{}`", name));
  for (const auto& [name, s] : facts.sums_added)
    if (!facts.sums_rounded.count(name))
      report("tma_add.C2", *s, fmt::format("nothing rounds the sums in `{}`", name));
  for (const auto& [name, s] : facts.sums_rounded)
    if (!facts.sums_added.count(name))
      report("round_sums.C4", *s, fmt::format("no `tma_add` adds to `{}`", name));
}

}  // namespace kw::tl
