// Softmax attention forward for Ampere-class GPUs (sm_80 and later), any lengths and strides.
//
// A CTA computes BM query rows of one head, ROWS for each of its warpgroups; nobody only loads.
// The keys of the next block of keys, and the values of this one, are copied while the scores are
// multiplied and the softmax runs. A warpgroup's warps hold ROWS / 4 query rows each, and what a warp
// reads of K and V serves all of its rows. Q stays in shared memory: the registers are for the
// accumulators. Two CTAs share a multiprocessor, so one multiplies while the other is in its
// softmax. Tiles for other head dimensions and GPUs: tiles.json.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 128, BN = 64;                                  // head dimension, keys of a block of keys
constexpr int ROWS = 128, WARPGROUPS = 1, BM = ROWS * WARPGROUPS;  // query rows of a warpgroup, warpgroups, query rows of a CTA
constexpr int RESIDENT = 2;                                      // CTAs that share a multiprocessor

struct Args {
    kw::Tensor<const element, 'B', 'H', 'M', 'D'> q;
    kw::Tensor<const element, 'B', 'G', 'N', 'D'> k, v;
    kw::Tensor<element, 'B', 'H', 'M', 'D'> o;
    kw::Tensor<float, 'B', 'H', 'M'> lse;                        // log of the sum of the exponentials; -inf for a row without keys
    kw::size B, H, G, M, N;                                      // batch, query heads, key heads, queries, keys
    kw::size blocks = kw::ceil_div(M, BM) * H * B;               // tiles of the output, BM rows each
    float scale = kw::rsqrt(D) * kw::log2e;                      // of the scores, which are then powers of two
    float slack = 8.0f / scale;                                  // how far a score may exceed the reference of its row: a factor of 2^8
};

struct Shared {
    kw::SharedTile<element, ROWS, D> q_s[WARPGROUPS];            // in the end, the output
    kw::Ring<kw::SharedTile<element, BN, D>, 2> k_s;
    kw::SharedTile<element, BN, D> v_s;
};

struct Block { kw::index m, h, b; };                             // one tile of the output
struct Keys { kw::index count, full; };                          // for some query rows: key blocks count-1 ... 0 are visited; full-1 ... 0 need no mask

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int rows = kw::ceil_div(args.M, BM);
    return {w % rows, w / rows % args.H, w / rows / args.H};
}

__device__ __forceinline__ Keys key_blocks(const Args& args, Block c, kw::index i0, kw::index rows) {
    return {kw::ceil_div(args.N, BN), args.N / BN};
}

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, RESIDENT) attention_fwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const Keys keys = key_blocks(args, c, c.m * BM, BM);
    const int g = c.h / (args.H / args.G);
    const int i0 = c.m * BM + me * ROWS;
    kw::Accumulator<kw::real, ROWS, BN> s;
    kw::Operand<element, ROWS, BN> p;
    kw::Accumulator<kw::real, ROWS, D> acc;
    kw::RowVector<kw::real, ROWS> m, factor;                     // the reference of the exponentials, and what to multiply earlier terms by
    kw::LaneSum<kw::real, ROWS> l;                               // the sum of the exponentials
    bool raised;

    auto softmax = [&](int n, bool partial) {                    // s: scores -> exponentials
        if (partial) {
            kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, kw::Place i, kw::Place j) { return j < args.N ? x : kw::minus_infinity; });
        }
        raised = kw::online_max(m, factor, s, args.slack, args.scale);
        kw::RowVector<kw::real, ROWS> offset = m;
        kw::map_rows(offset, [&](kw::real x) { return x == kw::minus_infinity ? 0.0f : x * args.scale; });
        kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); }, offset);
        kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, factor);
        kw::row_sum(l, s);
    };
    auto advance = [&](int n, bool partial) {
        kw::cp_async_wait<0>();
        kw::sync_block();                                        // K of n has come; V and the other K of before have been read
        kw::cp_async<WARPGROUPS>(args.v, {c.b, g, n * BN}, shared.v_s);
        kw::cp_async_commit();
        if (n > 0) kw::cp_async<WARPGROUPS>(args.k, {c.b, g, (n - 1) * BN}, shared.k_s[n - 1]);
        kw::cp_async_commit();
        kw::mma(s, shared.q_s[me], kw::transposed(shared.k_s[n]));
        softmax(n, partial);
        kw::to_operand(p, s);
        if (raised) kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
        kw::cp_async_wait<1>();
        kw::sync_block();                                        // V has come; the next K may still be under way
        kw::mma_add(acc, p, shared.v_s);
    };

    kw::cp_async<1>(args.q, {c.b, c.h, i0}, shared.q_s[me]);
    kw::cp_async<WARPGROUPS>(args.k, {c.b, g, (keys.count - 1) * BN}, shared.k_s[keys.count - 1]);
    kw::cp_async_commit();
    kw::fill(acc, 0.0f);
    kw::fill(l, 0.0f);
    kw::fill(m, kw::minus_infinity);

    for (int n = keys.count - 1; n >= keys.full; --n) advance(n, true);
    for (int n = kw::min(keys.count, keys.full) - 1; n >= 0; --n) advance(n, false);

    kw::RowVector<kw::real, ROWS> sum = kw::total(l), inverse = sum, lse_r = sum;
    kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
    kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : (r * args.scale + kw::log2(x)) * kw::ln2; }, m);
    kw::store_rows(lse_r, args.lse, {c.b, c.h, i0});
    kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);
    kw::sync_warpgroup(me);                                      // Q has been read
    kw::store(acc, shared.q_s[me]);
    kw::sync_warpgroup(me);
    kw::copy_out<1>(shared.q_s[me], args.o, {c.b, c.h, i0});
}
