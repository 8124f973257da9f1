// Over the launch.h that `kernelwright make` writes: one header, the CUDA driver, nothing of ours.
//
// The header has a namespace named after the function, here `full`. It checks sizes, strides and
// addresses and packs the arguments; the program owns everything else, the cubin's bytes included.
// `full::Inputs` lists what the kernel takes: others also take a counter, numbers, or memory for
// lists of key blocks, each a field there, with what it must hold.
//
// Exit code 0: the rows agree with the CPU's; 1: they do not; 2: there is no GPU, or an error.
#include <launch.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "attention.h"
#include "gpu.h"

using namespace attention;

namespace {

std::vector<char> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Rows that follow each other. Any other strides will do as well, in elements, as long as columns
// are next to each other and rows begin at multiples of 16 bytes.
full::Tensor tensor(CUdeviceptr data, int64_t heads, int64_t rows, int64_t columns) {
  return {data, {B, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
}

}  // namespace

int main(int count, char** argument) {
  if (count != 2) return std::fprintf(stderr, "usage: with_launch_h out/full\n"), 2;
  const std::vector<char> cubin = read(std::filesystem::path(argument[1]) / "kernel.cubin");
  const int multiprocessors = gpu::open();

  const Bf16s q = numbers(B * H * M * D, 1), k = numbers(B * G * N * D, 2),
              v = numbers(B * G * N * D, 3);
  const gpu::Array<uint16_t> q_there(q), k_there(k), v_there(v), o_there(q.size());
  const gpu::Array<float> lse_there(B * H * M);

  CUfunction kernel = nullptr;  // once a process
  gpu::check(full::load(cubin.data(), &kernel), "loading kernel.cubin");

  full::Plan plan;  // once for each set of shapes and addresses
  const char* wrong = full::make_plan({.q = tensor(q_there.address(), H, M, D),
                                       .k = tensor(k_there.address(), G, N, D),
                                       .v = tensor(v_there.address(), G, N, D),
                                       .o = tensor(o_there.address(), H, M, D),
                                       .lse = {lse_there.address(), {B, H, M}, {H * M, M, 1}}},
                                      multiprocessors, plan);
  if (wrong) return std::fprintf(stderr, "make_plan: %s\n", wrong), 2;

  gpu::check(full::launch(kernel, plan, nullptr), "the launch");  // as often as you like
  return agrees(o_there.download(), q, k, v) ? 0 : 1;
}
