// What a check asks of the family of an operator (operator/families.def): which operands a program
// has, which cases show its faults, what else of a run is held against the operator, and how the
// first statement whose value differs is found. Outputs need nothing here: they are the operator's
// (operator/family.h), and all are judged by one loop.
#pragma once
#include <memory>
#include <set>
#include <string>

#include "check/locator.h"
#include "check/trial.h"
#include "proofs/proofs.h"

namespace kw::check {

class Family {
 public:
  virtual ~Family() = default;
  static const Family& of(const spec::Form& form);

  // Why the form cannot be checked, or "".
  virtual std::string undecided(const spec::Form& /*form*/) const { return {}; }

  // The operands in the kernel's order of dimensions, by the kernel's names, with the case's heads;
  // `key_heads` are those that the case's heads share.
  virtual void bind(const tl::Program& program, const spec::Form& form,
                    const spec::Problem& problem, const Case& c,
                    const std::vector<int64_t>& key_heads, exec::Launch& launch) const = 0;

  // ---- cases
  // Sets sizes beyond B, M and N, which a case for m rows and n columns may vary.
  virtual void resize(const spec::Form& /*form*/, int64_t /*m*/, int64_t /*n*/,
                      std::map<std::string, int64_t>& /*sizes*/) const {}
  // The arguments that some cases draw larger, so that every branch is taken.
  virtual std::set<std::string> sharpened(const spec::Form& /*form*/) const { return {}; }
  // Whether numbers are rounded between the arguments and the last product: rows that change.
  virtual bool rounds_between(const spec::Form& form) const;
  // Which planted values (planted.h) cases of this family have beside those of all.
  virtual std::vector<Planted> further_planted(const spec::Form& /*form*/) const { return {}; }
  // And those of them that no other family has; false where the function can do none of it, and
  // nothing is changed.
  virtual bool plant(Planted /*what*/, const spec::Form& /*form*/,
                     spec::Problem& /*problem*/) const {
    return false;
  }
  // Whether a key past the end that is not masked shows only where all of a row's scores are far
  // below 0 (far_scores.h).
  virtual bool hides_keys_past_the_end(const spec::Form& /*form*/) const { return false; }
  // How much work an element of rows times columns is, in scores of a head dimension of 64.
  virtual int64_t depth(const spec::Form& /*form*/,
                        const std::map<std::string, int64_t>& /*sizes*/) const {
    return 1;
  }

  // What the program does with integers, proved for every size (proofs/proofs.h).
  virtual proofs::Report indices(const tl::Program& /*program*/, const spec::Form& /*form*/,
                                 const proofs::Solver& /*solver*/) const {
    proofs::Report none;
    none.not_run = "of this family of operators nothing is proved";
    return none;
  }

  // ---- runs
  // What is wrong with which blocks the run left out or took without a mask. Counts them.
  virtual std::optional<Counterexample> coverage(const spec::Form& /*form*/,
                                                 const spec::Problem& /*problem*/,
                                                 const Case& /*c*/, const exec::Outcome& /*run*/,
                                                 int& /*blocks*/) const {
    return std::nullopt;
  }
  // Whether the values of a run can be followed, from the inputs to this output. If so, name the
  // first statement that differs, of a run in values or in the exact algebra.
  virtual bool can_locate(const tl::Program& /*program*/, const spec::Form& /*form*/,
                          const std::string& /*output*/) const {
    return false;
  }
  virtual void locate(const tl::Program& /*program*/, const spec::Capture& /*capture*/,
                      const Case& /*c*/, Counterexample& /*what*/) const {}
  virtual std::unique_ptr<Locator> exact_locator(const Case& /*c*/, const spec::Form& /*form*/,
                                                 const spec::Problem& /*named*/,
                                                 const exec::Launch& /*launch*/) const {
    return nullptr;
  }
};

// An operand that is read at plain indices, as a kernel has it: [B, H, rows, columns], with one
// batch (or head) where it has none.
Tensor operand_of(const spec::Operand& operand, const spec::Problem& problem,
                  const spec::Form& form, const char* row, int64_t rows, const char* column,
                  int64_t columns);

}  // namespace kw::check
