// One function of the grammar, or its gradients, through everything: graph, form, transfer, laws,
// both readings.
#pragma once
#include <optional>
#include <string>

#include "grammar.h"
#include "operator/capture/capture.h"
#include "small_kernels.h"

namespace kw::fuzz {

enum class Outcome { holds, refused, inconclusive, wrong };
const char* name(Outcome o);

struct Verdict {
  Outcome outcome = Outcome::holds;
  std::string code;    // of a refusal; what was opaque; which reading was wrong
  std::string detail;  // for a person
  std::string target;
};

// Holds the kernels that are changed.
class Judge {
 public:
  Verdict judge(const Function& f) const;
  // The same of its gradients, which graph_gradients.h knows the truth of.
  Verdict judge_gradients(const Function& f) const;

 private:
  Verdict hold(const Kernel& kernel, const spec::Form& form, const spec::Capture& capture,
               const Function& f, Diagnostics& d) const;

  const std::vector<Kernel> kernels_ = small_kernels();
  const Kernel backward_ = backward_kernel();
};

// What capture would have read; null after refusing.
std::optional<spec::Form> form_of(const Function& f, Diagnostics& diagnostics);

}  // namespace kw::fuzz
