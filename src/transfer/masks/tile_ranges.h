// Interval arithmetic that is written down: what a predicate does to a tile of scores, as an
// expression of what stands in the tile's data.
//
// intervals.h computes with ranges that are known at transfer. Here the range of a read is known on
// the device alone, as the least and the greatest element that the tile's rows and keys read, so
// the ranges are expressions of those, and of a predicate two conditions come out:
//
//   document[b, i] == document[b, j]
//     some   document_i_least <= document_j_most and document_j_least <= document_i_most
//     all    document_i_least == document_j_most and document_i_most == document_j_least
//
// `some` holds wherever the predicate keeps an entry, `all` nowhere where it drops one, whatever
// the data: each unknown varies independently between its ends (Moore, Interval Analysis, 1966).
// Sums are taken in linear form first, so that what stands on both sides of a comparison cancels.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/expr/expr.h"

namespace kw::transfer {

// The ends of an integer's range, both reached or beyond; null: not known.
struct WrittenRange {
  spec::ExprPtr low, high;
  bool known() const { return low && high; }
};

// For some entry of the tile it may hold; for every entry it does.
struct WrittenTruth {
  spec::ExprPtr some, all;
};

// What has a range in a tile, and names for its ends: the elements of a tensor that the tile reads,
// for each dimension from a first to a last index; or, without a tensor, a remainder.
struct TileValue {
  std::string tensor;
  std::vector<WrittenRange> box;  // of a remainder its own range
  std::string least, most;
};

class TileRanges {
 public:
  // The tile's rows and keys, ends included. `name` gives a name that is free.
  TileRanges(WrittenRange i, WrittenRange j, std::function<std::string(const std::string&)> name)
      : i_(std::move(i)), j_(std::move(j)), name_(std::move(name)) {}

  WrittenTruth truth(const spec::ExprPtr& predicate);
  WrittenRange range(const spec::ExprPtr& integer);

  // What the ranges so far are made of, each once; later boxes may need earlier names.
  const std::vector<TileValue>& values() const { return values_; }

  // e with what the names of remainders stand for.
  spec::ExprPtr without_names(spec::ExprPtr e) const;

 private:
  WrittenRange named(TileValue value, const std::string& stem, const spec::Expr& e);
  WrittenRange of_read(const spec::Expr& e);
  WrittenRange of_binary(const spec::Expr& e);
  WrittenRange of_sum(const spec::ExprPtr& e);
  WrittenRange of_where(const spec::Expr& e);
  WrittenTruth compared(const spec::Expr& e);

  WrittenRange i_, j_;
  std::function<std::string(const std::string&)> name_;
  std::vector<TileValue> values_;
};

}  // namespace kw::transfer
