// RMSNorm of a sum for Ampere-class GPUs and later: h = x + residual, and of what h is after rounding
// y = h * rsqrt(mean(h^2) + eps) * weight, for every row of C columns; h is written, too.
//
// As rms_norm.cu: a warpgroup has one row in its registers, and every element is read once and written once;
// which rows share a CTA and a multiprocessor is in add_rms_norm.tiles.json.
// Reals in the place of h_r's elements would take y from the sum before it is rounded.
#include "kw/kw.cuh"

using element = kw::bf16;
constexpr int C = 4096;                                          // columns of a row
constexpr int WARPGROUPS = 4, RESIDENT = 2;                      // rows of a CTA; CTAs that share a multiprocessor

struct Args {
    kw::Tensor<const element, 'B', 'H', 'M', 'C'> x;
    kw::Tensor<const element, 'B', 'H', 'M', 'C'> residual;
    kw::Tensor<const element, 'C'> weight;
    kw::Tensor<element, 'B', 'H', 'M', 'C'> y;
    kw::Tensor<element, 'B', 'H', 'M', 'C'> h;
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

extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, RESIDENT) add_rms_norm(const __grid_constant__ Args args) {
    Shared& shared = kw::shared_memory<Shared>();
    const int me = kw::warpgroup_index();
    const Block c = block_of(args, kw::block_index(args.blocks));
    const int m = c.m * WARPGROUPS + me;
    kw::Line<element, C> x_r, residual_r, weight_r, h_r, y_r;

    kw::set_line(x_r, [&]() { return args.x.row(c.b, c.h, m); });
    kw::set_line(residual_r, [&]() { return args.residual.row(c.b, c.h, m); });
    kw::set_line(weight_r, [&]() { return args.weight.row(); });
    kw::map_line(h_r, [&](kw::real x, kw::real r) { return x + r; }, x_r, residual_r);
    kw::store_line(h_r, args.h, {c.b, c.h, m});
    const kw::real squares = kw::sum_line([&](kw::real h) { return h * h; }, h_r);
    const kw::real factor = kw::rsqrt(squares / float(C) + args.eps);
    kw::map_line(y_r, [&](kw::real h, kw::real w) { return h * factor * w; }, h_r, weight_r);
    kw::store_line(y_r, args.y, {c.b, c.h, m});
}
