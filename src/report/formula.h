// The attention form as a formula for a person, before all else on the page.
#pragma once
#include "report/html.h"
#include "spec/form.h"

namespace kw::report {

Markup formula(const spec::Form& form);

}  // namespace kw::report
