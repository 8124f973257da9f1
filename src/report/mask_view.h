// The picture of a mask, its legend with counts, and what it was drawn from.
#pragma once
#include "report/html.h"
#include "report/mask.h"

namespace kw::report {

Markup draw_mask(const MaskPicture& picture);
Markup mask_legend(const MaskPicture& picture);
Markup mask_caption(const Masks& masks, const MaskPicture& picture);

}  // namespace kw::report
