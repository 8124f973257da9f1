// What a proposer is asked: two readable files (prompts/*.md) with named slots.
//
// The system text is the same for every question of a build: what TL is, and its statements,
// expressions and laws as the tables say them (ops.def, laws.def). The user's text is the program,
// then the function, then what became of the last answer: what changes least comes first, since
// endpoints keep what a prompt begins with. The bytes depend on these inputs and nothing else.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/form.h"
#include "propose/answer.h"
#include "support/diagnostic.h"

namespace kw::propose {

struct Templates {
  std::string system, user;  // prompts/transfer.system.md, prompts/transfer.user.md
  // What the letters of a formula mean: prompts/transfer.letters.*.md, of the kind of function.
  std::string attention, product, rows;
};

// `{{name}}` becomes its slot. Reports prompt.slot for one that is not among `slots`, and for one
// of `slots` that the text does not mention.
std::optional<std::string> fill(const std::string& text,
                                const std::map<std::string, std::string>& slots,
                                Diagnostics& diagnostics);

// What became of the answer before: its edits, where they could be read, and why they were refused.
struct Feedback {
  std::optional<Edits> edits;
  Refusal refusal;
  std::string details;  // several lines: a counterexample; may be empty
};

struct Prompt {
  std::string system, user;
};

// Both texts, for a form without the user's names (anonymous.h). Reports prompt.slot.
std::optional<Prompt> make_prompt(const Templates& templates, const std::vector<std::string>& lines,
                                  const spec::Form& form, const Feedback* last,
                                  Diagnostics& diagnostics);

}  // namespace kw::propose
