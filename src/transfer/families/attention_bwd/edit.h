// A transfer of attention's gradients under way.
//
// A kernel of them has its arguments by name: q, k, v, o, d_o and do_rows, lse; dq, dk, dv;
// `scale`; and a function query_blocks of a block of keys. A tile of scores in it is of keys by
// queries: the row of a map_at is a key, i < N, and its column a query. So the masks of the forward
// rules are written with rows and columns exchanged, and its ranges of keys are ranges of queries
// here.
#pragma once
#include <string>
#include <vector>

#include "transfer/transfer.h"

namespace kw::transfer::bwd {

class Edit {
 public:
  Edit(const tl::Program& source, const spec::Form& form, const Target& target,
       Diagnostics& diagnostics);

  const spec::Form& form;
  const spec::Term& term;  // the only one
  const Target& target;
  Diagnostics& diagnostics;
  Result result;
  tl::Program& program;        // result's
  bool fewer_queries = false;  // later blocks of keys are seen by fewer: set by rule_queries

  // Where an expression stands in the user's text, or the queries' argument.
  Span place(const spec::ExprPtr& e) const;
  // Refuses: always false.
  bool refuse(const char* code, const Span& where, const std::string& why, const std::string& hint);
  bool condition(const std::string& holds, const std::string& why);

  // e, of the form, with its sizes under the kernel's letters.
  spec::ExprPtr named(const spec::ExprPtr& e) const;
  // TL text of an expression over i and j, where a query is called `query` and a key `key`.
  std::optional<std::string> spelled(const spec::ExprPtr& e, const std::string& query,
                                     const std::string& key);

  // Puts the statements of these texts in the place of a block's.
  bool replace(std::vector<tl::Stmt>& block, const std::vector<std::string>& texts);
  // The function that says which query blocks see some of a block of keys.
  tl::Stmt* queries_def();
  // The `if` with the mask: a map_at of the scores to where(condition, s, -inf); null where there
  // is none.
  tl::Stmt* mask();
};

bool rule_form(Edit& edit);
bool rule_tiles(Edit& edit);
bool rule_scale(Edit& edit);
bool rule_mask(Edit& edit);
bool rule_queries(Edit& edit);
bool rule_order(Edit& edit);

}  // namespace kw::transfer::bwd
