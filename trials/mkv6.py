import sys
out, D, DV, how, qst, dst, dss, areg, breg, causal = sys.argv[1:11]
D,DV=int(D),int(DV); PART=D//2
s=open('split192.cu').read()
s=s.replace("constexpr int D = 192, DV = 128;",f"constexpr int D = {D}, DV = {DV}, PART = {PART}, Q_STAGES = {qst}, AREG = {areg}, BREG = {breg}, CTAS = 2;")
if causal=="1": s=s.replace('#include "kw/kw.cuh"','#define CAUSAL\n#include "kw/kw.cuh"')
s=s.replace('struct Args {','''KW_DEVICE_ void send(unsigned src, unsigned bytes, unsigned bar, int to) {
    const unsigned dst = kw::ptx::shared_address_in(src, to), b = kw::ptx::shared_address_in(bar, to);
    kw::ptx::mbarrier_arrive_expect_there(b, bytes);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst), "r"(src), "r"(bytes), "r"(b) : "memory");
}
struct Args {'''.replace("KW_DEVICE_","__device__ __forceinline__"),1)
s=s.replace("DS_SLOTS = 2,",f"DS_SLOTS = {dss},").replace("STAGES = STAGES_",f"STAGES = {dst}")
s=s.replace("BM = 64, BN = 64;","BM = 64, BN = 128;")
s=s.replace("kw::Ring<kw::SharedTile<element, BN, D>, 1> k_s;","kw::Ring<kw::SharedTile<element, 64, D>, 1> k_s;\n    kw::Ring<kw::SharedTile<element, 64, %s>, 1> k_of_s;"%("PART" if D==256 else "D"))
s=s.replace("kw::Ring<kw::SharedTile<element, BN, DV>, 1> v_s;","kw::Ring<kw::SharedTile<element, 64, DV>, 1> v_s;")
s=s.replace("kw::Ring<kw::SharedTile<element, BM, D>, STAGES> q_s;","kw::Ring<kw::SharedTile<element, BM, D>, Q_STAGES> q_s;")
s=s.replace("kw::RowRing<kw::real, BM, STAGES> offset_s, delta_s;","kw::RowRing<kw::real, BM, Q_STAGES> offset_s;\n    kw::RowRing<kw::real, BM, STAGES> delta_s;")
s=s.replace("kw::Barriers<STAGES, 2> q_full, do_full;","kw::Barriers<Q_STAGES, 2> q_full;\n    kw::Barriers<STAGES, 2> do_full;")
s=s.replace("kw::Barriers<STAGES, 4 * WARPGROUPS> q_free, do_free;","kw::Barriers<Q_STAGES, 4 * WARPGROUPS> q_free;\n    kw::Barriers<STAGES, 4> do_free;")
s=s.replace("kw::Ring<kw::SharedTile<element, BM, BN>, DS_SLOTS> ds_s;","kw::Ring<kw::SharedTile<element, BM, 64>, DS_SLOTS> ds_s[CTAS];")
s=s.replace("kw::Barriers<DS_SLOTS, 4> ds_full, ds_free;","kw::Barriers<DS_SLOTS, 4> ds_full;\n    kw::Barriers<DS_SLOTS, 4, CTAS> ds_free;\n    kw::Barriers<DS_SLOTS, 1> of_full;")
s=s.replace("kw::Barriers<1, 1> k_full,","kw::Barriers<1, 2> k_full;\n    kw::Barriers<1, 1>")
s=s.replace("shared.ds_full,","shared.ds_full, shared.of_full,")
s=s.replace("        kw::registers_up<WARPGROUP_REGISTERS>();\n","")
s=s.replace("    const Block c = block_of","    const int cta = kw::cluster<CTAS>();\n    kw::sync_cluster();\n    const Block c = block_of").replace("kw::block_index(args.blocks)","int(blockIdx.x) / CTAS")
s=s.replace("c.n * BN}, shared.k_s[u], shared.k_full[u], kw::evict_first);","c.n * BN + cta * 64}, shared.k_s[u], shared.k_full[u], kw::evict_first);\n            %s"%("load_part(args.k_of, {c.b, c.g, c.n * BN + (1 - cta) * 64}, shared.k_of_s[u], shared.k_full[u], cta * 2);" if D==256 else "kw::tma_load(args.k, {c.b, c.g, c.n * BN + (1 - cta) * 64}, shared.k_of_s[u], shared.k_full[u], kw::evict_first);"))
if D==256:
    s=s.replace("    kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'> offset, delta; // minus the log-sum in units of scores, minus do . o\n};","""    kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'> offset, delta;
    kw::TensorMap<const element, 'B', 'G', 'N', 'D'> k_of;
};
template <class Map, class Tile, class Bar> __device__ __forceinline__ void load_part(const Map& from, kw::Coords at, Tile& to, Bar full, int panel) {
    kw::ptx::mbarrier_arrive_expect(full.address, Tile::bytes);
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to.address()), "l"(&from.map), "r"(0), "r"(at.row), "r"(panel), "r"(at.head), "r"(at.batch), "r"(full.address) : "memory");
}
#include <cstddef>
#ifdef OFFS
template <int N> struct Show; Show<offsetof(Args, k_of)> show; Show<sizeof(Args)> size;
#endif""",1)
s=s.replace("c.n * BN}, shared.v_s","c.n * BN + cta * 64}, shared.v_s")
s=s.replace("args.dk, {c.b, c.g, c.n * BN}","args.dk, {c.b, c.g, c.n * BN + cta * 64}").replace("args.dv, {c.b, c.g, c.n * BN}","args.dv, {c.b, c.g, c.n * BN + cta * 64}")
s=s.replace("const int j0 = c.n * BN;","const int j0 = c.n * BN + cta * 64;")
x=s.index("        if (kw::is_thread(1)) {"); y=s.index("        if (kw::is_thread(2)) {")
SEND='''        if (kw::is_thread(1)) {                                  // dS to the other
            int t = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                kw::wait(shared.ds_full[t]);
                send(shared.ds_s[cta][t].address(), 64 * 128, shared.of_full[t].address, 1 - cta);
            }
        }
'''
TMA='''        if (kw::is_thread(3)) {                                  // dQ
            int t = 0;
#pragma unroll 1
            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {
                const int h = c.g * group + x / queries.count;
                const int m = queries.first + x % queries.count;
                kw::wait(shared.dq_full[t]);
                add_part(shared.dq_s[t], args.sum_dq, {c.b, h, m * BM, 0}, cta * PART);
                kw::tma_store_wait_read();
                kw::arrive(shared.dq_free[t]);
            }
            kw::tma_store_wait();
        }
'''
if how=="red":
    s=s[:x]+SEND+s[y:]
    s=s.replace("    kw::Ring<kw::SharedTile<float, 64, D>, DQ_SLOTS> dq_s;\n","").replace("    kw::Barriers<DQ_SLOTS, 4> dq_full;\n    kw::Barriers<DQ_SLOTS, 1> dq_free;\n","").replace(", shared.dq_full, shared.dq_free","")
else:
    s=s[:x]+SEND+TMA+s[y:]
    s=s.replace("kw::SharedTile<float, 64, D>, DQ_SLOTS> dq_s","kw::SharedTile<float, 64, PART>, DQ_SLOTS> dq_s")
    s=s.replace('struct Args {','''template <class Tile, class To> __device__ __forceinline__ void add_part(const Tile& from, const To& to, kw::TileCoords at, int column) {
    kw::ptx::bulk_add(kw::detail::sums_at(to, at) + column * 64, from.address(), from.bytes);
    kw::ptx::tma_store_commit();
}
struct Args {''',1)
a=s.index("        kw::Accumulator<kw::real, 64, D> dk_r;"); b=s.index('extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_wide_round')
if how=="red": FIN='''                kw::add_tile(dq_r, args.sum_dq, {c.b, h, m * BM, cta * PART});
'''
else: FIN='''                kw::wait_free(shared.dq_free[t]);
                kw::store(dq_r, shared.dq_s[t]);
                kw::fence_async();
                kw::arrive(shared.dq_full[t]);
'''
if D==128: PROD='''                kw::wgmma_add_columns(dq_r, shared.ds_s[cta][t], shared.k_s[u], cta * PART);
                kw::wait(shared.of_full[t]);
                kw::wgmma_add_columns(dq_r, shared.ds_s[1 - cta][t], shared.k_of_s[u], cta * PART);
'''
elif D==256: PROD='''                kw::wgmma_add_columns(dq_r, shared.ds_s[cta][t], shared.k_s[u], cta * PART);
                kw::wait(shared.of_full[t]);
                kw::wgmma_add(dq_r, shared.ds_s[1 - cta][t], shared.k_of_s[u]);
'''
else: PROD='''                add_cols(dq_r, shared.ds_s[cta][t], shared.k_s[u], cta);
                kw::wait(shared.of_full[t]);
                add_cols(dq_r, shared.ds_s[1 - cta][t], shared.k_of_s[u], cta);
'''
s=s[:a]+r'''
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
                kw::Accumulator<kw::real, 64, PART> dq_r;
                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[cta][t]), shared.q_s[t]);
                kw::fill(dq_r, 0.0f);
@PROD@                kw::wgmma_wait<0>(dk_r);
                kw::wgmma_wait<0>(dq_r);
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
@FIN@            }
            kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
            kw::order_wait(1);                                  // the other reads K no more
            kw::store(dk_r, shared.k_s[u]);
            kw::fence_async();
            kw::arrive(shared.dk_full[u]);
        }
    }
    kw::sync_cluster();
}

'''.replace("@PROD@",PROD).replace("@FIN@",FIN)+s[b:]
if D==192: s=s.replace('struct Args {','''// columns 96 cta ... of [64, 192]: panels of 64, so 64 and 32, or 32 and 64
template <class Acc, class A, class B> __device__ __forceinline__ void add_cols(Acc& acc, const A& a, const B& b, int cta) {
    const kw::u64 left = kw::detail::descriptor(a, 16), from = kw::detail::descriptor(b, B::panel_bytes);
    kw::detail::pin(acc);
    kw::ptx::wgmma_fence();
    // first 64 columns: panel 0 or 2; the other 32: the first or second half of panel 1
    const kw::u64 f64 = from + (cta ? 2 * B::panel_bytes >> 4 : 0), f32 = from + ((B::panel_bytes + (cta ? 64 : 0)) >> 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        kw::ptx::Wgmma<element, 64>::ss<1>(reinterpret_cast<float(&)[32]>(acc.x[0]), left + kw::detail::columns_16<A>(k), f64 + (k * 16 * B::pitch >> 4), 1);
        kw::ptx::Wgmma<element, 32>::ss<1>(reinterpret_cast<float(&)[16]>(acc.x[32]), left + kw::detail::columns_16<A>(k), f32 + (k * 16 * B::pitch >> 4), 1);
    }
    kw::ptx::wgmma_commit();
}
struct Args {''',1)
open(out+".cu","w").write(s)
