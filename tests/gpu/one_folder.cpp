// A forward and a backward launch through the launch.h of a folder that `make --backward` wrote, as
// a C++ program of a user's does it; a shared library, so that test_one_folder.py can compare what
// comes out with PyTorch. Of causal attention or any other function of q, k and v alone.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "launch.h"

#ifndef KW_NAME
#error "say -DKW_NAME=NAME, the namespace of launch.h"
#endif
namespace made = KW_NAME;

namespace {

std::vector<char> bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

made::Tensor tensor(CUdeviceptr data, int64_t a, int64_t b, int64_t c, int64_t d) {
  return {data, {a, b, c, d}, {b * c * d, c * d, d, 1}};
}
// A tensor of three dimensions has its strides in the first three places.
made::Tensor rows(CUdeviceptr data, int64_t a, int64_t b, int64_t c) {
  return {data, {a, b, c, 1}, {b * c, c, 1, 1}};
}

}  // namespace

// `at`: addresses of q, k, v, o, o_f32, lse, d_o, dq, dk, dv; sizes: B, H, G, M, N, D. Returns
// nullptr, or what is wrong.
extern "C" const char* train_step(const char* folder, const uint64_t* at, const int64_t* sizes,
                                  int multiprocessors, void* stream) {
  static CUfunction forward = nullptr, backward = nullptr, before[4], after[4];
  const auto load = [&](const char* half) {
    return bytes_of(std::string(folder) + half + "/kernel.cubin");
  };
  if (!forward && made::forward::load(load("/forward").data(), &forward))
    return "forward does not load";
  if (!backward && made::backward::load(load("/backward").data(), &backward, before, after))
    return "backward does not load";
  const int64_t B = sizes[0], H = sizes[1], G = sizes[2], M = sizes[3], N = sizes[4], D = sizes[5];

  static CUdeviceptr counter = 0;
  if (!counter && (cuMemAlloc(&counter, 256) || cuMemsetD8(counter, 0, 256))) return "no memory";
  made::forward::Inputs in = {};
  in.q = tensor(at[0], B, H, M, D), in.k = tensor(at[1], B, G, N, D),
  in.v = tensor(at[2], B, G, N, D);
  in.o = tensor(at[3], B, H, M, D), in.o_f32 = tensor(at[4], B, H, M, D),
  in.lse = rows(at[5], B, H, M);
  [&](auto& given) {  // of kernels that hand out blocks one by one
    if constexpr (requires { given.counter; }) given.counter = counter;
  }(in);
  made::forward::Plan one;
  if (const char* wrong = made::forward::make_plan(in, multiprocessors, one)) return wrong;
  if (made::forward::launch(forward, one, CUstream(stream))) return "forward does not launch";

  made::backward::Inputs back = {};
  made::pass(in, back);
  back.do_rows = back.d_o = tensor(at[6], B, H, M, D);
  back.dq = tensor(at[7], B, H, M, D), back.dk = tensor(at[8], B, G, N, D),
  back.dv = tensor(at[9], B, G, N, D);
  made::backward::Plan other;
  made::backward::make_plan(back, multiprocessors, other);  // says how much its scratches need
  const auto grow = [](CUdeviceptr& data, int64_t& bytes, int64_t due) {
    bytes = due, cuMemAlloc(&data, size_t(due));
  };
  // One scratch is told of at a time.
  for (int n = 0; n < 4; ++n) {
    if (other.sum_dq_bytes > back.sum_dq_bytes)
      grow(back.sum_dq, back.sum_dq_bytes, other.sum_dq_bytes);
    if (other.offset_bytes > back.offset_bytes)
      grow(back.offset, back.offset_bytes, other.offset_bytes);
    if (other.delta_bytes > back.delta_bytes) grow(back.delta, back.delta_bytes, other.delta_bytes);
    made::backward::make_plan(back, multiprocessors, other);
  }
  if (const char* wrong = made::backward::make_plan(back, multiprocessors, other)) return wrong;
  if (made::backward::launch(backward, before, after, other, CUstream(stream)))
    return "backward does not launch";
  const bool failed = cuStreamSynchronize(CUstream(stream)) != 0;
  for (const CUdeviceptr scratch : {back.sum_dq, back.offset, back.delta}) cuMemFree(scratch);
  return failed ? "a launch ended in an error" : nullptr;
}
