// Softmax attention backward for Hopper where rows of q and k are wider than those of v: dq, dk and dv from q, k, v,
// o, do and the log-sums of the forward kernel; bf16 or f16, head dimensions 192 and 128 (or 96 both), any lengths and strides.
//
// attention_bwd.cu for rows of which a warpgroup's registers do not hold both dK and dV. A cluster of two CTAs has BN
// keys of one key head, each CTA half of them, and two consumers, of which each has a part of the work of its own: the first
// computes scores, their gradients, and dV, whose left operand, weights, it has in registers; the second dK and dQ,
// both from the gradients of the scores as the first leaves them in shared memory. The tile is queries by keys:
// dQ reads it as it is, dK transposed. No product is computed twice.
//
// The copy engine adds dQ to a scratch of floats, which is what would bound this kernel (an H200's L2 cache adds about
// 3 TB a second). So each CTA sends the gradients of its scores to the other, and adds half of the columns of dQ for the keys of
// both: a third of them are a panel of K of its own, a sixth half of the panel that they share. What is added leaves
// the registers while the next dK runs.
//
// Three kernels: the rows before (deltas, log-sums, zeros for dQ), the main one, and dQ in its own type.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 192, V = 128;                                  // columns of q and k, of v and o
constexpr int BM = 64, BN = 128, CTAS = 2;                       // queries at a time, keys of a cluster of CTAS
constexpr int Q_STAGES = 3, STAGES = 2, DS_SLOTS = 2;            // tiles of Q, of dO, and of dS of each CTA in shared memory
constexpr int LOAD = 0, MATH = 1, WARPGROUPS = 2;                // the loader, the first consumer, how many
constexpr int LOADER_REGISTERS = 40, WARPGROUP_REGISTERS = 232;  // of each thread

struct Args {
    kw::TensorMap<const element, 'B', 'H', 'M', 'D'> q;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k;
    kw::TensorMap<const element, 'B', 'G', 'N', 'V'> v;
    kw::Tensor<const float, 'B', 'H', 'M', 'V'> o;               // the forward kernel's output before it is rounded
    kw::Tensor<const element, 'B', 'H', 'M', 'V'> do_rows;       // the output's gradient
    kw::TensorMap<const element, 'B', 'H', 'M', 'V'> d_o;        // the same gradient, tile by tile
    kw::Tensor<const float, 'B', 'H', 'M'> lse;                  // the forward kernel's
    kw::TensorMap<element, 'B', 'G', 'N', 'D'> dk;
    kw::TensorMap<element, 'B', 'G', 'N', 'V'> dv;
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
    kw::Ring<kw::SharedTile<element, 64, D>, 1> k_s;             // K, and then dK
    kw::Ring<kw::SharedTile<element, 64, V>, 1> v_s;             // V, and then dV
    kw::Ring<kw::SharedTile<element, 64, D>, 1> other_k_s;       // K of the other CTA
    kw::Ring<kw::SharedTile<element, BM, D>, Q_STAGES> q_s;
    kw::Ring<kw::SharedTile<element, BM, V>, STAGES> do_s;
    kw::Ring<kw::SharedTile<element, BM, 64>, DS_SLOTS> ds_s, other_ds_s;
    kw::Ring<kw::SharedTile<float, BM, D / 3>, 1> dq_s;
    kw::Ring<kw::SharedTile<float, BM, D / 6>, 1> more_dq_s;
    kw::RowRing<kw::real, BM, Q_STAGES> offset_s;
    kw::RowRing<kw::real, BM, STAGES> delta_s;
    kw::Barriers<1, 1> k_full, v_full, other_k_full, k_free, v_free;  // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<1, 4> dk_full, dv_full, other_k_free;
    kw::Barriers<Q_STAGES, 2> q_full;                            // a tile, and a value for each query
    kw::Barriers<STAGES, 2> do_full;
    kw::Barriers<Q_STAGES, 4 * WARPGROUPS> q_free;
    kw::Barriers<STAGES, 4> do_free;
    kw::Barriers<DS_SLOTS, 4> ds_full;
    kw::Barriers<DS_SLOTS, 1> other_ds_full;
    kw::Barriers<DS_SLOTS, 4, CTAS> ds_free;                     // of both tiles, in both CTAs
    kw::Barriers<1, 4> dq_full;
    kw::Barriers<1, 1> dq_free;
};

struct Block { kw::index n, g, b; };                             // the keys of a cluster
struct Queries { kw::index first, count; };                      // so many blocks of a head's queries see some of them

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int keys = kw::ceil_div(args.N, BN);
    return {w % keys, w / keys % args.G, w / keys / args.G};
}

__device__ __forceinline__ Queries query_blocks(const Args& args, Block c) {
    return {0, kw::ceil_div(args.M, BM)};
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_mla_rows(const __grid_constant__ Args args) {
    const kw::Warp w = kw::warp_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    for (auto [b, h, r] : kw::each_row(args.sum_dq, w)) {
        const kw::real dot = kw::dot_row<V>(args.o, args.do_rows, {b, h, r});
        const kw::real l = r < args.M ? args.lse(b, h, r) : kw::minus_infinity;
        kw::write_value(args.offset, {b, h, r}, l == kw::minus_infinity ? l : -l / args.scale);
        kw::write_value(args.delta, {b, h, r}, -dot);
        kw::write_row<D>(args.sum_dq, {b, h, r}, [&](int j) { return 0.0f; });
    }
}

extern "C" __global__ void __launch_bounds__(128 * (MATH + WARPGROUPS), 1) attention_bwd_mla(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    kw::init(shared.k_full, shared.v_full, shared.other_k_full, shared.k_free, shared.v_free, shared.other_k_free, shared.dk_full, shared.dv_full, shared.q_full, shared.do_full, shared.q_free, shared.do_free, shared.ds_full, shared.other_ds_full, shared.ds_free, shared.dq_full, shared.dq_free);
    const int cta = kw::cluster<CTAS>();
    kw::sync_cluster();

    const Block c = block_of(args, kw::cluster_index(args.blocks));
    const Queries queries = query_blocks(args, c);
    const int group = args.H / args.G;

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // K, V, and for each block of queries Q and dO
            int t = 0, u = 0;
            kw::wait_free(shared.k_free[u]);
            kw::tma_load(args.k, {c.b, c.g, c.n * BN + cta * 64}, shared.k_s[u], shared.k_full[u], kw::evict_first);
            kw::wait_free(shared.v_free[u]);
            kw::tma_load(args.v, {c.b, c.g, c.n * BN + cta * 64}, shared.v_s[u], shared.v_full[u], kw::evict_first);
            kw::wait_free(shared.other_k_free[u]);
            kw::tma_load(args.k, {c.b, c.g, c.n * BN + (1 - cta) * 64}, shared.other_k_s[u], shared.other_k_full[u], kw::evict_first);
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
        if (kw::is_thread(1)) {                                  // gradients of scores to the other CTA; dK and dV
            int t = 0, u = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                kw::wait(shared.ds_full[t]);
                kw::tma_send(shared.ds_s[t], shared.other_ds_s[t], shared.other_ds_full[t]);
            }
            kw::wait(shared.dk_full[u]);
            kw::tma_store(shared.k_s[u], args.dk, {c.b, c.g, c.n * BN + cta * 64});
            kw::wait(shared.dv_full[u]);
            kw::tma_store(shared.v_s[u], args.dv, {c.b, c.g, c.n * BN + cta * 64});
            kw::tma_store_wait_read();
            kw::arrive(shared.k_free[u]);
            kw::arrive(shared.v_free[u]);
            kw::tma_store_wait();
        }
        if (kw::is_thread(2)) {                                  // dQ
            int t = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                const int h = c.g * group + x / queries.count;
                const int m = queries.first + x % queries.count;
                kw::wait(shared.dq_full[t]);
                kw::tma_add(shared.dq_s[t], args.sum_dq, {c.b, h, m * BM, cta * (D / 3)});
                kw::tma_add(shared.more_dq_s[t], args.sum_dq, {c.b, h, m * BM, D / 3 * 2 + cta * (D / 6)});
                kw::tma_store_wait_read();
                kw::arrive(shared.dq_free[t]);
            }
            kw::tma_store_wait();
        }
    } else {
        kw::registers_up<WARPGROUP_REGISTERS>();
        const int me = warpgroup - MATH;
        if (me == 0) {                                           // scores, their gradients, and dV
            kw::Accumulator<kw::real, 64, V> dv_r;
            int t = 0, u = 0;

            const int j0 = c.n * BN + cta * 64;

            auto advance = [&](kw::index x, bool first) {        // t: a block of queries of a head
                const int m = queries.first + x % queries.count;
                kw::Accumulator<kw::real, 64, BM> s, dp;
                kw::Operand<element, 64, BM> p;
                kw::wait(shared.q_full[t]);
                kw::fill_columns(s, shared.offset_s[t]);
                kw::wgmma_add_transposed(s, shared.k_s[u], kw::transposed(shared.q_s[t]));
                if (!first) {
                    kw::wgmma_wait<1>(dv_r);
                    kw::arrive(shared.do_free[t - 1]);
                }
                kw::wait(shared.do_full[t]);
                kw::fill_columns(dp, shared.delta_s[t]);
                kw::wgmma_add_transposed(dp, shared.v_s[u], kw::transposed(shared.do_s[t]));
                kw::wgmma_wait<1>(s);
                kw::arrive(shared.q_free[t]);
                if ((c.n + 1) * BN > args.N) {
                    kw::map_at(s, kw::Origin{j0, m * BM}, [&](kw::real x, kw::Place i, kw::Place j) { return i < args.N ? x : kw::minus_infinity; });
                }
                kw::map(s, [&](kw::real x) { return kw::exp2(x * args.scale_log2); });
                kw::to_operand(p, s);
                kw::wgmma_add(dv_r, p, shared.do_s[t]);
                kw::wgmma_wait<1>(dp);
                kw::map(dp, [&](kw::real x, kw::real y) { return x * y; }, s);
                kw::wait_free(shared.ds_free[t]);
                kw::store_transposed(dp, shared.ds_s[t]);
                kw::fence_async();
                kw::arrive(shared.ds_full[t]);
                if (first) kw::wgmma_wait<0>(dv_r);
            };

            kw::fill(dv_r, 0.0f);
            kw::wait(shared.k_full[u]);
            kw::wait(shared.v_full[u]);
            kw::wgmma_wait_group<0>();                           // nothing is in flight; ptxas does not see it, and would wait
            advance(group * queries.count - 1, true);
            ++t;
#pragma unroll 1
            for (int x = group * queries.count - 2; x >= 0; --x, ++t) advance(x, false);
            kw::wgmma_wait<0>(dv_r);
            kw::arrive(shared.do_free[t - 1]);
            kw::order_arrive(1);                                 // this one reads K no more
            kw::sync_warpgroup(me);                              // and no warp V
            kw::store(dv_r, shared.v_s[u]);
            kw::fence_async();
            kw::arrive(shared.dv_full[u]);
        }
        if (me > 0) {                                            // dK and dQ
            kw::Accumulator<kw::real, 64, D> dk_r;
            kw::Accumulator<kw::real, 64, D / 3> dq_r;
            kw::Accumulator<kw::real, 64, D / 6> more_dq_r;
            int t = 0, u = 0;

            auto advance_rows = [&](bool first) {
                kw::Operand<element, 64, 64> ds_r, other_ds_r;
                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add_transposed_a(dk_r, kw::transposed(shared.ds_s[t]), shared.q_s[t]);
                if (!first) {
                    kw::wait_free(shared.dq_free[t - 1]);
                    kw::store(dq_r, shared.dq_s[t - 1]);
                    kw::store(more_dq_r, shared.more_dq_s[t - 1]);
                    kw::fence_async();
                    kw::arrive(shared.dq_full[t - 1]);
                }
                kw::fill(dq_r, 0.0f);
                kw::fill(more_dq_r, 0.0f);
                kw::load(shared.ds_s[t], ds_r);
                kw::wgmma_add_columns(dq_r, ds_r, shared.k_s[u], cta * (D / 3));
                kw::wgmma_add_columns(more_dq_r, ds_r, shared.k_s[u], D / 3 * 2 + cta * (D / 6));
                kw::wait(shared.other_ds_full[t]);
                kw::load(shared.other_ds_s[t], other_ds_r);
                kw::wgmma_add_columns(dq_r, other_ds_r, shared.other_k_s[u], cta * (D / 3));
                kw::wgmma_add_columns(more_dq_r, other_ds_r, shared.other_k_s[u], D / 3 * 2 + cta * (D / 6));
                kw::wgmma_wait<0>(dk_r);
                kw::wgmma_wait<0>(dq_r);
                kw::wgmma_wait<0>(more_dq_r);
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
            };

            kw::fill(dk_r, 0.0f);
            kw::wait(shared.k_full[u]);
            kw::wait(shared.other_k_full[u]);
            kw::wgmma_wait_group<0>();
            advance_rows(true);
            ++t;
#pragma unroll 1
            for (int x = group * queries.count - 2; x >= 0; --x, ++t) advance_rows(false);
            kw::wait_free(shared.dq_free[t - 1]);
            kw::store(dq_r, shared.dq_s[t - 1]);
            kw::store(more_dq_r, shared.more_dq_s[t - 1]);
            kw::fence_async();
            kw::arrive(shared.dq_full[t - 1]);
            kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
            kw::order_wait(1);
            kw::store(dk_r, shared.k_s[u]);
            kw::fence_async();
            kw::arrive(shared.dk_full[u]);
            kw::arrive(shared.other_k_free[u]);
        }
    }
    kw::sync_cluster();
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_mla_round(const __grid_constant__ Args args) {
    const kw::Thread w = kw::thread_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    kw::round_sums(args.sum_dq, args.scale, w, args.dq);
}
