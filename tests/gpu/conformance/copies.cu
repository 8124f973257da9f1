// Copies move elements and change none (store rounds to the tile's type), so all comparisons are
// exact. What is tested beside the plain move: coordinates of all four dimensions, tiles that hang
// over the end of the tensor (zeros come, nothing goes), strides with gaps, the swizzle, that a
// tile may be overwritten after tma_store_wait_read, and that a cluster's CTAs each get the whole of a
// tile of which each fetches a part.
#include <cuda.h>

#include "conformance.h"

namespace conformance {
namespace {

using Element = kw::bf16;

// A bf16 tensor [B, H, M, D] in a larger allocation: `gap` more elements after every row, head and
// batch entry, so that a stride that is ignored is seen.
struct Tensor4 {
  int B, H, M, D, gap = 8;
  int64_t row() const { return D + gap; }
  int64_t head() const { return M * row() + gap; }
  int64_t batch() const { return H * head() + 2 * gap; }
  int64_t size() const { return B * batch(); }
  int64_t at(int b, int h, int m, int d) const { return b * batch() + h * head() + m * row() + d; }
  bool has(int m) const { return m >= 0 && m < M; }
};

// The map of cuda/kw/ptx/memory.cuh: the columns of a panel (64, or 32 where 64 does not divide D),
// row, panel, head, batch; boxes of `rows` rows and `columns` columns.
template <class Map>
Map tensor_map(const Tensor4& t, Element* data, int rows, int columns) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  succeed(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
  const unsigned panel = t.D % 64 ? 32 : 64;
  const cuuint64_t sizes[] = {panel, cuuint64_t(t.M), cuuint64_t(t.D / panel), cuuint64_t(t.H),
                              cuuint64_t(t.B)};
  const cuuint64_t strides[] = {cuuint64_t(t.row() * 2), panel * 2, cuuint64_t(t.head() * 2),
                                cuuint64_t(t.batch() * 2)};
  const cuuint32_t box[] = {panel, cuuint32_t(rows), cuuint32_t(columns / panel), 1, 1},
                   steps[] = {1, 1, 1, 1, 1};
  alignas(64) CUtensorMap map;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, data, sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE,
      panel == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  succeed(result ? cudaErrorInvalidValue : cudaSuccess, "the tensor map");
  Map out;
  static_assert(sizeof(out.map) == sizeof(map));
  std::memcpy(&out.map, &map, sizeof(map));
  return out;
}

using In = kw::TensorMap<const Element, 'B', 'H', 'M', 'D'>;
using Out = kw::TensorMap<Element, 'B', 'H', 'M', 'D'>;

template <int R, int C>
struct Shared {
  kw::SharedTile<Element, R, C> tile;
  kw::Barriers<1, 2> full;  // two copies complete one use: the second brings the same tile again
};

template <int R, int C>
__global__ void load_kernel(const __grid_constant__ In in, kw::Coords at, Element* out) {
  auto& shared = kw::shared_memory<Shared<R, C>>();
  kw::init(shared.full);
  if (threadIdx.x == 0) {
    kw::tma_load(in, at, shared.tile, shared.full[0], kw::evict_first);
    kw::tma_load(in, at, shared.tile, shared.full[0], kw::evict_last);
  }
  kw::wait(shared.full[0]);
  put_shared(shared.tile, out);
}

using Table = kw::Tensor<const int, 'B', 'S'>;

// The tile is poisoned first, so that what does not come is seen.
template <int kRows, int kAtOnce, int R, int C>
__global__ void pages_kernel(const __grid_constant__ In in, Table table, kw::Coords at, Element* out) {
  auto& shared = kw::shared_memory<Shared<R, C>>();
  kw::init(shared.full);
  for (int n = threadIdx.x; n < R * C; n += blockDim.x) shared.tile.data[n].bits = 0x4242;
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    kw::tma_load_pages<kRows, kAtOnce>(in, at, table, shared.tile, shared.full[0], kw::evict_first);
    kw::tma_load_pages<kRows, kAtOnce>(in, at, table, shared.tile, shared.full[0], kw::evict_last);
  }
  kw::wait(shared.full[0]);
  put_shared(shared.tile, out);
}

template <int R, int C>
__global__ void store_kernel(const Element* from, const __grid_constant__ Out out, kw::Coords at) {
  auto& shared = kw::shared_memory<Shared<R, C>>();
  get_shared(shared.tile, from);
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    kw::tma_store(shared.tile, out, at);
    kw::tma_store_wait_read();
  }
  __syncthreads();
  for (int n = threadIdx.x; n < R * C; n += blockDim.x) shared.tile.data[n].bits = 0x4242;
  if (threadIdx.x == 0) kw::tma_store_wait();
}

// Every CTA gives its own copy of the tile. The tile is poisoned first, and CTA r sends its part r
// delays late, so that what does not come, or is not waited for, is seen.
template <int R, int C>
struct MulticastShared {
  kw::SharedTile<Element, R, C> tile;
  kw::Barriers<1, 1> full;
};
template <int kCtas, int R, int C>
__global__ void multicast_kernel(const __grid_constant__ In in, kw::Coords at, Element* out) {
  auto& shared = kw::shared_memory<MulticastShared<R, C>>();
  kw::init(shared.full);
  for (int n = threadIdx.x; n < R * C; n += blockDim.x) shared.tile.data[n].bits = 0x4242;
  kw::fence_async();
  kw::sync_cluster();
  const int cta = kw::cluster<kCtas>();
  if (threadIdx.x == 0) {
    for (const long long end = clock64() + cta * 100000LL; clock64() < end;) {
    }
    kw::tma_load_multicast<kCtas>(in, at, shared.tile, shared.full[0], kw::evict_last);
  }
  kw::wait(shared.full[0]);
  put_shared(shared.tile, out + cta * (R * C));
  kw::sync_cluster();
}

// The row-major tile at `at`: zeros past the end of the tensor.
std::vector<Element> tile_of(const Tensor4& t, const std::vector<Element>& data, kw::Coords at,
                             int R, int C) {
  std::vector<Element> tile;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      tile.push_back(t.has(at.row + r) ? data[t.at(at.batch, at.head, at.row + r, c)] : Element{0});
  return tile;
}

template <int kCtas, int R, int C>
void multicast(Report& report, Random& random, kw::Coords at, const char* what) {
  constexpr int panel = C % 64 ? 32 : 64;
  constexpr bool by_panels = C / panel % kCtas == 0;
  constexpr int rows = by_panels ? R : R / kCtas, columns = by_panels ? C / kCtas : panel;
  const Tensor4 t{3, 4, 200, C};
  const std::vector<Element> data = to_bf16(random.normals(t.size()));
  Device<Element> in(data), tiles(kCtas * R * C);
  running = "tma_load_multicast";
  launch_clusters(kCtas, multicast_kernel<kCtas, R, C>, kCtas, 128,
                  tensor_map<In>(t, in.data(), rows, columns), at, tiles.data());
  std::vector<Element> want;
  const std::vector<Element> tile = tile_of(t, data, at, R, C);
  for (int cta = 0; cta < kCtas; ++cta) want.insert(want.end(), tile.begin(), tile.end());
  report.exact("tma_load_multicast", what, tiles.read(), want);
}

// Pages in no order, one of them twice, one that the tensor does not have, and rows beyond the table.
template <int kRows, int kAtOnce, int R, int C>
void pages(Report& report, Random& random, kw::Coords at, const char* what) {
  constexpr int panel = C % 64 ? 32 : 64, kEntries = 5;
  const Tensor4 t{9, 3, kRows, C};
  const std::vector<Element> data = to_bf16(random.normals(t.size()));
  const std::vector<int> of = {7, 2, 8, 2, 0,  1, 6, -1, 3, 9};  // of two batch entries
  Device<Element> in(data), out(R * C);
  Device<int> entries(of);
  const Table table{entries.data(), {kEntries, 1}, {2, kEntries}};
  running = "tma_load_pages";
  launch(pages_kernel<kRows, kAtOnce, R, C>, 1, 128,
         tensor_map<In>(t, in.data(), kRows < R ? kRows : R, kRows < R ? panel : C), table, at, out.data());
  std::vector<Element> want;
  for (int r = at.row; r < at.row + R; ++r) {
    const int page = r / kRows < kEntries ? of[at.batch * kEntries + r / kRows] : -1;
    for (int c = 0; c < C; ++c)
      want.push_back(page >= 0 && page < t.B ? data[t.at(page, at.head, r % kRows, c)] : Element{0});
  }
  report.exact("tma_load_pages", what, out.read(), want);
}

// From a tile of kWide columns to a tensor that has C.
template <int R, int C, int kWide>
void store_narrow(Report& report, Random& random, kw::Coords at, const char* what) {
  const Tensor4 t{3, 4, 200, C};
  const std::vector<Element> data = to_bf16(random.normals(t.size())),
                             from = to_bf16(random.normals(R * kWide));
  std::vector<Element> stored = data;
  Device<Element> source(from), out(data);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      if (t.has(at.row + r)) stored[t.at(at.batch, at.head, at.row + r, c)] = from[r * kWide + c];
  running = "tma_store";
  launch(store_kernel<R, kWide>, 1, 128, source.data(), tensor_map<Out>(t, out.data(), R, C), at);
  report.exact("tma_store", what, out.read(), stored);
}

template <int R, int C>
void asynchronous(Report& report, Random& random, kw::Coords at, const char* what) {
  const Tensor4 t{3, 4, 200, C};
  const std::vector<Element> data = to_bf16(random.normals(t.size()));
  Device<Element> in(data), tile(R * C);
  running = "tma_load, wait";
  launch(load_kernel<R, C>, 1, 128, tensor_map<In>(t, in.data(), R, C), at, tile.data());
  report.exact("tma_load, wait", what, tile.read(), tile_of(t, data, at, R, C));

  store_narrow<R, C, C>(report, random, at, what);
}

template <class T, int C>
__global__ void to_operand(const T* from, T* to) {
  auto& tile = kw::shared_memory<kw::SharedTile<T, 64, C>>();
  get_shared(tile, from);
  __syncthreads();
  kw::Operand<T, 64, C> q;
  kw::load(tile, q);
  put(q, to);
}
// `to` is the tile's contents before, and then after.
template <class T, int C, int kWide>
__global__ void from_accumulator(const float* from, T* to) {
  auto& tile = kw::shared_memory<kw::SharedTile<T, 64, kWide>>();
  get_shared(tile, to);
  kw::Accumulator<kw::real, 64, C> acc;
  get(acc, from);
  __syncthreads();
  kw::store(acc, tile);
  __syncthreads();
  put_shared(tile, to);
}

template <class T>
std::vector<T> rounded(const std::vector<float>& v) {
  if constexpr (std::is_same_v<T, kw::bf16>)
    return to_bf16(v);
  else
    return to_f16(v);
}
template <class T>
std::vector<float> widened(const std::vector<T>& v) {
  std::vector<float> out;
  for (T x : v) out.push_back(widen(x));
  return out;
}

// An accumulator of C columns goes to a tile of kWide.
template <class T, int C, int kWide = C>
void registers(Report& report, Random& random, const char* what) {
  const std::vector<T> elements = rounded<T>(random.normals(64 * C));
  Device<T> in(elements), out(64 * C);
  launch(to_operand<T, C>, 1, 128, in.data(), out.data());
  report.exact("load", what, widened(out.read()), widened(elements));
  const std::vector<float> reals = random.normals(64 * C);
  std::vector<T> want = rounded<T>(random.normals(64 * kWide));
  Device<float> acc(reals);
  Device<T> tile(want);
  launch(from_accumulator<T, C, kWide>, 1, 128, acc.data(), tile.data());
  const std::vector<T> stored = rounded<T>(reals);
  for (int n = 0; n < 64 * C; ++n) want[n / C * kWide + n % C] = stored[n];
  report.exact("store", what, widened(tile.read()), widened(want));
}

// Into columns `column` ... of a tile.
template <class T, int C, int kWide>
__global__ void to_columns(const float* from, int column, T* to) {
  auto& tile = kw::shared_memory<kw::SharedTile<T, 64, kWide>>();
  get_shared(tile, to);
  kw::Accumulator<kw::real, 64, C> acc;
  get(acc, from);
  __syncthreads();
  kw::store_columns(acc, tile, column);
  __syncthreads();
  put_shared(tile, to);
}
template <class T, int C, int kWide>
void columns(Report& report, Random& random, int column, const char* what) {
  const std::vector<float> reals = random.normals(64 * C);
  std::vector<T> want = rounded<T>(random.normals(64 * kWide));
  Device<float> acc(reals);
  Device<T> tile(want);
  launch(to_columns<T, C, kWide>, 1, 128, acc.data(), column, tile.data());
  const std::vector<T> stored = rounded<T>(reals);
  for (int n = 0; n < 64 * C; ++n) want[n / C * kWide + column + n % C] = stored[n];
  report.exact("store_columns", what, widened(tile.read()), widened(want));
}

// Tiles of uses 5 and 6 in a ring of two slots: the later one lies in the first slot.
struct TileRing {
  kw::Ring<kw::SharedTile<Element, 64, 64>, 2> ring;
};
__global__ void ring_kernel(const Element* from, Element* slots) {
  auto& shared = kw::shared_memory<TileRing>();
  for (int t = 5; t < 7; ++t) get_shared(shared.ring[t], from + (t - 5) * 64 * 64);
  __syncthreads();
  for (int n = 0; n < 2; ++n) put_shared(shared.ring.slot[n], slots + n * 64 * 64);
}
void tile_ring(Report& report, Random& random) {
  const std::vector<Element> from = rounded<Element>(random.normals(2 * 64 * 64));
  Device<Element> in(from), out(2 * 64 * 64);
  launch(ring_kernel, 1, 128, in.data(), out.data());
  std::vector<Element> want(from.begin() + 64 * 64, from.end());
  want.insert(want.end(), from.begin(), from.begin() + 64 * 64);
  report.exact("Ring", "two slots", widened(out.read()), widened(want));
}

// Warpgroup 0 puts vectors of two uses into a ring of two slots, warpgroup 1 gets them, the later one first.
struct RowExchange {
  kw::RowRing<kw::real, 64, 2> ring;
};
__global__ void row_ring_kernel(const float* from, float* slots, float* to) {
  auto& shared = kw::shared_memory<RowExchange>();
  const int warpgroup = kw::warpgroup_index();
  kw::RowVector<kw::real, 64> v;
  for (int t = 4; warpgroup == 0 && t < 6; ++t) {
    get_rows(v, from + (t - 4) * 64);
    kw::put_rows(v, shared.ring[t]);
  }
  __syncthreads();
  if (threadIdx.x < 128) slots[threadIdx.x] = shared.ring.slot[threadIdx.x / 64].x[threadIdx.x % 64];
  for (int t = 5; warpgroup == 1 && t >= 4; --t) {
    kw::get_rows(shared.ring[t], v);
    put_rows(v, to + (t - 4) * 256);
  }
}
void row_rings(Report& report, Random& random) {
  const std::vector<float> from = random.normals(128);
  Device<float> in(from), slots(128), out(512);
  launch(row_ring_kernel, 1, 256, in.data(), slots.data(), out.data());
  std::vector<float> want;  // four lanes a row
  for (float x : from) want.insert(want.end(), 4, x);
  report.exact("put_rows", "two slots", slots.read(), from);
  report.exact("get_rows", "by another warpgroup, all four lanes", out.read(), want);
}

__global__ void store_rows_kernel(const float* from, kw::Tensor<float, 'B', 'H', 'M'> to,
                                  kw::Coords at) {
  kw::RowVector<kw::real, 64> v;
  get_rows(v, from);
  kw::store_rows(v, to, at);
}

void rows(Report& report, Random& random, kw::Coords at, const char* what) {
  const int B = 3, H = 4, M = 200;
  const int64_t stride[] = {2 * H * M + 5, 2 * M + 1, 2};  // every second element
  const std::vector<float> from = random.normals(64), before = random.normals(B * stride[0]);
  Device<float> in(from), out(before);
  kw::Tensor<float, 'B', 'H', 'M'> to{out.data(), {stride[0], stride[1], stride[2]}, {B, H, M}};
  launch(store_rows_kernel, 1, 128, in.data(), to, at);
  std::vector<float> want = before;
  for (int r = 0; r < 64 && at.row + r < M; ++r)
    want[at.batch * stride[0] + at.head * stride[1] + (at.row + r) * stride[2]] = from[r];
  report.exact("store_rows", what, out.read(), want);
}

template <int C>
__global__ void store_accumulator_kernel(const float* from, kw::Tensor<float, 'B', 'H', 'M', 'V'> to,
                                         kw::Coords at) {
  kw::Accumulator<kw::real, 64, C> t;
  get(t, from);
  kw::store_accumulator(t, to, at);
}

template <int C> void whole_tile(Report& report, Random& random, kw::Coords at, const char* what) {
  const int B = 3, H = 4, M = 200;
  const int64_t stride[] = {H * M * (C + 8) + 16, M * (C + 8) + 4, C + 8};  // rows with gaps
  const std::vector<float> from = random.normals(64 * C), before = random.normals(B * stride[0]);
  Device<float> in(from), out(before);
  kw::Tensor<float, 'B', 'H', 'M', 'V'> to{
      out.data(), {stride[0], stride[1], stride[2], 1}, {B, H, M, C}};
  launch(store_accumulator_kernel<C>, 1, 128, in.data(), to, at);
  std::vector<float> want = before;
  for (int r = 0; r < 64 && at.row + r < M; ++r)
    for (int c = 0; c < C; ++c)
      want[at.batch * stride[0] + at.head * stride[1] + (at.row + r) * stride[2] + c] =
          from[r * C + c];
  report.exact("store_accumulator", what, out.read(), want);
}

}  // namespace

void test_copies(Report& report) {
  Random random(4);
  whole_tile<128>(report, random, {1, 2, 64}, "inside, rows with gaps");
  whole_tile<64>(report, random, {2, 3, 150}, "over the end");
  columns<kw::bf16, 128, 576>(report, random, 448, "the last whole panels of 576 columns");
  columns<kw::bf16, 64, 128>(report, random, 64, "the second panel");
  columns<kw::f16, 32, 96>(report, random, 32, "a panel of 32 columns, f16");
  tile_ring(report, random);
  row_rings(report, random);
  asynchronous<64, 128>(report, random, {0, 0, 0}, "first tile, 64 x 128");
  asynchronous<128, 128>(report, random, {2, 1, 64}, "inside, 128 x 128");
  asynchronous<128, 64>(report, random, {1, 3, 130}, "over the end, 128 x 64");
  asynchronous<64, 192>(report, random, {2, 3, 199}, "last row alone, 64 x 192");
  asynchronous<64, 64>(report, random, {1, 2, 256}, "past the end, 64 x 64");
  asynchronous<64, 96>(report, random, {1, 2, 150}, "over the end, 64 x 96");
  asynchronous<112, 96>(report, random, {2, 3, 64}, "inside, 112 x 96");
  pages<16, 4, 64, 128>(report, random, {0, 1, 0}, "pages of 16, 64 x 128");
  pages<16, 2, 64, 128>(report, random, {1, 2, 16}, "pages of 16, one that is not there, 64 x 128");
  pages<16, 4, 64, 128>(report, random, {0, 0, 48}, "pages of 16, beyond the table, 64 x 128");
  pages<32, 2, 64, 64>(report, random, {1, 1, 0}, "pages of 32, 64 x 64");
  pages<64, 1, 64, 128>(report, random, {0, 2, 128}, "a page a tile, 64 x 128");
  pages<256, 1, 64, 128>(report, random, {1, 0, 320}, "part of a page, 64 x 128");
  pages<16, 1, 128, 96>(report, random, {0, 1, 0}, "pages of 16, panels of 32, 128 x 96");
  multicast<1, 128, 128>(report, random, {1, 2, 64}, "one CTA, 128 x 128");
  multicast<2, 128, 128>(report, random, {2, 1, 64}, "2 CTAs, inside, 128 x 128");
  multicast<2, 128, 128>(report, random, {0, 3, 130}, "2 CTAs, over the end, 128 x 128");
  multicast<2, 64, 256>(report, random, {1, 1, 170}, "2 CTAs, over the end, 64 x 256");
  multicast<2, 128, 64>(report, random, {2, 2, 8}, "2 CTAs, inside, 128 x 64");
  multicast<2, 128, 64>(report, random, {2, 3, 150}, "2 CTAs, one half past the end, 128 x 64");
  multicast<4, 128, 128>(report, random, {0, 1, 120}, "4 CTAs, over the end, 128 x 128");
  multicast<2, 80, 192>(report, random, {1, 2, 150}, "2 CTAs, over the end, 80 x 192");
  multicast<2, 112, 96>(report, random, {2, 0, 40}, "2 CTAs, inside, 112 x 96");
  store_narrow<64, 128, 192>(report, random, {1, 3, 150}, "over the end, 128 of 192 columns");
  registers<kw::bf16, 96>(report, random, "96 columns");
  registers<kw::bf16, 64>(report, random, "64 columns");
  registers<kw::bf16, 128>(report, random, "128 columns");
  registers<kw::bf16, 192>(report, random, "192 columns");
  registers<kw::bf16, 128, 192>(report, random, "128 columns, to a tile of 192");
  registers<kw::bf16, 256>(report, random, "256 columns");
  registers<kw::f16, 96>(report, random, "96 columns, f16");
  registers<kw::f16, 64, 128>(report, random, "64 columns, f16, to a tile of 128");
  rows(report, random, {1, 2, 64}, "inside, strides with gaps");
  rows(report, random, {2, 3, 170}, "over the end");
}

}  // namespace conformance
