// Fixed text in .inc files beside this one, each a raw string; what differs by target is two atoms.
#include "cute/prelude.h"

namespace kw::cute {
namespace {

constexpr const char* kScalars =
#include "cute/prelude_scalars.inc"
    ;
constexpr const char* kTiles =
#include "cute/prelude_tiles.inc"
    ;
constexpr const char* kRows =
#include "cute/prelude_rows.inc"
    ;

}  // namespace

std::string prelude() { return std::string(kScalars + 1) + kTiles + kRows; }

}  // namespace kw::cute
