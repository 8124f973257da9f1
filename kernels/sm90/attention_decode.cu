// Softmax attention forward for Hopper where there are few queries and many keys, as in decoding: bf16 or f16,
// any lengths and strides, head dimensions by constants.
//
// Such attention is bound by memory, and a tile of query rows for a CTA leaves most of a GPU idle. So the
// keys of each tile are split over as many CTAs as fill it, by a number that follows from the sizes alone. A
// split visits every splits-th of the key blocks that its tile has: whatever decides how many these are, and if
// only the device knows it, no split has more than one more than another, and a split may have none. What it
// finds goes to a scratch, its output divided by its own sum, and the log of that; a pass behind the kernel
// combines what the splits of a tile have found.
//
// One thread loads Q and K, and one V, far ahead of the one consumer, whose 64 rows need less time than the memory
// does: a product is waited for where it stands, and no block of keys is looked at before the one before it is
// done. Two threads, since a copy may be many: from a cache in pages one for each page. Blocks of the output are
// dealt out in turn, and the next one's loads run under this one's end.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int D = 128, V = 128;                                  // columns of Q and K, of V and O
constexpr int BM = 64, BN = 64;                                  // query rows of a tile, keys at a time
constexpr int STAGES = 4;                                        // tiles of K and V each in shared memory
constexpr int FILL = 132;                                        // CTAs that fill the GPU
constexpr int LOAD = 0, MATH = 1;                                // the loader, the consumer
constexpr int LOADER_REGISTERS = 56, CONSUMER_REGISTERS = 240;   // of each thread

struct Args {
    kw::TensorMap<const element, 'B', 'H', 'M', 'D'> q;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k;
    kw::TensorMap<const element, 'B', 'G', 'N', 'V'> v;
    kw::Tensor<element, 'B', 'H', 'M', 'V'> o;
    kw::Tensor<float, 'B', 'H', 'M'> lse;                        // log of the sum of the exponentials; -inf for a row without keys
    kw::size B, H, G, M, N;                                      // batch, query heads, key heads, queries, keys
    kw::size tiles = kw::ceil_div(M, BM) * H * B;                // of the output, BM rows each
    kw::size splits = kw::max(1, kw::min(kw::ceil_div(N, BN), FILL / tiles)); // of the keys of each
    kw::size blocks = tiles * splits;
    kw::size E = H * splits;                                     // parts of a batch entry's rows
    float scale = kw::rsqrt(D) * kw::log2e;                      // of the scores, which are then powers of two
    float slack = 8.0f / scale;                                  // how far a score may exceed the reference of its row: a factor of 2^8
    kw::Tensor<kw::scratch<float>, 'B', 'E', 'M', 'V'> part_o;   // of each split, those of a head one after the other
    kw::Tensor<kw::scratch<float>, 'B', 'E', 'M'> part_lse;      // the logs of their sums, of base 2
};

struct Shared {
    kw::Ring<kw::SharedTile<element, 64, D>, 1> q_s;
    kw::Ring<kw::SharedTile<element, BN, D>, STAGES> k_s;
    kw::Ring<kw::SharedTile<element, BN, V>, STAGES> v_s;
    kw::Barriers<1, 1> q_full;                                   // slots, arrivals a use: one a copy, or one a warp
    kw::Barriers<1, 4> q_free;
    kw::Barriers<STAGES, 1> k_full, v_full;
    kw::Barriers<STAGES, 4> free;                                // K and V of a key block
};

struct Block { kw::index s, m, h, b; };                          // a split of one tile of the output
struct Keys { kw::index count, full; };                          // for some query rows: key blocks count-1 ... 0 are visited; full-1 ... 0 need no mask

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    const int rows = kw::ceil_div(args.M, BM), u = w / args.splits;
    return {w % args.splits, u % rows, u / rows % args.H, u / rows / args.H};
}

__device__ __forceinline__ Keys key_blocks(const Args& args, Block c, kw::index i0, kw::index rows) {
    return {kw::ceil_div(args.N, BN), args.N / BN};
}

// Of what a tile visits, what this split does: blocks s, s + splits, ..., so that it has as many below n.
__device__ __forceinline__ Keys part_of(const Args& args, Block c, Keys all) {
    return {kw::ceil_div(all.count - c.s, args.splits), kw::ceil_div(all.full - c.s, args.splits)};
}

extern "C" __global__ void __launch_bounds__(256, 1) attention_decode(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int warpgroup = kw::warpgroup_index();
    kw::init(shared.q_full, shared.q_free, shared.k_full, shared.v_full, shared.free);

    if (warpgroup == LOAD) {
        kw::registers_down<LOADER_REGISTERS>();
        if (kw::is_thread(0)) {
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM), part = part_of(args, c, keys);
                const int g = c.h / (args.H / args.G);
                kw::wait_free(shared.q_free[u]);
                kw::tma_load(args.q, {c.b, c.h, c.m * BM}, shared.q_s[u], shared.q_full[u], kw::evict_first);
#pragma unroll 1
                for (int x = part.count - 1; x >= 0; --x, ++t) {
                    kw::wait_free(shared.free[t]);
                    kw::tma_load(args.k, {c.b, g, (x * args.splits + c.s) * BN}, shared.k_s[t], shared.k_full[t], kw::evict_first);
                }
            }
        }
        if (kw::is_thread(1)) {
            int t = 0;
            for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
                const Block c = block_of(args, w);
                const Keys keys = key_blocks(args, c, c.m * BM, BM), part = part_of(args, c, keys);
                const int g = c.h / (args.H / args.G);
#pragma unroll 1
                for (int x = part.count - 1; x >= 0; --x, ++t) {
                    kw::wait_free(shared.free[t]);
                    kw::tma_load(args.v, {c.b, g, (x * args.splits + c.s) * BN}, shared.v_s[t], shared.v_full[t], kw::evict_first);
                }
            }
        }
    } else {
        kw::registers_up<CONSUMER_REGISTERS>();
        const int me = warpgroup - MATH;
        kw::Operand<element, 64, D> q_r;
        kw::Accumulator<kw::real, 64, BN> s;
        kw::Operand<element, 64, BN> p;
        kw::Accumulator<kw::real, 64, V> acc;
        kw::RowVector<kw::real, 64> m, factor;                   // the reference of the exponentials, and what to multiply earlier terms by
        kw::LaneSum<kw::real, 64> l;                             // the sum of the exponentials
        bool raised;
        int t = 0;

        for (auto [u, w] : kw::static_tiles<1>(args.blocks)) {
            const Block c = block_of(args, w);
            const int i0 = c.m * BM + me * 64;
            const Keys keys = key_blocks(args, c, c.m * BM, BM), part = part_of(args, c, keys);

            auto softmax = [&](int n, bool partial) {            // s: scores -> exponentials
                if (partial) {
                    kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, kw::Place i, kw::Place j) { return j < args.N ? x : kw::minus_infinity; });
                }
                raised = kw::online_max(m, factor, s, args.slack, args.scale);
                kw::RowVector<kw::real, 64> offset = m;
                kw::map_rows(offset, [&](kw::real x) { return x == kw::minus_infinity ? 0.0f : x * args.scale; });
                kw::map(s, [&](kw::real x, kw::real o) { return kw::exp2(kw::fma(x, args.scale, -o)); }, offset);
                kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, factor);
                kw::row_sum(l, s);
            };
            auto advance = [&](int n, bool partial) {            // t: key block n
                kw::wait(shared.k_full[t]);
                kw::wgmma(s, q_r, kw::transposed(shared.k_s[t]));
                kw::wgmma_wait<0>(s);
                softmax(n, partial);
                kw::to_operand(p, s);
                if (raised) kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, factor);
                kw::wait(shared.v_full[t]);
                kw::wgmma_add(acc, p, shared.v_s[t]);
                kw::wgmma_wait<0>(acc);
                kw::arrive(shared.free[t]);
            };

            kw::fill(acc, 0.0f);
            kw::fill(l, 0.0f);
            kw::fill(m, kw::minus_infinity);
            kw::wait(shared.q_full[u]);
            kw::load(shared.q_s[u], q_r);
            kw::arrive(shared.q_free[u]);
            for (int x = part.count - 1; x >= part.full; --x, ++t) advance(x * args.splits + c.s, true);
            for (int x = kw::min(part.count, part.full) - 1; x >= 0; --x, ++t) advance(x * args.splits + c.s, false);

            kw::RowVector<kw::real, 64> sum = kw::total(l), inverse = sum, lse_r = sum;
            kw::map_rows(inverse, [&](kw::real x) { return x == 0.0f ? 0.0f : kw::reciprocal(x); });
            kw::map_rows(lse_r, [&](kw::real x, kw::real r) { return x == 0.0f ? kw::minus_infinity : r * args.scale + kw::log2(x); }, m);
            kw::store_rows(lse_r, args.part_lse, {c.b, c.h * args.splits + c.s, i0});
            kw::map(acc, [&](kw::real x, kw::real r) { return x * r; }, inverse);
            kw::store_accumulator(acc, args.part_o, {c.b, c.h * args.splits + c.s, i0});
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, 1) attention_decode_combine(const __grid_constant__ Args args) {
    const kw::Thread w = kw::thread_of(kw::ceil_div(args.M, 512 / V) * args.H * args.B);
    kw::combine_parts(args.part_o, args.part_lse, args.splits, w, args.o, args.lse);
}
