// What a product of matrices has of its own: tiles of rows that are wider, in any place, brought and
// stored by the copy engine; products that follow each other without their accumulator; and sums of rows
// in parts. Copies and whole numbers are exact.
#include <cuda.h>

#include "conformance.h"

namespace conformance {
namespace {

using Element = kw::bf16;

// A matrix [M, N] with `gap` more elements after every row, of head `head` of two.
struct Matrix {
  int M, N, gap = 8;
  int64_t row() const { return N + gap; }
  int64_t head() const { return M * row() + gap; }
  int64_t size() const { return 2 * head(); }
  int64_t at(int head_number, int m, int n) const { return head_number * head() + m * row() + n; }
  bool has(int m, int n) const { return m < M && n < N; }
};

// The map of cuda/kw/ptx/memory.cuh for parts of rows: column, row, one panel, head, batch; boxes of
// `rows` rows and 64 columns.
template <class Map>
Map tensor_map(const Matrix& t, Element* data, int rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  succeed(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                           cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
  const cuuint64_t sizes[] = {cuuint64_t(t.N), cuuint64_t(t.M), 1, 2, 1};
  const cuuint64_t strides[] = {cuuint64_t(t.row() * 2), 128, cuuint64_t(t.head() * 2),
                                cuuint64_t(t.size() * 2)};
  const cuuint32_t box[] = {64, cuuint32_t(rows), 1, 1, 1}, steps[] = {1, 1, 1, 1, 1};
  alignas(64) CUtensorMap map;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, data, sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  succeed(result ? cudaErrorInvalidValue : cudaSuccess, "the tensor map");
  Map out;
  static_assert(sizeof(out.map) == sizeof(map));
  std::memcpy(&out.map, &map, sizeof(map));
  return out;
}

using In = kw::TensorMap<const Element, 'B', 'H', 'M', 'N'>;
using Out = kw::TensorMap<Element, 'B', 'H', 'M', 'N'>;

template <int R, int C>
struct Shared {
  kw::SharedTile<Element, R, C> tile;
  kw::Barriers<1, 1> full;
};

template <int R, int C>
__global__ void load_kernel(const __grid_constant__ In in, kw::TileCoords at, Element* out) {
  auto& shared = kw::shared_memory<Shared<R, C>>();
  kw::init(shared.full);
  for (int n = threadIdx.x; n < R * C; n += blockDim.x) shared.tile.data[n].bits = 0x4242;
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) kw::tma_load_tile(in, at, shared.tile, shared.full[0], kw::evict_normal);
  kw::wait(shared.full[0]);
  put_shared(shared.tile, out);
}

template <int R, int C>
__global__ void store_kernel(const Element* from, const __grid_constant__ Out out, kw::TileCoords at) {
  auto& shared = kw::shared_memory<Shared<R, C>>();
  get_shared(shared.tile, from);
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    kw::tma_store_tile(shared.tile, out, at);
    kw::tma_store_wait_read();
    kw::tma_store_wait();
  }
}

std::string place(kw::TileCoords at, int R, int C) {
  return std::to_string(R) + " x " + std::to_string(C) + " from row " + std::to_string(at.row) +
         ", column " + std::to_string(at.column);
}

template <int R, int C>
void moves(Report& report, Random& random, const Matrix& t, kw::TileCoords at) {
  const std::vector<Element> data = to_bf16(random.normals(t.size())),
                             tile = to_bf16(random.normals(R * C));
  std::vector<Element> want, written = data;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      const int m = at.row + r, n = at.column + c;
      want.push_back(t.has(m, n) ? data[t.at(at.head, m, n)] : Element{0});
      if (t.has(m, n)) written[t.at(at.head, m, n)] = tile[r * C + c];
    }
  Device<Element> in(data), out(R * C), to(data), from(tile);
  running = "tma_load_tile";
  launch(load_kernel<R, C>, 1, 128, tensor_map<In>(t, in.data(), R), at, out.data());
  report.exact("tma_load_tile", place(at, R, C).c_str(), out.read(), want);
  running = "tma_store_tile";
  launch(store_kernel<R, C>, 1, 128, from.data(), tensor_map<Out>(t, to.data(), R), at);
  report.exact("tma_store_tile", place(at, R, C).c_str(), to.read(), written);
}

// acc += a @ b for each of three steps, of which two are in flight; what the first two read is written
// over once they have been done.
template <int N, int K, bool kTransposed>
struct Steps {
  kw::SharedTile<Element, 64, K> a[3];
  kw::SharedTile<Element, kTransposed ? N : K, kTransposed ? K : N> b[3];
};
template <int N, int K, bool kTransposed>
__global__ void __launch_bounds__(128) steps_kernel(const Element* a, const Element* b, const float* c, float* out) {
  auto& shared = kw::shared_memory<Steps<N, K, kTransposed>>();
  for (int k = 0; k < 3; ++k) {
    get_shared(shared.a[k], a + k * 64 * K);
    get_shared(shared.b[k], b + k * N * K);
  }
  kw::fence_async();
  __syncthreads();
  kw::Accumulator<kw::real, 64, N> acc;
  get(acc, c);
  const auto add = [&](int k) {
    if constexpr (kTransposed)
      kw::wgmma_add_transposed(acc, shared.a[k], kw::transposed(shared.b[k]));
    else
      kw::wgmma_add(acc, shared.a[k], shared.b[k]);
  };
  add(0);
#pragma unroll 1
  for (int k = 1; k < 3; ++k) {
    add(k);
    kw::wgmma_wait_group<1>();
    __syncthreads();
    for (int n = threadIdx.x; n < 64 * K; n += blockDim.x) shared.a[k - 1].data[n].bits = 0x4242;
    for (int n = threadIdx.x; n < N * K; n += blockDim.x) shared.b[k - 1].data[n].bits = 0x4242;
    kw::fence_async();
  }
  kw::wgmma_wait<0>(acc);
  put(acc, out);
}

template <int N, int K, bool kTransposed>
void steps(Report& report, Random& random) {
  const std::vector<float> a = random.integers(3 * 64 * K, -8, 8), b = random.integers(3 * N * K, -8, 8),
                           c = random.integers(64 * N, -99, 99);
  Device<Element> da(to_bf16(a)), db(to_bf16(b));
  Device<float> dc(c), out(64 * N);
  const char* name = kTransposed ? "wgmma_add_transposed" : "wgmma_add, wgmma_wait_group";
  running = name;
  launch(steps_kernel<N, K, kTransposed>, 1, 128, da.data(), db.data(), dc.data(), out.data());
  std::vector<float> want = c;
  for (int step = 0; step < 3; ++step)
    for (int i = 0; i < 64; ++i)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k)
          want[i * N + n] += a[(step * 64 + i) * K + k] *
                             b[step * N * K + (kTransposed ? n * K + k : k * N + n)];
  const std::string what = "three steps, N " + std::to_string(N) + ", K " + std::to_string(K);
  report.exact(name, what.c_str(), out.read(), want);
}

// acc += a.T @ b, a [K, 64] and b [K, N].
template <int N, int K>
struct TransposedLeft {
  kw::SharedTile<Element, K, 64> a;
  kw::SharedTile<Element, K, N> b;
};
template <int N, int K>
__global__ void __launch_bounds__(128) transposed_left_kernel(const Element* a, const Element* b, const float* c, float* out) {
  auto& shared = kw::shared_memory<TransposedLeft<N, K>>();
  get_shared(shared.a, a);
  get_shared(shared.b, b);
  kw::fence_async();
  __syncthreads();
  kw::Accumulator<kw::real, 64, N> acc;
  get(acc, c);
  kw::wgmma_add_transposed_a(acc, kw::transposed(shared.a), shared.b);
  kw::wgmma_wait<0>(acc);
  put(acc, out);
}

template <int N, int K>
void transposed_left(Report& report, Random& random) {
  const std::vector<float> a = random.integers(64 * K, -8, 8), b = random.integers(N * K, -8, 8),
                           c = random.integers(64 * N, -99, 99);
  Device<Element> da(to_bf16(a)), db(to_bf16(b));
  Device<float> dc(c), out(64 * N);
  running = "wgmma_add_transposed_a";
  launch(transposed_left_kernel<N, K>, 1, 128, da.data(), db.data(), dc.data(), out.data());
  std::vector<float> want = c;
  for (int i = 0; i < 64; ++i)
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < K; ++k) want[i * N + n] += a[k * 64 + i] * b[k * N + n];
  const std::string what = "N " + std::to_string(N) + ", K " + std::to_string(K);
  report.exact("wgmma_add_transposed_a", what.c_str(), out.read(), want);
}

// Two batches of one head and two tiles of 64 rows, the second of which hangs over the end.
using Sums = kw::Tensor<float, 'B', 'H', 'M'>;
__global__ void part_kernel(const float* values, kw::Scratch parts, int rows, int count) {
  const int part = blockIdx.x / 2, i0 = blockIdx.x % 2 * 64;
  kw::RowVector<kw::real, 64> v;
  get_rows(v, values + blockIdx.x * 64);
  kw::store_part(v, parts, part, i0, rows);
}
__global__ void add_kernel(kw::Scratch parts, int count, Sums sums, int blocks) {
  const kw::Thread thread = kw::thread_of(blocks);
  kw::add_parts(parts, count, thread, sums);
}

void parts(Report& report, Random& random, int rows, int count, int blocks) {
  const std::vector<float> values = random.integers(2 * count * 2 * 64, -999, 999);
  Device<float> in(values), sums(2 * (rows + 3), 7.0f);
  Device<int> words(2 * count * rows, -1);
  kw::Scratch scratch;
  scratch.words = words.data();
  Sums to{sums.data(), {rows + 3, rows + 3, 1}, {2, 1, rows}};
  running = "store_part";
  launch(part_kernel, 2 * count * 2, 128, in.data(), scratch, rows, count);
  running = "add_parts";
  launch(add_kernel, blocks, 64, scratch, count, to, blocks);
  std::vector<int> left(2 * count * rows);
  std::vector<float> want(2 * (rows + 3), 7.0f);
  for (int b = 0; b < 2; ++b)
    for (int i = 0; i < rows; ++i) {
      float sum = 0;
      for (int n = 0; n < count; ++n) {
        const float x = values[((b * count + n) * 2 + i / 64) * 64 + i % 64];
        left[(b * count + n) * rows + i] = int(as_bits(x));
        sum += x;
      }
      want[b * (rows + 3) + i] = sum;
    }
  const std::string what = std::to_string(count) + " parts of " + std::to_string(rows) + " rows";
  report.exact("store_part", what.c_str(), words.read(), left);
  report.exact("add_parts, thread_of", what.c_str(), sums.read(), want);
}

// Of a launch of 2^32 threads: what the last one is.
__global__ void last_kernel(int* out) {
  if (blockIdx.x != gridDim.x - 1 || threadIdx.x != blockDim.x - 1) return;
  const kw::Thread thread = kw::thread_of(gridDim.x);
  const kw::Warp warp = kw::warp_of(gridDim.x);
  const long long of[] = {thread.index, thread.count, warp.index, warp.count};
  for (int n = 0; n < 4; ++n) out[2 * n] = int(of[n] >> 32), out[2 * n + 1] = int(of[n]);
}

void numbers_of_threads(Report& report) {
  Device<int> out(8, -7);
  running = "thread_of";
  launch(last_kernel, 1 << 22, 1024, out.data());
  report.exact("thread_of, warp_of", "2^32 threads", out.read(), std::vector<int>{0, -1, 1, 0, 0, (1 << 27) - 1, 0, 1 << 27});
}

}  // namespace

void test_matrices(Report& report) {
  numbers_of_threads(report);
  Random random(11);
  for (const kw::TileCoords at : {kw::TileCoords{0, 0, 0, 0}, {0, 1, 64, 64}, {0, 1, 100, 128}, {0, 0, 128, 192}}) {
    moves<64, 64>(report, random, {130, 200}, at);
    moves<64, 256>(report, random, {130, 200}, at);
    moves<256, 64>(report, random, {300, 72}, at);
  }
  transposed_left<64, 64>(report, random);
  transposed_left<96, 64>(report, random);
  transposed_left<192, 64>(report, random);
  transposed_left<128, 128>(report, random);
  steps<32, 64, false>(report, random);
  steps<128, 32, false>(report, random);
  steps<256, 64, false>(report, random);
  steps<32, 64, true>(report, random);
  steps<128, 32, true>(report, random);
  steps<256, 64, true>(report, random);
  parts(report, random, 100, 1, 1);
  parts(report, random, 100, 5, 3);
  parts(report, random, 65, 17, 9);
}

}  // namespace conformance
