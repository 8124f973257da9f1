// What the tests of sketches begin with: a machine of gpus/, a program of a text, a text changed.
#pragma once
#include <gtest/gtest.h>

#include "in_clone.h"
#include "sketch/schedule.h"
#include "tl/laws/laws.h"

namespace kw::sketch {

// The GPU of that name; for its first target where none is given.
inline Machine machine_of(const std::string& gpu, const std::string& target = "") {
  Diagnostics d;
  const auto found = timeline::find_gpu(in_clone("/gpus"), gpu, d);
  const auto m = found ? machine(*found, target, d) : std::nullopt;
  EXPECT_TRUE(m) << render(d);
  return *m;
}

inline tl::Program parsed(const std::string& text) {
  Diagnostics d;
  const auto p = tl::parse(make_source("test.tl", text), d);
  EXPECT_TRUE(p) << render(d);
  return *p;
}

}  // namespace kw::sketch
