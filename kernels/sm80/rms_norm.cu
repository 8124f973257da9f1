// RMSNorm for Ampere-class GPUs and later: y = x * rsqrt(mean(x^2) + eps) * weight, for every row of C
// columns.
//
// A warpgroup has one row in its registers, read once and written once, in 16 bytes a thread. Nothing is
// computed that memory would wait for: the kernel's time is the bytes', if enough rows are under way.
// Short rows are four to a CTA, which starts less often; long ones are a CTA each, and
// as many CTAs as the registers allow share a multiprocessor (rms_norm.tiles.json).
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int C = 4096;                                          // columns of a row
constexpr int WARPGROUPS = 4, RESIDENT = 2;                      // rows of a CTA; CTAs that share a multiprocessor

struct Args {
    kw::Tensor<const element, 'B', 'H', 'M', 'C'> x;
    kw::Tensor<const element, 'C'> weight;
    kw::Tensor<element, 'B', 'H', 'M', 'C'> y;
    kw::size B, H, M;
    float eps = 1.0e-06f;
    kw::size rows = kw::ceil_div(M, WARPGROUPS);
    kw::size blocks = rows * H * B;
};

struct Shared {
};

struct Block { kw::index m, h, b; };

__device__ __forceinline__ Block block_of(const Args& args, kw::index w) {
    return {w % args.rows, w / args.rows % args.H, w / args.rows / args.H};
}

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, RESIDENT) rms_norm(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const int m = c.m * WARPGROUPS + me;
    kw::Line<element, C> x_r, weight_r, y_r;

    kw::set_line(x_r, [&]() { return args.x.row(c.b, c.h, m); });
    kw::set_line(weight_r, [&]() { return args.weight.row(); });
    const kw::real squares = kw::sum_line([&](kw::real x) { return x * x; }, x_r);
    const kw::real factor = kw::rsqrt(squares / float(C) + args.eps);
    kw::map_line(y_r, [&](kw::real x, kw::real w) { return x * factor * w; }, x_r, weight_r);
    kw::store_line(y_r, args.y, {c.b, c.h, m});
}
