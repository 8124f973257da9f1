// Scalars: the approximate functions within the errors the PTX ISA documents for them (9.7.3,
// "Floating Point Instructions"), the others exactly. It states ex2's error against the correctly
// rounded result, which is itself half an ulp off; for lg2, rcp and rsqrt it names no
// other reference than the function itself. tanh's bound is that of __tanhf in the CUDA C++
// Programming Guide, which the PTX ISA rounds to 2^-11. The integer functions are compared with
// Python's // and % as mathematics defines them.
#include <climits>
#include <numeric>

#include "conformance.h"

namespace conformance {
namespace {

enum Function { exp2_, log2_, tanh_, reciprocal_, rsqrt_ };

__global__ void approximate(Function f, const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  switch (f) {
    case exp2_:
      y[i] = kw::exp2(x[i]);
      break;
    case log2_:
      y[i] = kw::log2(x[i]);
      break;
    case tanh_:
      y[i] = kw::tanh(x[i]);
      break;
    case reciprocal_:
      y[i] = kw::reciprocal(x[i]);
      break;
    case rsqrt_:
      y[i] = kw::rsqrt(x[i]);
      break;
  }
}

std::vector<float> results_of(Function f, const std::vector<float>& x) {
  Device<float> in(x), out(x.size());
  launch(approximate, int(x.size() + 255) / 256, 256, f, in.data(), out.data(), int(x.size()));
  return out.read();
}

double exp2_rounded(double x) { return float(std::exp2(x)); }
double ulp(double y) { return std::ldexp(1.0, std::ilogb(y) - 23); }

// Arguments for which neither side is subnormal: those are flushed to zero.
void approximations(Report& report, Random& random) {
  struct Row {
    Function f;
    const char *name, *what;
    double (*truth)(double);
    double (*bound)(double x, double y);
    float from, to;  // exponents of the arguments, or the arguments for exp2 and tanh
  };
  const Row rows[] = {
      {exp2_, "exp2", "within 2 ulp of the correctly rounded", exp2_rounded,
       [](double, double y) { return 2 * ulp(y); }, -125, 127},
      {log2_, "log2", "within 2^-22: absolute in (0.5, 2), else relative", std::log2,
       [](double x, double y) { return std::ldexp(x > 0.5 && x < 2 ? 1 : std::fabs(y), -22); },
       -126, 127},
      {tanh_, "tanh", "within 2^-10.987, relative", std::tanh,
       [](double, double y) { return std::fabs(y) * std::exp2(-10.987); }, -9, 9},
      {reciprocal_, "reciprocal", "within 1 ulp", [](double x) { return 1 / x; },
       [](double, double y) { return ulp(y); }, -125, 125},
      {rsqrt_, "rsqrt", "within 2^-22.9, relative", [](double x) { return 1 / std::sqrt(x); },
       [](double, double y) { return std::fabs(y) * std::exp2(-22.9); }, -125, 125},
  };
  for (const Row& row : rows) {
    std::vector<float> x;
    for (int n = 0; n < 1 << 16; ++n) {
      const float at =
          row.from + (row.to - row.from) * float(random.integer(0, 1 << 24)) / (1 << 24);
      x.push_back(row.f == exp2_ || row.f == tanh_ ? at : std::exp2(at));
    }
    std::vector<double> want, bound;
    for (float v : x) {
      want.push_back(row.truth(v));
      bound.push_back(row.bound(v, want.back()));
    }
    report.close(row.name, row.what, results_of(row.f, x), want, bound);
  }
  const float inf = INFINITY;
  report.exact("exp2", "of -inf, 0, 1, -3, inf", results_of(exp2_, {-inf, 0, 1, -3, inf}),
               {0, 1, 2, 0.125f, inf});
  report.exact("log2", "of 0, 1, 8, inf", results_of(log2_, {0, 1, 8, inf}), {-inf, 0, 3, inf});
  report.exact("reciprocal", "of 1, -4, inf, 0", results_of(reciprocal_, {1, -4, inf, 0}),
               {1, -0.25f, 0, inf});
}

__global__ void exact_reals(const float* a, const float* b, const float* c, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = kw::fma(a[i], b[i], c[i]);
    y[n + i] = kw::min(a[i], b[i]);
    y[2 * n + i] = kw::max(a[i], b[i]);
    y[3 * n + i] = kw::to_bf16(a[i]);
    y[4 * n + i] = kw::rounded_sum(a[i] * b[i], c[i]);
    y[5 * n + i] = kw::rounded_difference(a[i] * b[i], b[i] * c[i]);
  }
}

__global__ void integers(const int* a, const int* b, int* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = kw::floor_div(a[i], b[i]);
    y[n + i] = kw::floor_mod(a[i], b[i]);
    y[2 * n + i] = kw::ceil_div(a[i], b[i]);
    y[3 * n + i] = kw::min(a[i], b[i]);
    y[4 * n + i] = kw::max(a[i], b[i]);
    y[5 * n + i] = kw::abs(a[i]);
    y[6 * n + i] = kw::heads_at_once(kw::i64(b[i]) << 12, 1 + b[i] % 77, 1 + b[i] % 8, 8 * (1 + b[i] % 8));
  }
}
// Counts on either side of a word's bits.
__global__ void shifts(const int* a, const int* b, int* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = kw::shift_left(a[i], b[i]);
    y[n + i] = kw::shift_right(a[i], b[i]);
    y[2 * n + i] = kw::shift_left(a[i], 32);
    y[3 * n + i] = kw::shift_right(a[i], -1);
  }
}
template <int kDivisor>
__global__ void by_constant(const int* a, int* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    y[i] = kw::floor_div(a[i], kDivisor);
    y[n + i] = kw::floor_mod(a[i], kDivisor);
    y[2 * n + i] = kw::ceil_div(a[i], kDivisor);
  }
}

template <class T>
std::vector<T> part(const std::vector<T>& all, int n, int which) {
  return {all.begin() + n * which, all.begin() + n * (which + 1)};
}

void reals(Report& report, Random& random) {
  const int n = 4096;
  const std::vector<float> a = random.normals(n, 100), b = random.normals(n, 100),
                           c = random.normals(n);
  Device<float> da(a), db(b), dc(c), y(6 * n);
  launch(exact_reals, 1, 256, da.data(), db.data(), dc.data(), y.data(), n);
  std::vector<float> fma, low, high, rounded, sum, difference;
  for (int i = 0; i < n; ++i) {
    fma.push_back(std::fma(a[i], b[i], c[i]));
    low.push_back(std::fmin(a[i], b[i]));
    high.push_back(std::fmax(a[i], b[i]));
    rounded.push_back(widen(round_to_bf16(a[i])));
    const float ab = float(double(a[i]) * b[i]), bc = float(double(b[i]) * c[i]);
    sum.push_back(float(double(ab) + c[i]));
    difference.push_back(float(double(ab) - bc));
  }
  report.exact("fma", "one rounding", part(y.read(), n, 0), fma);
  report.exact("min", "of reals", part(y.read(), n, 1), low);
  report.exact("max", "of reals", part(y.read(), n, 2), high);
  report.exact("to_bf16", "the nearest, to even", part(y.read(), n, 3), rounded);
  report.exact("rounded_sum", "of a rounded product", part(y.read(), n, 4), sum);
  report.exact("rounded_difference", "of rounded products", part(y.read(), n, 5), difference);
}

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int heads_at_once(int64_t bytes, int blocks, int group, int heads) {
  int64_t section = 1;
  while (2 * section * bytes <= 32 << 20) section *= 2;
  while (section * group * blocks < 200) section *= 2;
  return int(std::gcd<int64_t>(section * group, heads));
}

template <int kDivisor>
void divisions_by(Report& report, const char* what, const std::vector<int>& a) {
  const int n = int(a.size());
  Device<int> da(a), y(3 * a.size());
  launch(by_constant<kDivisor>, 1, 256, da.data(), y.data(), n);
  std::vector<int> div, mod, ceil;
  for (int x : a) {
    div.push_back(int(floor_of(x, kDivisor)));
    mod.push_back(x - div.back() * kDivisor);
    ceil.push_back(int(-floor_of(-int64_t(x), kDivisor)));
  }
  report.exact("floor_div", what, part(y.read(), n, 0), div);
  report.exact("floor_mod", what, part(y.read(), n, 1), mod);
  report.exact("ceil_div", what, part(y.read(), n, 2), ceil);
}

void whole_numbers(Report& report, Random& random) {
  const int n = 4096;
  std::vector<int> a, b, want[7];
  for (int i = 0; i < n; ++i) {
    a.push_back(random.integer(-100000, 100000));
    b.push_back(i % 3 ? random.integer(1, 3000) : 1 << random.integer(0, 11));
    want[0].push_back(int(floor_of(a[i], b[i])));
    want[1].push_back(a[i] - want[0].back() * b[i]);
    want[2].push_back(-int(floor_of(-a[i], b[i])));
    want[3].push_back(std::min(a[i], b[i]));
    want[4].push_back(std::max(a[i], b[i]));
    want[5].push_back(std::abs(a[i]));
    want[6].push_back(
        heads_at_once(int64_t(b[i]) << 12, 1 + b[i] % 77, 1 + b[i] % 8, 8 * (1 + b[i] % 8)));
  }
  Device<int> da(a), db(b), y(7 * n);
  launch(integers, 1, 256, da.data(), db.data(), y.data(), n);
  const char* names[] = {"floor_div", "floor_mod", "ceil_div", "min", "max", "abs", "heads_at_once"};
  for (int f = 0; f < 7; ++f)
    report.exact(names[f], "of integers of both signs", part(y.read(), n, f), want[f]);
  divisions_by<64>(report, "by a constant power of two", a);
  divisions_by<96>(report, "by another constant", a);
}

// Every int may be divided: data are no smaller than an int's ends.
void divisions_at_the_ends(Report& report) {
  const int64_t lowest = INT_MIN, highest = INT_MAX;
  std::vector<int> a, b, want[3];
  for (int64_t divisor : {1, 2, 3, 64, 96, 100, 1000003, 1 << 30, INT_MAX - 1, INT_MAX})
    for (int64_t near : {lowest, lowest + divisor, int64_t{0}, highest - divisor, highest})
      for (int64_t by = -2; by <= 2; ++by) {
        const int64_t x = near + by;
        if (x < lowest || x > highest) continue;
        a.push_back(int(x));
        b.push_back(int(divisor));
        want[0].push_back(int(floor_of(x, divisor)));
        want[1].push_back(int(x - floor_of(x, divisor) * divisor));
        want[2].push_back(int(-floor_of(-x, divisor)));
      }
  const int n = int(a.size());
  Device<int> da(a), db(b), y(7 * a.size());
  launch(integers, 1, 256, da.data(), db.data(), y.data(), n);
  const char* names[] = {"floor_div", "floor_mod", "ceil_div"};
  for (int f = 0; f < 3; ++f)
    report.exact(names[f], "at the ends of an int", part(y.read(), n, f), want[f]);
  divisions_by<64>(report, "of an int's ends by a constant power of two", a);
  divisions_by<96>(report, "of an int's ends by another constant", a);
}

void shifts_by_any_count(Report& report, Random& random) {
  const int n = 4096;
  std::vector<int> a, b, left, right, nothing(n, 0), sign;
  for (int i = 0; i < n; ++i) {
    a.push_back(random.integer(-100000, 100000) * (i % 2 ? 1 : 20011));
    b.push_back(i % 5 ? random.integer(0, 31) : random.integer(-70, 70));
    const bool within = b[i] >= 0 && b[i] < 32;
    left.push_back(within ? int(unsigned(a[i]) << b[i]) : 0);
    sign.push_back(a[i] < 0 ? -1 : 0);
    right.push_back(within ? int(floor_of(a[i], int64_t(1) << b[i])) : sign.back());
  }
  Device<int> da(a), db(b), y(4 * n);
  launch(shifts, 1, 256, da.data(), db.data(), y.data(), n);
  report.exact("shift_left", "by any count", part(y.read(), n, 0), left);
  report.exact("shift_right", "by any count", part(y.read(), n, 1), right);
  report.exact("shift_left", "by 32", part(y.read(), n, 2), nothing);
  report.exact("shift_right", "by -1", part(y.read(), n, 3), sign);
}

}  // namespace

void test_scalars(Report& report) {
  Random random(1);
  approximations(report, random);
  reals(report, random);
  whole_numbers(report, random);
  divisions_at_the_ends(report);
  shifts_by_any_count(report, random);
}

}  // namespace conformance
