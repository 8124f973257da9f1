// What proofs of attention share: the names of sizes and indices, questions to the solver, and how
// an answer becomes an obligation of the report.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proofs/counterexample.h"
#include "proofs/extents.h"
#include "proofs/heads.h"
#include "proofs/integers.h"
#include "proofs/lists.h"
#include "proofs/proofs.h"
#include "proofs/visits.h"

namespace kw::proofs {

class Proof {
 protected:
  Proof(const tl::Program& program, const spec::Form& form, Heads heads, const Solver& solver)
      : program_(program),
        heads_(heads),
        ratio_(heads == Heads::own ? 1 : form.H.constant / form.G.constant),
        form_(with_heads(form, heads)),
        solver_(solver),
        sides_(form.training() == spec::Training::backward ? blocks_of_keys()
                                                           : blocks_of_queries()) {}

  // ---- names
  // The letters of the program, and the names of the form, as terms. In a program i is a row of its
  // blocks and j one of the other side; where these are keys, they are the form's j and i.
  void name_sizes();
  void name_heads();
  // How many rows of the blocks' side there are, and how many of the other.
  const std::string& row_count() const { return sizes_.at(sides_.rows).text; }
  const std::string& column_count() const { return sizes_.at(sides_.columns).text; }

  // ---- questions
  // `whole`: it is about what a pass has found to be kept whole.
  Question question(std::vector<std::string> premises, std::string claim, bool whole = false) const;
  // Element (i, j) lies in the tile.
  std::vector<std::string> in_tile(const Visit& v, bool columns) const;
  // Of every step, in the first tile's rows.
  Question of_steps(const std::vector<std::string>& each);

  // ---- answers
  // A counterexample is asked for at small sizes first, where a run can confirm it.
  void ask(const std::string& what, Question q, const Sides& sides, const Span& span);
  // Without the solver, but for a reason.
  void by_form(const std::string& what, const std::string& why);
  void open(const std::string& what, const std::string& why);
  // The longest sequences of which a refuted obligation holds.
  void limit(Obligation& o, const Question& all);

  // ---- what is computed on the way
  // Every sum, difference and product of integers, of all agents and of the pass; addresses in a
  // scratch apart, which are as long as it is.
  void fits_an_int(const std::vector<Step>& steps);
  // What is an index, or divides, wherever it stands: CUDA's text takes for granted what it is.
  void has_its_sign(const std::vector<Step>& steps);
  // A size that the program computes is the tensors'. False where one is not.
  bool computes_sizes();

  const tl::Program& program_;
  const Heads heads_;
  const int64_t ratio_;  // of the form
  const spec::Form form_;
  const Solver& solver_;
  const Blocks& sides_;
  Vocabulary vocabulary_;
  std::map<std::string, Term> sizes_, indices_;
  std::map<std::string, Long> long_;
  std::vector<std::string> common_, shown_;
  Visits visits_;
  Uses uses_;
  std::unique_ptr<Lists> lists_;
  Report report_;
};

}  // namespace kw::proofs
