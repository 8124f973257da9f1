// Softmax attention forward for Ampere-class GPUs (sm_80 and later), any lengths and strides.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 128, BN = 64, STAGES = 2;
constexpr int ROWS = 128, WORKERS = 1, BM = ROWS * WORKERS;      // query rows of a worker, workers of a block
constexpr int RESIDENT = 2;                                      // blocks on a multiprocessor at a time

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
    kw::SharedTile<element, ROWS, D> q_s[WORKERS];               // in the end, the output
    kw::Ring<kw::SharedTile<element, BN, D>, STAGES> k_s, v_s;
};

struct Block { kw::index m, h, b; };                             // one tile of the output
struct Keys { kw::index count, full; };                          // key blocks count-1 ... 0 are visited; full-1 ... 0 need no mask

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int rows = kw::ceil_div(args.M, BM);
    return {w % rows, w / rows % args.H, w / rows / args.H};
}

__device__ __forceinline__ Keys key_blocks(const Args& args, Block c) {
    return {kw::ceil_div(args.N, BN), args.N / BN};
}

extern "C" __global__ void __launch_bounds__(128 * WORKERS, RESIDENT) attention_fwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::worker_index();
    const Block c = block_of(args, kw::block_index());
    const Keys keys = key_blocks(args, c);
    const int g = c.h / (args.H / args.G);
    const int i0 = c.m * BM + me * ROWS;
    kw::Accumulator<kw::real, ROWS, BN> s;
    kw::Operand<element, ROWS, BN> p;
    kw::Accumulator<kw::real, ROWS, D> acc;
    kw::RowVector<kw::real, ROWS> m, factor;                     // the reference of the exponentials, and what to multiply earlier terms by
    kw::RowPartial<kw::real, ROWS> l;                            // the sum of the exponentials
    bool raised;
    int t = 0;

    auto fetch = [&](int u, int n) {                             // key block n is the u-th of the rings
        kw::copy_async<WORKERS>(args.k, {c.b, g, n * BN}, shared.k_s[u]);
        kw::copy_async<WORKERS>(args.v, {c.b, g, n * BN}, shared.v_s[u]);
    };
    auto advance = [&](int n, bool mixed) {
        kw::wait_copies<STAGES - 2>();
        kw::sync_block();
        if (n >= STAGES - 1) fetch(t + STAGES - 1, n - (STAGES - 1));
        kw::commit_copies();
        kw::gemm(s, shared.q_s[me], kw::transposed(shared.k_s[t]));
        if (mixed) {
            kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, int i, int j) { return j < args.N ? x : kw::minus_infinity; });
        }
        raised = kw::raise(m, factor, s, args.slack, args.scale);
        kw::RowVector<kw::real, ROWS> offset = m;
        kw::map_rows(offset, [&](kw::real x) { return x == kw::minus_infinity ? 0.0f : x * args.scale; });
        if (raised) {
            kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, factor);
            kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
        }
        kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); }, offset);
        kw::row_sum(l, s);
        kw::reshape(p, s);
        kw::gemm_add(acc, p, shared.v_s[t]);
    };

    kw::copy_async<1>(args.q, {c.b, c.h, i0}, shared.q_s[me]);
    for (int u = 0; u < STAGES - 1; ++u) {
        if (u < keys.count) fetch(u, keys.count - 1 - u);
        kw::commit_copies();
    }
    kw::fill(acc, 0.0f);
    kw::fill(l, 0.0f);
    kw::fill(m, kw::minus_infinity);

    for (int n = keys.count - 1; n >= keys.full; --n, ++t) advance(n, true);
    for (int n = kw::min(keys.count, keys.full) - 1; n >= 0; --n, ++t) advance(n, false);

    kw::RowVector<kw::real, ROWS> sum = kw::total(l), inverse = sum, lse_r = sum;
    kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
    kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : (r * args.scale + kw::log2(x)) * kw::ln2; }, m);
    kw::store_rows(lse_r, args.lse, {c.b, c.h, i0});
    kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);
    kw::sync_worker(me);                                         // Q has been read
    kw::store(acc, shared.q_s[me]);
    kw::sync_worker(me);
    kw::copy_out<1>(shared.q_s[me], args.o, {c.b, c.h, i0});
}
