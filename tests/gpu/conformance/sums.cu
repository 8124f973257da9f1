// What the backward kernels add to the vocabulary: values of rows by bulk copies and what is filled with them,
// tiles stored transposed, an accumulator that another map reads, sums of tiles over CTAs, and totals of rows,
// summed over dimensions. All numbers are small integers, so that sums are exact in any order; all comparisons are exact.
#include <algorithm>

#include "conformance.h"

namespace conformance {
namespace {

using Element = kw::bf16;
using Values = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'>;
using Sums = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P', 'D'>;
using Out = kw::Tensor<Element, 'B', 'H', 'M', 'D'>;

template <class T> T dense(float* data, int B, int H, int P, int D) {
  T t;
  if constexpr (T::rank == 3)
    static_cast<kw::Tensor<const float, 'B', 'H', 'P'>&>(t) = {data, {kw::i64(H) * P, P, 1}, {B, H, P}};
  else
    static_cast<kw::Tensor<const float, 'B', 'H', 'P', 'D'>&>(t) = {
        data, {kw::i64(H) * P * D, kw::i64(P) * D, D, 1}, {B, H, P, D}};
  return t;
}

// ---- one value a row
__global__ void value_kernel(Values of, Sums rows) {
  const kw::Warp w = kw::warp_of(gridDim.x);
  for (const kw::RowPlace at : kw::each_row(rows, w)) {
    const kw::real value = float((at.batch * 10 + at.head) * 1000 + at.row);
    kw::write_value(of, at, value);
    kw::write_row<64>(rows, at, [&](int j) { return value + float(j); });
  }
}

struct RowsShared {
  kw::RowRing<kw::real, 64, 2> ring;
  kw::Barriers<2, 1> full;
};
// Slot 1 of two uses is filled last; a warpgroup fills a tile's rows with each.
__global__ void load_rows_kernel(Values from, kw::Coords at, float* slots, float* tiles) {
  auto& shared = kw::shared_memory<RowsShared>();
  kw::init(shared.full);
  for (int t = 0; threadIdx.x == 0 && t < 2; ++t)
    kw::tma_load_rows(from, {at.batch, at.head, at.row + t * 64}, shared.ring[t], shared.full[t]);
  for (int t = 0; t < 2; ++t) {
    kw::wait(shared.full[t]);
    if (threadIdx.x < 64) slots[t * 64 + threadIdx.x] = shared.ring[t].x[threadIdx.x];
    kw::Accumulator<kw::real, 64, 64> tile;
    kw::fill_columns(tile, shared.ring[t]);
    put(tile, tiles + t * 4096);
  }
  kw::Accumulator<kw::real, 64, 64> sum;
  kw::fill_columns(sum, shared.ring[0]);
  kw::add_columns(sum, shared.ring[1]);
  put(sum, tiles + 2 * 4096);
  kw::scale_columns(sum, shared.ring[0]);
  put(sum, tiles + 3 * 4096);
}

// The same by cp_async_rows: of two warpgroups together, then of one. What lies behind each slot stays.
struct AsyncShared {
  kw::SharedRows<kw::real, 64> first, behind, second, last;
};
__global__ void async_rows_kernel(Values from, kw::Coords at, float* slots) {
  auto& shared = kw::shared_memory<AsyncShared>();
  if (threadIdx.x < 64) shared.behind.x[threadIdx.x] = shared.last.x[threadIdx.x] = 7.0f;
  kw::sync_block();
  kw::cp_async_rows<2>(from, at, shared.first);
  if (threadIdx.x >= 128) kw::cp_async_rows<1>(from, {at.batch, at.head, at.row + 64}, shared.second);
  kw::cp_async_commit();
  kw::cp_async_wait<0>();
  kw::sync_block();
  slots[threadIdx.x] = (&shared.first + threadIdx.x / 64)->x[threadIdx.x % 64];
}

void values_of_rows(Report& report) {
  const int B = 2, H = 3, P = 192;
  Device<float> values(B * H * P, -1.0f), rows(B * H * P * 64, -1.0f), slots(128), tiles(4 * 4096);
  const Values of = dense<Values>(values.data(), B, H, P, 0);
  running = "write_value";
  launch(value_kernel, 3, 96, of, dense<Sums>(rows.data(), B, H, P, 64));
  std::vector<float> want, all, columns;
  for (int n = 0; n < B * H * P; ++n) {
    want.push_back(float((n / P / H * 10 + n / P % H) * 1000 + n % P));
    for (int j = 0; j < 64; ++j) all.push_back(want.back() + float(j));
  }
  report.exact("write_value", "a value a row, by warps", values.read(), want);
  report.exact("write_row", "rows of floats", rows.read(), all);
  running = "tma_load_rows";
  launch(load_rows_kernel, 1, 128, of, kw::Coords{1, 2, 64}, slots.data(), tiles.data());
  const std::vector<float> part(want.begin() + (H + 2) * P + 64, want.begin() + (H + 2) * P + 192);
  report.exact("tma_load_rows", "two uses of a ring", slots.read(), part);
  Device<float> four(256);
  running = "cp_async_rows";
  launch(async_rows_kernel, 1, 256, of, kw::Coords{1, 2, 64}, four.data());
  std::vector<float> due(256, 7.0f);
  std::copy_n(part.begin(), 64, due.begin());
  std::copy_n(part.begin() + 64, 64, due.begin() + 128);
  report.exact("cp_async_rows", "by two warpgroups, by one", four.read(), due);
  for (int t = 0; t < 2; ++t)
    for (int n = 0; n < 4096; ++n) columns.push_back(part[t * 64 + n % 64]);
  for (int n = 0; n < 4096; ++n) columns.push_back(part[n % 64] + part[64 + n % 64]);
  std::vector<float> scaled;
  for (int n = 0; n < 4096; ++n) scaled.push_back((part[n % 64] + part[64 + n % 64]) * part[n % 64]);
  const std::vector<float> found = tiles.read();
  const auto two = [](const std::vector<float>& of) { return std::vector<float>(of.begin(), of.begin() + 2 * 4096); };
  const auto third = [](const std::vector<float>& of) { return std::vector<float>(of.begin() + 2 * 4096, of.begin() + 3 * 4096); };
  report.exact("fill_columns", "64 columns", two(found), two(columns));
  report.exact("add_columns", "64 columns", third(found), third(columns));
  report.exact("scale_columns", "64 columns", {found.begin() + 3 * 4096, found.end()}, scaled);
}

// ---- transposed, and maps of two accumulators
template <int C> __global__ void transposed_kernel(const float* from, const float* other, Element* to, Element* words, float* mapped) {
  struct Shared {
    kw::SharedTile<Element, C, 64> tile;
  };
  auto& shared = kw::shared_memory<Shared>();
  kw::Accumulator<kw::real, 64, C> a, b;
  get(a, from);
  get(b, other);
  kw::store_transposed(a, shared.tile);
  __syncthreads();
  put_shared(shared.tile, to);
  __syncthreads();
  for (int n = 0; n < C / 2; n += 8) {  // as before Hopper
    kw::u32 two[4];
    for (int k = 0; k < 4; ++k) two[k] = kw::ptx::pack(Element{}, a.x[n + 2 * k], a.x[n + 2 * k + 1]);
    kw::detail::store_words_transposed(shared.tile, n / 8 * 16, threadIdx.x / 32 * 2, two[0], two[1], two[2], two[3]);
  }
  __syncthreads();
  put_shared(shared.tile, words);
  kw::map(a, [&](kw::real x, kw::real y) { return x * 3.0f - y; }, b);
  put(a, mapped);
}

template <int C> void transposed(Report& report, Random& random, const char* what) {
  const std::vector<float> a = random.integers(64 * C, -250, 250), b = random.integers(64 * C, -250, 250);
  Device<float> in(a), other(b), mapped(64 * C);
  Device<Element> out(64 * C, Element{}), words(64 * C, Element{});
  running = "store_transposed";
  launch(transposed_kernel<C>, 1, 128, in.data(), other.data(), out.data(), words.data(), mapped.data());
  std::vector<Element> want(64 * C);
  std::vector<float> both(64 * C);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < C; ++c) {
      want[c * 64 + r] = round_to_bf16(a[r * C + c]);
      both[r * C + c] = a[r * C + c] * 3 - b[r * C + c];
    }
  report.exact("store_transposed", what, out.read(), want);
  report.exact("store_words_transposed", what, words.read(), want);
  report.exact("map", "of two accumulators", mapped.read(), both);
}

// ---- sums of tiles
// CTA x adds its tile to tile x % (B H rows columns) of the tensor: C columns at a time, last columns first. A tile
// has 64 columns, or C where those are more.
template <int C> constexpr int kWidth = C < 64 ? 64 : C;
template <int C> __global__ void add_kernel(const float* from, Sums to) {
  constexpr int kWide = kWidth<C>;
  struct Shared {
    kw::SharedTile<float, 64, C> tile[kWide / C];
  };
  auto& shared = kw::shared_memory<Shared>();
  const int rows = to.extent[2] / 64, columns = to.extent[3] / kWide;
  const int x = blockIdx.x % (to.extent[0] * to.extent[1] * rows * columns), head = x / columns / rows;
  kw::Accumulator<kw::real, 64, kWide> tile;
  get(tile, from + blockIdx.x * (64 * kWide));
  for (int part = 0; part < kWide / C; ++part) {
    kw::Accumulator<kw::real, 64, C> columns_of_it;
    for (int n = 0; n < C / 2; ++n) columns_of_it.x[n] = tile.x[part * (C / 2) + n];
    kw::store(columns_of_it, shared.tile[part]);
  }
  kw::fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int part = kWide / C - 1; part >= 0; --part)
      kw::tma_add(shared.tile[part], to,
                  {head / to.extent[1], head % to.extent[1], x / columns % rows * 64, x % columns * kWide + part * C});
    kw::tma_store_wait_read();
  }
  __syncthreads();
  for (int n = threadIdx.x; n < 64 * kWide; n += blockDim.x) shared.tile[n / (64 * C)].data[n % (64 * C)] = 1e30f;
  if (threadIdx.x == 0) kw::tma_store_wait();
}
// Likewise, from registers: C columns, which may be several tiles; kApart: as before Hopper.
template <int C, bool kApart> __global__ void add_tile_kernel(const float* from, Sums to) {
  const int rows = to.extent[2] / 64, columns = to.extent[3] / C;
  const int x = blockIdx.x % (to.extent[0] * to.extent[1] * rows * columns), head = x / columns / rows;
  kw::Accumulator<kw::real, 64, C> tile;
  get(tile, from + blockIdx.x * (64 * C));
  kw::add_tile<kApart>(tile, to, {head / to.extent[1], head % to.extent[1], x / columns % rows * 64, x % columns * C});
}
template <bool kApart> __global__ void round_kernel(Sums from, Out to) {
  kw::round_sums<kApart>(from, 0.5f, kw::thread_of(gridDim.x), to);
}

template <int C = 64, bool kRegisters = false, bool kApart = false>
void sums(Report& report, Random& random, int M, int D, int blocks, const char* what) {
  const int B = 2, H = 2, P = (M + 63) / 64 * 64, rows = P / 64, wide = kRegisters ? C : kWidth<C>, columns = D / wide,
            tiles = B * H * rows * columns;
  const std::vector<float> x = random.integers(size_t(3) * tiles * 64 * wide, -40, 40);
  Device<float> in(x), scratch(size_t(B) * H * P * D, 0.0f);
  const int gap = 8;
  std::vector<Element> want(size_t(B) * H * (M * (D + gap) + gap), round_to_bf16(7.0f));
  Device<Element> out(want);
  const kw::i64 row = D + gap, head = M * row + gap;
  const Out to = {out.data(), {H * head, head, row, 1}, {B, H, M, D}};
  const Sums of = dense<Sums>(scratch.data(), B, H, P, D);
  running = kRegisters ? "add_tile" : "tma_add";
  if constexpr (kRegisters)
    launch(add_tile_kernel<C, kApart>, 3 * tiles, 128, in.data(), of);
  else
    launch(add_kernel<C>, 3 * tiles, 128, in.data(), of);
  running = "round_sums";
  launch(round_kernel<kApart>, blocks, 96, of, to);
  for (int bh = 0; bh < B * H; ++bh)
    for (int i = 0; i < M; ++i)
      for (int d = 0; d < D; ++d) {
        const int tile = (bh * rows + i / 64) * columns + d / wide;
        float sum = 0;
        for (int n = 0; n < 3; ++n) sum += x[size_t(n * tiles + tile) * 64 * wide + i % 64 * wide + d % wide];
        want[bh * head + i * row + d] = round_to_bf16(sum * 0.5f);
      }
  report.exact(kRegisters ? "add_tile, round_sums" : "tma_add, store, round_sums", what, out.read(), want);
}

// ---- tiles of elements
using Tiles = kw::Tensor<kw::scratch<Element>, 'B', 'H', 'T', 'W'>;

// A head for each CTA: its tiles but every fifth, with the tile's number among the numbers.
__global__ void add_tiles_kernel(const float* from, Tiles to) {
  struct Shared {
    kw::SharedTile<Element, 64, 64> tile;
  };
  auto& shared = kw::shared_memory<Shared>();
  const int columns = to.extent[3] / 64, tiles = to.extent[2] / 64 * columns, b = blockIdx.x / to.extent[1], h = blockIdx.x % to.extent[1];
  for (int n = 0; n < tiles; ++n) {
    if (n % 5 == 4) continue;
    kw::Accumulator<kw::real, 64, 64> tile;
    get(tile, from + (kw::i64(blockIdx.x) * tiles + n) * 4096);
    kw::store_transposed(tile, shared.tile);
    kw::fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      kw::tma_add(shared.tile, to, {b, h, n / columns * 64, n % columns * 64});
      kw::tma_store_wait_read();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) kw::tma_store_wait();
}
template <class T, char... Dims> __global__ void sum_tiles_kernel(Tiles from, kw::Tensor<T, Dims...> to) {
  kw::sum_tiles(from, 0.5f, kw::thread_of(gridDim.x), to);
}

// A result whose elements are `apart`, with gaps between its rows and between its heads.
template <class T, char... Dims>
void tiles(Report& report, Random& random, int M, int N, int W, int apart, int blocks, const char* what) {
  const int B = 3, H = 2, in_row = (N + W - 1) / W, rows = (M + 63) / 64 * in_row * 64, columns = W / 64;
  const size_t all = size_t(B) * H * rows * W;
  const std::vector<float> x = random.integers(all, -60, 60);
  Device<float> in(x);
  Device<Element> scratch(all, round_to_bf16(0.0f));
  Tiles of;
  static_cast<kw::Tensor<const Element, 'B', 'H', 'T', 'W'>&>(of) = {
      scratch.data(), {kw::i64(H) * rows * W, kw::i64(rows) * W, W, 1}, {B, H, rows, W}};
  running = "tma_add";
  launch(add_tiles_kernel, B * H, 128, in.data(), of);
  kw::Tensor<T, Dims...> to = {nullptr, {}, {(Dims == 'B' ? B : Dims == 'H' ? H : Dims == 'M' ? M : N)...}};
  constexpr int rank = sizeof...(Dims);
  const char dims[rank] = {Dims...};
  kw::i64 size = apart;
  for (int d = rank - 1; d >= 0; --d) to.stride[d] = size, size = (size * to.extent[d] + 7) / 8 * 8 + 8;
  std::vector<float> sums(size, 14.0f);
  const auto place = [&](int b, int h, int i, int j) {
    kw::i64 at = 0;
    for (int d = 0; d < rank; ++d)
      at += to.stride[d] * (dims[d] == 'B' ? b : dims[d] == 'H' ? h : dims[d] == 'M' ? i : j);
    return at;
  };
  for (const bool add : {false, true})
    for (int n = 0; n < B * H * M * N; ++n) {
      const int j = n % N, i = n / N % M, h = n / N / M % H, b = n / N / M / H;
      const int row = (i / 64 * in_row + j / W) * 64, tile = row / 64 * columns + j % W / 64;
      const float term = tile % 5 == 4 ? 0 : x[(size_t(b * H + h) * rows * W) + size_t(tile) * 4096 + j % 64 * 64 + i % 64];
      float& sum = sums[place(b, h, i, j)];
      sum = add ? sum + term : 0;
    }
  std::vector<T> want(size);
  for (kw::i64 n = 0; n < size; ++n)
    if constexpr (sizeof(T) == 4)
      want[n] = sums[n] * 0.5f;
    else
      want[n] = round_to_bf16(sums[n] * 0.5f);
  T seven;
  if constexpr (sizeof(T) == 4)
    seven = 7.0f;
  else
    seven = round_to_bf16(7.0f);
  Device<T> out(size, seven);
  to.data = out.data();
  running = "sum_tiles";
  launch(sum_tiles_kernel<T, Dims...>, blocks, 96, of, to);
  report.exact("tma_add, sum_tiles", what, out.read(), want);
}

void tiles_of_elements(Report& report, Random& random) {
  tiles<Element, 'B', 'H', 'M', 'N'>(report, random, 128, 256, 128, 1, 5, "all heads, whole tiles");
  tiles<Element, 'H', 'M', 'N'>(report, random, 77, 131, 128, 1, 40, "of a head, rows and columns that end in a tile");
  tiles<float, 'B', 'M', 'N'>(report, random, 130, 200, 64, 1, 3, "of a batch entry, floats");
  tiles<float, 'M', 'N'>(report, random, 65, 300, 128, 1, 7, "of all heads, floats");
  tiles<Element, 'M', 'N'>(report, random, 70, 129, 128, 3, 2, "of all heads, elements apart");
}

// ---- totals of rows
// CTA x adds to rows x * R ... of the scratch's head x % (B H): kUses times the shares that lanes hold of its rows.
constexpr int kUses = 3;
template <int R> __global__ void add_rows_kernel(const float* shares, Values to) {
  const int heads = to.extent[0] * to.extent[1], head = blockIdx.x % heads, row = int(blockIdx.x) / heads * R;
  for (int use = 0; use < kUses; ++use) {
    kw::LaneSum<kw::real, R> l;
    for (int r = 0; r < R / 32; ++r)
      l.x[r] = shares[((use * gridDim.x + blockIdx.x) * R + r / 2 * 64 + fragment_row(threadIdx.x, r % 2 * 2)) * 4 +
                      threadIdx.x % 4];
    dawdle(use);
    kw::add_rows(l, to, {head / to.extent[1], head % to.extent[1], row});
  }
}
// What add_rows begins with.
__global__ void zeros_kernel(Values of) {
  for (const kw::RowPlace at : kw::each_row(of, kw::warp_of(gridDim.x))) kw::write_value(of, at, 0.0f);
}

template <int R> void totals(Report& report, Random& random, int rows, const char* what) {
  const int B = 2, H = 3, ctas = (rows + R - 1) / R * B * H;
  const std::vector<float> shares = random.integers(size_t(kUses) * ctas * R * 4, -90, 90);
  std::vector<float> want(B * H * rows + 8, 0.0f);
  for (size_t n = 0; n < shares.size(); ++n) {
    const int row = int(n) / 4 % R, cta = int(n) / 4 / R % ctas, i = cta / (B * H) * R + row;
    if (i < rows) want[cta % (B * H) * rows + i] += shares[n];
  }
  for (int n = 0; n < 8; ++n) want[B * H * rows + n] = 7.0f;  // behind the scratch
  Device<float> in(shares), values(want.size(), 7.0f);
  const Values of = dense<Values>(values.data(), B, H, rows, 0);
  running = "each_row";
  launch(zeros_kernel, 3, 96, of);
  running = "add_rows";
  launch(add_rows_kernel<R>, ctas, 128, in.data(), of);
  report.exact("add_rows", what, values.read(), want);
}

// Each element x[i, j] of a tile of CTA x, a distance at a time, at the ends all that are further: what one thread, one warp,
// and several CTAs have of one number. kMany is a number that all of a warp has.
constexpr int kReach = 20, kMany = 2 * kReach + 1;
template <int C, bool kSame, bool kDiagonals> __global__ void add_each_kernel(const float* tiles, Values to) {
  const int b = blockIdx.x % to.extent[0], h = blockIdx.x % to.extent[1], i0 = int(blockIdx.x) * 64;
  kw::Accumulator<kw::real, 64, C> tile;
  for (int n = 0; n < tile.count; ++n)
    tile.x[n] = tiles[(blockIdx.x * 64 + fragment_row(threadIdx.x, n)) * C + fragment_column(threadIdx.x % 4, n)];
  const auto number = [](int d) { return kSame ? kMany : kw::min(kw::max(-d, -kReach), kReach) + kReach; };
  if constexpr (kDiagonals)
    kw::add_diagonals(tile, kw::Origin{i0, 64}, to, b, h, [&](int d) { return number(d); });
  else
    kw::add_each(tile, kw::Origin{i0, 64}, to, b, h, [&](kw::Place i, kw::Place j) { return number(j - i); });
}

template <int C, bool kSame, bool kDiagonals> void each(Report& report, Random& random, int values, const char* what) {
  const int B = 2, H = 3, ctas = 4;
  const std::vector<float> tiles = random.integers(size_t(ctas) * 64 * C, -90, 90);
  std::vector<float> want(B * H * values + 8, 0.0f);
  for (int n = 0; n < ctas * 64 * C; ++n) {
    const int cta = n / C / 64, i = n / C, j = 64 + n % C;
    const int number = kSame ? kMany : std::min(std::max(i - j, -kReach), kReach) + kReach;
    if (number < values) want[(cta % B * H + cta % H) * values + number] += tiles[n];
  }
  for (int n = 0; n < 8; ++n) want[B * H * values + n] = 7.0f;  // behind the scratch
  Device<float> in(tiles), out(want.size(), 7.0f);
  const Values of = dense<Values>(out.data(), B, H, values, 0);
  running = "each_row";
  launch(zeros_kernel, 3, 96, of);
  running = kDiagonals ? "add_diagonals" : "add_each";
  launch(add_each_kernel<C, kSame, kDiagonals>, ctas, 128, in.data(), of);
  report.exact(running, what, out.read(), want);
}

template <class T, char... Dims> __global__ void sum_kernel(Values from, kw::Tensor<T, Dims...> to) {
  kw::sum_over(from, kw::thread_of(gridDim.x), to);
}

// A result with gaps between its elements, those of its last dimension too. Integers, whose sums
// are exact in fp32 and have more bits than bf16: those are rounded once, at the end.
template <class T, char... Dims>
void sum(Report& report, Random& random, int B, int H, int P, int blocks, int threads, const char* what) {
  const std::vector<float> x = random.integers(size_t(B) * H * P, -90, 90);
  const auto extent_of = [&](char d) { return d == 'B' ? B : d == 'H' ? H : P; };
  kw::Tensor<T, Dims...> to = {nullptr, {}, {extent_of(Dims)...}};
  constexpr int rank = sizeof...(Dims);
  const char dims[rank] = {Dims...};
  kw::i64 size = 2;
  for (int d = rank - 1; d >= 0; --d) to.stride[d] = size, size = size * to.extent[d] + 3;
  std::vector<float> sums(size, 7.0f);
  const auto place = [&](int b, int h, int n) {
    kw::i64 at = 0;
    for (int d = 0; d < rank; ++d) at += to.stride[d] * (dims[d] == 'B' ? b : dims[d] == 'H' ? h : n);
    return at;
  };
  for (const bool add : {false, true})
    for (int n = 0; n < B * H * P; ++n) {
      float& sum = sums[place(n / P / H, n / P % H, n % P)];
      sum = add ? sum + x[n] : 0;
    }
  std::vector<T> want(size);
  for (kw::i64 n = 0; n < size; ++n)
    if constexpr (sizeof(T) == 4)
      want[n] = sums[n];
    else
      want[n] = round_to_bf16(sums[n]);
  T seven;
  if constexpr (sizeof(T) == 4)
    seven = 7.0f;
  else
    seven = round_to_bf16(7.0f);
  Device<float> in(x);
  Device<T> out(size, seven);
  to.data = out.data();
  running = "sum_over";
  launch(sum_kernel<T, Dims...>, blocks, threads, dense<Values>(in.data(), B, H, P, 0), to);
  report.exact("sum_over", what, out.read(), want);
}

void sums_over(Report& report, Random& random) {
  sum<float, 'H'>(report, random, 2, 5, 1900, 3, 96, "one a head, of many terms");
  sum<Element, 'H'>(report, random, 1, 40, 200, 2, 64, "one a head, of few terms");
  sum<Element, 'P'>(report, random, 9, 30, 77, 2, 256, "one a row, of many terms");
  sum<float, 'P'>(report, random, 2, 3, 300, 2, 96, "one a row, of few terms");
  sum<float, 'B'>(report, random, 7, 2, 150, 4, 1024, "one a batch entry, of many terms");
  sum<Element, 'B', 'H'>(report, random, 3, 2, 1030, 4, 32, "one a batch entry and head, of many terms");
  sum<float, 'B', 'H'>(report, random, 3, 2, 255, 1, 64, "one a batch entry and head, of few terms");
  sum<float, 'B', 'P'>(report, random, 3, 300, 33, 2, 256, "one a batch entry and row, of many terms");
  sum<Element, 'B', 'P'>(report, random, 3, 4, 130, 5, 96, "one a batch entry and row, of few terms");
  sum<float, 'H', 'P'>(report, random, 257, 3, 41, 3, 128, "one a head and row, of many terms");
  sum<Element, 'H', 'P'>(report, random, 2, 3, 41, 3, 128, "one a head and row, of few terms");
  sum<Element, 'B', 'H', 'P'>(report, random, 2, 3, 130, 3, 96, "all as they are");
}

}  // namespace

void test_sums(Report& report) {
  Random random(12);
  values_of_rows(report);
  transposed<64>(report, random, "64 columns");
  transposed<128>(report, random, "128 columns");
  sums(report, random, 128, 128, 5, "whole tiles, 128 columns");
  sums(report, random, 77, 64, 300, "rows that end in a tile, 64 columns");
  sums<32>(report, random, 77, 128, 5, "halves of tiles, 128 columns");
  sums<32>(report, random, 64, 64, 300, "halves of tiles, 64 columns");
  sums<16>(report, random, 77, 128, 5, "quarters of tiles, 128 columns");
  sums<96>(report, random, 130, 96, 7, "96 columns");
  sums<96>(report, random, 77, 192, 5, "96 columns of 192");
  sums<192>(report, random, 130, 192, 300, "192 columns");
  sums<64, true>(report, random, 77, 128, 5, "64 columns of 128");
  sums<32, true>(report, random, 77, 128, 5, "32 columns of 128");
  sums<128, true>(report, random, 130, 256, 40, "128 columns of 256");
  sums<32, true, true>(report, random, 77, 64, 5, "32 columns of 64, one by one");
  sums<64, true, true>(report, random, 130, 128, 40, "64 columns of 128, one by one");
  tiles_of_elements(report, random);
  totals<64>(report, random, 192, "whole tiles of 64 rows");
  totals<64>(report, random, 77, "rows that end in a tile");
  totals<128>(report, random, 201, "128 rows, which end in a tile");
  each<64, false, false>(report, random, kMany, "by distances");
  each<128, false, false>(report, random, kMany - 7, "by distances, of which the farthest have no value");
  each<64, true, false>(report, random, kMany + 1, "all to one value");
  each<64, false, true>(report, random, kMany, "by distances");
  each<128, false, true>(report, random, kMany - 7, "by distances, of which the farthest have no value");
  each<64, true, true>(report, random, kMany + 1, "all to one value");
  sums_over(report, random);
}

}  // namespace conformance
