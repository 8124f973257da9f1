#include "runtime/prove/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "num/compare.h"
#include "runtime/prove/guarded.h"
#include "support/targets.h"

namespace kw::runtime {
namespace {

using Json = nlohmann::json;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The index of the element at a position in memory, as "[1, 0, 77, 3]".
std::string index_text(const Strided& layout, int64_t position) {
  std::vector<size_t> order;
  for (size_t d = 0; d < layout.shape.size(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  std::vector<int64_t> index(layout.shape.size());
  for (const size_t d : order)
    if (layout.shape[d] > 1) {
      index[d] = position / layout.strides[d];
      position %= layout.strides[d];
    }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// Reads row `row` of a golden's rows from an output.
struct RowReader {
  const Golden& golden;
  const Output& output;
  int64_t dims = golden.rows.shape[1];
  int64_t columns = dims < static_cast<int64_t>(output.layout.shape.size())
                        ? output.layout.shape.back()
                        : int64_t{1};

  std::vector<double> got(int64_t row) const {
    int64_t at = 0;
    for (int64_t d = 0; d < dims; ++d)
      at += static_cast<int64_t>(golden.rows.values[row * dims + d]) * output.layout.strides[d];
    std::vector<double> values;
    for (int64_t c = 0; c < columns; ++c)
      values.push_back(
          element(output.bytes, output.layout.dtype, at + c * output.layout.strides.back()));
    return values;
  }
  const double* truth(int64_t row) const { return golden.values.values.data() + row * columns; }
  std::vector<int64_t> index(int64_t row) const {
    std::vector<int64_t> out;
    for (int64_t d = 0; row >= 0 && d < dims; ++d)
      out.push_back(static_cast<int64_t>(golden.rows.values[row * dims + d]));
    return out;
  }
};

// Relative L2 of a row, or the absolute error of an element; infinity where the classes (finite,
// infinite, NaN) differ.
double error_of(const Golden& golden, const std::vector<double>& got, const double* truth) {
  if (golden.values.shape.size() == 2) return row_error(got.data(), truth, got.size());
  if (std::isfinite(*truth) && std::isfinite(got[0])) return std::abs(got[0] - *truth);
  const bool same = got[0] == *truth || (std::isnan(got[0]) && std::isnan(*truth));
  return same ? 0 : kInfinity;
}

double share(double error, double accepted) {
  const double ratio = error == 0 ? 0 : error / accepted;
  return std::isnan(ratio) ? kInfinity : ratio;
}

// JSON has no infinity: nlohmann writes null for one.
Json facts_of(const Golden& golden, const RowReader& reader, int64_t worst, double ratio,
              double error, double accepted) {
  return {{"output", golden.output},
          {"rows", golden.rows.shape[0]},
          {"worst_ratio", ratio},
          {"worst_error", error},
          {"accepted", accepted},
          {"worst_index", reader.index(worst)},
          {"rule", golden.window ? "window" : "rows"}};
}

Json compare_rows(const Golden& golden, const RowReader& reader, Diagnostics& findings) {
  const int64_t rows = golden.rows.shape[0];
  int64_t worst = -1, outside = 0;
  double worst_ratio = -1, worst_error = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double error = error_of(golden, reader.got(r), reader.truth(r));
    outside += !(error <= golden.accepted.values[r]);  // a NaN on either side is outside
    const double ratio = share(error, golden.accepted.values[r]);
    if (ratio <= worst_ratio) continue;
    worst = r;
    worst_ratio = ratio;
    worst_error = error;
  }
  const double accepted = worst >= 0 ? golden.accepted.values[worst] : 0.0;
  if (outside)
    findings.error("prove.error", {},
                   fmt::format("{}: {} of {} sampled {} are further from the truth than accepted; "
                               "the worst at [{}]: error {:.3g}, accepted {:.3g}",
                               golden.output, outside, rows,
                               golden.values.shape.size() == 2 ? "rows" : "elements",
                               fmt::join(reader.index(worst), ", "), worst_error, accepted));
  return facts_of(golden, reader, worst, worst_ratio, worst_error, accepted);
}

Json compare_window(const Golden& golden, const RowReader& reader, Diagnostics& findings) {
  const int64_t rows = golden.rows.shape[0];
  int64_t worst = -1, worst_column = 0, leaks = 0, counted = 0;
  double worst_error = 0, squares = 0, leak = 0, worst_got = 0;
  std::string leaked_at;
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> got = reader.got(r);
    const double* truth = reader.truth(r);
    for (int64_t c = 0; c < reader.columns; ++c) {
      if (truth[c] == 0) {
        if (got[c] == 0) continue;
        if (leaks++ == 0) {
          leak = got[c];
          leaked_at = fmt::format("[{}, {}]", fmt::join(reader.index(r), ", "), c);
        }
        continue;
      }
      // What is nothing beside the row's largest entry may be off by 2 % of that nothing.
      const double nothing = golden.accepted.values[r];
      double error = std::abs(got[c] - truth[c]) / std::max(std::abs(truth[c]), nothing);
      if (!(error <= kInfinity)) error = kInfinity;
      if (!(std::abs(truth[c]) < nothing)) {
        squares += error * error;
        ++counted;
      }
      if (error < worst_error || (worst >= 0 && error == worst_error)) continue;
      worst = r;
      worst_column = c;
      worst_error = error;
      worst_got = got[c];
    }
  }
  const double all = counted ? std::sqrt(squares / static_cast<double>(counted)) : 0;
  if (leaks)
    findings.error("prove.window", {},
                   fmt::format("{}: {} entries of masked keys are not zero; the first, at {}, is "
                               "{:.3g} where the truth is 0",
                               golden.output, leaks, leaked_at, leak));
  if (!(worst_error <= kWindowEach))
    findings.error(
        "prove.window", {},
        fmt::format("{}: the weight of a key is wrong by {:.2g} of itself, accepted "
                    "{:.2g}; at [{}, {}] it is {:.4g}, the truth {:.4g}",
                    golden.output, worst_error, kWindowEach, fmt::join(reader.index(worst), ", "),
                    worst_column, worst_got, reader.truth(worst)[worst_column]));
  else if (!(all <= kWindowAll))
    findings.error("prove.window", {},
                   fmt::format("{}: the weights of {} keys are wrong by {:.2g} of themselves in "
                               "the root mean square, accepted {:.2g}",
                               golden.output, counted, all, kWindowAll));
  const double ratio =
      leaks ? kInfinity : std::max(share(worst_error, kWindowEach), share(all, kWindowAll));
  Json facts = facts_of(golden, reader, worst, ratio, worst_error, kWindowEach);
  facts["root_mean_square"] = all;
  return facts;
}

// The bits of every row that lies in (b, h), for tensors with columns or without.
template <class Visit>
void for_each_row(const Strided& layout, int64_t b, int64_t h, const Visit& visit) {
  const bool columns = layout.shape.size() > 3;
  const int64_t base = b * layout.strides[0] + h * layout.strides[1];
  for (int64_t m = 0; m < layout.shape[2]; ++m)
    visit(base + m * layout.strides[2], columns ? layout.shape[3] : 1);
}

}  // namespace

void scan_output(const Output& output, bool nan_allowed, Diagnostics& findings) {
  const int64_t size = static_cast<int64_t>(bytes(output.layout.dtype));
  if (size == 1) return;
  const std::string canary = canaries(size);
  const int64_t count = output.layout.count();
  int64_t unwritten = 0, nans = 0, first_unwritten = -1, first_nan = -1;
  for (int64_t at = 0; at < count; ++at) {
    if (memcmp(output.bytes.data() + at * size, canary.data(), size) == 0) {
      if (unwritten++ == 0) first_unwritten = at;
    } else if (std::isnan(element(output.bytes, output.layout.dtype, at))) {
      if (nans++ == 0) first_nan = at;
    }
  }
  if (unwritten)
    findings.error(
        "prove.unwritten", {},
        fmt::format("{}: {} of {} elements were not written, the first at {}", output.name,
                    unwritten, count, index_text(output.layout, first_unwritten)));
  if (nans && !nan_allowed)
    findings.error("prove.nan", {},
                   fmt::format("{}: {} of {} elements are NaN, the first at {}", output.name, nans,
                               count, index_text(output.layout, first_nan)));
}

Json compare_golden(const Golden& golden, const Output& output, Diagnostics& findings) {
  const RowReader reader{golden, output};
  return golden.window ? compare_window(golden, reader, findings)
                       : compare_rows(golden, reader, findings);
}

bool differs_in_signs_only(const Output& before, std::string_view now,
                           const std::vector<bool>& signs, int64_t groups) {
  const Strided& layout = before.layout;
  const int64_t size = static_cast<int64_t>(bytes(layout.dtype)), heads = layout.shape[1];
  bool same = before.bytes.size() == now.size();
  for (int64_t b = 0; b < layout.shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const bool changed = signs[b * groups + h / (heads / groups)];
      for_each_row(layout, b, h, [&](int64_t at, int64_t columns) {
        if (!same) return;
        if (!changed) {
          same =
              memcmp(before.bytes.data() + at * size, now.data() + at * size, columns * size) == 0;
          return;
        }
        for (int64_t c = at; c < at + columns && same; ++c) {
          const char *x = before.bytes.data() + c * size, *y = now.data() + c * size;
          const bool flipped = memcmp(x, y, size - 1) == 0 && (x[size - 1] ^ y[size - 1]) == '\x80';
          same = flipped || (element(before.bytes, layout.dtype, c) == 0 &&
                             element(now, layout.dtype, c) == 0);
        }
      });
    }
  return same;
}

void change_signs(std::string& all, const Strided& layout, const std::vector<bool>& signs) {
  const int64_t size = static_cast<int64_t>(bytes(layout.dtype));
  for (int64_t b = 0; b < layout.shape[0]; ++b)
    for (int64_t h = 0; h < layout.shape[1]; ++h)
      if (signs[b * layout.shape[1] + h])
        for_each_row(layout, b, h, [&](int64_t at, int64_t columns) {
          for (int64_t c = at; c < at + columns; ++c) all[(c + 1) * size - 1] ^= '\x80';
        });
}

Peaks peaks_of(int capability, int multiprocessors, int clock_khz, int memory_khz, int bus_bits) {
  const TargetLimits* target = find_target("sm_" + std::to_string(capability));
  const double flop_per_clock = target ? target->flop_per_clock : 0;
  return {flop_per_clock * multiprocessors * clock_khz * 1e3,
          2.0 * memory_khz * 1e3 * bus_bits / 8};  // two transfers a clock
}

double floor_ms(const Peaks& peaks, double flop, double bytes) {
  const double products = peaks.flops > 0 ? flop / peaks.flops : 0;
  const double memory = peaks.bytes > 0 ? bytes / peaks.bytes : 0;
  return 0.98 * 1e3 * std::max(products, memory);
}

}  // namespace kw::runtime
