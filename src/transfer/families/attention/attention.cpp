// The rules of attention in their order, and heads packed into rows before them.
#include "transfer/families/attention/attention.h"

#include <fmt/format.h>

#include "transfer/families/attention/pack.h"
#include "transfer/families/attention/rules/rules.h"
#include "transfer/rules.h"

namespace kw::transfer::families {
namespace {

constexpr Rule<Edit> kRules[] = {
    {"form", rule_form},           {"tiles", rule_tiles},
    {"arguments", rule_arguments}, {"pages", rule_pages},
    {"rows", rule_rows},           {"narrow", rule_narrow},
    {"bounded", rule_bounded},     {"scale", rule_scale},
    {"score", rule_score},         {"normaliser", rule_normaliser},
    {"saves", rule_saves},         {"epilogue", rule_epilogue},
    {"mask", rule_mask},           {"lists", rule_lists},
    {"keys", rule_keys},           {"uniform", rule_uniform},
    {"invariant", rule_invariant}, {"order", rule_order},
    {"queue", rule_queue},         {"pairs", rule_pairs},
    {"columns", rule_columns},
};

bool has_terms(const spec::Form& form, Diagnostics& diagnostics) {
  if (form.terms.empty())
    diagnostics.error("transfer.terms", {}, "the function has no softmax over scores");
  return !form.terms.empty();
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

// Where keys are split over blocks, a part's output and log-sum are those of a softmax over its
// keys; of other weights, of a sink, and of a function of the output, the sum of parts is another.
bool splits_fit(const Facts& facts, const spec::Form& form, Diagnostics& diagnostics) {
  const spec::Term& term = form.terms.front();
  const char* beyond = term.normaliser != spec::Normaliser::softmax ? "weights that are no softmax"
                       : term.sink                                  ? "a sink"
                       : form.saves ? "an output that is saved for gradients"
                       : form.epilogue && form.epilogue->kind != spec::Kind::output
                           ? "a function of its output"
                           : nullptr;
  if (facts.part_def.empty() || !beyond) return true;
  diagnostics
      .error("transfer.parts", {},
             fmt::format("the kernel splits keys over blocks and combines what these have found, "
                         "and the function has {}",
                         beyond))
      .hint = "supported is a softmax of scores, its product with v, and its log-sums";
  return false;
}

}  // namespace

std::optional<Result> Attention::transfer(const tl::Program& source, const spec::Form& form,
                                          const Target& target, Diagnostics& diagnostics) const {
  std::optional<Facts> facts = find_facts(source, diagnostics);
  if (!facts || !has_terms(form, diagnostics) || !splits_fit(*facts, form, diagnostics))
    return std::nullopt;
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
  return apply_rules<Edit>(kRules, source, edit);
}

std::optional<Result> Attention::begin(const tl::Program& source, const spec::Form& form,
                                       const Target& target, Diagnostics& diagnostics) const {
  std::optional<Facts> facts = find_facts(source, diagnostics);
  if (!facts || !has_terms(form, diagnostics)) return std::nullopt;
  Edit edit(source, form, target, std::move(*facts), diagnostics);
  // No tiles were measured for these.
  const bool several = form.terms.size() > 1 || !form.terms[0].more.empty();
  if (several ? !bind_form(edit) : !rule_form(edit) || !rule_tiles(edit)) return std::nullopt;
  return std::move(edit.result);
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::transfer::families
