// A file of its own: only it is compiled again when the version changes.
#include "support/version.h"

namespace kw {

const char* version() { return KW_VERSION; }

}  // namespace kw
