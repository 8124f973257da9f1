// Product of two matrices for GPUs before Ampere (sm_75), f16, any sizes and strides of rows.
//
// A CTA computes BM rows and BN columns of one product, ROWS for each of its warpgroups. Steps of
// BK of what is summed over come one at a time through the threads' registers, 16 bytes each: these GPUs
// have no copies that go on beside the arithmetic. What a warp reads of B serves all of its rows. What
// becomes of an element before it is rounded is computed in registers, between the product and the store.
#include "kw/kw.cuh"

using element = kw::f16;
constexpr int ROWS = 64, WARPGROUPS = 2, BM = ROWS * WARPGROUPS;  // rows of a warpgroup, warpgroups, rows of a CTA
constexpr int BN = 128, BK = 64;                                 // columns of a CTA, a step of the sum
constexpr int RESIDENT = 1;                                      // CTAs that share a multiprocessor

struct Args {
    kw::Tensor<const element, 'B', 'H', 'M', 'K'> a;
    kw::Tensor<const element, 'B', 'H', 'K', 'N'> b;
    kw::Tensor<element, 'B', 'H', 'M', 'N'> o;
    kw::size B, H, M, N, K;                                      // batch, products of a batch entry, rows, columns, terms of the sum
    kw::size rows = kw::ceil_div(M, BM);                         // tiles of the output, downwards
    kw::size columns = kw::ceil_div(N, BN);                      // and across, those that CTAs share
    kw::size blocks = rows * columns * H * B;
};

struct Shared {
    kw::SharedTile<element, ROWS, BK> a_s[WARPGROUPS];
    kw::Ring<kw::SharedTile<element, BK, BN>, 1> b_s;
    kw::SharedTile<element, ROWS, BN> o_s[WARPGROUPS];
};

struct Block { kw::index m, first, last, h, b; };                // a row of tiles of the output, and which of them

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int u = w / args.rows, n = u % args.columns;
    return {w % args.rows, n, n, u / args.columns % args.H, u / args.columns / args.H};
}

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, RESIDENT) gemm(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const int steps = kw::ceil_div(args.K, BK);
    const int i0 = c.m * BM + me * ROWS;
    kw::Operand<element, ROWS, BK> a_r;
    kw::Accumulator<kw::real, ROWS, BN> acc;

    for (int n = c.last; n >= c.first; --n) {
        kw::sync_block();                                        // the tile before has been read
        kw::fill(acc, 0.0f);
        for (int k = steps - 1; k >= 0; --k) {
            kw::sync_block();                                    // what came before has been read
            kw::copy_tile_in<1>(args.a, {c.b, c.h, i0, k * BK}, shared.a_s[me]);
            kw::copy_tile_in<WARPGROUPS>(args.b, {c.b, c.h, k * BK, n * BN}, shared.b_s[k]);
            kw::sync_block();                                    // step k has come
            kw::load(shared.a_s[me], a_r);
            kw::mma_add(acc, a_r, shared.b_s[k]);
        }
        kw::store(acc, shared.o_s[me]);
        kw::sync_warpgroup(me);
        kw::copy_tile_out<1>(shared.o_s[me], args.o, {c.b, c.h, i0, n * BN});
    }
}
