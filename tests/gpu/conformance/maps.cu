// Maps: every element, its global coordinates and its row's values reach the lambda, and its result
// the same place; and reads of tensors, inside and outside of them. All of it is exact, so the
// comparisons are bit for bit.
#include "conformance.h"

#include <climits>

namespace conformance {
namespace {

constexpr int C = 96;  // not a power of two: panels and columns must not be confused

enum Kind { plain, at_index, at_bounds, at_real, columns_at, columns_real, kinds };

// What a vector of ints and one of reals hold for a coordinate.
__host__ __device__ int kind_of(int x) { return x * 5 % 11; }
__host__ __device__ float height_of(int x) { return float(x % 37) * 0.5f; }

// What a row's data may say of where its keys begin: anything.
__host__ __device__ int bound_of(int i) {
  const int bounds[] = {INT_MIN, INT_MAX, i, 500, i + 330, -1};
  return bounds[i % 6];
}
// Every comparison of places, of two and of one with an int, a bit each.
template <class P> __host__ __device__ int comparisons(P i, P j, int bound) {
  int bits = 0, n = 0;
  for (const bool x : {bool(j < bound), bool(j <= bound), bool(j > bound), bool(j >= bound),
                       bool(j == bound), bool(j != bound), bool(bound < j), bool(bound <= j + 1),
                       bool(bound > j - 1), bool(bound >= j), bool(i + 290 < j), bool(i + 290 <= j),
                       bool(i > j - 290), bool(i >= j - 290), bool(j == i + 290), bool(290 - j != -i),
                       bool(j - i < 300 && i + j > 700), bool(bound < 0 || j < i + 290),
                       bool(j < 490 || j > 520), bool(bound > 0 && i % 2 == j % 2), bool(bound != 500 && j < i + 300)})
    bits |= int(x) << n++;
  return bits;
}

template <Kind kKind>
__global__ void map_kernel(const float* t, const float* v, const float* w, int i0, int j0,
                           float* out) {
  kw::Accumulator<kw::real, 64, C> s;
  kw::RowVector<kw::real, 64> a, b;
  get(s, t);
  get_rows(a, v);
  get_rows(b, w);
  const kw::Origin origin{i0, j0};
  if constexpr (kKind == plain)
    kw::map(
        s, [&](kw::real x, kw::real y, kw::real z) { return kw::fma(x, y, z); }, a, b);
  if constexpr (kKind == at_index)
    kw::map_at(
        s, origin,
        [&](kw::real x, kw::Place i, kw::Place j, kw::real y) {
          return j % 7 == i % 5 ? x * y : float(i * 1000 + j);
        },
        a);
  if constexpr (kKind == at_bounds) {
    kw::RowVector<int, 64> bound;
    kw::set_rows(bound, i0, [&](int i) { return bound_of(i); });
    kw::map_at(
        s, origin,
        [&](kw::real, kw::Place i, kw::Place j, int b) { return float(comparisons(i, j, b)); },
        bound);
  }
  if constexpr (kKind == at_real)
    kw::map_real(
        s, origin,
        [&](kw::real x, kw::Coordinate i, kw::Coordinate j, kw::real y) {
          return kw::fma(y, j - i, x + j * i) + 3.0f * (j - i) + i * 5.0f;
        },
        a);
  if constexpr (kKind == columns_at) {
    kw::ColumnVector<int, C> kind;
    kw::ColumnVector<kw::real, C> height;
    kw::RowVector<int, 64> own;
    kw::set_columns(kind, j0, [&](int j) { return kind_of(j); });
    kw::set_columns(height, j0, [&](int j) { return height_of(j); });
    kw::set_rows(own, i0, [&](int i) { return kind_of(i); });
    kw::map_at(
        s, origin,
        [&](kw::real x, kw::Place i, kw::Place j, int o, int k, kw::real h, kw::real y) {
          return o == k ? x * y : h + float(i * 1000 + j);
        },
        own, kind, height, a);
  }
  if constexpr (kKind == columns_real) {
    kw::ColumnVector<kw::real, C> height;
    kw::set_columns(height, j0, [&](int j) { return height_of(j); });
    kw::map_real(
        s, origin,
        [&](kw::real x, kw::Coordinate i, kw::Coordinate j, kw::real h, kw::real y) {
          return kw::fma(y, j - i, x) + h;
        },
        height, a);
  }
  put(s, out);
}

// 128 rows, as warpgroups of the Ampere-class kernel may have: what set_rows says at each, and what a
// map reads of it and of columns.
__global__ void tall_kernel(int i0, int j0, float* out) {
  kw::Accumulator<kw::real, 128, C> s;
  kw::RowVector<int, 128> row;
  kw::ColumnVector<int, C> column;
  kw::fill(s, 0.0f);
  kw::set_rows(row, i0, [&](int i) { return kw::Wide{i}; });  // as from tensors of i64
  kw::set_columns(column, j0, [&](int j) { return kw::Wide{j}; });
  kw::map_at(
      s, kw::Origin{i0, j0},
      [&](kw::real x, kw::Place i, kw::Place j, int r, int c) {
        return r == i && c == j ? float(r * 1000 + c) : -1.0f;
      },
      row, column);
  for (int n = 0; n < s.count; ++n)
    out[(s.thread_row() + s.below(n)) * C + s.thread_column() + s.column(n)] = s.x[n];
}

__global__ void rows_kernel(const float* v, const float* w, float* vector, float* lane_sum) {
  kw::RowVector<kw::real, 64> a, b;
  kw::LaneSum<kw::real, 64> l;
  get_rows(a, v);
  get_rows(b, w);
  get_rows(l, w);
  kw::map_rows(
      l, [&](kw::real x, kw::real y) { return x * y; }, a);
  kw::map_rows(
      a, [&](kw::real x, kw::real y) { return x - y; }, b);
  put_rows(a, vector);
  put_rows(l, lane_sum);
}

__global__ void fill_kernel(float value, float* tile, float* vector, float* lane_sum) {
  kw::Accumulator<kw::real, 64, C> s;
  kw::RowVector<kw::real, 64> v;
  kw::LaneSum<kw::real, 64> l;
  kw::fill(s, value);
  kw::fill(v, value);
  kw::fill(l, value);
  put(s, tile);
  put_rows(v, vector);
  put_rows(l, lane_sum);
}

__global__ void reshape_kernel(const float* from, kw::bf16* to) {
  kw::Accumulator<kw::real, 64, C> s;
  kw::Operand<kw::bf16, 64, C> p;
  get(s, from);
  kw::to_operand(p, s);
  put(p, to);
}

template <class T>
__global__ void read_kernel(kw::Tensor<const T, 'H', 'N'> t, const int* h, const int* n,
                            float* out) {
  out[threadIdx.x] = float(t(h[threadIdx.x], n[threadIdx.x]));
}

// Elements inside, and on either side outside of a tensor of 3 x 5 in rows of 7, and of its
// transpose; `values` says what the elements of `data` are.
template <class T, class Stored>
void reads_of(Report& report, const char* type, const std::vector<Stored>& data,
              const std::vector<float>& values) {
  Device<Stored> memory(data);
  const int far = 1 << 30, ends[] = {-far, -1, 0, 1, 2, 3, 4, 5, far};
  for (const bool transposed : {false, true}) {
    const int rows = transposed ? 5 : 3, columns = transposed ? 3 : 5;
    const int down = transposed ? 1 : 7, right = transposed ? 7 : 1;
    std::vector<int> h, n;
    std::vector<float> want;
    for (const int y : ends)
      for (const int x : ends) {
        h.push_back(y), n.push_back(x);
        const int row = y < 0 || y >= rows ? rows - 1 : y;
        const int column = x < 0 || x >= columns ? columns - 1 : x;
        want.push_back(values[row * down + column * right]);
      }
    Device<int> dh(h), dn(n);
    Device<float> out(want.size());
    const kw::Tensor<const T, 'H', 'N'> t{
        reinterpret_cast<const T*>(memory.data()), {down, right}, {rows, columns}};
    launch(read_kernel<T>, 1, int(want.size()), t, dh.data(), dn.data(), out.data());
    report.exact("read", type, out.read(), want);
  }
}

void reads(Report& report, Random& random) {
  const size_t count = 3 * 7;
  std::vector<int> i32;
  std::vector<kw::i64> i64;
  std::vector<unsigned char> flags;
  std::vector<float> integers, truths;
  for (size_t k = 0; k < count; ++k) {
    i32.push_back(random.integer(-100000, 100000));
    flags.push_back(random.integer(0, 1));
    i64.push_back(i32.back());
    integers.push_back(float(i32.back()));
    truths.push_back(flags.back());
  }
  const std::vector<float> f32 = random.normals(count);
  std::vector<float> bf16, f16;
  for (const kw::bf16 x : to_bf16(f32)) bf16.push_back(as_float(uint32_t(x.bits) << 16));
  for (const kw::f16 x : to_f16(f32)) f16.push_back(__half2float(__half(__half_raw{x.bits})));
  reads_of<int>(report, "i32", i32, integers);
  reads_of<kw::i64>(report, "i64", i64, integers);
  reads_of<bool>(report, "bool", flags, truths);
  reads_of<float>(report, "f32", f32, f32);
  reads_of<kw::bf16>(report, "bf16", to_bf16(f32), bf16);
  reads_of<kw::f16>(report, "f16", to_f16(f32), f16);
}

std::vector<float> four_times(const std::vector<float>& rows) {
  std::vector<float> out;
  for (float x : rows) out.insert(out.end(), 4, x);
  return out;
}

void maps(Report& report, Random& random) {
  const std::vector<float> t = random.normals(64 * C), v = random.normals(64),
                           w = random.normals(64);
  Device<float> dt(t), dv(v), dw(w), out(64 * C);
  const int i0 = 192, j0 = 480;
  std::vector<float> want[kinds];
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < C; ++c) {
      const float x = t[r * C + c];
      const int i = i0 + r, j = j0 + c;
      want[plain].push_back(std::fma(x, v[r], w[r]));
      want[at_index].push_back(j % 7 == i % 5 ? x * v[r] : float(i * 1000 + j));
      want[at_bounds].push_back(float(comparisons(i, j, bound_of(i))));
      want[at_real].push_back(std::fma(v[r], float(j - i), std::fma(float(j), float(i), x)) +
                              float(3 * (j - i)) + float(5 * i));
      want[columns_at].push_back(kind_of(i) == kind_of(j) ? x * v[r]
                                                          : height_of(j) + float(i * 1000 + j));
      want[columns_real].push_back(std::fma(v[r], float(j - i), x) + height_of(j));
    }
  launch(map_kernel<plain>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("map", "two row vectors", out.read(), want[plain]);
  launch(map_kernel<at_index>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("map_at", "coordinates and a row vector", out.read(), want[at_index]);
  launch(map_kernel<at_bounds>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("map_at", "comparisons of places", out.read(), want[at_bounds]);
  launch(map_kernel<at_real>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("map_real", "coordinates and a row vector", out.read(), want[at_real]);
  launch(map_kernel<columns_at>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("set_columns", "ints and reals, beside rows", out.read(), want[columns_at]);
  launch(map_kernel<columns_real>, 1, 128, dt.data(), dv.data(), dw.data(), i0, j0, out.data());
  report.exact("set_columns", "in a map of reals", out.read(), want[columns_real]);
  Device<float> tall(128 * C);
  std::vector<float> places;
  for (int r = 0; r < 128; ++r)
    for (int c = 0; c < C; ++c) places.push_back(float((i0 + r) * 1000 + j0 + c));
  launch(tall_kernel, 1, 128, i0, j0, tall.data());
  report.exact("set_rows", "128 rows", tall.read(), places);

  Device<float> vector(256), lane_sum(256);
  launch(rows_kernel, 1, 128, dv.data(), dw.data(), vector.data(), lane_sum.data());
  std::vector<float> difference, product;
  for (int r = 0; r < 64; ++r) {
    difference.push_back(v[r] - w[r]);
    product.push_back(w[r] * v[r]);
  }
  report.exact("map_rows", "a row vector, all four lanes", vector.read(), four_times(difference));
  report.exact("map_rows", "a lane sum, lane by lane", lane_sum.read(), four_times(product));
}

// A tile of R rows and C columns of a tensor, from (i0, j0) on, as a map finds it; a second one in
// another map, beside a column vector.
template <class T, int R, int C>
__global__ void tile_kernel(kw::Tensor<const T, 'H', 'M', 'N'> t, int i0, int j0, float* out) {
  kw::Accumulator<kw::real, R, C> s;
  kw::Operand<T, R, C> b;
  kw::ColumnVector<int, C> column;
  kw::set_tile(b, kw::Origin{i0, j0}, [&](int i) { return t.row(1, i); });
  kw::set_columns(column, j0, [&](int j) { return j; });
  kw::fill(s, 0.0f);
  kw::map(
      s, [&](kw::real x, kw::real b) { return x + b; }, b);
  kw::map_at(
      s, kw::Origin{i0, j0},
      [&](kw::real x, kw::Place i, kw::Place j, kw::real b, int c) { return c == j ? x + b : -1.0f; }, b,
      column);
  for (int n = 0; n < s.count; ++n)
    out[(s.thread_row() + s.below(n)) * C + s.thread_column() + s.column(n)] = s.x[n];
}

// What depends on the distance alone, in a tile of R rows and C columns that begins at (i0, j0): a real and
// an int, beside a column and a row vector; then a real in a map of reals.
template <int R, int C> __global__ void distance_kernel(int i0, int j0, float* out) {
  kw::Accumulator<kw::real, R, C> s;
  kw::DiagonalVector<kw::real, R, C> near;
  kw::DiagonalVector<int, R, C> kind;
  kw::ColumnVector<int, C> column;
  kw::RowVector<int, R> row;
  kw::set_diagonals(near, kw::Origin{i0, j0}, [&](int d) { return float(d * 8); });
  kw::set_diagonals(kind, kw::Origin{i0, j0}, [&](int d) { return kw::floor_mod(d, 5); });
  kw::set_columns(column, j0, [&](int j) { return j; });
  kw::set_rows(row, i0, [&](int i) { return i; });
  kw::fill(s, 0.0f);
  kw::map_at(
      s, kw::Origin{i0, j0},
      [&](kw::real x, kw::Place i, kw::Place j, kw::real d, int k, int c, int r) {
        return c == j && r == i ? x + d + float(k) : -1e9f;
      },
      near, kind, column, row);
  kw::map_real(
      s, kw::Origin{i0, j0},
      [&](kw::real x, kw::Coordinate i, kw::Coordinate j, kw::real d) { return x + d * (j - i); }, near);
  for (int n = 0; n < s.count; ++n)
    out[(s.thread_row() + s.below(n)) * C + s.thread_column() + s.column(n)] = s.x[n];
}

template <int R, int C> void distances(Report& report, const char* what) {
  Device<float> out(R * C);
  for (const auto& [i0, j0] : {std::pair{0, 0}, {64, 384}, {1000, 13}, {-5, 7}}) {
    std::vector<float> want;
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) {
        const int d = j0 + c - i0 - r;
        want.push_back(float(d * 8 + ((d % 5) + 5) % 5 + d * 8 * d));
      }
    launch(distance_kernel<R, C>, 1, 128, i0, j0, out.data());
    report.exact("set_diagonals", what, out.read(), want);
  }
}

// Where rows are vectors: a pitch, an offset and an origin that are multiples of 8, of bools of 16. Where
// they are none:
// another pitch, another offset, columns two apart, another origin. Tiles that hang over the last row,
// over the last column, over both, and one that begins before the first.
template <class T, int R, int C, class Stored>
void tiles_of(Report& report, const char* type, const std::vector<Stored>& data,
              const std::vector<float>& values) {
  struct Case {
    int offset, pitch, apart, rows, columns, i0, j0;
  };
  const Case cases[] = {{0, 200, 1, 150, 200, 0, 96},  {0, 201, 1, 150, 200, 0, 96},
                        {8, 200, 1, 150, 192, 3, 32},  {2, 200, 1, 150, 198, 0, 32},
                        {0, 204, 1, 150, 200, 0, 96},  {0, 200, 1, 150, 200, 0, 36},
                        {1, 200, 1, 150, 199, 0, 32},  {0, 400, 2, 150, 200, 0, 96},
                        {0, 200, 1, 150, 200, 16, 33}, {0, 200, 1, 40, 200, 0, 0},
                        {0, 200, 1, 150, 200, 0, 160}, {0, 201, 1, 20, 180, 0, 160},
                        {0, 200, 1, 150, 200, -8, -6},
                        {0, 208, 1, 150, 200, 0, 96},  {16, 208, 1, 150, 192, 3, 32}};
  Device<Stored> memory(data);
  Device<float> out(R * C);
  for (const Case& c : cases) {
    const kw::i64 head = c.rows * c.pitch;
    std::vector<float> want;
    for (int r = 0; r < R; ++r)
      for (int k = 0; k < C; ++k) {
        const int i = c.i0 + r, j = c.j0 + k;
        const int row = i < 0 || i >= c.rows ? c.rows - 1 : i;
        const int column = j < 0 || j >= c.columns ? c.columns - 1 : j;
        want.push_back(2 * values[c.offset + head + row * c.pitch + column * c.apart]);
      }
    const kw::Tensor<const T, 'H', 'M', 'N'> t{
        reinterpret_cast<const T*>(memory.data()) + c.offset, {head, c.pitch, c.apart}, {2, c.rows, c.columns}};
    launch(tile_kernel<T, R, C>, 1, 128, t, c.i0, c.j0, out.data());
    report.exact("set_tile", type, out.read(), want);
  }
}

void tiles(Report& report, Random& random) {
  const std::vector<float> f32 = random.normals(2 * 150 * 400 + 1000);
  std::vector<float> bf16, f16;
  for (const kw::bf16 x : to_bf16(f32)) bf16.push_back(as_float(uint32_t(x.bits) << 16));
  for (const kw::f16 x : to_f16(f32)) f16.push_back(__half2float(__half(__half_raw{x.bits})));
  tiles_of<kw::bf16, 64, 96>(report, "bf16", to_bf16(f32), bf16);
  tiles_of<kw::f16, 64, 96>(report, "f16", to_f16(f32), f16);
  tiles_of<kw::bf16, 128, 96>(report, "bf16, 128 rows", to_bf16(f32), bf16);
  // Whatever is not 0 is true.
  std::vector<unsigned char> bytes;
  std::vector<float> bools;
  for (const float x : f32) {
    bytes.push_back(x < 0 ? 0 : x < 0.5 ? 1 : x < 1 ? 2 : x < 2 ? 128 : 255);
    bools.push_back(bytes.back() != 0);
  }
  tiles_of<bool, 64, 96>(report, "bool", bytes, bools);
  tiles_of<bool, 64, 128>(report, "bool, 128 columns", bytes, bools);
  tiles_of<bool, 128, 160>(report, "bool, 128 rows, no multiple of 128 columns", bytes, bools);
  tiles_of<kw::bf16, 64, 80>(report, "bf16, no multiple of 32 columns", to_bf16(f32), bf16);
}

void fills(Report& report) {
  for (float value : {0.0f, -INFINITY}) {
    Device<float> tile(64 * C, 7), vector(256, 7), lane_sum(256, 7);
    launch(fill_kernel, 1, 128, value, tile.data(), vector.data(), lane_sum.data());
    report.exact("fill", "a tile", tile.read(), std::vector<float>(64 * C, value));
    report.exact("fill", "a row vector", vector.read(), std::vector<float>(256, value));
    report.exact("fill", "a lane sum", lane_sum.read(), std::vector<float>(256, value));
  }
}

// Random values, and ties: halfway between two bf16 values, both to even.
void reshapes(Report& report, Random& random) {
  std::vector<float> from = random.normals(64 * C, 50);
  for (size_t n = 0; n < from.size(); n += 3)
    from[n] = as_float((as_bits(from[n]) & 0xFFFF0000) | 0x8000);
  Device<float> in(from);
  Device<kw::bf16> out(from.size());
  launch(reshape_kernel, 1, 128, in.data(), out.data());
  report.exact("to_operand", "to nearest even, ties among them", out.read(), to_bf16(from));
}

}  // namespace

void test_maps(Report& report) {
  Random random(2);
  maps(report, random);
  tiles(report, random);
  distances<64, 96>(report, "64 x 96");
  distances<64, 128>(report, "64 x 128");
  distances<128, 48>(report, "128 x 48");
  fills(report);
  reshapes(report, random);
  reads(report, random);
}

}  // namespace conformance
