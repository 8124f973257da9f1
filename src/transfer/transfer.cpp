#include "transfer/transfer.h"

#include "support/lines.h"
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

class RuleEngine : public Engine {
 public:
  std::string_view name() const override { return "rules"; }

  std::optional<Result> propose(const tl::Program& source, const spec::Form& form,
                                const Target& target, Diagnostics& diagnostics) override {
    if (form.product) return transfer_product(source, form, target, diagnostics);
    std::optional<Facts> facts = find_facts(source, diagnostics);
    if (!facts || !has_terms(form, diagnostics)) return std::nullopt;
    Edit edit(source, form, target, std::move(*facts), diagnostics);
    for (const Rule& rule : kRules) {
      const tl::Program before = edit.program;
      if (!rule.apply(edit)) return std::nullopt;
      const Change c = change(before, edit.program);
      if (!c.removed.empty() || !c.added.empty())
        edit.result.rules.push_back({rule.name, joined(c.removed), joined(c.added)});
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
  if (form.product) {
    diagnostics.error("transfer.terms", {}, "a model is not asked for products of matrices yet");
    return std::nullopt;
  }
  std::optional<Facts> facts = find_facts(source, diagnostics);
  if (!facts || !has_terms(form, diagnostics)) return std::nullopt;
  Edit edit(source, form, target, std::move(*facts), diagnostics);
  const bool several = form.terms.size() > 1;  // no tiles were measured for these
  if (several ? !bind_form(edit) : !rule_form(edit) || !rule_tiles(edit)) return std::nullopt;
  return std::move(edit.result);
}

std::unique_ptr<Engine> rule_engine() { return std::make_unique<RuleEngine>(); }

std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                               const Target& target, Diagnostics& diagnostics) {
  return RuleEngine().propose(source, form, target, diagnostics);
}

}  // namespace kw::transfer
