// Where the text for Hopper puts things, held against where the device vocabulary does, on the
// host.
//
// The copy engine writes tiles as the boxes of launch.json say, and a wgmma reads them through
// descriptors, which CuTe derives from a tile's layout and cuda/kw/ops/wgmma.cuh computes by hand.
// Accumulators and left operands are taken for wgmmas as they are for products of single warps, so
// a thread must have the same elements in the same order in both. The vocabulary's formulas are
// written out a second time.
// -DPRELUDE="prelude.inc" is the prelude of a printed text, instructions replaced. Prints what
// disagrees; exit 1 then.
#include "hopper_emulated.h"

#include PRELUDE

namespace {

using namespace cute;

int wrong = 0;

template <class... Values>
void expect_same(const char* what, long is, long should, Values... at) {
  if (is == should) return;
  if (++wrong > 20) return;
  std::printf("%s at", what);
  (std::printf(" %d", int(at)), ...);
  std::printf(": CuTe has %ld, the vocabulary %ld\n", is, should);
}

alignas(1024) char memory[256 << 10];

template <class T, class Shape>
auto tile() {
  return make_tensor(make_smem_ptr(reinterpret_cast<T*>(memory)), tl::Tile<Shape>{});
}

// cuda/kw/tile/tiles.cuh, SharedTile::chunk; both for the copy engine and for single warps.
template <int R, int C, int Slots>
void shared_tiles() {
  auto all = tile<half_t, Shape<Int<R>, Int<C>, Int<Slots>>>();
  constexpr int panel = C % 64 == 0 ? 64 : 32, pitch = panel * 2, chunks = panel / 8;
  for (int s = 0; s < Slots; ++s) {
    auto one = all(_, _, s);
    auto of_warps = tl::for_warps(one);
    expect_same("first byte", (char*)raw_pointer_cast(one.data()) - memory, s * R * C * 2, R, C, s);
    for (int row = 0; row < R; ++row)
      for (int c = 0; c < C; ++c) {
        const int chunk = c / 8;
        const int bytes = s * R * C * 2 + chunk / chunks * R * pitch + row * pitch +
                          (((chunk % chunks) ^ (row * pitch / 128 % chunks)) << 4) + c % 8 * 2;
        expect_same("byte of a tile", (char*)&one(row, c) - memory, bytes, R, C, row, c, s);
        expect_same("byte for warps", (char*)&of_warps(row, c) - memory, bytes, R, C, row, c, s);
      }
  }
}

// cuda/kw/ops/wgmma.cuh: descriptor and columns_16, of b in acc = a @ b.T.
template <class T, int N, int K>
void by_columns() {
  auto b = tile<T, Shape<Int<N>, Int<K>>>();
  tl::Registers<T, N, GMMA::Major::K> gmma;
  auto parts = gmma.get_slice(0).partition_fragment_B(b);
  constexpr int panel = K % 64 == 0 ? 64 : 32, pitch = panel * 2;
  expect_same("depth", int(size<2>(parts)), K / 16, N, K);
  expect_same("products of one depth", int(size<1>(parts)), 1, N, K);
  for (int k = 0; k < K / 16; ++k) {
    const GmmaDescriptor d = parts(0, 0, k);
    const int in_panel = panel / 16;
    expect_same("start", d.bitfield.start_address_,
                (k / in_panel * N * pitch + k % in_panel * 32) >> 4, N, K, k);
    expect_same("stride", d.bitfield.stride_byte_offset_, 8 * pitch >> 4, N, K, k);
    expect_same("swizzle", d.bitfield.layout_type_, pitch == 128 ? 1 : 2, N, K, k);
  }
}

// The same of b in acc += p @ b.
template <class T, int K, int N>
void by_rows() {
  auto b = tile<T, Shape<Int<K>, Int<N>>>();
  tl::Registers<T, N, GMMA::Major::MN> gmma;
  auto b_t = b.compose(make_layout(make_shape(Int<N>{}, Int<K>{}), GenRowMajor{}));
  auto parts = gmma.get_slice(0).partition_fragment_B(b_t);
  constexpr int panel = N % 64 == 0 ? 64 : 32, pitch = panel * 2;
  expect_same("products of one depth", int(size<1>(parts)), 1, N, K);
  for (int k = 0; k < K / 16; ++k) {
    const GmmaDescriptor d = parts(0, 0, k);
    expect_same("start", d.bitfield.start_address_, k * 16 * pitch >> 4, K, N, k);
    if (N > panel) expect_same("leading", d.bitfield.leading_byte_offset_, K * pitch >> 4, K, N, k);
    expect_same("stride", d.bitfield.stride_byte_offset_, 8 * pitch >> 4, K, N, k);
    expect_same("swizzle", d.bitfield.layout_type_, pitch == 128 ? 1 : 2, K, N, k);
  }
}

// Elements of an accumulator and of a left operand, as a wgmma and as a warp's product has them.
template <class T, class Atom, int N, int K>
void fragments() {
  tl::Warpgroup<Atom> warps;
  tl::Registers<T, N, GMMA::Major::K> gmma;
  for (int thread = 0; thread < 128; ++thread) {
    const auto same = [&](const char* what, auto const& is, auto const& should) {
      expect_same(what, int(size(is)), int(size(should)), N, K);
      for (int n = 0; n < int(size(is)); ++n) {
        expect_same(what, int(get<0>(is(n))), int(get<0>(should(n))), N, K, thread, n, 0);
        expect_same(what, int(get<1>(is(n))), int(get<1>(should(n))), N, K, thread, n, 1);
      }
    };
    auto acc = make_identity_tensor(Shape<_64, Int<N>>{});
    auto left = make_identity_tensor(Shape<_64, Int<K>>{});
    same("accumulator", gmma.get_slice(thread).partition_C(acc),
         warps.get_slice(thread).partition_C(acc));
    same("operand", gmma.get_slice(thread).partition_A(left),
         warps.get_slice(thread).partition_A(left));
  }
}

}  // namespace

int main() {
  emulated::shared_memory = reinterpret_cast<unsigned char*>(memory);
  shared_tiles<64, 128, 2>();
  shared_tiles<128, 96, 2>();
  shared_tiles<128, 64, 1>();
  by_columns<bfloat16_t, 128, 128>();
  by_columns<half_t, 64, 96>();
  by_columns<half_t, 128, 256>();
  by_rows<bfloat16_t, 128, 128>();
  by_rows<half_t, 64, 96>();
  by_rows<bfloat16_t, 64, 256>();
  by_rows<half_t, 128, 64>();
  fragments<bfloat16_t, SM80_16x8x16_F32BF16BF16F32_TN, 128, 64>();
  fragments<half_t, SM80_16x8x16_F32F16F16F32_TN, 96, 128>();
  std::printf("%d disagree\n", wrong);
  return wrong != 0;
}
