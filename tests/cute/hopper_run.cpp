// A printed kernel for Hopper, run on the host and held against attention in double precision.
//
// One CTA works on all blocks of the output. -DMORE is what the launcher of a variant
// gives beside the usual. Built with -DKERNEL="kernel.inc", the printed text with its instructions'
// names replaced (tests/python/helpers/cute_build.py), and -DKEEPS(i,j)=... for what the function
// says.
#include "hopper_emulated.h"

#include KERNEL

#include <random>

alignas(1024) unsigned char kernel::smem[256 << 10];

template <class T>
void describe(tl::TensorMap& map, emulated::Box& box, std::vector<T>& data, int heads, int rows,
              int columns, int box_rows) {
  const long row = columns, head = row * rows;
  box = {reinterpret_cast<char*>(data.data()),
         {head * heads, head, row, 1},
         {1, heads, rows, columns},
         box_rows,
         columns};
  emulated::Box* at = &box;
  std::memcpy(map.bytes, &at, sizeof(at));
}
void note(double& worst, double x) { worst = std::max(worst, x < 1e9 ? x : INFINITY); }

int main() {
  using kernel::element;
  constexpr int B = 1, H = 2, G = 1, D = kernel::D, V = kernel::V;
  constexpr int M = kernel::BM + 5, N = kernel::BN * 3 + 7;
  static_assert(kernel::CTAS == 1);
  emulated::shared_memory = kernel::smem;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<element> q(H * M * D), k(N * D), v(N * V), o(H * M * V, element(7));
  std::vector<float> lse(H * M, 7);
  for (auto& x : q) x = element(2 * normal(random));
  for (auto& x : k) x = element(normal(random));
  for (auto& x : v) x = element(normal(random));

  kernel::Args args{};
  emulated::Box boxes[4];
  describe(args.q, boxes[0], q, H, M, D, 64);
  describe(args.k, boxes[1], k, G, N, D, kernel::BN);
  describe(args.v, boxes[2], v, G, N, V, kernel::BN);
  describe(args.o, boxes[3], o, H, M, V, 64);
  args.lse = {lse.data(), {H * M, M, 1}, {B, H, M}};
  args.B = B, args.H = H, args.G = G, args.M = M, args.N = N;
  args.blocks = (M + kernel::BM - 1) / kernel::BM * H * B;
  const float scale = 1 / std::sqrt(float(D));
  args.scale = scale * 1.4426950408889634f;
  args.slack = 8 / args.scale;
  unsigned words[2] = {};
#ifdef MORE
  MORE
#endif
      gridDim.x = 1;
  run_block(128 * (kernel::MATH + kernel::WARPGROUPS), 0, [&] { kernel::attention_fwd(args); });

  double worst = 0, worst_lse = 0;
  for (int h = 0; h < H; ++h)
    for (int i = 0; i < M; ++i) {
      std::vector<double> score(N, -INFINITY), out(V, 0);
      double top = -INFINITY, sum = 0, error = 0, size = 0;
      for (int j = 0; j < N; ++j) {
        if (!(KEEPS(i, j))) continue;
        double x = 0;
        for (int d = 0; d < D; ++d)
          x += double(float(q[(h * M + i) * D + d])) * float(k[j * D + d]);
        top = std::max(top, score[j] = x * scale);
      }
      for (int j = 0; j < N; ++j) {
        const double weight = std::exp(score[j] - top);
        sum += weight;
        for (int d = 0; d < V; ++d) out[d] += weight * float(v[j * V + d]);
      }
      for (int d = 0; d < V; ++d) {
        const double true_value = out[d] / sum, is = float(o[(h * M + i) * V + d]);
        error += (is - true_value) * (is - true_value);
        size += true_value * true_value;
      }
      note(worst, std::sqrt(error / size));
      note(worst_lse, std::abs(lse[h * M + i] - (top + std::log(sum))));
    }
  std::printf("relative error of a row at most %.2g, of lse %.2g\n", worst, worst_lse);
  return !(worst < 0.01 && worst_lse < 0.01 && words[0] == 0 && words[1] == 0);
}
