// Goldens that are words, not numbers: what a KW_EXACT build must give, bit for bit.
//
// The words of the small algebra (num/small_algebra.h) fill their storage evenly, so some spell
// NaN, infinity or what fresh memory is poisoned with: such an output is held against its golden
// alone.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "runtime/prove/judge.h"

namespace kw::runtime {

// Whether the case compares this output word by word.
bool holds_words(const ProveCase& asked, const std::string& output);

// The facts of compare_golden; reports prove.words with the first element that differs.
nlohmann::json compare_words(const Golden& golden, const Output& output, Diagnostics& findings);

}  // namespace kw::runtime
