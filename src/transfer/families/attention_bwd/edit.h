// A transfer of attention's gradients under way.
//
// A kernel of them has its arguments by name: q, k, v, o, d_o and do_rows, lse; dq, dk, dv;
// `scale`; and a function query_blocks of a block of keys. A tile of scores in it is of keys by
// queries: the row of a map_at is a key, i < N, and its column a query. So the masks of the forward
// rules are written with rows and columns exchanged, and its ranges of keys are ranges of queries
// here.
//
// Its step makes the gradients of one tile of scores:
//
//   fill_columns s = offset_s[t]        what is taken off, and the product on top of it
//   wgmma_add_transposed s += ...
//   wgmma_wait 1: s
//   if ...: map_at s[i, j] = ...        the mask, whose last statement is that map
//   map s[i, j] = exp2(...)             the weights
//   wgmma_wait 1: dp
//   map dp[i, j] = dp[i, j] * s[i, j]   and their gradients, which become those of the scores
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transfer/editing/editing.h"
#include "transfer/editing/edits.h"
#include "transfer/editing/spell.h"
#include "transfer/families/attention/score.h"

namespace kw::transfer::bwd {

class Edit : public Editing {
 public:
  using Editing::Editing;

  // What the form asks for, in the kernel's names; set by the rule about arguments.
  spec::ExprPtr score, keep, sink, of_epilogue;
  std::vector<spec::Gradients::Learned> learned;
  // What rows of q, k and v become before their product, and how their gradients go back.
  struct OfRows {
    std::string argument, rows, gradient, of_rows;  // q, q_rows, dq, dq_rows
    spec::RowMap before, behind;
    size_t operand;
  };
  std::vector<OfRows> of_rows;
  Score parts;  // of score; set by the rule about the scale
  // The score's derivative where it is to be written behind what is learned: set by the rule about
  // the score, written by that about what is learned.
  spec::ExprPtr behind;
  // Which blocks of keys see a block of queries: all from the first on to some; some that follow
  // each other; others; or those that data say. Set by rule_queries and rule_lists.
  enum class Seen { from_the_first, neighbours, scattered, listed } seen = Seen::from_the_first;
  bool fewer_queries = false;  // later blocks of keys are seen by fewer: set by rule_queries

  // TL text of an expression over i and j, where a query is called `query` and a key `key`; s[i, j]
  // is the score.
  std::optional<std::string> spelled(const spec::ExprPtr& e, const std::string& query,
                                     const std::string& key);
  // The same in a map of a tile.
  std::optional<std::string> in_map(const spec::ExprPtr& e, bool real_coordinates);

  // The same in the pre-pass over rows, whose names for b, h and i are b, h and r; in a body over
  // its columns j the output is o[b, h, r, j].
  std::optional<std::string> of_row(const spec::ExprPtr& e);

  // The pre-pass over rows: its body, in which the values of a row are written; null where there is
  // none.
  std::vector<tl::Stmt>* rows();
  // What writes this value of a row there; null where nothing does.
  tl::Stmt* written_of_row(const std::string& value);

  // Refuses a kernel that "has no ...": always false.
  bool refuse_kernel(const std::string& what);

  // The argument that a learned gradient is; `values`: the letter of its keys or entries.
  bool add_gradient(const spec::Output& output, const std::string& values);

  // Whether its products are under way while it goes on; where they are not, they are done when
  // they are said, and the step has the same order without its waits.
  bool waits_for_products() const;

  // Whether a block has so many queries that registers are for softmax of a scaled score alone.
  bool has_many_queries() const;

  // Whether what a warpgroup has of scores is its own: it has keys of its own, which begin at its
  // j0, or is the one that has them. Wide heads have columns of their own instead.
  bool has_own_keys() const;

  // The function that says which query blocks see some of a block of keys; null where there is
  // none.
  tl::Stmt* queries_def();

  // The places in the step; each has all of them or none.
  struct Places {
    std::vector<tl::Stmt>* step = nullptr;
    size_t fill, mask, weights, gradient;
    std::string step_name, score, d_score;  // the step and the tiles
    std::string offset;                     // the slot that the scores begin with
  };
  std::optional<Places> places();
  tl::Stmt& mask() {
    const Places at = *places();
    return (*at.step)[at.mask];
  }

 private:
  bool declare(const std::string& name, const spec::ExprPtr& value) override;
  std::optional<std::string> spelled(const spec::ExprPtr& e, Spelling how);
};

// The predicate of keys by queries, as the forward analysis has queries by keys.
spec::ExprPtr exchanged(const spec::ExprPtr& keep);

// A map of this tile by an expression of the form, which stands where `body` has its braces.
std::optional<std::string> map_of(Edit& edit, const std::string& tile, const spec::ExprPtr& value,
                                  const std::string& body);

// The places of axes among the user's dimensions, -1 of those that the user's tensor lacks.
std::vector<int> places(const std::string& axes, const std::vector<std::string>& dims);

// What a weight that is a function of its own score changes by with it: the product of a number, of
// what the weight itself tells (under the name of the score), of what else of the score does, and
// of what does not depend on it. Null: 1.
struct Slope {
  double constant = 1;
  spec::ExprPtr of_weight, of_score, of_place;
};
std::optional<Slope> slope_of(const spec::ExprPtr& weight);

// The letters and names of a kernel of gradients.
inline const Letters kLetters = {"B", "H", "G", "M", "N"};

bool rule_form(Edit& edit);
bool rule_tiles(Edit& edit);
bool rule_arguments(Edit& edit);
bool rule_rows(Edit& edit);
bool rule_scale(Edit& edit);
bool rule_score(Edit& edit);
bool rule_log_sum(Edit& edit);
bool rule_epilogue(Edit& edit);
bool rule_learned(Edit& edit);
bool rule_pairs(Edit& edit);
bool rule_late(Edit& edit);
bool rule_mask(Edit& edit);
bool rule_queries(Edit& edit);
bool rule_lists(Edit& edit);
bool rule_columns(Edit& edit);
bool rule_weights(Edit& edit);
bool rule_alone(Edit& edit);
bool rule_order(Edit& edit);
bool rule_turns(Edit& edit);

}  // namespace kw::transfer::bwd
