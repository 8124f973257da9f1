// Reductions along rows. Maxima are exact; sums of small integers are exact in any order and find a
// term that is lost or counted twice; sums of reals are held against the rounding of C additions.
#include "conformance.h"

namespace conformance {
namespace {

template <int C>
__global__ void reduce(const float* t, const float* m0, const float* l0, float* maximum,
                       float* sum) {
  kw::Accumulator<kw::real, 64, C> s;
  kw::RowVector<kw::real, 64> m;
  kw::LaneSum<kw::real, 64> l;
  get(s, t);
  get_rows(m, m0);
  for (int r = 0; r < 2; ++r)  // the row's lanes hold 1, 2, 3 and 4 times l0 / 10
    l.x[r] = l0[fragment_row(threadIdx.x, 2 * r)] * float(threadIdx.x % 4 + 1);
  kw::row_max(m, s);
  kw::row_sum(l, s);
  put_rows(m, maximum);
  put_rows(kw::total(l), sum);
}

template <int C>
__global__ void raise_kernel(const float* t, const float* m0, float slack, float scale,
                             float* m_out, float* factor_out, int* raised) {
  kw::Accumulator<kw::real, 64, C> s;
  kw::RowVector<kw::real, 64> m, factor;
  get(s, t);
  get_rows(m, m0);
  raised[threadIdx.x] = kw::online_max(m, factor, s, slack, scale);
  put_rows(m, m_out);
  put_rows(factor, factor_out);
}

// Lane 0 to 3 of a row holds shares[0] to shares[3] of it.
__global__ void exceeds_kernel(const float* m0, const float* shares, float limit, int* over,
                               float* sum) {
  kw::RowVector<kw::real, 64> m;
  kw::LaneSum<kw::real, 64> l, twice;
  get_rows(m, m0);
  for (int r = 0; r < 2; ++r)
    l.x[r] = shares[fragment_row(threadIdx.x, 2 * r) * 4 + threadIdx.x % 4];
  over[threadIdx.x] = kw::any_exceeds(m, l, limit);
  twice = l;
  kw::add(twice, l);
  put_rows(kw::total(twice), sum);
}

__global__ void differs_kernel(const float* f0, float value, int* other) {
  kw::RowVector<kw::real, 64> f;
  get_rows(f, f0);
  other[threadIdx.x] = kw::any_differs(f, value);
}
// Of each warp's 16 rows none, or one: another number, or none at all.
void differences(Report& report, Random& random) {
  const float kinds[] = {1.0f, 0.5f, NAN, INFINITY};
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<float> f(64, 1.0f);
    const int row = kind * 16 + random.integer(8, 15);
    f[row] = kinds[kind];
    std::vector<int> want(128, 0);
    for (int lane = 0; lane < 32; ++lane) want[kind * 32 + lane] = kind > 0;
    Device<float> df(f);
    Device<int> other(128);
    launch(differs_kernel, 1, 128, df.data(), 1.0f, other.data());
    report.exact("any_differs", "in the warp with the row, and in no other", other.read(), want);
  }
}

template <int C>
void reductions(Report& report, Random& random, bool whole) {
  const std::vector<float> t = whole ? random.integers(64 * C, -50, 50) : random.normals(64 * C);
  const std::vector<float> m0 = random.integers(64, -60, 60), l0 = random.integers(64, 0, 100);
  Device<float> dt(t), dm(m0), dl(l0), maximum(256), sum(256);
  launch(reduce<C>, 1, 128, dt.data(), dm.data(), dl.data(), maximum.data(), sum.data());
  std::vector<float> highest, exact;
  std::vector<double> total, bound;
  for (int r = 0; r < 64; ++r) {
    float high = m0[r];
    double add = 10.0 * l0[r], size = add;
    for (int c = 0; c < C; ++c) {
      high = std::fmax(high, t[r * C + c]);
      add += t[r * C + c];
      size += std::fabs(t[r * C + c]);
    }
    highest.insert(highest.end(), 4, high);
    exact.insert(exact.end(), 4, float(add));
    total.insert(total.end(), 4, add);
    bound.insert(bound.end(), 4, size * std::ldexp(double(C), -24));
  }
  report.exact("row_max", "all four lanes", maximum.read(), highest);
  if (whole) {
    report.exact("row_sum, total", "whole numbers, all four lanes", sum.read(), exact);
  } else {
    report.close("row_sum, total", "reals: C additions", sum.read(), total, bound);
  }
}

// The cases of the running reference: first scores (m = -inf), below, within the slack, above it,
// rows without a score (-inf), negative limits.
struct Rows {
  std::vector<float> t, m;
};
template <int C>
Rows rows_of(Random& random, int kind) {
  Rows rows{random.normals(64 * C, 3), random.normals(64, 3)};
  for (int r = 0; r < 64; ++r) {
    const float base = kind == 1 || kind == 5 ? -100.0f : kind == 2 ? float(random.integer(-40, 40)) : 0.0f;
    if (kind == 0) rows.m[r] = -INFINITY;
    if (kind == 4) rows.m[r] = 100.0f;  // nothing exceeds it: no row is raised
    if (kind == 5) rows.m[r] = -120.0f;  // a limit and scores below zero in every row of a warp
    for (int c = 0; c < C; ++c) {
      float& x = rows.t[r * C + c];
      x += base;
      if (kind == 3 && (r % 5 == 0 || random.integer(0, 3) == 0)) x = -INFINITY;
    }
    if (kind == 3 && r % 2) rows.m[r] = -INFINITY;
    if (kind == 2) rows.m[r] = base;
  }
  return rows;
}

template <int C>
void raises(Report& report, Random& random, int kind, const char* what) {
  const float slack = kind == 2 ? 0.0f : 4.0f, scale = 0.25f;
  const Rows rows = rows_of<C>(random, kind);
  Device<float> dt(rows.t), dm(rows.m), m(256), factor(256);
  Device<int> flags(128);
  launch(raise_kernel<C>, 1, 128, dt.data(), dm.data(), slack, scale, m.data(), factor.data(),
         flags.data());
  std::vector<float> want_m;
  std::vector<double> want_factor, bound;
  std::vector<int> must(4, 0);  // by warp
  for (int r = 0; r < 64; ++r) {
    const float old = rows.m[r];
    float high = old;
    for (int c = 0; c < C; ++c) high = std::fmax(high, rows.t[r * C + c]);
    const float now = high - old > slack ? high : old;
    want_m.insert(want_m.end(), 4, now);
    const double f = now == old ? 1.0 : std::exp2(double((old - now) * scale));
    want_factor.insert(want_factor.end(), 4, f);
    bound.insert(bound.end(), 4, std::ldexp(f, -22) + 1e-38);  // exp2: 2 ulp
    must[r / 16] |= now != old;
  }
  report.exact("online_max", what, m.read(), want_m);
  report.close("online_max", "factor, exp2 within 2 ulp", factor.read(), want_factor, bound);
  const std::vector<int> got = flags.read();
  std::vector<int> uniform, first, told, needed;
  for (int t = 0; t < 128; ++t) {
    uniform.push_back(got[t]);
    first.push_back(got[t / 32 * 32]);
  }
  for (int w = 0; w < 4; ++w) {
    told.push_back(got[w * 32] || !must[w]);
    needed.push_back(1);
  }
  report.exact("online_max", "the flag is alike in a warp", uniform, first);
  report.exact("online_max", "the flag is set where a row was raised", told, needed);
  if (kind == 4)
    report.exact("online_max", "the flag is clear where none was", got, std::vector<int>(128, 0));
}

// Each warp has 16 rows: in turn nothing is amiss in them, one share is above the limit, one is
// infinite, one is no number, one row has no reference. One share in a lane that is not the first.
void excesses(Report& report, Random& random) {
  const float kinds[] = {4096.0f, 4097.0f, INFINITY, NAN, 1.0f};
  for (int kind = 0; kind < 5; ++kind) {
    std::vector<float> m = random.normals(64), shares = random.integers(256, 0, 100);
    std::vector<int> want(128, 0);
    const int warp = kind % 4, row = warp * 16 + random.integer(0, 15);
    shares[row * 4 + 1 + kind % 3] = kinds[kind];
    if (kind == 4) m[row] = -INFINITY;
    for (int lane = 0; lane < 32; ++lane) want[warp * 32 + lane] = kind > 0;
    Device<float> dm(m), dl(shares), sum(256);
    Device<int> over(128);
    launch(exceeds_kernel, 1, 128, dm.data(), dl.data(), 4096.0f, over.data(), sum.data());
    report.exact("any_exceeds", "in the warp with the row, and in no other", over.read(), want);
    if (kind == 2 || kind == 3) continue;
    std::vector<float> twice;
    for (int r = 0; r < 64; ++r) {
      float of_row = 0;
      for (int lane = 0; lane < 4; ++lane) of_row += 2 * shares[r * 4 + lane];
      twice.insert(twice.end(), 4, of_row);
    }
    report.exact("add", "whole numbers, all four lanes", sum.read(), twice);
  }
}

}  // namespace

void test_rows(Report& report) {
  Random random(3);
  differences(report, random);
  excesses(report, random);
  reductions<128>(report, random, true);
  reductions<96>(report, random, false);
  raises<128>(report, random, 0, "first scores");
  raises<128>(report, random, 1, "scores far below");
  raises<64>(report, random, 2, "no slack, any signs");
  raises<96>(report, random, 3, "rows without scores");
  raises<128>(report, random, 4, "scores that change nothing");
  raises<128>(report, random, 5, "limits and scores below zero");
}

}  // namespace conformance
