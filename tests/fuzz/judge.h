// One function of the grammar through everything: graph, form, transfer, laws, both readings.
#pragma once
#include <optional>
#include <string>

#include "grammar.h"
#include "spec/capture.h"
#include "tl/program.h"
#include "transfer/transfer.h"

namespace kw::fuzz {

enum class Outcome { holds, refused, inconclusive, wrong };
const char* name(Outcome o);

struct Verdict {
  Outcome outcome = Outcome::holds;
  std::string code;    // of a refusal; what was opaque; which reading was wrong
  std::string detail;  // for a person
  std::string target;
};

// The kernels that are changed, with tiles small enough for small inputs, and their targets.
class Judge {
 public:
  Judge();
  Verdict judge(const Function& f) const;

 private:
  struct Kernel {
    tl::Program program;
    transfer::Target target;
  };
  std::vector<Kernel> kernels_;
};

// What capture would have read; null after refusing.
std::optional<spec::Form> form_of(const Function& f, Diagnostics& diagnostics);

}  // namespace kw::fuzz
