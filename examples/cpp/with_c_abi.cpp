// Over the C ABI, docs/deployment/c_abi.md: any kernel that `kernelwright make` wrote, chosen when
// the program runs. Tensors are described by name, and the library checks them against the folder's
// launch.json; it keeps what a kernel needs of memory of its own.
//
// Exit code 0: the rows agree with the CPU's; 1: they do not; 2: there is no GPU, or an error.
#include <kernelwright/launch_c.h>

#include <array>

#include "attention.h"
#include "gpu.h"

using namespace attention;

namespace {

void require(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, kw_last_error());
  std::exit(2);
}

struct Layout {  // rows that follow each other
  std::array<int64_t, 4> shape, strides;
};

Layout layout(int64_t heads, int64_t rows, int64_t columns) {
  return {{B, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
}

kw_tensor tensor(const char* name, const char* dtype, uint64_t data, int32_t rank,
                 const Layout& l) {
  return {name, dtype, data, rank, l.shape.data(), l.strides.data()};
}

}  // namespace

int main(int count, char** argument) {
  if (count != 2) return std::fprintf(stderr, "usage: with_c_abi out/full\n"), 2;
  gpu::open();
  const Bf16s q = numbers(B * H * M * D, 1), k = numbers(B * G * N * D, 2),
              v = numbers(B * G * N * D, 3);
  const gpu::Array<uint16_t> q_there(q), k_there(k), v_there(v), o_there(q.size());
  const gpu::Array<float> lse_there(B * H * M);

  kw_kernel* kernel = nullptr;  // once a process and GPU
  require(kw_kernel_load(argument[1], 0, &kernel), "loading the kernel");

  // Once for each set of shapes, strides and types: addresses may change from launch to launch. In
  // the order of launch.json's arguments, which is the kernel's own.
  const Layout queries = layout(H, M, D), keys = layout(G, N, D), lse = {{B, H, M}, {H * M, M, 1}};
  const kw_tensor tensors[] = {tensor("q", "bf16", q_there.address(), 4, queries),
                               tensor("k", "bf16", k_there.address(), 4, keys),
                               tensor("v", "bf16", v_there.address(), 4, keys),
                               tensor("o", "bf16", o_there.address(), 4, queries),
                               tensor("lse", "f32", lse_there.address(), 3, lse)};
  kw_plan* plan = nullptr;
  require(kw_kernel_plan(kernel, tensors, 5, nullptr, 0, &plan), "planning the launch");

  const uint64_t addresses[] = {q_there.address(), k_there.address(), v_there.address(),
                                o_there.address(), lse_there.address()};
  require(kw_plan_enqueue(plan, addresses, 5, nullptr), "the launch");
  const bool good = agrees(o_there.download(), q, k, v);
  kw_plan_free(plan);
  kw_kernel_free(kernel);
  return good ? 0 : 1;
}
