// Clusters: CTAs (CTAs) that run together and reach into each other's shared memory. How
// many they are is said once, by `cluster`, and repeated wherever the device function needs it as a
// constant; all of these must agree. Nobody may reach into a CTA that has not begun or has ended,
// so the whole cluster meets after `init` and at the end.
#include <algorithm>

#include "tl/laws/laws_check.h"

namespace kw::tl {
namespace {

bool in_kernel_itself(const Check& c) {
  return c.parents.size() == 1 && c.parents[0]->op == Op::kernel;
}

}  // namespace

void note_ctas(Check& c, const char* label) {
  if (const std::optional<int64_t> k = c.constant(c.stmt.ctas()))
    c.facts.ctas_uses.push_back({&c.stmt, label, *k});
}

void law_cluster(Check& c) {
  const std::optional<int64_t> k = c.constant(c.stmt.ctas());
  if (k && *k != 1 && *k != 2 && *k != 4 && *k != 8)
    c.broken("C1", c.stmt.ctas()->span, fmt::format("a cluster of {} CTAs: not 1, 2, 4 or 8", *k));
  if (!in_kernel_itself(c))
    c.broken("C2", c.stmt.span, "the cluster is declared outside the kernel's own block");
  if (c.facts.cluster)
    c.broken("C2", c.stmt.span, "a second cluster")
        .notes.push_back({"the first is here", c.facts.cluster->span});
  c.facts.cluster = &c.stmt;
  c.facts.ctas = k.value_or(1);
  if (!in_kernel_itself(c)) return;
  // C3: after the last init, and at the very end.
  const std::vector<Stmt>& body = c.parents[0]->body;
  const Stmt* not_met = nullptr;  // an init after which the cluster has not met yet
  for (const Stmt& s : body) {
    if (s.op == Op::warpgroup) break;
    if (s.op == Op::init) not_met = &s;
    if (s.op == Op::sync_cluster) not_met = nullptr;
  }
  if (not_met)
    c.broken("C3", not_met->span,
             "no sync_cluster follows: another CTA may use a barrier that is not initialised")
        .notes.push_back({"the cluster is declared here", c.stmt.span});
  if (body.back().op != Op::sync_cluster)
    c.broken("C3", body.back().span,
             "no sync_cluster ends the kernel: another CTA may still reach into its shared memory")
        .notes.push_back({"the cluster is declared here", c.stmt.span});
}

void law_sync_cluster(Check& c) {
  if (!c.facts.cluster) c.broken("C1", c.stmt.span, "no cluster is declared before it");
  if (!in_kernel_itself(c))
    c.broken("C2", c.stmt.span, "not every thread of the kernel comes here");
}

void law_static_tiles(Check& c) {
  if (!c.warpgroups_block() && !(c.inside(Op::warpgroup) && c.inside(Op::thread)))
    c.broken("C1", c.stmt.span, "blocks are dealt outside a warpgroup");
  if (!c.facts.deals.empty() && !equal(c.facts.deals[0]->count(), c.stmt.count()))
    c.broken("C2", c.stmt.span,
             fmt::format("`{}` blocks are dealt here, `{}` elsewhere", print(c.stmt.count()),
                         print(c.facts.deals[0]->count())))
        .notes.push_back({"elsewhere is here", c.facts.deals[0]->span});
  c.facts.deals.push_back(&c.stmt);
  note_ctas(c, "C3");
}

void judge_ctas(const Facts& facts, Diagnostics& diagnostics) {
  if (!facts.deals.empty() && !facts.queues.empty()) {
    Diagnostic& d = diagnostics.error(
        "static_tiles.C4", facts.deals[0]->span,
        fmt::format("blocks are dealt here, and `{}` hands some out", facts.queues.begin()->first));
    d.hint = "both count the same blocks, in another order";
    d.notes.push_back({"the queue is here", facts.queues.begin()->second.symbol.span});
  }
  for (const CtasUse& use : facts.ctas_uses) {
    if (use.ctas == facts.ctas) continue;
    const std::string code = fmt::format("{}.{}", word(use.stmt->op), use.label);
    Diagnostic& d = diagnostics.error(
        code, use.stmt->ctas()->span,
        facts.cluster
            ? fmt::format("the number of CTAs is {} here and {} in a cluster", use.ctas, facts.ctas)
            : fmt::format("the number of CTAs is {} here, and 1 in a kernel without a cluster",
                          use.ctas));
    if (const Law* l = law(code)) d.hint = fmt::format("the law: {}", l->text);
    if (facts.cluster) d.notes.push_back({"the cluster is declared here", facts.cluster->span});
  }
}

}  // namespace kw::tl
