#include "in_clone.h"

namespace kw {

std::string in_clone(std::string_view path) { return KW_SOURCE_DIR + std::string(path); }

}  // namespace kw
