// The page's style sheet.
#pragma once
#include "report/html.h"

namespace kw::report {

Markup style_sheet();

}  // namespace kw::report
