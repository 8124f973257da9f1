// A transfer of attention under way: the program being changed, and what the rules have found out
// so far.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "transfer/editing/editing.h"
#include "transfer/editing/spell.h"
#include "transfer/families/attention/facts.h"
#include "transfer/families/attention/score.h"

namespace kw::transfer {

class Edit : public Editing {
 public:
  Edit(const tl::Program& source, const spec::Form& form, const Target& target, Facts facts,
       Diagnostics& diagnostics);

  int64_t group = 1;  // of a packed kernel (pack.h): query heads for each key head of the user's
  Facts facts;        // the name of the step that masks may change

  // What the form asks for, in the kernel's names; set by the rule about arguments.
  spec::ExprPtr score, keep, sink, epilogue;
  // How scores become weights; and whether, where they are no softmax, the log of their sum is an
  // output all the same. The form's, until the rule about bounded scores changes it.
  spec::Normaliser normaliser;
  bool keeps_lse = false;
  std::optional<spec::RowMap> q_row, k_row, v_row;  // of the operands whose rows change
  std::string table;        // of the numbers of pages, where keys and values lie in pages; else ""
  spec::ExprPtr entries;    // how many it has for a batch entry
  Score parts;              // of score; set by the rule about the scale
  spec::ExprPtr score_map;  // what the map of the scores computes; null where there is none
  std::string unscale;      // the argument 1 / (factor of s); "" when the factor is 1
  // Set by the rule about lists: the key blocks to visit are listed, by a pre-pass.
  bool listed = false;
  // Set by the rules about lists and keys: not every block visits all keys; its range grows with
  // the row.
  bool blocks_differ = false, rows_differ = false;

  bool refuse(std::string code, const Span& where, std::string message, std::string hint) override;

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
  bool declare(const std::string& name, const spec::ExprPtr& value) override;
  std::optional<std::string> spelled(const spec::ExprPtr& e, Spelling how);
};

}  // namespace kw::transfer
