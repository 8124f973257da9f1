// A family's rules are a table: a name and a function each, in the order in which they are applied.
// A rule makes one kind of change, or none where the source already does what the form asks for,
// and returns false after a refusal. What it does, when, and to what numeric effect stands above
// its definition and in docs/rules.md.
#pragma once
#include <span>

#include "transfer/change.h"

namespace kw::transfer {

// `Edit` is the family's transfer under way; it has a Result, `result`.
template <class Edit>
struct Rule {
  const char* name;
  bool (*apply)(Edit&);
};

// Applies them in order and notes in the result what each changed of `source`. Nothing after a
// refusal.
template <class Edit>
std::optional<Result> apply_rules(std::span<const Rule<Edit>> rules, const tl::Program& source,
                                  Edit& edit) {
  for (const Rule<Edit>& rule : rules) {
    const tl::Program before = edit.result.program;
    if (!rule.apply(edit)) return std::nullopt;
    note_rule(edit.result, rule.name, before, edit.result.program);
  }
  const Change all = change(source, edit.result.program);
  edit.result.statements_removed = static_cast<int>(all.removed.size());
  edit.result.statements_added = static_cast<int>(all.added.size());
  return std::move(edit.result);
}

}  // namespace kw::transfer
