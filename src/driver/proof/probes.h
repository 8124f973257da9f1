// Probes: inputs on which an attention kernel that is wrong shows it at any length.
//
// Outputs of N keys are means of N values: they shrink and average errors away, and at 32,768 keys
// 13 of 18 planted bugs pass allclose(1e-2). Four kinds of cases do not average (docs/evidence.md
// has the thresholds and what each is blind to):
//   identity   V is an identity in a window of as many keys as it has columns, zero elsewhere. The
//              output is then some columns of the attention matrix itself.
//   mean       V ~ N(1, 1). Low precision in the sum over keys shows.
//   plain      V ~ N(0, 1), the relative error of each row.
//   sharp      plain with queries eight times as long: references rise, so rescaling happens.
// The log-sum in fp32 is compared in each. Truths are the form in fp64, at sampled rows: sixteen
// spread over the last 128 queries, sixteen anywhere, each of some head.
#pragma once
#include <functional>

#include "operator/capture/capture.h"
#include "runtime/launch/strided.h"
#include "transfer/transfer.h"

namespace kw::driver {

struct Probe {
  std::string name;       // "identity 8192 keys, from 4032"
  spec::Problem problem;  // its sizes, scalars and shapes; the tensors are drawn
  spec::Draws draws;      // by the user's names; queries and values below
  double query_scale = 1;
  runtime::Contents values;
  bool window = false;
  std::vector<double> index, output, lse;  // [R, 3], [R, Dv], [R]
  std::vector<double> accepted, lse_accepted;
};

// Whether nothing is done to the output after the sum over the values.
bool values_are_linear(const spec::Form& form);

// Whether sizes can be chosen: the operands' lengths are free or fixed, the output is no function
// of more than its row, and the tensors fit (2^26 elements).
bool can_probe(const spec::Form& form, int64_t keys);

// The probes at that many keys, one after another; `dynamic_tiles` returns false to stop. False
// when it did, or when the problem can't be made (reported).
bool for_each_probe(const spec::Capture& capture, const transfer::Result& transferred, int64_t keys,
                    const std::function<bool(const Probe&)>& take, Diagnostics& diagnostics);

}  // namespace kw::driver
