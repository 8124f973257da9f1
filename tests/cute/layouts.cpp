// Where CuTe puts things, held against where the device vocabulary does, on the host.
//
// The prelude of a printed kernel names atoms; CuTe derives from them which thread holds which
// element and where a tile's elements lie in shared memory. cuda/kw/ computes the same by hand. Its
// formulas are written out here a second time, with the places where they stand.
// -DPRELUDE="prelude.inc" is the prelude of a printed text, instructions replaced. Prints what
// disagrees; exit 1 then.
#include "emulated.h"

#include PRELUDE

namespace {

using namespace cute;

int wrong = 0;

template <class... Values>
void expect_same(const char* what, int is, int should, Values... at) {
  if (is == should) return;
  if (++wrong > 20) return;
  std::printf("%s at", what);
  (std::printf(" %d", int(at)), ...);
  std::printf(": CuTe has %d, the vocabulary %d\n", is, should);
}

// cuda/kw/tile/tiles.cuh, Accumulator: thread_row, thread_column, below, column, in_row.
template <class Atom, int R, int C>
void accumulators() {
  tl::Warpgroup<Atom> mma;
  for (int thread = 0; thread < 128; ++thread) {
    threadIdx.x = thread;
    auto at = tl::places(mma, Shape<Int<R>, Int<C>>{});
    expect_same("rows of a thread", int(size<0>(at)), R / 32, R, C);
    expect_same("columns of a thread", int(size<1>(at)), C / 4, R, C);
    for (int r = 0; r < R / 32; ++r)
      for (int c = 0; c < C / 4; ++c) {
        const int n = r / 2 * (C / 2) + c / 2 * 4 + r % 2 * 2 + c % 2;
        const int row = thread / 32 * 16 + thread % 32 / 4 + n / (C / 2) * 64 + n / 2 % 2 * 8;
        const int column = thread % 4 * 2 + n % (C / 2) / 4 * 8 + n % 2;
        expect_same("row", int(get<0>(at(r, c))), row, R, C, thread, r, c);
        expect_same("column", int(get<1>(at(r, c))), column, R, C, thread, r, c);
      }
  }
}

// The operand that a to_operand makes: element n of the fragment for depth k has the place that the
// product's left fragment has there.
template <class Atom, int R, int C>
void operands() {
  tl::Warpgroup<Atom> mma;
  for (int thread = 0; thread < 128; ++thread) {
    auto thr = mma.get_slice(thread);
    auto acc = thr.partition_C(make_identity_tensor(Shape<Int<R>, Int<C>>{}));
    auto as_operand = make_tensor(acc.data(), tl::as_operand(acc.layout()));
    auto left = thr.partition_A(make_identity_tensor(Shape<Int<R>, Int<C>>{}));
    expect_same("size of an operand", int(size(left)), int(size(as_operand)), R, C);
    for (int n = 0; n < int(size(left)); ++n) {
      expect_same("operand's row", int(get<0>(as_operand(n))), int(get<0>(left(n))), R, C, thread,
                  n);
      expect_same("operand's column", int(get<1>(as_operand(n))), int(get<1>(left(n))), R, C,
                  thread, n);
    }
  }
}

// cuda/kw/tile/tiles.cuh, SharedTile::chunk: panels of 64 columns, 16-byte chunks exclusive-or'd
// with the row; a ring's slots follow each other.
template <int R, int C, int Slots>
void shared_tiles() {
  tl::Tile<Shape<Int<R>, Int<C>, Int<Slots>>> layout;
  for (int s = 0; s < Slots; ++s)
    for (int row = 0; row < R; ++row)
      for (int c = 0; c < C; ++c) {
        const int chunk = c / 8;
        const int bytes = s * R * C * 2 + chunk / 8 * R * 128 + row * 128 +
                          (((chunk % 8) ^ (row % 8)) << 4) + c % 8 * 2;
        expect_same("byte of a shared tile", int(layout(row, c, s)) * 2, bytes, R, C, row, c, s);
      }
}

// cuda/kw/ops/async_copies.cuh, Share: eight threads take the 128 bytes of a row of a panel.
template <int kWarpgroups, int R, int C>
void shares() {
  tl::Rows<UniversalCopy<uint128_t>, half_t, kWarpgroups> copies;
  for (int thread = 0; thread < kWarpgroups * 128; ++thread) {
    auto at = copies.get_slice(thread).partition_S(make_identity_tensor(Shape<Int<R>, Int<C>>{}));
    for (int v = 0; v < 8; ++v)
      for (int m = 0; m < int(size<1>(at)); ++m)
        for (int k = 0; k < int(size<2>(at)); ++k) {
          expect_same("row of a copy", int(get<0>(at(v, m, k))), thread / 8 + m * kWarpgroups * 16,
                      R, C, thread, v, m, k);
          expect_same("column of a copy", int(get<1>(at(v, m, k))), thread % 8 * 8 + k * 64 + v, R,
                      C, thread, v, m, k);
        }
    expect_same("16 bytes of a thread", int(size(at)), R * C / (kWarpgroups * 128), R, C);
  }
}

// cuda/kw/tile/tiles.cuh, DiagonalVector, and map_diagonal of ops/maps.cuh: the value that a lane
// gets for a column of a row is the one of their distance.
template <int R, int C>
void diagonals() {
  tl::Warpgroup<SM80_16x8x16_F32F16F16F32_TN> mma;
  for (int thread = 0; thread < 128; ++thread) {
    threadIdx.x = thread;
    auto at = tl::places(mma, Shape<Int<R>, Int<C>>{});
    int met = 0;
    for (int vd = 0; vd < 2 * tl::squares(R, C); ++vd)
      for (int vr = 0; vr < R / 32; ++vr) {
        const int vc = tl::diagonal_column(R, vr, vd);
        if (vc < 0 || vc >= C / 4) continue;
        const int lane = tl::diagonal_lane(vd),
                  held = tl::lowest_distance(R) + 24 * (vd / 6) + lane;
        expect_same("lane of a distance", lane, std::min(std::max(lane, 0), 31), R, C, thread, vd);
        expect_same("share of a distance", vd / 6, std::min(vd / 6, tl::diagonals(R, C) - 1), R, C);
        expect_same("distance", held, int(get<1>(at(vr, vc))) - int(get<0>(at(vr, vc))), R, C,
                    thread, vd, vr);
        ++met;
      }
    expect_same("elements along diagonals", met, R * C / 128, R, C, thread);
  }
}

}  // namespace

int main() {
  accumulators<SM80_16x8x16_F32BF16BF16F32_TN, 128, 64>();
  accumulators<SM80_16x8x16_F32F16F16F32_TN, 64, 256>();
  accumulators<SM80_16x8x16_F32BF16BF16F32_TN, 128, 48>();
  accumulators<SM80_16x8x16_F32F16F16F32_TN, 128, 16>();
  operands<SM80_16x8x16_F32BF16BF16F32_TN, 128, 64>();
  operands<SM80_16x8x16_F32F16F16F32_TN, 64, 48>();
  shared_tiles<128, 128, 1>();
  shared_tiles<64, 64, 2>();
  shared_tiles<48, 256, 2>();
  diagonals<128, 64>();
  diagonals<64, 48>();
  shares<1, 128, 128>();
  shares<2, 64, 64>();
  std::printf("%d disagree\n", wrong);
  return wrong != 0;
}
