// What the forms of turns share: a walk over the kernel's consumers and the passes around it, which
// knows what numbers and vectors are made of, of what degree, and where terms cancel.
//
// Whoever derives from it says which statements a turn may have (turns.h, gradients.h).
#pragma once
#include <map>
#include <set>
#include <string>

#include "proofs/names.h"
#include "proofs/reals/cancels.h"
#include "proofs/reals/formulas.h"

namespace kw::proofs {

// Binades that all constants of a turn add to the specification's, or all behind loops.
inline constexpr double kGain = 12;
inline constexpr double kGainOfRows = 80;  // that those of one value which a pass writes do
inline constexpr int kTooHigh = 100;       // the degree of what no formula may have

class RealWalk : protected Names {
 public:
  std::string run();

 protected:
  RealWalk(const tl::Program& program, const spec::Form& form,
           const std::map<std::string, Term>& sizes, const Blocks& blocks, Vocabulary& vocabulary)
      : Names(program, sizes, blocks, vocabulary),
        form_(form),
        specified_(degrees_of(form)),
        lost_(losses_of(form)),
        formulas_([this](const tl::ExprPtr& e) { return plain(e); }),
        places_of_form_(places_of(form)) {}

  // Scores in registers, since their product.
  struct Scores {
    bool here = false;      // made in this turn
    tl::ExprPtr asked;      // the scale with which the reference was asked for of what they are
    bool weights = false;   // by the reference, or the log-sum
    bool unasked = false;   // of a reference that nothing has asked whether it lags too far behind
    std::string flag;       // that says so
    bool with_row = false;  // something of the row was added: its log-sum
    bool masked = false;    // -inf stands in it
    double gain = 0;
    int degree = 1;  // in scores, data and integers
  };

  // A row vector that has a value where it is declared.
  struct Local {
    size_t body = 0;         // where: it lives no longer
    int degree = 0;          // of what turns hand on, in it
    bool reference = false;  // it is the reference itself,
    tl::ExprPtr scaled;      // times this, and 0 where it is -inf
    bool sum = false;        // it is the sum itself, or more
    bool pure = true;        // no data of the user's is in it, but a sink in the sum
  };

  struct State : Scope {
    std::map<std::string, Scores> scores;
    std::map<std::string, Local> locals;
    std::set<std::string> filled;    // in this block, or for the sum of a turn in this turn
    std::set<std::string> finished;  // outputs, behind the loops
    bool turn = false, sometimes = false;
    size_t body = 0;
  };

  // ---- what a form says
  virtual void role(const tl::Stmt& s);  // of every statement, once: who is what
  virtual void roles_known() {}
  virtual bool is_handed_on(const std::string& name) const = 0;
  virtual void rows(const tl::Stmt& s, State& state) = 0;
  virtual void product(const tl::Stmt& s, State& state) = 0;
  virtual void map(const tl::Stmt& s, State& state) = 0;
  virtual void reduce(const tl::Stmt& s, State& state) = 0;
  virtual void move(const tl::Stmt& s, State& state) = 0;
  virtual void result(const tl::Stmt& s, State& state) = 0;
  // Of what turns hand on, in a formula.
  virtual int degree(const tl::ExprPtr& e, const State& state) const = 0;
  // Whether a comparison asks if a row has no key.
  virtual bool is_question(const tl::ExprPtr&, const State&) const { return false; }
  // Which sums a turn begins anew.
  virtual void new_turn(State&) const {}
  virtual void merge(Scores& scores, const Scores& then, const tl::ExprPtr& condition,
                     const State& state);
  virtual int most_of_rows() const = 0;  // the degree of what a pass writes, in what it reads
  virtual double most_gain_of_rows() const { return kGainOfRows; }

  // ---- statements
  void walk(const std::vector<tl::Stmt>& body, State& state);
  void other(const tl::Stmt& s);  // it is none of the form's
  // A turn has nothing of the one before but what turns may hand on.
  State turn_of(const State& state, bool keeps_scores);
  bool is_zero_fill(const tl::Stmt& s) const;

  // ---- formulas
  // Of scores, whose own is given, of data and of integers among reals; what was handed on has none
  // but an output, which counts as the data that it is of.
  int of_data(const tl::ExprPtr& e, int scores) const;
  // Whether it has functions or comparisons of reals, or terms that cancel, where the specification
  // has none; or a sum that the specification takes nowhere.
  bool is_detour(const tl::ExprPtr& e, const State& state) {
    return is_detour(e, state, specified_.all);
  }
  bool is_detour(const tl::ExprPtr& e, const State& state, const Degrees::Has& has);
  // Of a map of scores, whether -inf stays what it is; notes whether it puts some in.
  bool masks_last(const tl::Stmt& s, Scores& scores) const;
  // The tensors and numbers of the user's that a formula reads, through vectors, lets and what
  // passes write, which counts itself.
  std::set<std::string> arguments_of(const tl::ExprPtr& e) const;
  // A number, a vector or a sum, by what it is made of.
  void remember(const std::string& name, const tl::ExprPtr& e);

  const spec::Form& form_;
  std::set<std::string> scores_, outputs_, weights_;
  std::set<std::string> rows_;  // locals
  const Degrees specified_;
  const Losses lost_;
  const double most_gain_ = kGain + specified_.gain;
  Formulas formulas_;
  Constants constants_;
  double gain_behind_ = 0;
  std::map<std::string, int> of_tiles_;  // the degree of each tile, where each has its own

 private:
  void statement(const tl::Stmt& s, State& state);
  void producer(const tl::Stmt& of);
  void value(const tl::Stmt& s, State& state);
  void pass(const tl::Stmt& of);
  void gather(const tl::Stmt& s, State& state);
  void of_launch(const std::string& name, const tl::ExprPtr& e);
  void define(const std::string& name, const tl::ExprPtr& e);
  void block(const tl::Stmt& s, const State& state);
  void loop(const tl::Stmt& s, State& state);
  void call(const tl::Stmt& s, State& state);
  void branch(const tl::Stmt& s, State& state);
  bool is_whole(const tl::ExprPtr& e, const Scope& inside);
  bool is_order_of_whole(const tl::Expr& e, const Scope& inside);
  bool is_detour(const tl::ExprPtr& e, const Scope& inside, const State& state,
                 const Degrees::Has& has);

  // What a name, an element or a field is called in sums, and of a pass over rows.
  std::string plain(const tl::ExprPtr& e) const;
  std::string plain_of_row(const tl::ExprPtr& e) const;
  // Whether it has lost digits that the specification keeps.
  bool loses(const tl::ExprPtr& e, bool asks_for_sums = true);
  bool loses_of_row(const tl::Stmt& s, const tl::ExprPtr& e);
  // In a formula -inf is no more than what a choice gives, and of scores that have some is taken a
  // sum, or a multiple by a number of the launch, or exp2.
  bool keeps_masks(const tl::ExprPtr& e, const std::string& tile, bool masked) const;

  const std::map<std::string, std::set<std::string>> places_of_form_;
  std::map<std::string, int> degrees_;
  std::set<std::string> launch_;                            // numbers that the launcher computes
  std::map<std::string, std::set<std::string>> arguments_;  // of each name that is made of some
  size_t bodies_ = 0;

  // The row that a pass is at: its index, whether it is one of queries, and the sums over it.
  struct Row {
    std::string index;
    bool of_queries = false;
    std::set<std::string> sums;
  };
  std::optional<Row> row_;
};

}  // namespace kw::proofs
