// The rules of attention's gradients in their order.
#include "transfer/families/attention_bwd/edit.h"
#include "transfer/family.h"
#include "transfer/rules.h"

namespace kw::transfer::families {
namespace {

constexpr Rule<bwd::Edit> kRules[] = {
    {"form", bwd::rule_form},           {"tiles", bwd::rule_tiles},
    {"arguments", bwd::rule_arguments}, {"rows", bwd::rule_rows},
    {"scale", bwd::rule_scale},         {"score", bwd::rule_score},
    {"log_sum", bwd::rule_log_sum},     {"epilogue", bwd::rule_epilogue},
    {"learned", bwd::rule_learned},     {"pairs", bwd::rule_pairs},
    {"mask", bwd::rule_mask},           {"queries", bwd::rule_queries},
    {"lists", bwd::rule_lists},         {"order", bwd::rule_order},
    {"turns", bwd::rule_turns},         {"late", bwd::rule_late},
    {"columns", bwd::rule_columns},     {"weights", bwd::rule_weights},
    {"alone", bwd::rule_alone}};

class AttentionBwd : public Family {
 public:
  std::optional<Result> transfer(const tl::Program& source, const spec::Form& form,
                                 const Target& target, Diagnostics& diagnostics) const override {
    bwd::Edit edit(source, form, target, diagnostics);
    return apply_rules<bwd::Edit>(kRules, source, edit);
  }

  std::optional<Result> begin(const tl::Program& source, const spec::Form& form,
                              const Target& target, Diagnostics& diagnostics) const override {
    bwd::Edit edit(source, form, target, diagnostics);
    if (!bwd::rule_form(edit) || !bwd::rule_tiles(edit)) return std::nullopt;
    return std::move(edit.result);
  }
};

}  // namespace

const Family& attention_bwd() {
  static const AttentionBwd family;
  return family;
}

}  // namespace kw::transfer::families
