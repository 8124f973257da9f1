#include "transfer/transfer.h"

#include "support/lines.h"
#include "transfer/pack.h"
#include "transfer/product.h"
#include "transfer/rules.h"

namespace kw::transfer {
namespace {

struct Rule {
  const char* name;
  bool (*apply)(Edit&);
};

constexpr Rule kRules[] = {
    {"form", rule_form},         {"tiles", rule_tiles},     {"arguments", rule_arguments},
    {"rows", rule_rows},         {"narrow", rule_narrow},   {"bounded", rule_bounded},
    {"scale", rule_scale},       {"score", rule_score},     {"normaliser", rule_normaliser},
    {"epilogue", rule_epilogue}, {"mask", rule_mask},       {"lists", rule_lists},
    {"keys", rule_keys},         {"uniform", rule_uniform}, {"invariant", rule_invariant},
    {"order", rule_order},       {"queue", rule_queue},     {"pairs", rule_pairs},
    {"columns", rule_columns},
};

bool has_terms(const spec::Form& form, Diagnostics& diagnostics) {
  if (form.terms.empty())
    diagnostics.error("transfer.terms", {}, "the function has no softmax over scores");
  return !form.terms.empty();
}

void note_rule(Result& result, const char* name, const tl::Program& before,
               const tl::Program& after) {
  const Change c = change(before, after);
  if (!c.removed.empty() || !c.added.empty())
    result.rules.push_back({name, joined(c.removed), joined(c.added)});
}

std::optional<Result> refuse_packed(const spec::Form& form, Diagnostics& diagnostics) {
  const spec::Argument* q = form.argument(form.terms.front().q.argument);
  diagnostics
      .error("transfer.packed", q ? q->span : Span{},
             "the kernel takes the heads that share a key head as rows of one tile; the function "
             "has more queries than one, or reads a head's number or rows that change")
      .hint =
      "supported is one query for each head, and scores, masks and outputs that are the "
      "same for all heads";
  return std::nullopt;
}

class RuleEngine : public Engine {
 public:
  std::string_view name() const override { return "rules"; }

  std::optional<Result> propose(const tl::Program& source, const spec::Form& form,
                                const Target& target, Diagnostics& diagnostics) override {
    if (form.product) return transfer_product(source, form, target, diagnostics);
    std::optional<Facts> facts = find_facts(source, diagnostics);
    if (!facts || !has_terms(form, diagnostics)) return std::nullopt;
    const std::optional<spec::Form> rows_of_heads = packed_form(form);
    if (is_packed(*facts) && !rows_of_heads && group_of(form) > 1)
      return refuse_packed(form, diagnostics);
    const bool packs = rows_of_heads && !is_packed(*facts);
    const tl::Program start = packs ? packed(source, *facts) : source;
    if (packs) facts = find_facts(start, diagnostics);
    if (!facts) return std::nullopt;
    Edit edit(start, rows_of_heads ? *rows_of_heads : form, target, std::move(*facts), diagnostics);
    if (rows_of_heads) edit.group = group_of(form);
    if (packs) note_rule(edit.result, "pack", source, start);
    for (const Rule& rule : kRules) {
      const tl::Program before = edit.program;
      if (!rule.apply(edit)) return std::nullopt;
      note_rule(edit.result, rule.name, before, edit.program);
    }
    const Change all = change(source, edit.program);
    edit.result.statements_removed = static_cast<int>(all.removed.size());
    edit.result.statements_added = static_cast<int>(all.added.size());
    return std::move(edit.result);
  }
};

}  // namespace

std::optional<Result> begin(const tl::Program& source, const spec::Form& form, const Target& target,
                            Diagnostics& diagnostics) {
  if (form.product) return begin_product(source, form, target, diagnostics);
  std::optional<Facts> facts = find_facts(source, diagnostics);
  if (!facts || !has_terms(form, diagnostics)) return std::nullopt;
  Edit edit(source, form, target, std::move(*facts), diagnostics);
  // No tiles were measured for these.
  const bool several = form.terms.size() > 1 || !form.terms[0].more.empty();
  if (several ? !bind_form(edit) : !rule_form(edit) || !rule_tiles(edit)) return std::nullopt;
  return std::move(edit.result);
}

std::unique_ptr<Engine> rule_engine() { return std::make_unique<RuleEngine>(); }

std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                               const Target& target, Diagnostics& diagnostics) {
  return RuleEngine().propose(source, form, target, diagnostics);
}

}  // namespace kw::transfer
