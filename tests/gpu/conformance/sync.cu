// Warpgroups, barriers and turns of one CTA. Each kernel gives its warps different delays, so
// that an order which is not enforced comes out wrong: data is read before it is written, or after
// it is overwritten.
#include "conformance.h"

namespace conformance {
namespace {

constexpr int kUses = 400, kSlots = 3;

// Warpgroup 0 fills slots, warpgroup 1 empties them: what comes out is what went in, in order.
struct RingShared {
  int slot[kSlots][128];
  kw::Barriers<kSlots, 4> full, free;
};
__global__ void ring_kernel(int* out) {
  auto& shared = kw::shared_memory<RingShared>();
  kw::init(shared.full, shared.free);
  const int i = threadIdx.x % 128;
  for (int t = 0; t < kUses; ++t) {
    if (kw::warpgroup_index() == 0) {
      kw::wait_free(shared.free[t]);
      dawdle(t);
      shared.slot[t % kSlots][i] = t * 1000 + i;
      __syncwarp();
      kw::arrive(shared.full[t]);
    } else {
      kw::wait(shared.full[t]);
      if (t % 4 == 0) dawdle(t);
      out[t * 128 + i] = shared.slot[t % kSlots][127 - i];
      __syncwarp();
      kw::arrive(shared.free[t]);
    }
  }
}

// Which thread is what, and values that live through a change of the register counts.
__global__ void __launch_bounds__(384, 1) warpgroups_kernel(int* index, int* thread, int* kept) {
  const int x = threadIdx.x;
  int value = x * 3;
  index[x] = kw::warpgroup_index();
  thread[x] = 0;
  for (int k = 0; k < 4; ++k) thread[x] += kw::is_thread(k) ? 1 << k : 0;
  if (kw::warpgroup_index() == 0) {
    kw::registers_down<24>();
    value += index[x] + 1;
  } else {
    kw::registers_up<240>();
    value += thread[x];
  }
  kept[x] = value;
}

// Every warp writes, then reads its neighbour's word; two warpgroups at once must not disturb each
// other.
__global__ void sync_kernel(int* out) {
  __shared__ int word[8];
  const int warp = threadIdx.x / 32, warpgroup = kw::warpgroup_index(),
            next = warpgroup * 4 + (warp + 1) % 4;
  int wrong = 0;
  for (int t = 0; t < kUses; ++t) {
    dawdle(t);
    if (threadIdx.x % 32 == 0) word[warp] = t;
    kw::sync_warpgroup(warpgroup);
    wrong += *(volatile int*)&word[next] != t;
    kw::sync_warpgroup(warpgroup);
  }
  out[threadIdx.x] = wrong;
}

// Who had the turn: 0, 1, 0, 1, ...
__global__ void turns_kernel(int* log, int* position) {
  const int me = kw::warpgroup_index();
  if (me == 0) kw::order_arrive(0);
  for (int t = 0; t < kUses; ++t) {
    kw::order_wait(me);
    if (threadIdx.x % 128 == 0) log[atomicAdd(position, 1)] = me;
    dawdle(t);
    kw::order_arrive(1 - me);
  }
}

// CTA n goes on where CTA n - 1 has left off: another order gives another number, and a CTA that
// sees an old one loses what others made of it.
using Turns = kw::Tensor<kw::scratch<float>, 'B', 'H', 'P'>;
__global__ void ctas_kernel(Turns turns, int* sums, int rows) {
  if (threadIdx.x > 0) return;
  const int n = blockIdx.x / rows, row = blockIdx.x % rows;
  dawdle(blockIdx.x);
  kw::wait_turn(turns, {0, 1, row}, 3 + n);
  volatile int* const sum = sums + row;
  const int before = *sum;
  dawdle(blockIdx.x * 7);
  *sum = (before * 31 + n) % 1000003;
  kw::pass_turn(turns, {0, 1, row}, 4 + n);
}

void rings(Report& report) {
  Device<int> out(kUses * 128);
  running = "init, wait, arrive";
  launch(ring_kernel, 1, 256, out.data());
  std::vector<int> want;
  for (int t = 0; t < kUses; ++t)
    for (int i = 0; i < 128; ++i) want.push_back(t * 1000 + 127 - i);
  report.exact("init, wait, arrive", "wait_free too: 400 uses of 3 slots", out.read(), want);
}

void warpgroups(Report& report) {
  Device<int> index(384), thread(384), kept(384);
  running = "registers_up";
  launch(warpgroups_kernel, 1, 384, index.data(), thread.data(), kept.data());
  std::vector<int> want_index, want_thread, want_kept;
  for (int x = 0; x < 384; ++x) {
    want_index.push_back(x / 128);
    want_thread.push_back(x % 32 == 0 ? 1 << x % 128 / 32 : 0);
    want_kept.push_back(x * 3 + (x < 128 ? 1 : want_thread[x]));
  }
  report.exact("warpgroup_index", "384 threads", index.read(), want_index);
  report.exact("is_thread", "384 threads", thread.read(), want_thread);
  report.exact("registers_up", "and registers_down keep values", kept.read(), want_kept);
}

void orders(Report& report) {
  Device<int> wrong(256), log(2 * kUses, -1), position(1);
  running = "sync_warpgroup";
  launch(sync_kernel, 1, 256, wrong.data());
  report.exact("sync_warpgroup", "400 times, two warpgroups", wrong.read(),
               std::vector<int>(256, 0));
  running = "order_wait";
  launch(turns_kernel, 1, 256, log.data(), position.data());
  std::vector<int> want;
  for (int t = 0; t < 2 * kUses; ++t) want.push_back(t % 2);
  report.exact("order_wait", "and order_arrive: they alternate", log.read(), want);
}

void turns_of_ctas(Report& report) {
  constexpr int kRows = 5, kCtas = 60;
  Device<float> values(2 * kRows, 3);
  Device<int> sums(kRows, 1);
  Turns turns;
  static_cast<kw::Tensor<const float, 'B', 'H', 'P'>&>(turns) = {
      values.data(), {2 * kRows, kRows, 1}, {1, 2, kRows}};
  running = "wait_turn";
  launch(ctas_kernel, kCtas * kRows, 32, turns, sums.data(), kRows);
  std::vector<int> want(kRows, 1);
  std::vector<int> left(2 * kRows, 3);
  for (int row = 0; row < kRows; ++row) {
    for (int n = 0; n < kCtas; ++n) want[row] = (want[row] * 31 + n) % 1000003;
    left[kRows + row] = 3 + kCtas;
  }
  report.exact("wait_turn", "60 CTAs at each of five rows", sums.read(), want);
  std::vector<int> kept;
  for (float x : values.read()) kept.push_back(int(x));
  report.exact("pass_turn", "what the last one leaves", kept, left);
}

}  // namespace

void test_sync(Report& report) {
  turns_of_ctas(report);
  warpgroups(report);
  rings(report);
  orders(report);
}

}  // namespace conformance
