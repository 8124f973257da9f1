// trial: 192/128, roles
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 256, DV = 256, PART = 128, Q_STAGES = 2, AREG = 248, BREG = 232, CTAS = 2;                                 // columns of q and k, and of v
constexpr int BM = 64, BN = 128;                                  // queries at a time, keys of a CTA
#ifndef STAGES_
#define STAGES_ 2
#define DQS 1
#endif
constexpr int STAGES = 2, DS_SLOTS = 1, DQ_SLOTS = DQS;
constexpr int LOAD = 0, MATH = 1, WARPGROUPS = 2;                // the loader, the first consumer, how many
constexpr int KEYS = 0;
constexpr int LOADER_REGISTERS = 24, WARPGROUP_REGISTERS = 240;  // of each thread

__device__ __forceinline__ void send(unsigned src, unsigned bytes, unsigned bar, int to) {
    const unsigned dst = kw::ptx::shared_address_in(src, to), b = kw::ptx::shared_address_in(bar, to);
    kw::ptx::mbarrier_arrive_expect_there(b, bytes);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst), "r"(src), "r"(bytes), "r"(b) : "memory");
}
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
    kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'> offset, delta;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k_of;
};
template <class Map, class Tile, class Bar> __device__ __forceinline__ void load_part(const Map& from, kw::Coords at, Tile& to, Bar full, int panel) {
    kw::ptx::mbarrier_arrive_expect(full.address, Tile::bytes);
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to.address()), "l"(&from.map), "r"(0), "r"(at.row), "r"(panel), "r"(at.head), "r"(at.batch), "r"(full.address) : "memory");
}
#include <cstddef>
#ifdef OFFS
template <int N> struct Show; Show<offsetof(Args, k_of)> show; Show<sizeof(Args)> size;
#endif

struct Shared {
    kw::Ring<kw::SharedTile<element, 64, D>, 1> k_s;
    kw::Ring<kw::SharedTile<element, 64, PART>, 1> k_of_s;
    kw::Ring<kw::SharedTile<element, 64, DV>, 1> v_s;        // K and V, and then dK and dV
    kw::Ring<kw::SharedTile<element, BM, D>, Q_STAGES> q_s;
    kw::Ring<kw::SharedTile<element, BM, DV>, STAGES> do_s;
    kw::Ring<kw::SharedTile<element, BM, 64>, DS_SLOTS> ds_s[CTAS];
    kw::RowRing<kw::real, BM, Q_STAGES> offset_s;
    kw::RowRing<kw::real, BM, STAGES> delta_s;
    kw::Barriers<1, 2> k_full;
    kw::Barriers<1, 1> v_full, k_free;                   // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<1, 4 * WARPGROUPS> dk_full;
    kw::Barriers<Q_STAGES, 2> q_full;
    kw::Barriers<STAGES, 2> do_full;                     // a tile, and a value for each query
    kw::Barriers<Q_STAGES, 4 * WARPGROUPS> q_free;
    kw::Barriers<STAGES, 4> do_free;
    kw::Barriers<DS_SLOTS, 4> ds_full;
    kw::Barriers<DS_SLOTS, 4, CTAS> ds_free;
    kw::Barriers<DS_SLOTS, 1> of_full;
};

struct Block { kw::index n, g, b; };                             // the keys of a CTA
struct Queries { kw::index first, count; };                      // so many blocks of a head's queries see some of them

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int keys = kw::ceil_div(args.N, BN);
    return {w % keys, w / keys % args.G, w / keys / args.G};
}

__device__ __forceinline__ Queries query_blocks(const Args& args, Block c) {
#ifdef CAUSAL
    const int first = c.n * BN / BM;
    return {first, kw::max(kw::ceil_div(args.M, BM) - first, 0)};
#else
    return {0, kw::ceil_div(args.M, BM)};
#endif
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_wide_rows(const __grid_constant__ Args args) {
    const kw::Warp w = kw::warp_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    for (auto [b, h, r] : kw::each_row(args.sum_dq, w)) {
        const kw::real dot = kw::dot_row<DV>(args.o, args.do_rows, {b, h, r});
        const kw::real l = r < args.M ? args.lse(b, h, r) : kw::minus_infinity;
        kw::write_value(args.offset, {b, h, r}, l == kw::minus_infinity ? l : -l / args.scale);
        kw::write_value(args.delta, {b, h, r}, -dot);
        kw::write_row<D>(args.sum_dq, {b, h, r}, [&](int j) { return 0.0f; });
    }
}

extern "C" __global__ void __launch_bounds__(128 * (MATH + WARPGROUPS), 1) attention_bwd_wide(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    kw::init(shared.k_full, shared.v_full, shared.dk_full, shared.k_free, shared.q_full, shared.do_full, shared.q_free, shared.do_free, shared.ds_full, shared.of_full, shared.ds_free);

    const int cta = kw::cluster<CTAS>();
    kw::sync_cluster();
    const Block c = block_of(args, int(blockIdx.x) / CTAS);
    const Queries queries = query_blocks(args, c);
    const int group = args.H / args.G;

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {                                  // K, V, and for each block of queries Q and dO
            int t = 0, u = 0;
            kw::wait_free(shared.k_free[u]);
            kw::tma_load(args.k, {c.b, c.g, c.n * BN + cta * 64}, shared.k_s[u], shared.k_full[u], kw::evict_first);
            load_part(args.k_of, {c.b, c.g, c.n * BN + (1 - cta) * 64}, shared.k_of_s[u], shared.k_full[u], cta * 2);
            kw::tma_load(args.v, {c.b, c.g, c.n * BN + cta * 64}, shared.v_s[u], shared.v_full[u], kw::evict_first);
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
        if (kw::is_thread(1)) {                                  // dS to the other
            int t = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                kw::wait(shared.ds_full[t]);
                send(shared.ds_s[cta][t].address(), 64 * 128, shared.of_full[t].address, 1 - cta);
            }
        }
        if (kw::is_thread(2)) {                                  // dK and dV
            int u = 0;
            kw::wait(shared.dk_full[u]);
            kw::tma_store(shared.k_s[u], args.dk, {c.b, c.g, c.n * BN + cta * 64});
            kw::tma_store(shared.v_s[u], args.dv, {c.b, c.g, c.n * BN + cta * 64});
            kw::tma_store_wait_read();
            kw::arrive(shared.k_free[u]);
            kw::tma_store_wait();
        }
    } else {
        const int me = warpgroup - MATH;
        int t = 0, u = 0;
        const int j0 = c.n * BN + cta * 64;

        if (me == 0) {                                              // scores, their gradients, dV
            kw::registers_up<AREG>();
            kw::Accumulator<kw::real, 64, DV> dv_r;
            auto scores = [&](kw::index x, bool first) {
            const int m = queries.first + x % queries.count;
            kw::Accumulator<kw::real, 64, BM> s, dp;
            kw::Operand<element, 64, BM> p;
            kw::wait(shared.q_full[t]);
            kw::fill_columns(s, shared.offset_s[t]);
            kw::wgmma_add_transposed(s, shared.k_s[u], kw::transposed(shared.q_s[t]));
            if (!first) { kw::wgmma_wait<1>(dv_r); kw::arrive(shared.do_free[t - 1]); }
            kw::wait(shared.do_full[t]);
            kw::fill_columns(dp, shared.delta_s[t]);
            kw::wgmma_add_transposed(dp, shared.v_s[u], kw::transposed(shared.do_s[t]));
            kw::wgmma_wait<1>(s);
            kw::arrive(shared.q_free[t]);
#ifdef CAUSAL
            if ((c.n + 1) * BN > args.N || m * BM < (c.n + 1) * BN) {
                kw::map_at(s, kw::Origin{j0, m * BM}, [&](kw::real x, kw::Place i, kw::Place j) { return (i <= j) & (i < args.N) ? x : kw::minus_infinity; });
            }
#else
            if ((c.n + 1) * BN > args.N) {
                kw::map_at(s, kw::Origin{j0, m * BM}, [&](kw::real x, kw::Place i, kw::Place j) { return i < args.N ? x : kw::minus_infinity; });
            }
#endif
            kw::map(s, [&](kw::real x) { return kw::exp2(x * args.scale_log2); });
            kw::to_operand(p, s);
            kw::wgmma_add(dv_r, p, shared.do_s[t]);
            kw::wgmma_wait<1>(dp);
            kw::map(dp, [&](kw::real x, kw::real y) { return x * y; }, s);
            kw::wait_free(shared.ds_free[t]);
            kw::store_transposed(dp, shared.ds_s[cta][t]);
            kw::fence_async();
            kw::arrive(shared.ds_full[t]);
            if (first) kw::wgmma_wait<0>(dv_r);
            };
            kw::fill(dv_r, 0.0f);
            kw::wait(shared.k_full[u]);
            kw::wait(shared.v_full[u]);
            kw::wgmma_wait_group<0>();
            if (queries.count > 0) {
            scores(group * queries.count - 1, true);
            ++t;
#pragma unroll 1
            for (int x = group * queries.count - 2; x >= 0; --x, ++t) scores(x, false);
            kw::wgmma_wait<0>(dv_r);
            kw::arrive(shared.do_free[t - 1]);
            }
            kw::order_arrive(1);                                // K is read no more
            kw::store(dv_r, shared.v_s[u]);
            kw::fence_async();
            kw::arrive(shared.dk_full[u]);
        } else {                                                // dK and dQ
            kw::registers_up<BREG>();
            kw::Accumulator<kw::real, 64, D> dk_r;
            kw::fill(dk_r, 0.0f);
            kw::wait(shared.k_full[u]);
            kw::wgmma_wait_group<0>();
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                const int h = c.g * group + x / queries.count;
                const int m = queries.first + x % queries.count;
                kw::Accumulator<kw::real, 64, 64> d0, d1;
                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::fill(d0, 0.0f);
                kw::wgmma_add_columns(d0, shared.ds_s[cta][t], shared.k_s[u], cta * PART);
                kw::fill(d1, 0.0f);
                kw::wgmma_add_columns(d1, shared.ds_s[cta][t], shared.k_s[u], cta * PART + 64);
                kw::wait(shared.of_full[t]);
                kw::wgmma_add_columns(d0, shared.ds_s[1 - cta][t], shared.k_of_s[u], 0);
                kw::wgmma_add_columns(d1, shared.ds_s[1 - cta][t], shared.k_of_s[u], 64);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[cta][t]), shared.q_s[t]);
                kw::wgmma_wait<1>(d0); kw::wgmma_wait<1>(d1);
                kw::add_tile(d0, args.sum_dq, {c.b, h, m * BM, cta * PART});
                kw::wgmma_wait<0>(dk_r);
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
                kw::add_tile(d1, args.sum_dq, {c.b, h, m * BM, cta * PART + 64});
            }
            kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
            kw::order_wait(1);                                  // the other reads K no more
            kw::store(dk_r, shared.k_s[u]);
            kw::fence_async();
            kw::arrive(shared.dk_full[u]);
        }
    }
    kw::sync_cluster();
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_wide_round(const __grid_constant__ Args args) {
    const kw::Thread w = kw::thread_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    kw::round_sums(args.sum_dq, args.scale, w, args.dq);
}
