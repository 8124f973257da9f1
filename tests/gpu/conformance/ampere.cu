// What Ampere-class kernels use: copies that whole warpgroups ask for, products that warps issue, and
// tiles of more than 64 rows. The same functions run on every GPU since sm_80; here on Hopper.
// Copies and whole numbers are exact; reals are held against the bound of products.cu.
#include <cuda_fp16.h>

#include "conformance.h"

namespace conformance {
namespace {

// ---- element types and layouts
template <class T>
T round_to(float x) {
  if constexpr (std::is_same_v<T, kw::bf16>) return round_to_bf16(x);
  return {__half_raw(__float2half_rn(x)).x};
}
float as_real(kw::bf16 x) { return widen(x); }
float as_real(kw::f16 x) {
  __half_raw raw;
  raw.x = x.bits;
  return __half2float(raw);
}
template <class T>
std::vector<T> elements(const std::vector<float>& v) {
  std::vector<T> out;
  for (float x : v) out.push_back(round_to<T>(x));
  return out;
}
template <class T>
std::vector<float> reals(const std::vector<T>& v) {
  std::vector<float> out;
  for (T x : v) out.push_back(as_real(x));
  return out;
}
// Register n of a thread, of a tile with R / 64 times 64 rows of C columns, one after another.
__device__ int tall_row(int n, int C) {
  return n / (C / 2) * 64 + fragment_row(threadIdx.x % 128, n % (C / 2));
}
__device__ int tall_column(int n, int C) { return fragment_column(threadIdx.x % 128, n % (C / 2)); }

template <int R, int C>
__device__ void get_tall(kw::Accumulator<kw::real, R, C>& tile, const float* from) {
  for (int n = 0; n < R * C / 128; ++n) tile.x[n] = from[tall_row(n, C) * C + tall_column(n, C)];
}
template <int R, int C>
__device__ void put_tall(const kw::Accumulator<kw::real, R, C>& tile, float* to) {
  for (int n = 0; n < R * C / 128; ++n) to[tall_row(n, C) * C + tall_column(n, C)] = tile.x[n];
}
template <class T, int R, int C>
__device__ void get_tall(kw::Operand<T, R, C>& tile, const T* from) {
  for (int n = 0; n < R * C / 256; ++n) {
    const T* two = from + tall_row(2 * n, C) * C + tall_column(2 * n, C);
    tile.x[n] = two[0].bits | uint32_t(two[1].bits) << 16;
  }
}
template <class T, int R, int C>
__device__ void put_tall(const kw::Operand<T, R, C>& tile, T* to) {
  for (int n = 0; n < R * C / 256; ++n) {
    T* two = to + tall_row(2 * n, C) * C + tall_column(2 * n, C);
    two[0].bits = uint16_t(tile.x[n]);
    two[1].bits = uint16_t(tile.x[n] >> 16);
  }
}
template <class Tile, class T>
__device__ void get_tile(Tile& tile, const T* from) {
  for (int n = threadIdx.x; n < Tile::rows * Tile::columns; n += blockDim.x)
    tile.data[swizzled(n / Tile::columns, n % Tile::columns, Tile::rows, Tile::columns)] = from[n];
}

// ---- copies
// The rows of a tensor [B, H, M, D] in a larger allocation, with gaps after rows, heads, batches.
struct Layout {
  int B = 2, H = 3, M, D;
  int64_t row() const { return D + 8; }
  int64_t head() const { return M * row() + 16; }
  int64_t batch() const { return H * head() + 24; }
  int64_t size() const { return B * batch(); }
  int64_t at(kw::Coords c, int row_in_tile) const {
    return c.batch * batch() + c.head * head() + (c.row + row_in_tile) * row();
  }
  template <class T>
  kw::Tensor<T, 'B', 'H', 'M', 'D'> tensor(T* data) const {
    return {data, {batch(), head(), row(), 1}, {B, H, M, D}};
  }
};

// Brings a tile, then the same tile of the next head into a second one; the first is read when only
// the first has been waited for.
template <int kWarpgroups, class Tile>
__global__ void copy_kernel(kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'> from, kw::Coords at,
                            kw::bf16* first, kw::bf16* second) {
  auto* tiles = &kw::shared_memory<Tile>();
  for (int n = threadIdx.x; n < 2 * Tile::rows * Tile::columns; n += blockDim.x)
    tiles->data[n].bits = 0x4242;
  kw::sync_block();
  dawdle(0);
  kw::cp_async<kWarpgroups>(from, at, tiles[0]);
  kw::cp_async_commit();
  kw::cp_async<kWarpgroups>(from, {at.batch, at.head + 1, at.row}, tiles[1]);
  kw::cp_async_commit();
  kw::cp_async_wait<1>();
  kw::sync_block();
  put_shared(tiles[0], first);
  kw::cp_async_wait<0>();
  kw::sync_block();
  put_shared(tiles[1], second);
}

template <int kWarpgroups, int R, int C>
void copies(Report& report, Random& random, int row, const char* what) {
  const Layout t{2, 3, 150, C};
  const std::vector<kw::bf16> data = to_bf16(random.normals(t.size()));
  Device<kw::bf16> in(data), first(R * C), second(R * C);
  const kw::Coords at{1, 0, row};
  Device<kw::bf16> elsewhere(64 << 20);  // more than L2 holds: the copies come from far away
  running = "cp_async";
  launch(copy_kernel<kWarpgroups, kw::SharedTile<kw::bf16, R, C>>, 1, 128 * kWarpgroups,
         t.tensor<const kw::bf16>(in.data()), at, first.data(), second.data());
  for (int next : {0, 1}) {
    std::vector<kw::bf16> want;
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c)
        want.push_back(row + r < t.M ? data[t.at({1, next, row}, r) + c] : kw::bf16{0});
    report.exact(next ? "cp_async_wait" : "cp_async", what, (next ? second : first).read(), want);
  }
}

// The same through registers: done for this thread when it returns. What lies beyond the tile, as far
// as a round of all threads' rows can reach, keeps what it held.
constexpr int kBeyond = 8192;  // elements
template <class Tile>
struct Bounded {
  Tile tile;
  kw::bf16 beyond[kBeyond];
};
template <int kWarpgroups, class Tile>
__global__ void copy_in_kernel(kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'> from, kw::Coords at,
                               kw::bf16* to) {
  constexpr int kSize = Tile::rows * Tile::columns;
  auto& shared = kw::shared_memory<Bounded<Tile>>();
  for (int n = threadIdx.x; n < kSize; n += blockDim.x) shared.tile.data[n].bits = 0x4242;
  for (int n = threadIdx.x; n < kBeyond; n += blockDim.x) shared.beyond[n].bits = 0x4242;
  kw::sync_block();
  kw::copy_in<kWarpgroups>(from, at, shared.tile);
  kw::sync_block();
  put_shared(shared.tile, to);
  for (int n = threadIdx.x; n < kBeyond; n += blockDim.x) to[kSize + n] = shared.beyond[n];
}

template <int kWarpgroups, int R, int C>
void copies_in(Report& report, Random& random, int row, const char* what) {
  const Layout t{2, 3, 150, C};
  const std::vector<kw::bf16> data = to_bf16(random.normals(t.size()));
  Device<kw::bf16> in(data), out(R * C + kBeyond);
  const kw::Coords at{1, 2, row};
  running = "copy_in";
  launch(copy_in_kernel<kWarpgroups, kw::SharedTile<kw::bf16, R, C>>, 1, 128 * kWarpgroups,
         t.tensor<const kw::bf16>(in.data()), at, out.data());
  std::vector<kw::bf16> want;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) want.push_back(row + r < t.M ? data[t.at(at, r) + c] : kw::bf16{0});
  want.resize(R * C + kBeyond, kw::bf16{0x4242});
  report.exact("copy_in", what, out.read(), want);
}

// ---- e4m3: copied as it is, then made elements of
double value_of(kw::e4m3 x) {
  const int exponent = x.bits >> 3 & 15, fraction = x.bits & 7;
  if ((x.bits & 127) == 127) return 1e30;  // NaN, as it is compared here
  const double size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return x.bits & 128 ? -size : size;
}

template <class T, int R, int C>
struct Narrow {
  kw::SharedTile<kw::e4m3, R, C> raw;
  kw::SharedTile<T, R, C> tile;
};
template <int kWarpgroups, class T, int R, int C>
__global__ void widen_kernel(kw::Tensor<const kw::e4m3, 'B', 'H', 'M', 'D'> from, kw::Coords at,
                             T* to) {
  auto& shared = kw::shared_memory<Narrow<T, R, C>>();
  for (int n = threadIdx.x; n < R * C; n += blockDim.x)
    shared.raw.data[n].bits = 0x42, shared.tile.data[n].bits = 0x4242;
  kw::sync_block();
  kw::cp_async<kWarpgroups>(from, at, shared.raw);
  kw::cp_async_commit();
  kw::cp_async_wait<0>();
  kw::upcast<kWarpgroups>(shared.raw, shared.tile);
  kw::sync_block();
  for (int n = threadIdx.x; n < R * C; n += blockDim.x)
    to[n] = shared.tile.data[swizzled(n / C, n % C, R, C)];
}

template <int kWarpgroups, class T, int R, int C>
void widenings(Report& report, int row, const char* what) {
  const Layout t{2, 3, 150, C};
  std::vector<kw::e4m3> data(t.size());
  for (size_t n = 0; n < data.size(); ++n)
    data[n].bits = (n * 37 + n / 256 * 11) % 256;  // all codes
  Device<kw::e4m3> in(data);
  Device<T> out(R * C);
  const kw::Coords at{1, 2, row};
  running = "upcast";
  launch(widen_kernel<kWarpgroups, T, R, C>, 1, 128 * kWarpgroups, t.tensor<const kw::e4m3>(in.data()),
         at, out.data());
  std::vector<float> want, got = reals(out.read());
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      want.push_back(row + r < t.M ? float(value_of(data[t.at(at, r) + c])) : 0.0f);
  for (float& x : got)
    if (x != x) x = 1e30f;
  report.exact("upcast", what, got, want);
}

template <int kWarpgroups, class Tile, class T>
__global__ void copy_out_kernel(const kw::bf16* from, kw::Tensor<T, 'B', 'H', 'M', 'D'> to,
                                kw::Coords at) {
  auto& tile = kw::shared_memory<Tile>();
  get_shared(tile, from);
  kw::sync_block();
  kw::copy_out<kWarpgroups>(tile, to, at);
}

template <int kWarpgroups, int R, int C>
void copies_out(Report& report, Random& random, int row, const char* what) {
  const Layout t{2, 3, 150, C};
  const std::vector<kw::bf16> tile = to_bf16(random.normals(R * C));
  Device<kw::bf16> in(tile), out(t.size(), kw::bf16{0x4242});
  launch(copy_out_kernel<kWarpgroups, kw::SharedTile<kw::bf16, R, C>, kw::bf16>, 1, 128 * kWarpgroups, in.data(),
         t.tensor(out.data()), kw::Coords{1, 2, row});
  std::vector<kw::bf16> want(t.size(), kw::bf16{0x4242});
  for (int r = 0; r < R && row + r < t.M; ++r)
    for (int c = 0; c < C; ++c) want[t.at({1, 2, row}, r) + c] = tile[r * C + c];
  report.exact("copy_out", what, out.read(), want);
  Device<kw::bf16> rows(t.size(), kw::bf16{0x4242});  // the same to a scratch
  kw::Tensor<kw::scratch<kw::bf16>, 'B', 'H', 'M', 'D'> to;
  static_cast<kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'>&>(to) = t.tensor<const kw::bf16>(rows.data());
  launch(copy_out_kernel<kWarpgroups, kw::SharedTile<kw::bf16, R, C>, kw::scratch<kw::bf16>>, 1,
         128 * kWarpgroups, in.data(), to, kw::Coords{1, 2, row});
  report.exact("copy_out", (std::string(what) + ", to a scratch").c_str(), rows.read(), want);
}

// The same of tiles that are part of wider rows: in, in through registers, and out again.
template <int kWarpgroups, class Tile>
__global__ void tile_kernel(kw::Tensor<const kw::bf16, 'B', 'H', 'M', 'D'> from, kw::TileCoords at,
                            kw::bf16* in, kw::bf16* at_once, const kw::bf16* tile,
                            kw::Tensor<kw::bf16, 'B', 'H', 'M', 'D'> to) {
  auto* tiles = &kw::shared_memory<Tile>();
  const auto clear = [&] {
    kw::sync_block();
    for (int n = threadIdx.x; n < Tile::rows * Tile::columns; n += blockDim.x)
      tiles->data[n].bits = 0x4242;
    kw::sync_block();
  };
  clear();
  kw::cp_async_tile<kWarpgroups>(from, at, tiles[0]);
  kw::cp_async_commit();
  kw::cp_async_wait<0>();
  kw::sync_block();
  put_shared(tiles[0], in);
  clear();
  kw::copy_tile_in<kWarpgroups>(from, at, tiles[0]);
  kw::sync_block();
  put_shared(tiles[0], at_once);
  get_shared(tiles[1], tile);
  kw::sync_block();
  kw::copy_tile_out<kWarpgroups>(tiles[1], to, at);
}

template <int kWarpgroups, int R, int C>
void tiles(Report& report, Random& random, int row, int column, const char* what) {
  const Layout t{2, 3, 150, 200};
  const std::vector<kw::bf16> data = to_bf16(random.normals(t.size())),
                              tile = to_bf16(random.normals(R * C));
  Device<kw::bf16> from(data), in(R * C), at_once(R * C), given(tile),
      to(t.size(), kw::bf16{0x4242});
  const kw::Coords first{0, 1, row};  // past its rows lie those of the next head
  launch(tile_kernel<kWarpgroups, kw::SharedTile<kw::bf16, R, C>>, 1, 128 * kWarpgroups,
         t.tensor<const kw::bf16>(from.data()), kw::TileCoords{0, 1, row, column}, in.data(),
         at_once.data(), given.data(), t.tensor(to.data()));
  std::vector<kw::bf16> want, written(t.size(), kw::bf16{0x4242});
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      const bool inside = row + r < t.M && column + c < t.D;
      want.push_back(inside ? data[t.at(first, r) + column + c] : kw::bf16{0});
      if (inside) written[t.at(first, r) + column + c] = tile[r * C + c];
    }
  report.exact("cp_async_tile", what, in.read(), want);
  report.exact("copy_tile_in", what, at_once.read(), want);
  report.exact("copy_tile_out", what, to.read(), written);
}

// ---- products
template <class T, int R, int N, int K>
struct Factors {
  kw::SharedTile<T, R, K> a;
  kw::SharedTile<T, N, K> transposed;
  kw::SharedTile<T, K, N> plain;
};

// The last columns of so many: a panel, or half of one.
template <int N>
constexpr int some_of = N % 128 == 0 ? 64 : 32;

// from_shared and from_registers: a @ b.T; added: c + a @ d; more_shared and more_registers: c + a
// @ b.T.
template <class T, int R, int N, int K>
__global__ void __launch_bounds__(128)
    product_kernel(const T* a, const T* b, const T* d, const float* c, float* from_shared,
                   float* from_registers, float* added, float* more_shared, float* more_registers,
                   float* some_shared, float* some_registers) {
  auto& shared = kw::shared_memory<Factors<T, R, N, K>>();
  get_tile(shared.a, a);
  get_tile(shared.transposed, b);
  get_tile(shared.plain, d);
  kw::sync_block();
  kw::Operand<T, R, K> left;
  kw::Accumulator<kw::real, R, N> s;
  kw::fill(s, 12345.0f);
  kw::mma(s, shared.a, kw::transposed(shared.transposed));
  put_tall(s, from_shared);
  get_tall(left, a);
  kw::fill(s, 12345.0f);
  kw::mma(s, left, kw::transposed(shared.transposed));
  put_tall(s, from_registers);
  get_tall(s, c);
  kw::mma_add(s, left, shared.plain);
  put_tall(s, added);
  get_tall(s, c);
  kw::mma_add_transposed(s, shared.a, shared.transposed);
  put_tall(s, more_shared);
  get_tall(s, c);
  kw::mma_add_transposed(s, left, shared.transposed);
  put_tall(s, more_registers);
  constexpr int kSome = some_of<N>;
  kw::Accumulator<kw::real, R, kSome> some;
  get_tall(some, c);
  kw::mma_add_columns(some, shared.a, shared.plain, N - kSome);
  put_tall(some, some_shared);
  get_tall(some, c);
  kw::mma_add_columns(some, left, shared.plain, N - kSome);
  put_tall(some, some_registers);
}

// b(k, n) is the right factor.
template <class B>
void compare(Report& report, const char* function, const std::string& what, bool whole, int R,
             int N, int K, const std::vector<float>& a, B b, const std::vector<float>& c,
             const std::vector<float>& got) {
  std::vector<double> want, bound;
  for (int i = 0; i < R; ++i)
    for (int n = 0; n < N; ++n) {
      double sum = c.empty() ? 0 : c[i * N + n], magnitude = std::fabs(sum);
      for (int k = 0; k < K; ++k) {
        const double term = double(a[i * K + k]) * b(k, n);
        sum += term;
        magnitude += std::fabs(term);
      }
      want.push_back(sum);
      bound.push_back(magnitude * (K / 16 + 1) * std::ldexp(1.0, -21));
    }
  if (whole)
    report.exact(function, what.c_str(), got, std::vector<float>(want.begin(), want.end()));
  else
    report.close(function, what.c_str(), got, want, bound);
}

template <class T, int R, int N, int K>
void products(Report& report, Random& random, bool whole) {
  const auto numbers = [&](int n) {
    return elements<T>(whole ? random.integers(n, -8, 8) : random.normals(n));
  };
  const std::vector<T> a = numbers(R * K), b = numbers(N * K), d = numbers(K * N);
  const std::vector<float> c = whole ? random.integers(R * N, -99, 99) : random.normals(R * N, 10);
  constexpr int kSome = some_of<N>;
  Device<T> da(a), db(b), dd(d);
  Device<float> dc(c), from_shared(R * N), from_registers(R * N), added(R * N), more_shared(R * N),
      more_registers(R * N), some_shared(R * kSome), some_registers(R * kSome);
  running = "mma";
  launch(product_kernel<T, R, N, K>, 1, 128, da.data(), db.data(), dd.data(), dc.data(),
         from_shared.data(), from_registers.data(), added.data(), more_shared.data(),
         more_registers.data(), some_shared.data(), some_registers.data());
  const std::vector<float> ra = reals(a), rb = reals(b), rd = reals(d);
  const auto transposed = [&](int k, int n) { return rb[n * K + k]; };
  const auto plain = [&](int k, int n) { return rd[k * N + n]; };
  const std::string what = std::to_string(R) + "x" + std::to_string(N) + "x" + std::to_string(K) +
                           (std::is_same_v<T, kw::bf16> ? " bf16" : " f16") +
                           (whole ? ", whole numbers" : ", reals");
  compare(report, "mma", what + ", from shared memory", whole, R, N, K, ra, transposed, {},
          from_shared.read());
  compare(report, "mma", what + ", from registers", whole, R, N, K, ra, transposed, {},
          from_registers.read());
  compare(report, "mma_add", what, whole, R, N, K, ra, plain, c, added.read());
  compare(report, "mma_add_transposed", what + ", from shared memory", whole, R, N, K, ra,
          transposed, c, more_shared.read());
  compare(report, "mma_add_transposed", what + ", from registers", whole, R, N, K, ra, transposed,
          c, more_registers.read());
  const auto later = [&](int k, int n) { return plain(k, N - kSome + n); };
  const std::vector<float> first(c.begin(), c.begin() + R * kSome);
  compare(report, "mma_add_columns", what + ", from shared memory", whole, R, kSome, K, ra, later,
          first, some_shared.read());
  compare(report, "mma_add_columns", what + ", from registers", whole, R, kSome, K, ra, later, first,
          some_registers.read());
}

// ---- tiles of 128 rows
constexpr int kRows = 128, kColumns = 64, kTile = kRows * kColumns;

struct TallShared {
  kw::SharedTile<kw::bf16, kRows, kColumns> in, out, words;
};
struct Tall {
  kw::bf16 *loaded, *stored, *words, *reshaped;
  float *maxima, *sums, *mapped;
};

__device__ void put_tall_rows(const kw::RowVector<kw::real, kRows>& v, float* to) {
  for (int r = 0; r < kRows / 32; ++r)
    to[(r / 2 * 64 + fragment_row(threadIdx.x, r % 2 * 2)) * 4 + threadIdx.x % 4] = v.x[r];
}

__global__ void __launch_bounds__(128) tall_kernel(const float* x, const kw::bf16* y, Tall out,
                                                   kw::Tensor<float, 'B', 'H', 'M'> rows) {
  auto& shared = kw::shared_memory<TallShared>();
  get_shared(shared.in, y);
  kw::sync_block();
  kw::Operand<kw::bf16, kRows, kColumns> p;
  kw::load(shared.in, p);
  put_tall(p, out.loaded);

  kw::Accumulator<kw::real, kRows, kColumns> s;
  get_tall(s, x);
  kw::to_operand(p, s);
  put_tall(p, out.reshaped);
  kw::store(s, shared.out);
  const int row = threadIdx.x / 32 * 16;
  for (int n = 0; n < s.count; n += 8) {
    const float* v = s.x + n;
    const kw::bf16 type{};
    kw::detail::store_words(shared.words, row + n / (kColumns / 2) * 64, n % (kColumns / 2) / 4,
                            kw::ptx::pack(type, v[0], v[1]), kw::ptx::pack(type, v[2], v[3]),
                            kw::ptx::pack(type, v[4], v[5]), kw::ptx::pack(type, v[6], v[7]));
  }
  kw::sync_block();
  put_shared(shared.out, out.stored);
  put_shared(shared.words, out.words);

  kw::RowVector<kw::real, kRows> m;
  kw::LaneSum<kw::real, kRows> l;
  kw::fill(m, -1.0f);
  kw::fill(l, 0.25f);
  kw::row_max(m, s);
  put_tall_rows(m, out.maxima);
  kw::row_sum(l, s);
  put_tall_rows(kw::total(l), out.sums);
  kw::store_rows(m, rows, {1, 1, 30});
  kw::map_at(s, kw::Origin{1000, 2000},
             [&](float v, kw::Place i, kw::Place j) { return v + float(i * 100 + j * 3); });
  put_tall(s, out.mapped);
}

void tall_tiles(Report& report, Random& random) {
  const std::vector<float> x = random.integers(kTile, -64, 64);
  const std::vector<kw::bf16> y = to_bf16(random.normals(kTile));
  const int M = 130, head = M + 3, batch = 2 * head + 5;
  Device<float> dx(x), maxima(kRows * 4), sums(kRows * 4), mapped(kTile), rows(2 * batch, 7.0f);
  Device<kw::bf16> dy(y), loaded(kTile), stored(kTile), words(kTile), reshaped(kTile);
  const kw::Tensor<float, 'B', 'H', 'M'> tensor{rows.data(), {batch, head, 1}, {2, 2, M}};
  launch(tall_kernel, 1, 128, dx.data(), dy.data(),
         Tall{loaded.data(), stored.data(), words.data(), reshaped.data(), maxima.data(),
              sums.data(), mapped.data()},
         tensor);

  std::vector<float> top, sum, at, kept(2 * batch, 7.0f);
  for (int i = 0; i < kRows; ++i) {
    float highest = -1, total = 1;  // four lanes began with a quarter
    for (int j = 0; j < kColumns; ++j) {
      const float v = x[i * kColumns + j];
      highest = std::fmax(highest, v);
      total += v;
      at.push_back(v + float((1000 + i) * 100 + (2000 + j) * 3));
    }
    top.insert(top.end(), 4, highest);
    sum.insert(sum.end(), 4, total);
    if (30 + i < M) kept[batch + head + 30 + i] = highest;
  }
  const std::vector<kw::bf16> rounded = to_bf16(x);
  report.exact("load", "128 rows", loaded.read(), y);
  report.exact("to_operand", "128 rows", reshaped.read(), rounded);
  report.exact("store", "128 rows", stored.read(), rounded);
  report.exact("store_words", "128 rows", words.read(), rounded);
  report.exact("row_max", "128 rows", maxima.read(), top);
  report.exact("row_sum", "128 rows, and total", sums.read(), sum);
  report.exact("map_at", "128 rows", mapped.read(), at);
  report.exact("store_rows", "128 rows", rows.read(), kept);
}

}  // namespace

void test_ampere(Report& report) {
  Random random(17);
  tiles<1, 64, 64>(report, random, 0, 0, "64x64, one warpgroup");
  tiles<1, 128, 128>(report, random, 64, 128, "128x128, over both ends");
  tiles<2, 64, 128>(report, random, 120, 72, "64x128, two warpgroups, at column 72");
  tiles<1, 32, 64>(report, random, 8, 200, "32x64, past the last column");
  copies<1, 64, 64>(report, random, 0, "64x64, one warpgroup");
  copies<1, 128, 128>(report, random, 90, "128x128, over the end");
  copies<2, 64, 256>(report, random, 120, "64x256, two warpgroups, over the end");
  copies<2, 48, 128>(report, random, 17, "48x128, two warpgroups");
  copies<1, 32, 64>(report, random, 150, "32x64, past the end");
  copies_in<1, 64, 64>(report, random, 0, "64x64, one warpgroup");
  copies_in<1, 128, 128>(report, random, 90, "128x128, over the end");
  copies_in<2, 64, 256>(report, random, 120, "64x256, two warpgroups, over the end");
  copies_in<2, 48, 128>(report, random, 17, "48x128, two warpgroups");
  copies_in<1, 32, 64>(report, random, 150, "32x64, past the end");
  widenings<1, kw::bf16, 64, 64>(report, 0, "64x64 bf16, one warpgroup");
  widenings<1, kw::f16, 128, 128>(report, 90, "128x128 f16, over the end");
  widenings<2, kw::bf16, 64, 256>(report, 120, "64x256 bf16, two warpgroups, over the end");
  widenings<2, kw::f16, 48, 128>(report, 17, "48x128 f16, two warpgroups");
  copies_out<1, 128, 128>(report, random, 0, "128x128, one warpgroup");
  copies_out<1, 64, 256>(report, random, 100, "64x256, over the end");
  copies_out<2, 48, 64>(report, random, 99, "48x64, two warpgroups");
  for (bool whole : {true, false}) {
    products<kw::bf16, 64, 96, 96>(report, random, whole);  // panels of 32 columns
    products<kw::bf16, 64, 64, 64>(report, random, whole);
    products<kw::bf16, 64, 64, 256>(report, random, whole);
    products<kw::bf16, 128, 64, 128>(report, random, whole);
    products<kw::f16, 128, 128, 64>(report, random, whole);
    products<kw::f16, 64, 64, 128>(report, random, whole);
  }
  tall_tiles(report, random);
}

}  // namespace conformance
