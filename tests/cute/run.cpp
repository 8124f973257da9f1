// A printed kernel, run on the host and held against attention in double precision.
//
// -DMORE is what the launcher of a variant gives beside the usual, -DBEFORE its pre-pass.
// Built with -DKERNEL="kernel.inc", the printed text with its instructions' names replaced
// (tests/python/helpers/cute_build.py), and -DKEEPS(i,j)=..., -DSCORE(x,i,j)=... for what the
// function says.
#include "emulated.h"

#include KERNEL

#include <random>

alignas(1024) unsigned char kernel::smem[256 << 10];

#ifndef KEEPS
#define KEEPS(i, j) true
#endif
#ifndef SCORE
#define SCORE(x, i, j) (x)
#endif

// Not every function has a running reference.
template <class Args>
auto set_slack(Args& args, int) -> decltype(void(args.slack)) {
  args.slack = 8 / args.scale;
}
template <class Args>
void set_slack(Args&, long) {}

// What is no number is the worst.
void note(double& worst, double x) { worst = std::max(worst, x < 1e9 ? x : INFINITY); }

int main() {
  using kernel::element;
  constexpr int B = 1, H = 2, G = 1, M = kernel::BM + 5, N = kernel::BN * 2 + 7, D = kernel::D;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  // Rows past the end of K and V are no zeros in memory: who reads them is found out.
  const float poison = std::numeric_limits<float>::quiet_NaN();
  std::vector<element> q(H * M * D), k((N + 256) * D, element(poison)), v = k,
                                                                        o(q.size(), element(7));
  std::vector<float> lse(H * M, 7);
  for (auto& x : q) x = element(2 * normal(random));
  for (int n = 0; n < N * D; ++n) k[n] = element(normal(random)), v[n] = element(normal(random));

  kernel::Args args{};
  args.q = {q.data(), {H * M * D, M * D, D, 1}, {B, H, M, D}};
  args.k = {k.data(), {N * D, N * D, D, 1}, {B, G, N, D}};
  args.v = {v.data(), {N * D, N * D, D, 1}, {B, G, N, D}};
  args.o = {o.data(), {H * M * D, M * D, D, 1}, {B, H, M, D}};
  args.lse = {lse.data(), {H * M, M, 1}, {B, H, M}};
  args.B = B, args.H = H, args.G = G, args.M = M, args.N = N;
  args.blocks = (M + kernel::BM - 1) / kernel::BM * H * B;
  const float scale = 1 / std::sqrt(float(D));
  args.scale = scale * 1.4426950408889634f;
  set_slack(args, 0);
#ifdef MORE
  MORE
#endif
#ifdef BEFORE
      BEFORE
#endif
      for (int w = 0; w < args.blocks; ++w)
          run_block(128 * kernel::WARPGROUPS, w, [&] { kernel::attention_fwd(args); });

  double worst = 0, worst_lse = 0;
  for (int h = 0; h < H; ++h)
    for (int i = 0; i < M; ++i) {
      std::vector<double> score(N, -INFINITY), out(D, 0);
      double top = -INFINITY, sum = 0, error = 0, size = 0;
      for (int j = 0; j < N; ++j) {
        if (!(KEEPS(i, j))) continue;
        double x = 0;
        for (int d = 0; d < D; ++d)
          x += double(float(q[(h * M + i) * D + d])) * float(k[j * D + d]);
        x *= scale;
        score[j] = SCORE(x, i, j);
        top = std::max(top, score[j]);
      }
      for (int j = 0; j < N; ++j) {
        const double weight = std::exp(score[j] - top);
        sum += weight;
        for (int d = 0; d < D; ++d) out[d] += weight * float(v[j * D + d]);
      }
      for (int d = 0; d < D; ++d) {
        const double true_value = out[d] / sum, is = float(o[(h * M + i) * D + d]);
        error += (is - true_value) * (is - true_value);
        size += true_value * true_value;
      }
      note(worst, std::sqrt(error / size));
      const double difference = std::abs(lse[h * M + i] - (top + std::log(sum)));
      note(worst_lse, difference);
    }
  std::printf("relative error of a row at most %.2g, of lse %.2g\n", worst, worst_lse);
  return !(worst < 0.01 && worst_lse < 0.01);  // bf16 has 8 bits: half an ulp is 0.002
}
