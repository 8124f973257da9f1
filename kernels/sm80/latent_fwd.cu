// Softmax attention forward whose values are the first columns of its keys, as in latent attention
// with absorbed projections: 512 of 576 columns for all heads. For GPUs with 227 KB of shared memory,
// and, with half the keys at a time, 163 KB (latent_fwd.tiles.json).
//
// A CTA computes BM rows of the output. A row is one of the R query heads that share a key
// head, so one read of a key serves them all. The output of 64 rows is too wide for the registers of
// one warpgroup: each of two has half of its columns, and both compute the scores. What is left of the
// keys' columns by the time their values are needed is in the L2 cache: a block of keys comes from
// memory once. K of the next block is copied under the softmax and the product with V, V under the
// scores. O leaves through the place of Q.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 576, V = 512;                                  // columns of Q and K, of V and O
constexpr int BM = 64, BN = 64;                                  // rows of a CTA, keys of a block of keys
constexpr int WARPGROUPS = 2, W = V / WARPGROUPS;                // and columns of the output of each

struct Args {
    kw::Tensor<const element, 'B', 'G', 'R', 'D'> q;
    kw::Tensor<const element, 'B', 'G', 'N', 'D'> k;
    kw::Tensor<element, 'B', 'G', 'R', 'V'> o;
    kw::Tensor<float, 'B', 'G', 'R'> lse;                        // log of the sum of the exponentials; -inf for a row without keys
    kw::size B, G, R, N;                                         // batch, key heads, query heads of each, keys
    kw::size blocks = kw::ceil_div(R, BM) * G * B;               // tiles of the output, BM rows each
    float scale = kw::rsqrt(D) * kw::log2e;                      // of the scores, which are then powers of two
    float slack = 8.0f / scale;                                  // how far a score may exceed the reference of its row: a factor of 2^8
};

struct Shared {
    kw::SharedTile<element, BM, D> q_s;                          // in the end, the output
    kw::SharedTile<element, BN, D> k_s;
    kw::SharedTile<element, BN, W> v_s[WARPGROUPS];
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

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, 1) latent_fwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const Keys keys = key_blocks(args, c, c.m * BM, BM);
    const int i0 = c.m * BM;
    kw::Accumulator<kw::real, BM, BN> s;
    kw::Operand<element, BM, BN> p;
    kw::Accumulator<kw::real, BM, W> acc;
    kw::RowVector<kw::real, BM> m, factor;                       // the reference of the exponentials, and what to multiply earlier terms by
    kw::LaneSum<kw::real, BM> l;                                 // the sum of the exponentials
    bool raised;

    auto softmax = [&](int n, bool partial) {                    // s: scores -> exponentials
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
    auto advance = [&](int n, bool partial) {
        kw::cp_async_wait<0>();
        kw::sync_block();                                        // K of n has come; V of before has been read
        for (int r = 0; r < WARPGROUPS; ++r) kw::cp_async_tile<WARPGROUPS>(args.k, {c.b, c.h, n * BN, r * W}, shared.v_s[r]);
        kw::cp_async_commit();
        kw::mma(s, shared.q_s, kw::transposed(shared.k_s));
        kw::sync_block();                                        // K has been read
        if (n > 0) kw::cp_async<WARPGROUPS>(args.k, {c.b, c.h, (n - 1) * BN}, shared.k_s);
        kw::cp_async_commit();
        softmax(n, partial);
        kw::to_operand(p, s);
        if (raised) kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
        kw::cp_async_wait<1>();
        kw::sync_block();                                        // V has come; the next K may still be under way
        kw::mma_add(acc, p, shared.v_s[me]);
    };

    kw::cp_async<WARPGROUPS>(args.q, {c.b, c.h, i0}, shared.q_s);
    kw::cp_async<WARPGROUPS>(args.k, {c.b, c.h, (keys.count - 1) * BN}, shared.k_s);
    kw::cp_async_commit();
    kw::fill(acc, 0.0f);
    kw::fill(l, 0.0f);
    kw::fill(m, kw::minus_infinity);

    for (int n = keys.count - 1; n >= keys.full; --n) advance(n, true);
    for (int n = kw::min(keys.count, keys.full) - 1; n >= 0; --n) advance(n, false);

    kw::RowVector<kw::real, BM> sum = kw::total(l), inverse = sum, lse_r = sum;
    kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
    kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : (r * args.scale + kw::log2(x)) * kw::ln2; }, m);
    if (me == 0) {
        kw::store_rows(lse_r, args.lse, {c.b, c.h, i0});
    }
    kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);
    kw::sync_block();                                            // Q has been read
    kw::store_columns(acc, shared.q_s, me * W);
    kw::sync_block();
    kw::copy_tile_out<WARPGROUPS>(shared.q_s, args.o, {c.b, c.h, i0, 0});
}
