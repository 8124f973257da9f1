// Lists of the blocks that some rows need, written by a pre-pass: where it is the data that says
// which (the rules `lists` of families say when).
//
//   lists attention_lists, threads 512, w of lists:
//       ...
//       list_blocks visits[w * list_words] for n in range(0, end), groups r to s of BM // 64:
//           let i0 = ..., i1 = ..., j0 = n * BN, j1 = min(N, j0 + BN) - 1
//           let document_i_least = least(document, b, b, i0, i1), ...
//           return document_i_least <= document_j_most and ..., ...
//   with `visits: scratch[lists * list_words]` and `def first_word(c: Block) -> index`
//
// Rows and columns are those of the predicate: queries and keys, or, where a kernel visits blocks
// of queries for its keys, the other way round.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transfer/editing/editing.h"
#include "transfer/masks/tile_ranges.h"

namespace kw::transfer {

// What is listed: for each block of rows the blocks of columns.
struct ListPlan {
  spec::ExprPtr keep;                 // over i, a row, and j, a column
  std::string rows, columns;          // their numbers, by letter
  tl::ExprPtr row_tile, column_tile;  // and how many are in a block
  std::string batch, heads;           // letters
  tl::Item block;                     // how functions are given a block: c: Block
  std::string row_field, head_field, batch_field;
  tl::ExprPtr group;   // the rows of one of a block's groups; null: they are one
  std::string before;  // the function before which new ones stand
};

class ListWriter {
 public:
  ListWriter(Editing& edit, ListPlan plan);

  // Whether a list can leave out or unmask what data says; without any, what coordinates say.
  bool says_something() const;
  // The arguments, the function that gives a block's list, and the pre-pass. False after a refusal.
  bool write();

  const std::string& visits() const { return visits_; }
  const std::string& first_word() const { return first_word_; }
  // How many words of a list stand before its blocks: of the number of those that a group needs,
  // behind that of all; and, second, of those that need no mask.
  std::string header() const;
  // Whether the last block moves with the rows, and the first does not.
  bool ends_with_row() const { return ends_with_row_; }

 private:
  std::string groups() const;
  std::string blocks_of_rows() const;
  bool write_arguments();
  bool write_first_word();
  bool write_pre_pass();
  std::optional<tl::ExprPtr> spelled(const spec::ExprPtr& e);
  std::optional<std::string> text(const spec::ExprPtr& e);
  bool write_values(std::vector<std::string>& lines, tl::ExprPtr& some, tl::ExprPtr& all);
  std::optional<tl::ExprPtr> of_elements(const TileValue& value, const char* function);
  std::optional<std::pair<std::string, std::string>> closed_range();
  std::vector<std::string> numbers() const;
  std::string rows_of_tile() const;
  std::string columns_of_tile() const;

  Editing& edit_;
  const ListPlan plan_;
  const bool by_row_, by_head_;
  const std::string row_tile_, column_tile_;  // as TL text
  bool ends_with_row_ = false;
  std::map<std::string, std::string> locals_;  // what the pre-pass calls its values
  std::optional<TileRanges> ranges_;
  WrittenTruth truth_;
  std::string visits_, lists_, words_, first_word_;
};

// A function of scalars, before the one of this name: its parameters, `index` or a record, and lets
// and a return.
bool insert_function(Editing& edit, const std::string& before, const std::string& name,
                     const std::vector<tl::Item>& parameters, const std::string& result,
                     const std::vector<std::string>& body);

}  // namespace kw::transfer
