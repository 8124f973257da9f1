// A timeline as a file: for Perfetto or chrome://tracing, and as a picture.
#pragma once
#include <string>

#include "timeline/simulate.h"

namespace kw::timeline {

// The Trace Event Format: one process a CTA, one thread a track, a complete event ("X") a bar, in
// microseconds at `mhz`.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
std::string to_trace(const Timeline& timeline, double mhz);

// The tracks of CTA 0, time to the right, 14,000 cycles about where the second block begins; a bar
// holds its statement's text where it fits, and always as its title. Well-formed XML, no scripts,
// no fonts of its own.
std::string to_svg(const Timeline& timeline, const std::string& title);

}  // namespace kw::timeline
