// Fixed text in .inc files beside this one, each a raw string.
#include "cute/prelude.h"

namespace kw::cute {
namespace {

constexpr const char* kScalars =
#include "cute/prelude_scalars.inc"
    ;
constexpr const char* kTiles =
#include "cute/prelude_tiles.inc"
    ;
constexpr const char* kCopies =
#include "cute/prelude_copies.inc"
    ;
constexpr const char* kHopper =
#include "cute/prelude_hopper.inc"
    ;
constexpr const char* kQueue =
#include "cute/prelude_queue.inc"
    ;
constexpr const char* kLists =
#include "cute/prelude_lists.inc"
    ;
constexpr const char* kRows =
#include "cute/prelude_rows.inc"
    ;

}  // namespace

std::string prelude(Parts parts) {
  std::string out = kScalars + 1;
  for (const char* part : {kTiles, parts.hopper ? kHopper : kCopies, parts.queue ? kQueue : "",
                           kRows, parts.lists ? kLists : ""})
    out += part;
  return out;
}

}  // namespace kw::cute
