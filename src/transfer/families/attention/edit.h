// A transfer of attention under way: the program being changed, and what the rules have found out
// so far.
#pragma once
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "transfer/families/attention/facts.h"
#include "transfer/families/attention/score.h"
#include "transfer/spell.h"
#include "transfer/transfer.h"

namespace kw::transfer {

class Edit {
 public:
  Edit(const tl::Program& source, const spec::Form& form, const Target& target, Facts facts,
       Diagnostics& diagnostics);

  const spec::Form& form;
  const spec::Term& term;  // the only one
  int64_t group = 1;  // of a packed kernel (pack.h): query heads for each key head of the user's
  const Target target;
  Facts facts;  // the name of the step that masks may change
  Diagnostics& diagnostics;
  Result result;
  tl::Program& program;  // result's

  // What the form asks for, in the kernel's names; set by the rule about arguments.
  spec::ExprPtr score, keep, sink, epilogue;
  // How scores become weights; and whether, where they are no softmax, the log of their sum is an
  // output all the same. The form's, until the rule about bounded scores changes it.
  spec::Normaliser normaliser;
  bool keeps_lse = false;
  std::optional<spec::RowMap> q_row, k_row, v_row;  // of the operands whose rows change
  Score parts;                                      // of score; set by the rule about the scale
  spec::ExprPtr score_map;  // what the map of the scores computes; null where there is none
  std::string unscale;      // the argument 1 / (factor of s); "" when the factor is 1
  // Set by the rule about lists: the key blocks to visit are listed, by a pre-pass.
  bool listed = false;
  // Set by the rules about lists and keys: not every block visits all keys; its range grows with
  // the row.
  bool blocks_differ = false, rows_differ = false;

  // The user's line for an expression: its own place or a part's, else the queries' argument.
  Span place(const spec::ExprPtr& e) const;
  // Refuses: always false. The hint says what is supported; that a model may be asked is added.
  bool refuse(std::string code, const Span& where, std::string message, std::string hint);
  bool condition(const std::string& holds, std::string why);

  // The first candidate that no name of the program equals, else the first with a number.
  std::string fresh(std::initializer_list<std::string> candidates);
  // The name for a local of a function, or a new one where the module has that name: a local may be
  // called as a local elsewhere.
  std::string local(const std::string& name);

  // Puts the statement of this TL text at a place (before what stands there).
  bool insert(Place place, const std::string& text);
  // The same for several, one after the other.
  bool insert(Place place, const std::vector<std::string>& texts);
  // Replaces the statements of a block by these.
  bool replace(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts);

  // A leaf with the name of a value that is computed once for each block of the output, in a `let`
  // at the head of the consumers' loop. The same value gets the same name.
  spec::ExprPtr hoist(const spec::ExprPtr& value, std::initializer_list<std::string> candidates);
  // The name that hoist() gave a value; "" if it gave none.
  std::string hoisted(const spec::ExprPtr& value) const;

  // TL text in the consumers' step, with i and j as they stand in a map's body.
  std::optional<std::string> in_map(const spec::ExprPtr& e, bool real_coordinates);
  // The same for a map of the output, where an element is worth `output` so far.
  std::optional<std::string> in_output_map(const spec::ExprPtr& e, const tl::ExprPtr& output,
                                           bool real_coordinates);
  // The same where a tile of scores is known: the indices i0 and j0 are its first row and key.
  std::optional<std::string> in_tile(const spec::ExprPtr& e, const tl::ExprPtr& i0,
                                     const tl::ExprPtr& j0);
  // TL text where a block of the output is known, by the name it has there.
  std::optional<std::string> in_block(const spec::ExprPtr& e, const std::string& block);
  // And where a range of its query rows is known, by the name of the first.
  std::optional<std::string> in_rows(const spec::ExprPtr& e, const std::string& block,
                                     const std::string& first_row);

 private:
  std::optional<std::string> spelled(const spec::ExprPtr& e, Spelling how);
  struct Hoisted {
    spec::ExprPtr value;
    std::string name;
  };
  std::set<std::string> names_;
  std::vector<Hoisted> hoisted_;
};

// What to call one element: slopes -> slope; "" for what is no plural (bias, mass, axis, radius).
std::string singular(const std::string& name);

}  // namespace kw::transfer
