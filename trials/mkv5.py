import sys
out, D, DV, PART, how, qst, dst, dss, areg, breg, causal = sys.argv[1:12]
D,DV,PART=int(D),int(DV),int(PART); parts=D//PART
s=open('split192.cu').read()
s=s.replace("constexpr int D = 192, DV = 128;",f"constexpr int D = {D}, DV = {DV}, PART = {PART}, Q_STAGES = {qst}, AREG = {areg}, BREG = {breg};")
if causal=="1": s=s.replace('#include "kw/kw.cuh"','#define CAUSAL\n#include "kw/kw.cuh"')
s=s.replace("DS_SLOTS = 2,",f"DS_SLOTS = {dss},").replace("STAGES = STAGES_",f"STAGES = {dst}")
s=s.replace("kw::Ring<kw::SharedTile<element, BM, D>, STAGES> q_s;","kw::Ring<kw::SharedTile<element, BM, D>, Q_STAGES> q_s;")
s=s.replace("kw::RowRing<kw::real, BM, STAGES> offset_s, delta_s;","kw::RowRing<kw::real, BM, Q_STAGES> offset_s;\n    kw::RowRing<kw::real, BM, STAGES> delta_s;")
s=s.replace("kw::Barriers<STAGES, 2> q_full, do_full;","kw::Barriers<Q_STAGES, 2> q_full;\n    kw::Barriers<STAGES, 2> do_full;")
s=s.replace("kw::Barriers<STAGES, 4 * WARPGROUPS> q_free, do_free;","kw::Barriers<Q_STAGES, 4 * WARPGROUPS> q_free;\n    kw::Barriers<STAGES, 4> do_free;")
s=s.replace("        kw::registers_up<WARPGROUP_REGISTERS>();\n","")
if how in("red","late"):
    x=s.index("        if (kw::is_thread(1)) {"); y=s.index("        if (kw::is_thread(2)) {")
    s=s[:x]+s[y:]
    s=s.replace("    kw::Ring<kw::SharedTile<float, 64, D>, DQ_SLOTS> dq_s;\n","").replace("    kw::Barriers<DQ_SLOTS, 4> dq_full;\n    kw::Barriers<DQ_SLOTS, 1> dq_free;\n","").replace(", shared.dq_full, shared.dq_free","")
a=s.index("        kw::Accumulator<kw::real, 64, D> dk_r;"); b=s.index('extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_wide_round')
if parts==1 and how=="tma": DQ='''                kw::wait(shared.ds_full[t]);
                kw::fill(dq_r, 0.0f);
                kw::wgmma_add(dq_r, shared.ds_s[t], shared.k_s[u]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[t]), shared.q_s[t]);
                kw::wgmma_wait<1>(dq_r);
                kw::wait_free(shared.dq_free[t]);
                kw::store(dq_r, shared.dq_s[t]);
                kw::fence_async();
                kw::arrive(shared.dq_full[t]);
                kw::wgmma_wait<0>(dk_r);
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
'''
elif how=="tma": DQ='''                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[t]), shared.q_s[t]);
#pragma unroll 1
                for (int part = 0; part < D / PART; ++part, ++y) {
                    kw::fill(dq_r, 0.0f);
                    kw::wgmma_add_columns(dq_r, shared.ds_s[t], shared.k_s[u], part * PART);
                    kw::wgmma_wait<0>(dk_r);
                    kw::wgmma_wait<0>(dq_r);
                    kw::wait_free(shared.dq_free[y]);
                    kw::store(dq_r, shared.dq_s[y]);
                    kw::fence_async();
                    kw::arrive(shared.dq_full[y]);
                }
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
'''
elif how=="late": DQ='''                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[t]), shared.q_s[t]);
                if (t > 0) {
                    const int x1 = x + 1, h1 = c.g * group + x1 / queries.count, m1 = queries.first + x1 % queries.count;
                    kw::add_tile(dq_r, args.sum_dq, {c.b, h1, m1 * BM, D - PART});
                }
#pragma unroll 1
                for (int part = 0; part < D / PART; ++part) {
                    kw::fill(dq_r, 0.0f);
                    kw::wgmma_add_columns(dq_r, shared.ds_s[t], shared.k_s[u], part * PART);
                    kw::wgmma_wait<0>(dk_r);
                    kw::wgmma_wait<0>(dq_r);
                    if (part < D / PART - 1) kw::add_tile(dq_r, args.sum_dq, {c.b, h, m * BM, part * PART});
                }
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
'''
elif how in("red","late"): DQ='''                kw::wait(shared.ds_full[t]);
                kw::wait(shared.q_full[t]);
                kw::wgmma_add(dk_r, kw::transposed(shared.ds_s[t]), shared.q_s[t]);
#pragma unroll 1
                for (int part = 0; part < D / PART; ++part) {
                    kw::fill(dq_r, 0.0f);
                    kw::wgmma_add_columns(dq_r, shared.ds_s[t], shared.k_s[u], part * PART);
                    kw::wgmma_wait<0>(dk_r);
                    kw::wgmma_wait<0>(dq_r);
                    kw::add_tile(dq_r, args.sum_dq, {c.b, h, m * BM, part * PART});
                }
                kw::arrive(shared.ds_free[t]);
                kw::arrive(shared.q_free[t]);
'''
if how=="tma" and parts>1:
    s=s.replace("kw::SharedTile<float, 64, D>, DQ_SLOTS> dq_s","kw::SharedTile<float, 64, PART>, DQ_SLOTS> dq_s")
    s=s.replace("""                kw::wait(shared.dq_full[t]);
                kw::tma_add(shared.dq_s[t], args.sum_dq, {c.b, h, m * BM, 0});
                kw::tma_store_wait_read();
                kw::arrive(shared.dq_free[t]);
""","""                for (int part = 0; part < D / PART; ++part, ++y) {
                kw::wait(shared.dq_full[y]);
                kw::tma_add(shared.dq_s[y], args.sum_dq, {c.b, h, m * BM, part * PART});
                kw::tma_store_wait_read();
                kw::arrive(shared.dq_free[y]); }
""").replace("""// dQ
            int t = 0;""","""// dQ
            int t = 0, y = 0;""")
    s=s.replace("DQ_SLOTS = DQS","DQ_SLOTS = 1")
    a=s.index("        kw::Accumulator<kw::real, 64, D> dk_r;"); b=s.index('extern "C" __global__ void __launch_bounds__(256, 1) attention_bwd_wide_round')
s=s[:a]+r'''
        int y = 0;
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
            kw::store_transposed(dp, shared.ds_s[t]);
            kw::fence_async();
            kw::arrive(shared.ds_full[t]);
            if (first) kw::wgmma_wait<0>(dv_r);
            };
            kw::fill(dv_r, 0.0f);
            kw::wait(shared.k_full[u]);
            kw::wait(shared.v_full[u]);
            kw::wgmma_wait_group<0>();
            scores(group * queries.count - 1, true);
            ++t;
#pragma unroll 1
            for (int x = group * queries.count - 2; x >= 0; --x, ++t) scores(x, false);
            kw::wgmma_wait<0>(dv_r);
            kw::arrive(shared.do_free[t - 1]);
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
@DQ@            }
            kw::map(dk_r, [&](kw::real x) { return x * args.scale; });
            kw::order_wait(1);                                  // the other reads K no more
            kw::store(dk_r, shared.k_s[u]);
            kw::fence_async();
            kw::arrive(shared.dk_full[u]);
        }
    }
}

'''.replace("@DQ@",DQ)+s[b:]
if how=="late":
    i=s.index("#pragma unroll 1\n            for (int x = group * queries.count - 1; x >= 0; --x, ++t) {\n                const int h", s.index("kw::registers_up<BREG>"))
    s=s[:i]+"            kw::Accumulator<kw::real, 64, PART> dq_r;\n"+s[i:]
    s=s.replace("                kw::Accumulator<kw::real, 64, PART> dq_r;\n","")
    i=s.index("            kw::map(dk_r, [&](kw::real x) { return x * args.scale; });")
    s=s[:i]+"            kw::add_tile(dq_r, args.sum_dq, {c.b, c.g * group, queries.first * BM, D - PART});\n"+s[i:]
open(out+".cu","w").write(s)
