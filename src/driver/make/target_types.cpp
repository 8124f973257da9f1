// The laws of the language say the same of a program (target.C1, target.C4); here it is said of the
// function, which is what a user can change.
#include "driver/make/target_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/targets.h"

namespace kw::driver {
namespace {

const spec::Argument* first_of(const spec::Form& form, Dtype dtype) {
  const auto found =
      std::find_if(form.arguments.begin(), form.arguments.end(),
                   [&](const spec::Argument& a) { return a.is_tensor && a.dtype == dtype; });
  return found == form.arguments.end() ? nullptr : &*found;
}

}  // namespace

bool types_fit(const spec::Form& form, const std::string& target, Diagnostics& diagnostics) {
  const TargetLimits* limits = find_target(target);
  if (!limits) return true;
  const spec::Argument* narrow = first_of(form, Dtype::e4m3);
  if (narrow && !limits->fp8) {
    diagnostics
        .error("driver.dtype", narrow->span,
               fmt::format("`{}` is of e4m3, and {} ({}) has no instruction that converts it",
                           narrow->name, target, limits->gpus))
        .hint = "sm_89 and sm_90 have: --target sm_89; or give 16 bits";
    return false;
  }
  if (form.dtype == Dtype::bf16 && !limits->ampere) {
    const spec::Argument* wide = first_of(form, Dtype::bf16);
    diagnostics
        .error("driver.dtype", wide ? wide->span : Span{},
               fmt::format("the function multiplies bf16, and the tensor cores of {} ({}) have f16 "
                           "alone",
                           target, limits->gpus))
        .hint = "give torch.float16 in example_inputs()";
    return false;
  }
  return true;
}

}  // namespace kw::driver
