// Softmax attention backward for Ampere-class GPUs (sm_80 and later): dq, dk and dv from q, k, v, o, do and the
// log-sums of the forward kernel; bf16 or f16, head dimension 128, any lengths and strides.
//
// A CTA has BN keys of one key head and visits blocks of BM queries, of all heads that share it, while the next block's
// are copied. Scores and their gradients are computed transposed, keys by queries: the exponentials and their gradients
// are then left operands in registers of the products for dV and dK, and only dS goes through shared memory, for dQ.
// What is known of a query, minus its log-sum and minus its delta, is one value a column there; the products of S and dP
// begin with it in their accumulators, so that an exponential is one multiplication away, and dS too.
//
// Each warpgroup has 64 keys, and part of the columns of dQ, for which it needs the others' dS. So dQ is one block late:
// the threads meet once a block, where the next block has come and the last one's dS is there. dQ is added to a scratch
// of floats from registers. The first warpgroup does so before its own products, the others behind them: while some wait for
// additions, others multiply.
//
// Three kernels: the rows before (deltas, log-sums, zeros for dQ), the main one, and dQ in its own type.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 128;                                           // columns of all tensors
constexpr int BM = 64, BN = 128;                                 // queries at a time, keys of a CTA
constexpr int WARPGROUPS = BN / 64, DQ = D / WARPGROUPS;         // warpgroups, columns of dQ that one has
constexpr int RESIDENT = 1;                                      // CTAs that share a multiprocessor

struct Args {
    kw::Tensor<const element, 'B', 'H', 'M', 'D'> q;
    kw::Tensor<const element, 'B', 'G', 'N', 'D'> k, v;
    kw::Tensor<const float, 'B', 'H', 'M', 'D'> o;               // the forward kernel's output before it is rounded
    kw::Tensor<const element, 'B', 'H', 'M', 'D'> do_rows, d_o;  // the output's gradient, row by row and tile by tile
    kw::Tensor<const float, 'B', 'H', 'M'> lse;                  // the forward kernel's
    kw::Tensor<element, 'B', 'G', 'N', 'D'> dk, dv;
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
    kw::SharedTile<element, 64, D> k_s[WARPGROUPS], v_s[WARPGROUPS]; // K and V, and then dK and dV
    kw::Ring<kw::SharedTile<element, BM, D>, 2> q_s, do_s;
    kw::Ring<kw::SharedTile<element, BM, 64>, 2> ds_s[WARPGROUPS];
    kw::RowRing<kw::real, BM, 2> offset_s, delta_s;
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

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_rows(const __grid_constant__ Args args) {
    const kw::Warp w = kw::warp_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    for (auto [b, h, r] : kw::each_row(args.sum_dq, w)) {
        const kw::real dot = kw::dot_row<D>(args.o, args.do_rows, {b, h, r});
        const kw::real l = r < args.M ? args.lse(b, h, r) : kw::minus_infinity;
        kw::write_value(args.offset, {b, h, r}, l == kw::minus_infinity ? l : -l / args.scale);
        kw::write_value(args.delta, {b, h, r}, -dot);
        kw::write_row<D>(args.sum_dq, {b, h, r}, [&](int j) { return 0.0f; });
    }
}

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, RESIDENT) attention_bwd(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const Queries queries = query_blocks(args, c);
    const int group = args.H / args.G;
    const int last = group * queries.count - 1;                  // blocks are visited from there down
    const int j0 = c.n * BN + me * 64;
    kw::Accumulator<kw::real, 64, D> dk_r, dv_r;

    auto load = [&](kw::index x) {                               // a block of queries of a head
        const int m = queries.first + x % queries.count;
        const int h = c.g * group + x / queries.count;
        kw::cp_async<WARPGROUPS>(args.q, {c.b, h, m * BM}, shared.q_s[x]);
        kw::cp_async<WARPGROUPS>(args.d_o, {c.b, h, m * BM}, shared.do_s[x]);
        kw::cp_async_rows<WARPGROUPS>(args.offset, {c.b, h, m * BM}, shared.offset_s[x]);
        kw::cp_async_rows<WARPGROUPS>(args.delta, {c.b, h, m * BM}, shared.delta_s[x]);
    };
    auto add_dq = [&](kw::index x) {                             // of a block whose dS is there
        const int m = queries.first + x % queries.count;
        const int h = c.g * group + x / queries.count;
        kw::Accumulator<kw::real, 64, DQ> dq_r;
        kw::fill(dq_r, 0.0f);
        for (int r = 0; r < WARPGROUPS; ++r) kw::mma_add_columns(dq_r, shared.ds_s[r][x], shared.k_s[r], me * DQ);
        kw::add_tile(dq_r, args.sum_dq, {c.b, h, m * BM, me * DQ});
    };
    auto advance = [&](kw::index x, bool first) {                // its dQ is left to the next
        const int m = queries.first + x % queries.count;
        kw::Accumulator<kw::real, 64, BM> s, dp;
        kw::Operand<element, 64, BM> p, ds;
        kw::cp_async_wait<0>();
        kw::sync_block();                                        // this block and the last one's dS have come; the last one has been read
        if (x > 0) load(x - 1);
        kw::cp_async_commit();
        if (!first && me == 0) add_dq(x + 1);
        kw::fill_columns(s, shared.offset_s[x]);
        kw::mma_add_transposed(s, shared.k_s[me], shared.q_s[x]);
        kw::fill_columns(dp, shared.delta_s[x]);
        kw::mma_add_transposed(dp, shared.v_s[me], shared.do_s[x]);
        if ((c.n + 1) * BN > args.N) {
            kw::map_at(s, kw::Origin{j0, m * BM}, [&](kw::real x, kw::Place i, kw::Place j) { return i < args.N ? x : kw::minus_infinity; });
        }
        kw::map(s, [&](kw::real x) { return kw::exp2(x * args.scale_log2); });
        kw::to_operand(p, s);
        kw::map(dp, [&](kw::real x, kw::real y) { return x * y; }, s);
        kw::to_operand(ds, dp);
        kw::store_transposed(dp, shared.ds_s[me][x]);
        kw::mma_add(dv_r, p, shared.do_s[x]);
        kw::mma_add(dk_r, ds, shared.q_s[x]);
        if (!first && me != 0) add_dq(x + 1);
    };

    for (int r = 0; r < WARPGROUPS; ++r) kw::cp_async<WARPGROUPS>(args.k, {c.b, c.g, c.n * BN + r * 64}, shared.k_s[r]);
    for (int r = 0; r < WARPGROUPS; ++r) kw::cp_async<WARPGROUPS>(args.v, {c.b, c.g, c.n * BN + r * 64}, shared.v_s[r]);
    load(last);
    kw::cp_async_commit();
    kw::fill(dk_r, 0.0f);
    kw::fill(dv_r, 0.0f);
    advance(last, true);
    for (int x = last - 1; x >= 0; --x) advance(x, false);
    kw::sync_block();
    add_dq(0);

    kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
    kw::sync_block();                                            // nobody reads K and V any more
    kw::store(dk_r, shared.k_s[me]);
    kw::store(dv_r, shared.v_s[me]);
    kw::sync_warpgroup(me);
    kw::copy_out<1>(shared.k_s[me], args.dk, {c.b, c.g, j0});
    kw::copy_out<1>(shared.v_s[me], args.dv, {c.b, c.g, j0});
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_round(const __grid_constant__ Args args) {
    const kw::Thread w = kw::thread_of(kw::ceil_div(args.P, 64) * args.H * args.B);
    kw::round_sums(args.sum_dq, args.scale, w, args.dq);
}
