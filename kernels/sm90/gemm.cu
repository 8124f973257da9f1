// Product of two matrices for Hopper, any sizes; rows that start at multiples of 16 bytes.
//
// A CTA works on one tile of the output after the other, BM rows and BN columns, 64 rows for each
// consumer. One thread loads steps of BK of what is summed over, and columns past the last of them are
// zero; another stores tiles of the output, so that the next tile's loads run under the end of this one.
// A warpgroup issues the product of the next step before it waits for the one before: the tensor cores always
// have one to go on with, and the accumulator stays theirs until the sum is complete.
//
// Tiles are dealt out in groups of GROUP rows of tiles, column by column: what CTAs read at one
// time are as many rows of A as columns of B, which the L2 cache holds. What becomes of an element before
// it is rounded is computed in registers, between the last product and the store.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int BM = 128, BN = 256, BK = 64, STAGES = 3;           // rows and columns of a CTA, a step of the sum, steps in shared memory
constexpr int GROUP = 16;                                        // rows of tiles that are worked on together
constexpr int LOAD = 0, MATH = 1, WARPGROUPS = BM / 64;          // the loader, the first consumer, how many
constexpr int LOADER_REGISTERS = 40, WARPGROUP_REGISTERS = 232;  // of each thread

struct Args {
    kw::TensorMap<const element, 'B', 'H', 'M', 'K'> a;
    kw::TensorMap<const element, 'B', 'H', 'K', 'N'> b;
    kw::TensorMap<element, 'B', 'H', 'M', 'N'> o;
    kw::size B, H, M, N, K;                                      // batch, products of a batch entry, rows, columns, terms of the sum
    kw::size rows = kw::ceil_div(M, BM);                         // tiles of the output, downwards
    kw::size columns = kw::ceil_div(N, BN);                      // and across
    kw::size blocks = rows * columns * H * B;
};

struct Shared {
    kw::Ring<kw::SharedTile<element, 64, BK>, STAGES> a_s[WARPGROUPS];
    kw::Ring<kw::SharedTile<element, BK, BN>, STAGES> b_s;
    kw::Ring<kw::SharedTile<element, 64, BN>, 1> o_s[WARPGROUPS];
    kw::Barriers<STAGES, WARPGROUPS + 1> full;                   // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<STAGES, 4 * WARPGROUPS> free;
    kw::Barriers<1, 4 * WARPGROUPS> o_full;
    kw::Barriers<1, 1> o_free;
};

struct Block { kw::index m, n, h, b; };                          // one tile of the output

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int of_one = args.rows * args.columns, u = w % of_one, v = w / of_one;
    const int top = u / (GROUP * args.columns) * GROUP, r = u % (GROUP * args.columns); // of its group
    const int height = kw::max(kw::min(args.rows - top, GROUP), 1);
    return {top + r % height, r / height, v % args.H, v / args.H};
}

extern "C" __global__ void __launch_bounds__(128 * (MATH + WARPGROUPS), 1) gemm(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    const int steps = kw::ceil_div(args.K, BK);
    kw::init(shared.full, shared.free, shared.o_full, shared.o_free);

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // A and B
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
#pragma unroll 1
                for (int k = steps - 1; k >= 0; --k, ++t) {
                    kw::wait_free(shared.free[t]);
                    for (int r = 0; r < WARPGROUPS; ++r) kw::tma_load_tile(args.a, {c.b, c.h, c.m * BM + r * 64, k * BK}, shared.a_s[r][t], shared.full[t], kw::evict_normal);
                    kw::tma_load_tile(args.b, {c.b, c.h, k * BK, c.n * BN}, shared.b_s[t], shared.full[t], kw::evict_normal);
                }
            }
        }
        if (kw::is_thread(1)) {                                  // the output
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                kw::wait(shared.o_full[u]);
                for (int r = 0; r < WARPGROUPS; ++r) kw::tma_store_tile(shared.o_s[r][u], args.o, {c.b, c.h, c.m * BM + r * 64, c.n * BN});
                kw::tma_store_wait_read();
                kw::arrive(shared.o_free[u]);
            }
            kw::tma_store_wait();
        }
    } else {
        kw::registers_up<WARPGROUP_REGISTERS>();
        const int me = warpgroup - MATH;
        kw::Accumulator<kw::real, 64, BN> acc;
        int t = 0;
        for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
            const Block c = block_of(args, w);
            kw::fill(acc, 0.0f);
            kw::wait(shared.full[t]);
            kw::wgmma_add(acc, shared.a_s[me][t], shared.b_s[t]);
#pragma unroll 1
            for (int k = steps - 2; k >= 0; --k, ++t) {          // t: the step that is being multiplied
                kw::wait(shared.full[t + 1]);
                kw::wgmma_add(acc, shared.a_s[me][t + 1], shared.b_s[t + 1]);
                kw::wgmma_wait_group<1>();
                kw::arrive(shared.free[t]);
            }
            kw::wgmma_wait<0>(acc);
            kw::arrive(shared.free[t]);
            ++t;
            kw::wait_free(shared.o_free[u]);
            kw::store(acc, shared.o_s[me][u]);
            kw::fence_async();
            kw::arrive(shared.o_full[u]);
        }
    }
}
