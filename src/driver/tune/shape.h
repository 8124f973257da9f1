// The shape that a kernel is tuned for.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "operator/capture/capture.h"

namespace kw::driver {

// "B=1,H=16,M=16384,N=16384": letters of BHGMN with sizes. Reports tune.shape.
std::optional<std::map<std::string, int64_t>> parse_shape(const std::string& text,
                                                          Diagnostics& diagnostics);

// `given`, and what is usual where it leaves something open: one batch entry, as many keys as
// queries, 16384 of them, or 8192 where heads are wider than 128 + 128. Sizes that the user's code
// fixes keep their values, and heads the specification's numbers.
std::map<std::string, int64_t> with_usual(const spec::Form& form,
                                          std::map<std::string, int64_t> given);

struct TunedShape {
  spec::Problem problem;  // sizes, scalars, and the tensors other than q, k and v
  spec::Draws draws;
  double kept = 1;  // the share of the scores that the mask keeps
};

// Reports tune.shape for a size other than the one that the user's code fixes.
std::optional<TunedShape> tuned_shape(const spec::Capture& capture,
                                      const std::map<std::string, int64_t>& letters,
                                      Diagnostics& diagnostics);

}  // namespace kw::driver
