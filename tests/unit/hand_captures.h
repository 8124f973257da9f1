// The hand-written forms under the name that tests use.
#pragma once
#include "check/hand_captures.h"

namespace kw::test {
using namespace kw::check::hand;
}
