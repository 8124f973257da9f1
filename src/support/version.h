// The project's version, as CMakeLists.txt has it.
#pragma once

namespace kw {

// "0.1.0".
const char* version();

}  // namespace kw
