// Products. Small whole numbers are exact in any order of accumulation and find a wrong element, a
// wrong transposition or a lost k; reals are held against fp32 accumulation as the tensor cores do
// it: each group of 16 products is aligned and truncated, so K/16 + 1 truncations of at most 2^-21
// of the sum of the magnitudes (measured on H200: far below it, see the table).
#include "conformance.h"

namespace conformance {
namespace {

// s = a @ b.T, overwriting what was in s, with `a` in registers and in shared memory.
template <class Element, int N, int K>
struct GemmShared {
  kw::SharedTile<Element, 64, K> a;
  kw::SharedTile<Element, N, K> b;
};
template <class Element, int N, int K>
__global__ void __launch_bounds__(128)
    gemm_kernel(const Element* a, const Element* b, float* out, float* shared_out) {
  auto& shared = kw::shared_memory<GemmShared<Element, N, K>>();
  get_shared(shared.a, a);
  get_shared(shared.b, b);
  kw::fence_async();
  __syncthreads();
  kw::Operand<Element, 64, K> q;
  kw::Accumulator<kw::real, 64, N> s;
  get(q, a);
  kw::fill(s, 12345.0f);
  kw::wgmma(s, q, kw::transposed(shared.b));
  kw::wgmma_wait<0>(s);
  put(s, out);
  kw::fill(s, 12345.0f);
  kw::wgmma(s, shared.a, kw::transposed(shared.b));
  kw::wgmma_wait<0>(s);
  put(s, shared_out);
}

// acc += a @ b, twice in flight with another product between: the waits complete them in order.
template <class Element, int N, int K>
__global__ void __launch_bounds__(128) gemm_add_kernel(const Element* a, const Element* b,
                                                       const float* c, float* out, float* doubled) {
  auto& tile = kw::shared_memory<kw::SharedTile<Element, K, N>>();
  get_shared(tile, b);
  kw::fence_async();
  __syncthreads();
  kw::Operand<Element, 64, K> p;
  kw::Accumulator<kw::real, 64, N> acc;
  get(p, a);
  get(acc, c);
  if constexpr (N > 192) {  // the registers do not hold two accumulators
    kw::wgmma_add(acc, p, tile);
    kw::wgmma_wait<0>(acc);
    put(acc, out);
    kw::wgmma_add(acc, p, tile);
    kw::wgmma_wait<0>(acc);
    put(acc, doubled);
  } else {
    kw::Accumulator<kw::real, 64, N> other;
    get(other, c);
    kw::wgmma_add(acc, p, tile);
    kw::wgmma_add(other, p, tile);
    kw::wgmma_wait<1>(acc);
    put(acc, out);
    kw::wgmma_wait<0>(other);
    kw::wgmma_add(other, p, tile);
    kw::wgmma_wait<0>(other);
    put(other, doubled);
  }
}

struct Product {
  std::vector<double> sum, magnitude;
};

// a [64, K], b [K, N] given as a function of (k, n).
template <class B>
Product multiply(const std::vector<float>& a, B b, const std::vector<float>& c, int N, int K,
                 int times) {
  Product p;
  for (int i = 0; i < 64; ++i)
    for (int n = 0; n < N; ++n) {
      double sum = c.empty() ? 0 : c[i * N + n], magnitude = std::fabs(sum);
      for (int k = 0; k < K; ++k) {
        sum += times * double(a[i * K + k]) * b(k, n);
        magnitude += times * std::fabs(double(a[i * K + k]) * b(k, n));
      }
      p.sum.push_back(sum);
      p.magnitude.push_back(magnitude);
    }
  return p;
}

template <class Element>
std::vector<float> widened(const std::vector<Element>& v) {
  std::vector<float> out;
  for (Element x : v) out.push_back(widen(x));
  return out;
}

void compare(Report& report, const char* function, const std::string& what, bool whole,
             const std::vector<float>& got, const Product& want, int K) {
  if (whole) {
    report.exact(function, (what + ", whole numbers").c_str(), got,
                 std::vector<float>(want.sum.begin(), want.sum.end()));
    return;
  }
  std::vector<double> bound;
  for (double m : want.magnitude) bound.push_back(m * (K / 16 + 1) * std::ldexp(1.0, -21));
  report.close(function, (what + ", reals").c_str(), got, want.sum, bound);
}

template <class Element>
std::vector<Element> elements(Random& random, size_t n, bool whole) {
  const std::vector<float> v = whole ? random.integers(n, -8, 8) : random.normals(n);
  if constexpr (std::is_same_v<Element, kw::bf16>)
    return to_bf16(v);
  else
    return to_f16(v);
}

std::string shape(int N, int K) { return "N " + std::to_string(N) + ", K " + std::to_string(K); }

template <class Element, int N, int K>
void gemm(Report& report, Random& random, bool whole) {
  const auto a = elements<Element>(random, 64 * K, whole),
             b = elements<Element>(random, N * K, whole);
  Device<Element> da(a), db(b);
  Device<float> out(64 * N), shared(64 * N);
  launch(gemm_kernel<Element, N, K>, 1, 128, da.data(), db.data(), out.data(), shared.data());
  const std::vector<float> wa = widened(a), wb = widened(b);
  const Product want = multiply(
      wa, [&](int k, int n) { return wb[n * K + k]; }, {}, N, K, 1);
  compare(report, "wgmma", shape(N, K), whole, out.read(), want, K);
  compare(report, "wgmma", shape(N, K) + ", a in shared memory", whole, shared.read(), want,
          K);
}

template <class Element, int N, int K>
void mma_add(Report& report, Random& random, bool whole) {
  const auto a = elements<Element>(random, 64 * K, whole),
             b = elements<Element>(random, N * K, whole);
  const auto c = whole ? random.integers(64 * N, -99, 99) : random.normals(64 * N, 10);
  Device<Element> da(a), db(b);
  Device<float> dc(c), once(64 * N), twice(64 * N);
  launch(gemm_add_kernel<Element, N, K>, 1, 128, da.data(), db.data(), dc.data(), once.data(),
         twice.data());
  const std::vector<float> wa = widened(a), wb = widened(b);
  const auto at = [&](int k, int n) { return wb[k * N + n]; };
  compare(report, "wgmma_add", shape(N, K), whole, once.read(), multiply(wa, at, c, N, K, 1),
          K);
  compare(report, "wgmma_wait", shape(N, K) + (N > 192 ? ", twice" : ", two in flight"), whole,
          twice.read(), multiply(wa, at, c, N, K, 2), 2 * K);
}

// acc += a @ b[:, column ...], both in shared memory, or a in registers.
template <class Element, int N, int K, int C>
struct ColumnsShared {
  kw::SharedTile<Element, 64, K> a;
  kw::SharedTile<Element, K, C> b;
};
template <class Element, int N, int K, int C, bool kRegisters>
__global__ void __launch_bounds__(128)
    gemm_add_columns_kernel(const Element* a, const Element* b, const float* c, int column, float* out) {
  auto& shared = kw::shared_memory<ColumnsShared<Element, N, K, C>>();
  get_shared(shared.a, a);
  get_shared(shared.b, b);
  kw::fence_async();
  __syncthreads();
  kw::Accumulator<kw::real, 64, N> acc;
  get(acc, c);
  if constexpr (kRegisters) {
    kw::Operand<Element, 64, K> left;
    kw::load(shared.a, left);
    kw::wgmma_add_columns(acc, left, shared.b, column);
  } else {
    kw::wgmma_add_columns(acc, shared.a, shared.b, column);
  }
  kw::wgmma_wait<0>(acc);
  put(acc, out);
}
template <class Element, int N, int K, int C, bool kRegisters = false>
void gemm_add_columns(Report& report, Random& random, bool whole, int column) {
  const auto a = elements<Element>(random, 64 * K, whole),
             b = elements<Element>(random, C * K, whole);
  const auto c = whole ? random.integers(64 * N, -99, 99) : random.normals(64 * N, 10);
  Device<Element> da(a), db(b);
  Device<float> dc(c), out(64 * N);
  launch(gemm_add_columns_kernel<Element, N, K, C, kRegisters>, 1, 128, da.data(), db.data(), dc.data(), column,
         out.data());
  const std::vector<float> wa = widened(a), wb = widened(b);
  const auto at = [&](int k, int n) { return wb[k * C + column + n]; };
  compare(report, "wgmma_add_columns",
          shape(N, K) + (kRegisters ? ", from registers" : "") + ", columns " + std::to_string(column) + " ... of " + std::to_string(C), whole,
          out.read(), multiply(wa, at, c, N, K, 1), K);
}

// acc += a[row ...] @ b, both in shared memory.
template <class Element, int N, int R, int K>
struct RowsShared {
  kw::SharedTile<Element, R, K> a;
  kw::SharedTile<Element, K, N> b;
};
template <class Element, int N, int R, int K>
__global__ void __launch_bounds__(128)
    gemm_add_rows_kernel(const Element* a, const Element* b, const float* c, int row, float* out) {
  auto& shared = kw::shared_memory<RowsShared<Element, N, R, K>>();
  get_shared(shared.a, a);
  get_shared(shared.b, b);
  kw::fence_async();
  __syncthreads();
  kw::Accumulator<kw::real, 64, N> acc;
  get(acc, c);
  kw::wgmma_add_rows(acc, shared.a, row, shared.b);
  kw::wgmma_wait<0>(acc);
  put(acc, out);
}
template <class Element, int N, int R, int K>
void gemm_add_rows(Report& report, Random& random, bool whole, int row) {
  const auto a = elements<Element>(random, R * K, whole), b = elements<Element>(random, K * N, whole);
  const auto c = whole ? random.integers(64 * N, -99, 99) : random.normals(64 * N, 10);
  Device<Element> da(a), db(b);
  Device<float> dc(c), out(64 * N);
  launch(gemm_add_rows_kernel<Element, N, R, K>, 1, 128, da.data(), db.data(), dc.data(), row, out.data());
  const std::vector<float> all = widened(a), wb = widened(b);
  const std::vector<float> wa(all.begin() + row * K, all.begin() + (row + 64) * K);
  const auto at = [&](int k, int n) { return wb[k * N + n]; };
  compare(report, "wgmma_add_rows", shape(N, K) + ", rows " + std::to_string(row) + " ... of " + std::to_string(R), whole,
          out.read(), multiply(wa, at, c, N, K, 1), K);
}

}  // namespace

void test_products(Report& report) {
  Random random(5);
  for (bool whole : {true, false}) {
    gemm<kw::bf16, 16, 128>(report, random, whole);
    gemm<kw::f16, 16, 64>(report, random, whole);
    gemm<kw::bf16, 32, 256>(report, random, whole);
    gemm<kw::bf16, 48, 128>(report, random, whole);
    gemm<kw::bf16, 64, 64>(report, random, whole);
    gemm<kw::bf16, 80, 256>(report, random, whole);
    gemm<kw::bf16, 96, 128>(report, random, whole);
    gemm<kw::bf16, 112, 192>(report, random, whole);
    gemm<kw::bf16, 128, 128>(report, random, whole);
    gemm<kw::bf16, 128, 96>(report, random, whole);
    gemm<kw::bf16, 144, 64>(report, random, whole);
    gemm<kw::bf16, 160, 64>(report, random, whole);
    gemm<kw::bf16, 176, 32>(report, random, whole);
    gemm<kw::bf16, 192, 192>(report, random, whole);
    gemm<kw::bf16, 256, 64>(report, random, whole);
    gemm<kw::f16, 48, 256>(report, random, whole);
    gemm<kw::f16, 64, 96>(report, random, whole);
    gemm<kw::f16, 128, 64>(report, random, whole);
    gemm_add_columns<kw::bf16, 256, 64, 576>(report, random, whole, 0);
    gemm_add_columns<kw::bf16, 256, 64, 576>(report, random, whole, 256);
    gemm_add_columns<kw::bf16, 128, 32, 192>(report, random, whole, 64);
    gemm_add_columns<kw::f16, 32, 96, 96>(report, random, whole, 64);
    for (const int column : {0, 32, 64, 96})  // half of a panel
      gemm_add_columns<kw::bf16, 32, 64, 128>(report, random, whole, column);
    gemm_add_columns<kw::f16, 32, 128, 64>(report, random, whole, 32);
    gemm_add_columns<kw::bf16, 16, 64, 96>(report, random, whole, 80);
    for (const int column : {0, 32, 96}) gemm_add_columns<kw::bf16, 32, 64, 128, true>(report, random, whole, column);
    gemm_add_columns<kw::f16, 16, 64, 96, true>(report, random, whole, 64);
    gemm_add_columns<kw::bf16, 16, 64, 96, true>(report, random, whole, 16);
    gemm_add_columns<kw::bf16, 128, 64, 256, true>(report, random, whole, 128);
    gemm_add_columns<kw::f16, 64, 32, 192, true>(report, random, whole, 64);
    gemm_add_rows<kw::bf16, 64, 128, 64>(report, random, whole, 0);
    gemm_add_rows<kw::bf16, 64, 128, 64>(report, random, whole, 64);
    gemm_add_rows<kw::f16, 128, 192, 128>(report, random, whole, 128);
    mma_add<kw::bf16, 32, 64>(report, random, whole);
    mma_add<kw::bf16, 64, 96>(report, random, whole);
    mma_add<kw::bf16, 64, 112>(report, random, whole);
    mma_add<kw::bf16, 96, 80>(report, random, whole);
    mma_add<kw::bf16, 128, 128>(report, random, whole);
    mma_add<kw::bf16, 160, 144>(report, random, whole);
    mma_add<kw::bf16, 192, 64>(report, random, whole);
    mma_add<kw::bf16, 160, 80>(report, random, whole);
    mma_add<kw::bf16, 256, 32>(report, random, whole);
    mma_add<kw::bf16, 256, 48>(report, random, whole);
    mma_add<kw::bf16, 256, 80>(report, random, whole);
    mma_add<kw::f16, 96, 128>(report, random, whole);
    mma_add<kw::f16, 128, 64>(report, random, whole);
  }
}

}  // namespace conformance
