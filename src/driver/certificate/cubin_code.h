// Whether two cubins do the same: every byte but those of sections for debuggers. Headers count,
// for they say what is loaded, and where.
//
// NVRTC writes line tables even without -lineinfo's use, and those name the folder that the
// compilation ran in. So a kernel that is built again elsewhere gives other bytes, of the same
// length, for the same instructions.
#pragma once
#include <string_view>

namespace kw::driver {

bool same_code(std::string_view a, std::string_view b);

}  // namespace kw::driver
