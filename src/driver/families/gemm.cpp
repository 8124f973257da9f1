#include "driver/families/gemm.h"

#include "operator/form.h"

namespace kw::driver::families {

// Before Ampere there are no copies ahead of their use, which sm_80's text is written with.
std::optional<std::vector<std::string>> Gemm::texts(const spec::Form&,
                                                    const TargetLimits* limits) const {
  if (limits && !limits->ampere) return std::vector<std::string>{"sm75/gemm.cu"};
  std::vector<std::string> out = {"sm80/gemm.cu"};
  if (limits && limits->hopper) out.insert(out.begin(), "sm90/gemm.cu");
  return out;
}

// The first line of what `capture --form` prints, and the value.
std::string Gemm::summary(const spec::Form& form) const {
  const std::string text = spec::print(form);
  return text.substr(0, text.find('\n')) + "; " + spec::print(form.product->value);
}

const Family& gemm() {
  static const Gemm family;
  return family;
}

}  // namespace kw::driver::families
