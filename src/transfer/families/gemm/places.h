// Where a kernel of a product says what: its copies and products, whichever text it is, and of the
// text with a loader what the rules about sums of rows and the matrix change.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tl/program.h"

namespace kw::transfer {

bool copies_in(tl::Op op);  // a tile of a matrix, a part of its rows
bool copies_out(tl::Op op);

// Of o_s[r][u] and o_s[me][u]: r is me.
void same_place(const tl::ExprPtr& a, const tl::ExprPtr& b, std::map<std::string, tl::ExprPtr>& is);

struct ProductFacts {
  std::string a, b, o;                          // arguments
  std::string batch, head, rows, columns, sum;  // letters
  std::string acc;                              // the accumulator
  std::string o_tile;                           // what it is stored in
  tl::ExprPtr i0, j0;                           // the first row and column of a warpgroup's tile
};

// The first statement for which it holds; null if there is none.
const tl::Stmt* find(const tl::Program& program, const std::function<bool(const tl::Stmt&)>& test);

// The block that holds it, and where; a null block if there is none.
struct Found {
  std::vector<tl::Stmt>* block = nullptr;
  size_t at = 0;
};
Found place_of(std::vector<tl::Stmt>& block, const std::function<bool(const tl::Stmt&)>& test);

// How many rows the accumulator has, as its declaration says it.
std::string rows_of(const tl::Program& program, const std::string& acc);

// Whether the kernel says how many tiles a row has (`columns`), and which one a block is (`n` of a
// record that has m, h and b beside it).
bool knows_its_tile(const tl::Program& program);

// A part of the sums of rows, by names: the accumulator, how many rows a warpgroup has of it; the
// lane_sum, its total and the scratch; the letter of the heads, the first row, the letter of the
// rows.
struct PartOfRows {
  std::string acc, width, lane_sum, total, parts, heads, row, rows;
};
std::vector<std::string> lines_of(const PartOfRows& part);

// Takes out the output `o` and the tile that it is copied from, and the copy; where a thread of the
// loader copies, the thread, and the barriers between it and the warpgroups.
void store_nothing(tl::Program& program, const std::string& o, const std::string& o_tile);

}  // namespace kw::transfer
