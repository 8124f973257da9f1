// The tiles and row vectors of a running program: values, and where they come from.
//
// A tile remembers which rows of which tensor it stands for. The copy that fills it says so, a
// product passes it on (its rows are those of its left side, its columns the rows of its right
// one), and a map with global coordinates is held against it: a wrong origin is found where it is
// written, not three statements later as a wrong number.
//
// In the exact reading (exec.h) the numbers are elements of an algebra, `e`, and x is empty.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "num/dtype.h"
#include "num/exact.h"

namespace kw::tl {
struct Stmt;
}

namespace kw::exec {

// Rows [first, first + count of the tile) of one tensor, at these indices of the dimensions before
// them.
struct Place {
  bool known = false;
  std::string tensor;
  std::array<int64_t, 2> outer = {0, 0};
  int64_t first = 0;
};

// The scores that a register tile holds: another product into it, and they are others.
struct Scores {
  int64_t products = 0;
  const tl::Stmt* latest = nullptr;
};

// Scores as something else has seen them: a flag, a sum.
struct Seen {
  std::shared_ptr<const Scores> scores;  // null: none yet
  int64_t products = 0;

  Seen() = default;
  explicit Seen(std::shared_ptr<const Scores> s) : scores(std::move(s)) {
    products = scores->products;
  }
  bool stale() const { return scores && scores->products != products; }
};

// What `online_max` or `any_exceeds` decided, and about which scores.
struct Flag {
  bool set = false, holds = false;
  Seen of;
};

enum class Role { accumulator, operand, shared };

struct Tile {
  Role role = Role::shared;
  Dtype dtype = Dtype::f32;
  int rows = 0, columns = 0;
  std::vector<float> x;           // row-major, rounded to dtype
  std::vector<exact::Element> e;  // in the exact reading, instead
  bool defined = false;           // every statement writes a tile whole
  Place of_rows, of_columns;
  bool masked = false;  // scores on which a map that can write -inf has run
  // Products that read or write this register tile and that no wgmma_wait has named yet.
  int in_flight = 0;
  const tl::Stmt* issued = nullptr;
  std::shared_ptr<Scores> scores = std::make_shared<Scores>();

  Tile() = default;
  Tile(Role role, Dtype dtype, int rows, int columns, bool exact)
      : role(role), dtype(dtype), rows(rows), columns(columns) {
    exact && !of_bools() ? e.resize(size_t(rows) * columns) : x.resize(size_t(rows) * columns);
  }
  // Bools are 0 and 1 in both readings.
  bool of_bools() const { return dtype == Dtype::boolean; }
  float* row(int r) { return x.data() + size_t(r) * columns; }
  const float* row(int r) const { return x.data() + size_t(r) * columns; }
};

// One value a row. A row vector has the value in every lane; a lane sum has four lanes, each with
// its share of the row's columns (columns 2c and 2c+1 of every 8), which total() adds up. A column
// vector has one value a column, and is a Row whose rows are the columns; a diagonal vector one for
// each distance of a column and a row of a tile, from the last row and the first column on. A line
// is a column vector, too, whose values are of a tensor's type.
struct Row {
  int rows = 0, lanes = 1;
  bool column = false, line = false;
  Dtype dtype = Dtype::f32;       // of a line: what it rounds to
  int tile_rows = 0;              // of a diagonal vector
  std::vector<float> x;           // [rows][lanes]
  std::vector<exact::Element> e;  // in the exact reading, instead
  std::vector<int64_t> ints;      // of a vector of ints, in both readings, instead
  bool defined = false;
  Seen of;  // of a lane sum: the scores that were summed last

  Row() = default;
  Row(int rows, int lanes, bool exact) : rows(rows), lanes(lanes) {
    exact ? e.resize(size_t(rows) * lanes) : x.resize(size_t(rows) * lanes);
  }
  // Of ints.
  Row(int rows) : rows(rows), ints(rows) {}
};

}  // namespace kw::exec
