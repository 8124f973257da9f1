// CTAs of a cluster (CTAs): who is which, waiting for all, and barriers at which an
// arrival counts in every CTA. Each CTA and warp dawdles differently, so whoever does not wait for
// the others is seen: it reads what is not yet written or already overwritten.
//
// Marks in global memory say who has come how far. `wrong` counts marks that are not as they must
// be.
#include "conformance.h"

namespace conformance {
namespace {

constexpr int kRounds = 200, kWarps = 4;

template <int kCtas>
__global__ void rank_kernel(int* rank, int* number) {
  rank[blockIdx.x * blockDim.x + threadIdx.x] = kw::cluster<kCtas>();
  number[blockIdx.x * blockDim.x + threadIdx.x] = kw::cluster_index(int(gridDim.x) / kCtas);
}

// Every warp marks its round; after the sync every thread must see the mark of each warp of each
// CTA of its own cluster.
template <int kCtas>
__global__ void sync_cluster_kernel(int* marks, int* wrong) {
  const int warp = threadIdx.x / 32, mine = blockIdx.x * kWarps + warp;
  volatile int* cluster = marks + blockIdx.x / kCtas * kCtas * kWarps;
  int bad = 0;
  for (int t = 0; t < kRounds; ++t) {
    dawdle(t);
    if (threadIdx.x % 32 == 0) *(volatile int*)(marks + mine) = t + 1;
    kw::sync_cluster();
    for (int n = 0; n < kCtas * kWarps; ++n) bad += cluster[n] != t + 1;
    kw::sync_cluster();
  }
  wrong[blockIdx.x * blockDim.x + threadIdx.x] = bad;
}

// Warpgroup 1 of every CTA arrives, a mark by each warp before; warpgroup 0 of every CTA waits, then must
// see all marks of the cluster. wait_free of the next use of the slot waits for the same arrivals.
template <int kCtas>
struct ArriveShared {
  kw::Barriers<2, kWarps, kCtas> done;
};
template <int kCtas>
__global__ void arrive_kernel(int* marks, int* wrong) {
  auto& shared = kw::shared_memory<ArriveShared<kCtas>>();
  kw::init(shared.done);
  kw::sync_cluster();
  int* came = marks + blockIdx.x / kCtas * kRounds;
  int bad = 0;
  for (int t = 0; t < kRounds; ++t) {
    if (kw::warpgroup_index() == 1) {
      dawdle(t);
      if (threadIdx.x % 32 == 0) {
        atomicAdd(came + t, 1);
        __threadfence();
      }
      __syncwarp();
      kw::arrive(shared.done[t]);
    } else {
      if (t % 2)
        kw::wait(shared.done[t]);
      else
        kw::wait_free(shared.done[t + 2]);
      __threadfence();
      bad += *(volatile int*)(came + t) != kCtas * kWarps;
    }
    kw::sync_cluster();
  }
  wrong[blockIdx.x * blockDim.x + threadIdx.x] = bad;
}

// Slots as a kernel uses them, two in turn and without any other sync. Every warp of every CTA has
// a word a slot in global memory, which it reads late; the filler of a CTA writes the words of the
// next CTA, so it must wait for the arrivals of that CTA's warps, and they for its own.
template <int kCtas>
struct RingShared {
  kw::Barriers<2, 1, kCtas> full;  // one warp of each CTA
  kw::Barriers<2, kWarps, kCtas> free;
};
template <int kCtas>
__global__ void ring_kernel(int* slots, int* wrong) {
  auto& shared = kw::shared_memory<RingShared<kCtas>>();
  kw::init(shared.full, shared.free);
  kw::sync_cluster();
  int* words = slots + blockIdx.x / kCtas * (2 * kCtas * kWarps);
  const int cta = kw::cluster<kCtas>(), warp = threadIdx.x / 32;
  int bad = 0;
  if (warp < kWarps) {  // readers
    for (int t = 0; t < kRounds; ++t) {
      kw::wait(shared.full[t]);
      if (t % 3) dawdle(t);
      bad += *(volatile int*)(words + (t % 2 * kCtas + cta) * kWarps + warp) != t;
      __threadfence();  // has read before it gives back
      __syncwarp();
      kw::arrive(shared.free[t]);
    }
  } else if (warp == kWarps) {  // the filler
    for (int t = 0; t < kRounds; ++t) {
      kw::wait_free(shared.free[t]);
      if (threadIdx.x % 32 == 0) {
        const int there = (cta + 1) % kCtas;
        for (int n = 0; n < kWarps; ++n)
          *(volatile int*)(words + (t % 2 * kCtas + there) * kWarps + n) = t;
        __threadfence();
      }
      __syncwarp();
      kw::arrive(shared.full[t]);
    }
  }
  wrong[blockIdx.x * blockDim.x + threadIdx.x] = bad;
  kw::sync_cluster();
}

// Tiles that the CTAs of a pair send each other, two slots in turn: one warpgroup writes them, a thread sends, and another
// warpgroup reads late what has come and then gives both slots back, in both CTAs.
struct SendShared {
  kw::Ring<kw::SharedTile<kw::bf16, 64, 64>, 2> from, to;
  kw::Barriers<2, kWarps> ready;
  kw::Barriers<2, 1> full;
  kw::Barriers<2, kWarps, 2> free;
};
__global__ void send_kernel(int* wrong) {
  auto& shared = kw::shared_memory<SendShared>();
  kw::init(shared.ready, shared.full, shared.free);
  const int cta = kw::cluster<2>(), lane = threadIdx.x % 128;
  kw::sync_cluster();
  int bad = 0;
  const auto word = [](int t, int cta, int n) { return unsigned(t * 2 + cta) << 16 | unsigned(n); };
  const auto words = [](auto& tile) { return reinterpret_cast<volatile unsigned*>(&tile); };
  for (int t = 0; t < kRounds; ++t) {
    if (kw::warpgroup_index() == 0) {
      kw::wait_free(shared.free[t]);
      for (int n = lane; n < 64 * 32; n += 128) words(shared.from[t])[n] = word(t, cta, n);
      kw::fence_async();
      kw::arrive(shared.ready[t]);
    } else if (kw::warpgroup_index() == 1) {
      if (lane != 0) continue;
      kw::wait(shared.ready[t]);
      kw::tma_send(shared.from[t], shared.to[t], shared.full[t]);
    } else {
      kw::wait(shared.full[t]);
      if (t % 3) dawdle(t);
      for (int n = lane; n < 64 * 32; n += 128) bad += words(shared.to[t])[n] != word(t, 1 - cta, n);
      __syncwarp();
      kw::arrive(shared.free[t]);
    }
  }
  wrong[blockIdx.x * blockDim.x + threadIdx.x] = bad;
  kw::sync_cluster();
}

template <int kCtas>
void clusters(Report& report, const char* what) {
  constexpr int kClusters = 3, kBlocks = kClusters * kCtas;
  Device<int> rank(kBlocks * 32, -1), number(kBlocks * 32, -1);
  running = "cluster";
  launch_clusters(kCtas, rank_kernel<kCtas>, kBlocks, 32, rank.data(), number.data());
  std::vector<int> want, numbers;
  for (int n = 0; n < kBlocks * 32; ++n) {
    want.push_back(n / 32 % kCtas);
    numbers.push_back(n / 32 / kCtas);
  }
  report.exact("cluster", what, rank.read(), want);
  report.exact("cluster_index", what, number.read(), numbers);

  Device<int> at(kBlocks * kWarps), late(kBlocks * 128, -1);
  running = "sync_cluster";
  launch_clusters(kCtas, sync_cluster_kernel<kCtas>, kBlocks, 128, at.data(), late.data());
  report.exact("sync_cluster", what, late.read(), std::vector<int>(kBlocks * 128, 0));

  Device<int> came(kClusters * kRounds), early(kBlocks * 256, -1);
  running = "cluster_barrier";
  launch_clusters(kCtas, arrive_kernel<kCtas>, kBlocks, 256, came.data(), early.data());
  report.exact("cluster_barrier", what, early.read(), std::vector<int>(kBlocks * 256, 0));

  Device<int> slots(kClusters * 2 * kCtas * kWarps, -1), overwritten(kBlocks * 256, -1);
  launch_clusters(kCtas, ring_kernel<kCtas>, kBlocks, 256, slots.data(), overwritten.data());
  report.exact("cluster_barrier", "200 uses of 2 slots", overwritten.read(),
               std::vector<int>(kBlocks * 256, 0));
}

}  // namespace

void test_clusters(Report& report) {
  clusters<1>(report, "3 CTAs alone");
  clusters<2>(report, "3 clusters of 2");
  clusters<4>(report, "3 clusters of 4");
  Device<int> wrong(6 * 384, -1);
  running = "tma_send";
  launch_clusters(2, send_kernel, 6, 384, wrong.data());
  report.exact("tma_send", "200 tiles in 2 slots, 3 clusters", wrong.read(), std::vector<int>(6 * 384, 0));
}

}  // namespace conformance
