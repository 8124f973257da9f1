// The attention form as a formula for a person, before all else on the page.
#pragma once
#include "operator/form.h"
#include "report/html.h"

namespace kw::report {

Markup formula(const spec::Form& form);

}  // namespace kw::report
