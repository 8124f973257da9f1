// One function under way: what has been chosen of it, by a seed's dice, and the graph so far.
//
// Arguments come first in a graph, so the mask and the score map, which may need some, are chosen
// before any operator is written; what writes them is kept as a function. Each seed's choices
// depend on the order in which dice are thrown: a new choice makes other functions of all seeds.
#pragma once
#include <functional>
#include <map>
#include <random>
#include <string>

#include "grammar.h"

namespace kw::fuzz {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 1) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool once_in(int64_t n) { return below(n) == 0; }
  int64_t between(int64_t a, int64_t b) { return a + below(b - a + 1); }
  template <class T>
  T one_of(std::initializer_list<T> items) {
    return items.begin()[below(static_cast<int64_t>(items.size()))];
  }

 private:
  std::mt19937_64 random_;
};

// Nodes of the graph are ints.
class Writer {
 public:
  Writer(uint64_t seed, Wanted wanted) : dice_(seed), gradients_(wanted == Wanted::gradients) {
    f_.seed = seed;
  }

  Function write();

 private:
  using Make = std::function<int()>;    // writes a predicate of i and j
  using Map = std::function<int(int)>;  // of a score

  Dice dice_;
  const bool gradients_;
  Function f_;
  Builder g_;
  const ExprPtr B_ = symbol("B"), M_ = symbol("M"), N_ = symbol("N");
  int q_ = -1, k_ = -1, v_ = -1, i_ = -1, j_ = -1;
  int sinks_ = -1, gates_ = -1;
  int score_rank_ = 4;
  std::map<std::string, int> arguments_;
  Make mask_;
  Map map_;

  // ---- grammar.cpp: sizes and arguments, of which the same name is the same
  void sizes();
  int argument(const std::string& name, Dtype t, const Shape& shape, const Draw& draw,
               const std::string& example);
  int operand(const std::string& name, const ExprPtr& heads, const ExprPtr& rows);
  void operands();
  Draw lengths() const;
  int per_batch(const std::string& name);
  int per_head(const std::string& name);
  int real_per_head(const std::string& name, double scale);
  int number(const std::string& name, double value);
  int whole_number(const std::string& name, int64_t value);
  int over_batch(int x);
  int over_heads(int x);

  // ---- grammar_masks.cpp
  void choose_mask();
  Make predicate(int depth, std::string& name);
  Make compare(const char* op, const Make& a, const Make& b);
  Make bits(std::string& name, int64_t c);
  Make atom(std::string& name);

  // ---- grammar_scores.cpp
  void choose_score();
  void choose_pairs();
  void choose_learned();
  int distance();

  // ---- grammar.cpp: the function
  int heads_before_rows(int x);
  int shared(int x, const ExprPtr& rows);
  int masked(int s);
  int product(int q, int k);
  int normalised(int s, int v);
  void in_parts();
  void whole_attention();
  void output(int o);
  void finish();
};

}  // namespace kw::fuzz
