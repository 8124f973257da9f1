// Softmax attention forward for Hopper: bf16 or f16, any lengths and strides, head dimensions by constants.
//
// A cluster of CTAs computes BM query rows of one head. All its CTAs need the same keys and values, so
// each fetches one part of every tile and sends it to all: the L2 cache is read once. In a CTA one
// warpgroup moves tiles: one thread loads Q and K, another V, so that neither waits for the other, and a
// third stores O. Each consumer computes 64 query rows. It issues the scores of the next key block
// before the product with V of the previous one, so the tensor cores run under the softmax. Q stays in
// registers, or where they are needed for wide outputs, in shared memory; O leaves through the place
// where its Q came. Blocks of the output are dealt out in turn, and the next block's loads run under
// the end of this one.
//
// Where the softmax decides the speed, nobody looks at a block's scores before they become exponentials
// (CHECK_LATE): almost always the reference of their row can stand. Their sum says afterwards whether it
// could, before anything is done with them; if not, the warp computes its scores once more.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 128, V = 128;                                 // columns of Q and K, of V and O
constexpr int BM = 256, BN = 128, CTAS = 2;                      // query rows for a cluster of CTAS, keys at a time
constexpr int Q_SLOTS = 2, STAGES = 2;                           // tiles of Q, and of K and V each, in shared memory
constexpr int LOAD = 0, MATH = 1, WARPGROUPS = BM / CTAS / 64;   // the loader, the first consumer, how many in a CTA
constexpr int LOADER_REGISTERS = 24, WARPGROUP_REGISTERS = 240;  // of each thread
constexpr bool Q_IN_REGISTERS = true;
constexpr bool PING_PONG = false;                                // the consumers take turns at issuing their products
constexpr bool CHECK_LATE = true;                                // blocks without a mask: exponentials first, then whether their reference could stand

struct Args {
    kw::TensorMap<const element, 'B', 'H', 'M', 'D'> q;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k;
    kw::TensorMap<const element, 'B', 'G', 'N', 'V'> v;
    kw::TensorMap<element, 'B', 'H', 'M', 'V'> o;
    kw::Tensor<float, 'B', 'H', 'M'> lse;                        // log of the sum of the exponentials; -inf for a row without keys
    kw::size B, H, G, M, N;                                      // batch, query heads, key heads, queries, keys
    kw::size blocks = kw::ceil_div(M, BM) * H * B;               // tiles of the output, BM rows each
    float scale = kw::rsqrt(D) * kw::log2e;                      // of the scores, which are then powers of two
    float slack = 8.0f / scale;                                  // how far a score may exceed the reference of its row: a factor of 2^8
};

struct Shared {
    kw::Ring<kw::SharedTile<element, 64, D>, Q_SLOTS> q_s[WARPGROUPS]; // Q, and then O
    kw::Ring<kw::SharedTile<element, BN, D>, STAGES> k_s;
    kw::Ring<kw::SharedTile<element, BN, V>, STAGES> v_s;
    kw::Barriers<Q_SLOTS, WARPGROUPS> q_full;                    // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<Q_SLOTS, 4 * WARPGROUPS> o_full;
    kw::Barriers<Q_SLOTS, 1> q_free;
    kw::Barriers<STAGES, 1> k_full, v_full;
    kw::Barriers<STAGES, 4 * WARPGROUPS, CTAS> k_free, v_free;   // free when the warps of every CTA have arrived
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

extern "C" __global__ void __launch_bounds__(128 * (MATH + WARPGROUPS), 1) attention_fwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    const int cta = kw::cluster<CTAS>();
    kw::init(shared.q_full, shared.o_full, shared.q_free, shared.k_full, shared.v_full, shared.k_free, shared.v_free);
    kw::sync_cluster();

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // Q and K
            int t = 0;
            for (auto [u, w] : kw::static_tiles<CTAS>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM);
                const int g = c.h / (args.H / args.G);
                kw::wait_free(shared.q_free[u]);
                for (int r = 0; r < WARPGROUPS; ++r) kw::tma_load(args.q, {c.b, c.h, c.m * BM + (cta * WARPGROUPS + r) * 64}, shared.q_s[r][u], shared.q_full[u], kw::evict_first);
#pragma unroll 1
                for (int n = keys.count - 1; n >= 0; --n, ++t) {
                    kw::wait_free(shared.k_free[t]);
                    kw::tma_load_multicast<CTAS>(args.k, {c.b, g, n * BN}, shared.k_s[t], shared.k_full[t], kw::evict_last);
                }
            }
        }
        if (kw::is_thread(1)) {                                  // V
            int t = 0;
            for (auto [u, w] : kw::static_tiles<CTAS>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM);
                const int g = c.h / (args.H / args.G);
#pragma unroll 1
                for (int n = keys.count - 1; n >= 0; --n, ++t) {
                    kw::wait_free(shared.v_free[t]);
                    kw::tma_load_multicast<CTAS>(args.v, {c.b, g, n * BN}, shared.v_s[t], shared.v_full[t], kw::evict_last);
                }
            }
        }
        if (kw::is_thread(2)) {                                  // O
            for (auto [u, w] : kw::static_tiles<CTAS>(args.blocks)) {
                const Block c = block_of(args, w);
                kw::wait(shared.o_full[u]);
                for (int r = 0; r < WARPGROUPS; ++r) kw::tma_store(shared.q_s[r][u], args.o, {c.b, c.h, c.m * BM + (cta * WARPGROUPS + r) * 64});
                kw::tma_store_wait_read();
                kw::arrive(shared.q_free[u]);
            }
            kw::tma_store_wait();
        }
    } else {
        kw::registers_up<WARPGROUP_REGISTERS>();
        const int me = warpgroup - MATH;
        kw::Operand<element, 64, D> q_r;
        kw::Accumulator<kw::real, 64, BN> s;
        kw::Operand<element, 64, BN> p;
        kw::Accumulator<kw::real, 64, V> acc;
        kw::RowVector<kw::real, 64> m, factor;                   // the reference of the exponentials, and what to multiply earlier terms by
        kw::LaneSum<kw::real, 64> l, fresh;                      // the sum of the exponentials, and of one block's
        bool raised;
        int t = 0;
        if (PING_PONG && me == 0) kw::order_arrive(0);

        for (auto [u, w] : kw::static_tiles<CTAS>(args.blocks)) {
            const Block c = block_of(args, w);
            const int i0 = c.m * BM + (cta * WARPGROUPS + me) * 64;
            const Keys keys = key_blocks(args, c, c.m * BM, BM);  // what the cluster loads
            const Keys mine = key_blocks(args, c, i0, 64);

            auto softmax = [&](int n, bool partial, bool late) {  // s: scores -> exponentials
                if (partial) {
                    kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, kw::Place i, kw::Place j) { return j < args.N ? x : kw::minus_infinity; });
                }
                if (!late) raised = kw::online_max(m, factor, s, args.slack, args.scale);
                kw::RowVector<kw::real, 64> offset = m;
                kw::map_rows(offset, [&](kw::real x) { return x == kw::minus_infinity ? 0.0f : x * args.scale; });
                kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); }, offset);
                if (!late) kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, factor);
                kw::fill(fresh, 0.0f);
                kw::row_sum(fresh, s);
                if (late) raised = kw::any_exceeds(m, fresh, 4096.0f);
                if (!late || !raised) kw::add(l, fresh);
            };
            auto advance = [&](int n, bool partial) {            // t: the key block whose P is at hand; n: the next
                kw::wait(shared.k_full[t + 1]);
                if (PING_PONG) kw::order_wait(me);
                if (Q_IN_REGISTERS) kw::wgmma(s, q_r, kw::transposed(shared.k_s[t + 1]));
                if (!Q_IN_REGISTERS) kw::wgmma(s, shared.q_s[me][u], kw::transposed(shared.k_s[t + 1]));
                kw::wait(shared.v_full[t]);
                kw::wgmma_add(acc, p, shared.v_s[t]);
                if (PING_PONG) kw::order_arrive((me + 1) % WARPGROUPS);
                kw::wgmma_wait<1>(s);
                if (!CHECK_LATE) kw::arrive(shared.k_free[t + 1]);
                softmax(n, partial, CHECK_LATE && !partial);
                if (CHECK_LATE && !partial && raised) {          // rare: the scores again, and their maximum first
                    if (Q_IN_REGISTERS) kw::mma(s, q_r, kw::transposed(shared.k_s[t + 1]));
                    if (!Q_IN_REGISTERS) kw::mma(s, shared.q_s[me][u], kw::transposed(shared.k_s[t + 1]));
                    softmax(n, partial, false);
                }
                if (CHECK_LATE) kw::arrive(shared.k_free[t + 1]);
                kw::wgmma_wait<0>(acc);
                kw::arrive(shared.v_free[t]);
                kw::to_operand(p, s);
                if (raised) kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
            };

            kw::fill(acc, 0.0f);
            kw::fill(l, 0.0f);
            kw::fill(m, kw::minus_infinity);
#pragma unroll 1
            for (int n = keys.count - 1; n >= mine.count; --n, ++t) { // only others need these
                kw::wait(shared.k_full[t]);
                if (PING_PONG) kw::order_wait(me);
                kw::arrive(shared.k_free[t]);
                kw::wait(shared.v_full[t]);
                if (PING_PONG) kw::order_arrive((me + 1) % WARPGROUPS);
                kw::arrive(shared.v_free[t]);
            }

            kw::wait(shared.q_full[u]);
            if (Q_IN_REGISTERS) kw::load(shared.q_s[me][u], q_r);
            kw::wait(shared.k_full[t]);
            if (PING_PONG) kw::order_wait(me);
            if (Q_IN_REGISTERS) kw::wgmma(s, q_r, kw::transposed(shared.k_s[t]));
            if (!Q_IN_REGISTERS) kw::wgmma(s, shared.q_s[me][u], kw::transposed(shared.k_s[t]));
            if (PING_PONG) kw::order_arrive((me + 1) % WARPGROUPS);
            kw::wgmma_wait<0>(s);
            kw::arrive(shared.k_free[t]);
            softmax(mine.count - 1, true, false);
            kw::to_operand(p, s);

            for (int n = mine.count - 2; n >= mine.full; --n, ++t) advance(n, true);
            for (int n = kw::min(mine.count - 1, mine.full) - 1; n >= 0; --n, ++t) advance(n, false);

            kw::wait(shared.v_full[t]);
            kw::wgmma_add(acc, p, shared.v_s[t]);
            kw::RowVector<kw::real, 64> sum = kw::total(l), inverse = sum, lse_r = sum;
            kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
            kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : (r * args.scale + kw::log2(x)) * kw::ln2; }, m);
            kw::store_rows(lse_r, args.lse, {c.b, c.h, i0});
            kw::wgmma_wait<0>(acc);
            kw::arrive(shared.v_free[t]);
            ++t;
            kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);

            kw::sync_warpgroup(me);                              // no warp of it reads Q any more
            kw::store(acc, shared.q_s[me][u]);
            kw::fence_async();
            kw::arrive(shared.o_full[u]);
        }
    }
    kw::sync_cluster();
}
