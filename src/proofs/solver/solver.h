// The SMT solver: Z3, asked in SMT-LIB, so that every question can be read and given to another
// solver.
//
// Loaded at run time, as NVRTC and libclang are: from PyPI's `z3-solver` beside PyTorch, or from
// the system. A question is a list of declarations, premises and one claim; the claim is proved
// where its negation has no model.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kw::proofs {

enum class Answer { proved, refuted, unknown };

struct Question {
  std::vector<std::string> declarations;  // (declare-const N Int)
  std::vector<std::string> premises;      // (>= N 1)
  std::string claim;
  std::vector<std::string> shown;  // terms whose values in a counterexample are of interest
  std::vector<std::string> spare;  // premises that it is asked without first
};

struct Reply {
  Answer answer = Answer::unknown;
  std::vector<std::string> values;  // of `shown`, in a counterexample: "4097", "true"
  std::string why;                  // of unknown: "timeout", or what the solver complains of
};

class Solver {
 public:
  // Where a solver may be: KERNELWRIGHT_Z3, else those of the active Python environment, of the
  // one that this program is installed in or that lies beside its build, else the system's.
  static std::vector<std::string> candidates();

  // The first of these that can be loaded; one for the whole process. False, and why() says it.
  bool load(const std::vector<std::string>& libraries);
  const std::string& why() const { return why_; }
  std::string version() const;

  // `effort` is counted in the solver's own steps, so that the answer is the same on every machine:
  // ten million take about a second.
  Reply ask(const Question& question, int64_t effort) const;

 private:
  Reply ask(const Question& question, int64_t effort, const char* decide) const;
  Reply answered(const std::string& asked, const char* decide,
                 const std::vector<std::string>& shown) const;

  struct Functions;
  const Functions* z3_ = nullptr;
  std::string why_ = "no solver was looked for";
};

}  // namespace kw::proofs
