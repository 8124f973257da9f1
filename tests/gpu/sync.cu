// Workers, barriers, turns and the queue. Each kernel gives its warps different delays, so that an
// order which is not enforced comes out wrong: data is read before it is written, or after it is
// overwritten. Such a test can miss an error; it cannot report one that is not there.
#include "conformance.h"

namespace conformance {
namespace {

constexpr int kUses = 400, kSlots = 3;

// A different delay for every warp and turn, up to some thousand cycles.
__device__ void dawdle(int turn) {
  const unsigned mixed = (threadIdx.x / 32 * 2654435761u) ^ (turn * 40503u + blockIdx.x * 97u);
  const long long end = clock64() + (mixed >> 7) % 3000;
  while (clock64() < end) {
  }
}

// Worker 0 fills slots, worker 1 empties them: what comes out is what went in, in order.
struct RingShared {
  int slot[kSlots][128];
  kw::Barriers<kSlots, 4> full, free;
};
__global__ void ring_kernel(int* out) {
  auto& shared = kw::shared_memory<RingShared>();
  kw::init(shared.full, shared.free);
  const int i = threadIdx.x % 128;
  for (int t = 0; t < kUses; ++t) {
    if (kw::worker_index() == 0) {
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
__global__ void __launch_bounds__(384, 1) workers_kernel(int* index, int* thread, int* kept) {
  const int x = threadIdx.x;
  int value = x * 3;
  index[x] = kw::worker_index();
  thread[x] = 0;
  for (int k = 0; k < 4; ++k) thread[x] += kw::is_thread(k) ? 1 << k : 0;
  if (kw::worker_index() == 0) {
    kw::registers_down<24>();
    value += index[x] + 1;
  } else {
    kw::registers_up<240>();
    value += thread[x];
  }
  kept[x] = value;
}

// Every warp writes, then reads its neighbour's word; two workers at once must not disturb each
// other.
__global__ void sync_kernel(int* out) {
  __shared__ int word[8];
  const int warp = threadIdx.x / 32, worker = kw::worker_index(),
            next = worker * 4 + (warp + 1) % 4;
  int wrong = 0;
  for (int t = 0; t < kUses; ++t) {
    dawdle(t);
    if (threadIdx.x % 32 == 0) word[warp] = t;
    kw::sync_worker(worker);
    wrong += *(volatile int*)&word[next] != t;
    kw::sync_worker(worker);
  }
  out[threadIdx.x] = wrong;
}

// Who had the turn: 0, 1, 0, 1, ...
__global__ void turns_kernel(int* log, int* position) {
  const int me = kw::worker_index();
  if (me == 0) kw::give_turn(0);
  for (int t = 0; t < kUses; ++t) {
    kw::take_turn(me);
    if (threadIdx.x % 128 == 0) log[atomicAdd(position, 1)] = me;
    dawdle(t);
    kw::give_turn(1 - me);
  }
}

// One thread offers, another and four warps take. Everyone notes what it saw; who[w] counts.
struct QueueShared {
  kw::Queue<2, 5> blocks;
};
__global__ void queue_kernel(unsigned* counter, int count, int* who, int* log) {
  auto& shared = kw::shared_memory<QueueShared>();
  kw::init(shared.blocks);
  int* mine = log + blockIdx.x * 3 * 1024;
  if (kw::worker_index() == 0) {
    if (kw::is_thread(0))
      for (auto [u, w] : kw::offer(shared.blocks, kw::Workspace<2>{counter}, count)) {
        atomicAdd(who + w, 1);
        mine[u] = w;
        dawdle(u);
      }
    if (kw::is_thread(1))
      for (auto [u, w] : kw::take(shared.blocks, count)) {
        atomicAdd(who + w, 1);
        mine[1024 + u] = w;
        dawdle(u);
      }
  } else {
    for (auto [u, w] : kw::take_warp(shared.blocks, count)) {
      atomicAdd(who + w, 1);
      mine[2048 + u] = w;
      dawdle(u);
    }
  }
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

void workers(Report& report) {
  Device<int> index(384), thread(384), kept(384);
  launch(workers_kernel, 1, 384, index.data(), thread.data(), kept.data());
  std::vector<int> want_index, want_thread, want_kept;
  for (int x = 0; x < 384; ++x) {
    want_index.push_back(x / 128);
    want_thread.push_back(x % 32 == 0 ? 1 << x % 128 / 32 : 0);
    want_kept.push_back(x * 3 + (x < 128 ? 1 : want_thread[x]));
  }
  report.exact("worker_index", "384 threads", index.read(), want_index);
  report.exact("is_thread", "384 threads", thread.read(), want_thread);
  report.exact("registers_up", "and registers_down keep values", kept.read(), want_kept);
}

void orders(Report& report) {
  Device<int> wrong(256), log(2 * kUses, -1), position(1);
  launch(sync_kernel, 1, 256, wrong.data());
  report.exact("sync_worker", "400 times, two workers", wrong.read(), std::vector<int>(256, 0));
  launch(turns_kernel, 1, 256, log.data(), position.data());
  std::vector<int> want;
  for (int t = 0; t < 2 * kUses; ++t) want.push_back(t % 2);
  report.exact("take_turn", "and give_turn: they alternate", log.read(), want);
}

// `count` blocks over `grid` thread blocks, twice with one counter: the second finds it zeroed.
void queue(Report& report, int grid, int count, const char* what) {
  Device<unsigned> counter(2);
  for (int launches = 0; launches < 2; ++launches) {
    Device<int> who(std::vector<int>(count + 1)), log(grid * 3 * 1024, -1);
    launch(queue_kernel, grid, 256, counter.data(), count, who.data(), log.data());
    std::vector<int> want(count + 1, 1 + 1 + 128), offered, taken, by_warps;
    want[count] = 0;
    const std::vector<int> all = log.read();
    for (int b = 0; b < grid; ++b)
      for (int u = 0; u < 1024; ++u) {
        offered.push_back(all[b * 3072 + u]);
        taken.push_back(all[b * 3072 + 1024 + u]);
        by_warps.push_back(all[b * 3072 + 2048 + u]);
      }
    report.exact("offer", what, who.read(), want);
    report.exact("take", "the offered order", taken, offered);
    report.exact("take_warp", "the offered order", by_warps, offered);
    const std::vector<unsigned> left = counter.read();
    report.exact("offer", "the counter is zero again", {int(left[0]), int(left[1])},
                 std::vector<int>{0, 0});
  }
}

}  // namespace

void test_sync(Report& report) {
  workers(report);
  rings(report);
  orders(report);
  queue(report, 7, 300, "every block once, by everyone");
  queue(report, 7, 3, "fewer blocks than thread blocks");
  queue(report, 1, 50, "one thread block");
}

}  // namespace conformance
