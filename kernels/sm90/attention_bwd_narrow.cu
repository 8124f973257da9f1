// Softmax attention backward for Hopper: dq, dk and dv from q, k, v, o, do and the log-sums of the forward
// kernel; bf16 or f16, head dimension 64, any lengths and strides.
//
// As attention_bwd.cu, which is for 128, with blocks of twice the queries: tiles are half as wide, and what a block costs
// beside its products, waits and fences and what is passed on, is paid once where it was paid twice. There are
// registers for that where
//
// - dK is made of the dS in shared memory, a block late as dQ is: a left operand in registers would have to wait for
//   the product before it there. So it lies under the exponentials, with the product of dP.
// - the product for dV comes when S and dP are gone, which leaves its left operand alone.
//
// Each consumer has 64 keys, and half of the queries of dQ, for which it needs the other's dS.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 64;                                            // columns of all tensors
constexpr int BM = 128, BN = 128;                                // queries at a time, keys of a CTA
constexpr int Q_STAGES = 3, DO_STAGES = 2, DS_SLOTS = 2;         // tiles of Q, dO and dS in shared memory
constexpr int LOAD = 0, MATH = 1, WARPGROUPS = BN / 64;          // the loader, the first consumer, how many
constexpr int LOADER_REGISTERS = 24, WARPGROUP_REGISTERS = 240;  // of each thread

struct Args {
    kw::TensorMap<const element, 'B', 'H', 'M', 'D'> q;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k, v;
    kw::Tensor<const float, 'B', 'H', 'M', 'D'> o;               // the forward kernel's output before it is rounded
    kw::Tensor<const element, 'B', 'H', 'M', 'D'> do_rows;       // the output's gradient
    kw::TensorMap<const element, 'B', 'H', 'M', 'D'> d_o;        // the same gradient, tile by tile
    kw::Tensor<const float, 'B', 'H', 'M'> lse;                  // the forward kernel's
    kw::TensorMap<element, 'B', 'G', 'N', 'D'> dk, dv;
    kw::Tensor<element, 'B', 'H', 'M', 'D'> dq;
    kw::size B, H, G, M, N;                                      // batch, query heads, key heads, queries, keys
    kw::size P = kw::ceil_div(M, BM) * BM;                       // queries of whole blocks
    kw::size blocks = kw::ceil_div(N, BN) * G * B;               // blocks of keys
    float scale = kw::rsqrt(D);                                  // of the scores
    float scale_log2 = scale * kw::log2e;                        // of what exponentials are powers of two of
    kw::Tensor<kw::scratch<float>, 'B', 'H', 'P', 'D'> sum_dq;   // sums over key blocks
    kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'> offset, delta; // minus the log-sum in units of scores, minus do . o
};

struct Shared {
    kw::Ring<kw::SharedTile<element, 64, D>, 1> k_s[WARPGROUPS], v_s[WARPGROUPS]; // K and V, and then dK and dV
    kw::Ring<kw::SharedTile<element, BM, D>, Q_STAGES> q_s;
    kw::Ring<kw::SharedTile<element, BM, D>, DO_STAGES> do_s;
    kw::Ring<kw::SharedTile<element, BM, 64>, DS_SLOTS> ds_s[WARPGROUPS];
    kw::Ring<kw::SharedTile<float, 64, D>, 1> dq_s[WARPGROUPS];
    kw::RowRing<kw::real, BM, Q_STAGES> offset_s;
    kw::RowRing<kw::real, BM, DO_STAGES> delta_s;
    kw::Barriers<1, WARPGROUPS> k_full, v_full;                  // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<1, 4 * WARPGROUPS> dk_full;
    kw::Barriers<1, 1> k_free;
    kw::Barriers<Q_STAGES, 2> q_full;                            // a tile, and a value for each query
    kw::Barriers<Q_STAGES, 4 * WARPGROUPS> q_free;
    kw::Barriers<DO_STAGES, 2> do_full;
    kw::Barriers<DO_STAGES, 4 * WARPGROUPS> do_free;
    kw::Barriers<DS_SLOTS, 4 * WARPGROUPS> ds_full, ds_free;
    kw::Barriers<1, 4 * WARPGROUPS> dq_full;
    kw::Barriers<1, 1> dq_free;
};

struct Block { kw::index n, g, b; };                             // the keys of a CTA
struct Queries { kw::index first, count; };                      // so many blocks of a head's queries see some of them

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int keys = kw::ceil_div(args.N, BN);
    return {w % keys, w / keys % args.G, w / keys / args.G};
}

__device__ __forceinline__ Queries query_blocks(const Args& args, Block c) {
    return {0, kw::ceil_div(args.M, BM)};
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_narrow_rows(const __grid_constant__ Args args) {
    const kw::Warp w = kw::warp_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    for (auto [b, h, r] : kw::each_row(args.sum_dq, w)) {
        const kw::real dot = kw::dot_row<D>(args.o, args.do_rows, {b, h, r});
        const kw::real l = r < args.M ? args.lse(b, h, r) : kw::minus_infinity;
        kw::write_value(args.offset, {b, h, r}, l == kw::minus_infinity ? l : -l / args.scale);
        kw::write_value(args.delta, {b, h, r}, -dot);
        kw::write_row<D>(args.sum_dq, {b, h, r}, [&](int j) { return 0.0f; });
    }
}

extern "C" __global__ void __launch_bounds__(128 * (MATH + WARPGROUPS), 1) attention_bwd_narrow(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    kw::init(shared.k_full, shared.v_full, shared.dk_full, shared.k_free, shared.q_full, shared.q_free, shared.do_full, shared.do_free, shared.ds_full, shared.ds_free, shared.dq_full, shared.dq_free);

    const Block c = block_of(args, kw::block_index(args.blocks));
    const Queries queries = query_blocks(args, c);
    const int group = args.H / args.G;

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // K, V, and for each block of queries Q and dO
            int t = 0, u = 0;
            kw::wait_free(shared.k_free[u]);
            for (int r = 0; r < WARPGROUPS; ++r) kw::tma_load(args.k, {c.b, c.g, c.n * BN + r * 64}, shared.k_s[r][u], shared.k_full[u], kw::evict_first);
            for (int r = 0; r < WARPGROUPS; ++r) kw::tma_load(args.v, {c.b, c.g, c.n * BN + r * 64}, shared.v_s[r][u], shared.v_full[u], kw::evict_first);
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                const int h = c.g * group + x / queries.count;
                const int m = queries.first + x % queries.count;
                kw::wait_free(shared.q_free[t]);
                kw::tma_load_rows(args.offset, {c.b, h, m * BM}, shared.offset_s[t], shared.q_full[t]);
                kw::tma_load(args.q, {c.b, h, m * BM}, shared.q_s[t], shared.q_full[t], kw::evict_last);
                kw::wait_free(shared.do_free[t]);
                kw::tma_load_rows(args.delta, {c.b, h, m * BM}, shared.delta_s[t], shared.do_full[t]);
                kw::tma_load(args.d_o, {c.b, h, m * BM}, shared.do_s[t], shared.do_full[t], kw::evict_last);
            }
        }
        if (kw::is_thread(1)) {                                  // dQ
            int t = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                const int h = c.g * group + x / queries.count;
                const int m = queries.first + x % queries.count;
                kw::wait(shared.dq_full[t]);
                for (int r = 0; r < WARPGROUPS; ++r) kw::tma_add(shared.dq_s[r][t], args.sum_dq, {c.b, h, m * BM + r * 64, 0});
                kw::tma_store_wait_read();
                kw::arrive(shared.dq_free[t]);
            }
            kw::tma_store_wait();
        }
        if (kw::is_thread(2)) {                                  // dK and dV
            int u = 0;
            kw::wait(shared.dk_full[u]);
            for (int r = 0; r < WARPGROUPS; ++r) kw::tma_store(shared.k_s[r][u], args.dk, {c.b, c.g, c.n * BN + r * 64});
            for (int r = 0; r < WARPGROUPS; ++r) kw::tma_store(shared.v_s[r][u], args.dv, {c.b, c.g, c.n * BN + r * 64});
            kw::tma_store_wait_read();
            kw::arrive(shared.k_free[u]);
            kw::tma_store_wait();
        }
    } else {
        kw::registers_up<WARPGROUP_REGISTERS>();
        const int me = warpgroup - MATH;
        kw::Accumulator<kw::real, 64, D> dk_r, dv_r;
        int t = 0, u = 0;

        const int j0 = c.n * BN + me * 64;

        auto advance = [&](kw::index x, bool first) {        // t: a block of queries of a head; its dQ and dK are left to the next
            const int m = queries.first + x % queries.count;
            kw::Accumulator<kw::real, 64, BM> s, dp;
            kw::Accumulator<kw::real, 64, D> dq_r;
            kw::Operand<element, 64, BM> p;
            kw::wait(shared.q_full[t]);
            kw::fill_columns(s, shared.offset_s[t]);
            kw::wgmma_add_transposed(s, shared.k_s[me][u], kw::transposed(shared.q_s[t]));
            kw::wait(shared.do_full[t]);
            kw::fill_columns(dp, shared.delta_s[t]);
            kw::wgmma_add_transposed(dp, shared.v_s[me][u], kw::transposed(shared.do_s[t]));
            if (!first) {
                kw::wait(shared.ds_full[t - 1]);
                kw::wgmma_add_transposed_a(dk_r, kw::transposed(shared.ds_s[me][t - 1]), shared.q_s[t - 1]);
            }
            if (first) kw::wgmma_wait<1>(s);
            if (!first) kw::wgmma_wait<2>(s);
            if ((c.n + 1) * BN > args.N) {
                kw::map_at(s, kw::Origin{j0, m * BM}, [&](kw::real x, kw::Place i, kw::Place j) { return i < args.N ? x : kw::minus_infinity; });
            }
            kw::map(s, [&](kw::real x) { return kw::exp2(x * args.scale_log2); });
            kw::to_operand(p, s);
            if (first) kw::wgmma_wait<0>(dp);
            if (!first) kw::wgmma_wait<1>(dp);
            kw::map(dp, [&](kw::real x, kw::real y) { return x * y; }, s);
            kw::wait_free(shared.ds_free[t]);
            kw::store_transposed(dp, shared.ds_s[me][t]);
            kw::wgmma_add(dv_r, p, shared.do_s[t]);
            kw::fence_async();
            kw::arrive(shared.ds_full[t]);
            kw::wgmma_wait<0>(dv_r);
            kw::arrive(shared.do_free[t]);
            if (!first) {
                kw::wgmma_wait<0>(dk_r);
                kw::arrive(shared.q_free[t - 1]);
                kw::fill(dq_r, 0.0f);
                kw::wgmma_add_rows(dq_r, shared.ds_s[0][t - 1], me * 64, shared.k_s[0][u]);
                kw::wgmma_add_rows(dq_r, shared.ds_s[1][t - 1], me * 64, shared.k_s[1][u]);
                kw::wgmma_wait<0>(dq_r);
                kw::arrive(shared.ds_free[t - 1]);
                kw::wait_free(shared.dq_free[t - 1]);
                kw::store(dq_r, shared.dq_s[me][t - 1]);
                kw::fence_async();
                kw::arrive(shared.dq_full[t - 1]);
            }
        };

        kw::fill(dk_r, 0.0f);
        kw::fill(dv_r, 0.0f);
        kw::wait(shared.k_full[u]);
        kw::wait(shared.v_full[u]);
        kw::wgmma_wait_group<0>();                           // nothing is in flight; ptxas does not see it, and would wait
        advance(group * queries.count - 1, true);
        ++t;
#pragma unroll 1
        for (int x = group * queries.count - 2; x >= 0; --x, ++t) advance(x, false);
        kw::Accumulator<kw::real, 64, D> dq_r;                 // the last block's
        kw::fill(dq_r, 0.0f);
        kw::wait(shared.ds_full[t - 1]);
        kw::wgmma_add_rows(dq_r, shared.ds_s[0][t - 1], me * 64, shared.k_s[0][u]);
        kw::wgmma_add_rows(dq_r, shared.ds_s[1][t - 1], me * 64, shared.k_s[1][u]);
        kw::wgmma_add_transposed_a(dk_r, kw::transposed(shared.ds_s[me][t - 1]), shared.q_s[t - 1]);
        kw::wgmma_wait<0>(dq_r);
        kw::wgmma_wait<0>(dk_r);
        kw::arrive(shared.q_free[t - 1]);
        kw::arrive(shared.ds_free[t - 1]);
        kw::wait_free(shared.dq_free[t - 1]);
        kw::store(dq_r, shared.dq_s[me][t - 1]);
        kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
        kw::order_arrive(1 - me);                            // nobody reads K and V any more
        kw::order_wait(me);
        kw::store(dk_r, shared.k_s[me][u]);
        kw::store(dv_r, shared.v_s[me][u]);
        kw::fence_async();
        kw::arrive(shared.dq_full[t - 1]);
        kw::arrive(shared.dk_full[u]);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_narrow_round(const __grid_constant__ Args args) {
    const kw::Thread w = kw::thread_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    kw::round_sums(args.sum_dq, args.scale, w, args.dq);
}
