// Softmax attention forward for Hopper whose values are the first columns of its keys, as in latent
// attention with absorbed projections: 512 of 576 columns for all heads.
//
// A CTA computes BM rows of the output. A row is one of the R query heads that share a key head, so one
// read of a key serves them all. The output of 64 rows is too wide for the registers of one warpgroup, and
// every warpgroup that multiplied the scores anew would double that work. So the warpgroups have roles: one moves
// tiles, warpgroup 0 of the others computes the scores and their exponentials, and the rest each add the
// product with their columns of V, which are columns of the key tile itself: a key comes once from memory
// and once into shared memory.
//
// The exponentials go from the first to the others through shared memory, and so do the factors by
// which earlier output is multiplied (nearly always 1: then nothing is multiplied) and in the end the
// inverse of the sums. The scores of the next block of keys are computed while the others multiply the
// present one: K has two stages. O leaves through the place where its Q came.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 576, V = 512;                                  // columns of Q and K, of V and O
constexpr int BM = 64, BN = 64;                                  // rows of a CTA, keys of a block of keys
constexpr int STAGES = 2;                                        // tiles of K in shared memory
constexpr int LOAD = 0, MATH = 1, ADDERS = 2, W = V / ADDERS;    // the loader, who computes scores, how many add the products with V, columns of each
constexpr int LOADER_REGISTERS = 24, WARPGROUP_REGISTERS = 152;  // of each thread
constexpr int ADDER_REGISTERS = 168;                             // likewise; what the others have less

struct Args {
    kw::TensorMap<const element, 'B', 'G', 'R', 'D'> q;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k;
    kw::TensorMap<element, 'B', 'G', 'R', 'V'> o;
    kw::Tensor<float, 'B', 'G', 'R'> lse;                        // log of the sum of the exponentials; -inf for a row without keys
    kw::size B, G, R, N;                                         // batch, key heads, query heads of each, keys
    kw::size blocks = kw::ceil_div(R, BM) * G * B;               // tiles of the output, BM rows each
    float scale = kw::rsqrt(D) * kw::log2e;                      // of the scores, which are then powers of two
    float slack = 8.0f / scale;                                  // how far a score may exceed the reference of its row: a factor of 2^8
};

struct Shared {
    kw::Ring<kw::SharedTile<element, BM, D>, 1> q_s;             // Q, and then O
    kw::Ring<kw::SharedTile<element, BN, D>, STAGES> k_s;
    kw::SharedTile<element, BM, BN> p_s;                         // the exponentials of a block of keys
    kw::RowRing<kw::real, BM, 1> factor_s, inverse_s;
    kw::Barriers<1, 1> q_full, q_free;                           // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<STAGES, 1> k_full;
    kw::Barriers<STAGES, 4 + 4 * ADDERS> k_free;
    kw::Barriers<1, 4> p_full, inverse_full;
    kw::Barriers<1, 4 * ADDERS> p_free, inverse_free, o_full;
};

struct Block { kw::index m, h, b; };                             // one tile of the output
struct Keys { kw::index count, full; };                          // for some rows: key blocks count-1 ... 0 are visited; full-1 ... 0 need no mask

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int rows = kw::ceil_div(args.R, BM);
    return {w % rows, w / rows % args.G, w / rows / args.G};
}

__device__ __forceinline__ Keys key_blocks(const Args& args, Block c, kw::index i0, kw::index rows) {
    return {kw::ceil_div(args.N, BN), args.N / BN};
}

extern "C" __global__ void __launch_bounds__(128 * (MATH + 1 + ADDERS), 1) latent_fwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    kw::init(shared.q_full, shared.q_free, shared.k_full, shared.k_free, shared.p_full, shared.p_free, shared.inverse_full, shared.inverse_free, shared.o_full);

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // Q and K
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM);
                kw::wait_free(shared.q_free[u]);
                kw::tma_load(args.q, {c.b, c.h, c.m * BM}, shared.q_s[u], shared.q_full[u], kw::evict_first);
#pragma unroll 1
                for (int n = keys.count - 1; n >= 0; --n, ++t) {
                    kw::wait_free(shared.k_free[t]);
                    kw::tma_load(args.k, {c.b, c.h, n * BN}, shared.k_s[t], shared.k_full[t], kw::evict_last);
                }
            }
        }
        if (kw::is_thread(1)) {                                  // O
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                kw::wait(shared.o_full[u]);
                kw::tma_store(shared.q_s[u], args.o, {c.b, c.h, c.m * BM});
                kw::tma_store_wait_read();
                kw::arrive(shared.q_free[u]);
            }
            kw::tma_store_wait();
        }
    } else {
        kw::registers_up<WARPGROUP_REGISTERS>();
        const int me = warpgroup - MATH;
        if (me == 0) {                                           // the scores, and their exponentials
            kw::Accumulator<kw::real, BM, BN> s;
            kw::RowVector<kw::real, BM> m, factor;               // the reference of the exponentials, and what to multiply earlier terms by
            kw::LaneSum<kw::real, BM> l;                         // the sum of the exponentials
            bool raised;
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM);
                const int i0 = c.m * BM;

                auto softmax = [&](int n, bool partial) {        // s: scores -> exponentials
                    if (partial) {
                        kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, kw::Place i, kw::Place j) { return j < args.N ? x : kw::minus_infinity; });
                    }
                    raised = kw::online_max(m, factor, s, args.slack, args.scale);
                    kw::RowVector<kw::real, BM> offset = m;
                    kw::map_rows(offset, [&](kw::real x) { return x == kw::minus_infinity ? 0.0f : x * args.scale; });
                    kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); }, offset);
                    kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, factor);
                    kw::row_sum(l, s);
                };
                auto advance = [&](int n, bool partial) {        // t: the key block, number n
                    kw::wait(shared.k_full[t]);
                    kw::wgmma(s, shared.q_s[u], kw::transposed(shared.k_s[t]));
                    kw::wgmma_wait<0>(s);
                    kw::arrive(shared.k_free[t]);
                    softmax(n, partial);
                    kw::wait_free(shared.p_free[t]);
                    kw::store(s, shared.p_s);
                    kw::put_rows(factor, shared.factor_s[t]);
                    kw::fence_async();
                    kw::arrive(shared.p_full[t]);
                };

                kw::fill(l, 0.0f);
                kw::fill(m, kw::minus_infinity);
                kw::wait(shared.q_full[u]);
                for (int n = keys.count - 1; n >= keys.full; --n, ++t) advance(n, true);
                for (int n = kw::min(keys.count, keys.full) - 1; n >= 0; --n, ++t) advance(n, false);

                kw::RowVector<kw::real, BM> sum = kw::total(l), inverse = sum, lse_r = sum;
                kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
                kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : (r * args.scale + kw::log2(x)) * kw::ln2; }, m);
                kw::wait_free(shared.inverse_free[u]);
                kw::put_rows(inverse, shared.inverse_s[u]);
                kw::arrive(shared.inverse_full[u]);
                kw::store_rows(lse_r, args.lse, {c.b, c.h, i0});
            }
        }
        if (me > 0) {                                            // W columns of the output
            kw::registers_up<ADDER_REGISTERS>();
            kw::Accumulator<kw::real, BM, W> acc;
            kw::RowVector<kw::real, BM> factor, inverse;
            bool raised;
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM);
                kw::fill(acc, 0.0f);
                kw::wait(shared.q_full[u]);                      // the output of the block before has left
#pragma unroll 1
                for (int n = keys.count - 1; n >= 0; --n, ++t) {
                    kw::wait(shared.k_full[t]);
                    kw::wait(shared.p_full[t]);
                    kw::get_rows(shared.factor_s[t], factor);
                    raised = kw::any_differs(factor, 1.0f);
                    if (raised) kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
                    kw::wgmma_add_columns(acc, shared.p_s, shared.k_s[t], (me - 1) * W);
                    kw::wgmma_wait<0>(acc);
                    kw::arrive(shared.p_free[t]);
                    kw::arrive(shared.k_free[t]);
                }
                kw::wait(shared.inverse_full[u]);
                kw::get_rows(shared.inverse_s[u], inverse);
                kw::arrive(shared.inverse_free[u]);
                kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);
                kw::store_columns(acc, shared.q_s[u], (me - 1) * W);
                kw::fence_async();
                kw::arrive(shared.o_full[u]);
            }
        }
    }
}
