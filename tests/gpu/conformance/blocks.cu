// Who works on which block of the output: dealt out in turn, or drawn from a queue. Everyone counts
// the blocks that it is given and notes them in order: each block must come once for everyone, and
// all of a cluster must see the same ones in the same order.
#include "conformance.h"

namespace conformance {
namespace {

constexpr int kLog = 512;  // notes a CTA; no test gives one so many

// What a kernel writes: who[w] counts block w, who[count] blocks that do not exist; a log of w for
// each CTA and kind of taker, -1 where there is none.
struct Notes {
  int *who, *log;
  int count, takers;
  __device__ void operator()(int taker, int u, int w) const {
    atomicAdd(who + (w >= 0 && w < count ? w : count), 1);
    if (u >= 0 && u < kLog) log[(blockIdx.x * takers + taker) * kLog + u] = w;
  }
};

template <int kCtas>
__global__ void deal_kernel(int count, Notes notes) {
  for (auto [u, w] : kw::static_tiles<kCtas>(count)) {
    if (u >= kLog) return;
    notes(0, u, w);
  }
}

// One thread offers; another and four warps take, in every CTA.
template <int kCtas>
struct QueueShared {
  kw::Queue<2, 5, kCtas> blocks;
};
template <int kCtas>
__global__ void queue_kernel(unsigned* counter, int count, Notes notes) {
  auto& shared = kw::shared_memory<QueueShared<kCtas>>();
  kw::init(shared.blocks);
  kw::sync_cluster();
  if (kw::warpgroup_index() == 0) {
    if (kw::is_thread(0)) kw::schedule_tiles(shared.blocks, kw::Workspace<2>{counter}, count);
    if (kw::is_thread(1))
      for (auto [u, w] : kw::dynamic_tiles(shared.blocks, count)) {
        notes(0, u, w);
        dawdle(u);
      }
  } else {
    for (auto [u, w] : kw::dynamic_tiles_warp(shared.blocks, count)) {
      notes(1, u, w);
      dawdle(u + 7);
    }
  }
  kw::sync_cluster();
}

// The part of all logs that taker `taker` of CTA `block` wrote.
std::vector<int> log_of(const std::vector<int>& logs, int takers, int block, int taker) {
  const auto from = logs.begin() + (block * takers + taker) * kLog;
  return {from, from + kLog};
}

std::vector<int> once_each(int count, int times) {
  std::vector<int> want(count, times);
  want.push_back(0);
  return want;
}

// `clusters` clusters static_tiles `count` blocks.
template <int kCtas>
void static_tiles(Report& report, int clusters, int count, const char* what) {
  Device<int> who(count + 1), log(clusters * kCtas * kLog, -1);
  running = "static_tiles";
  launch_clusters(kCtas, deal_kernel<kCtas>, clusters * kCtas, 32, count,
                  Notes{who.data(), log.data(), count, 1});
  report.exact("static_tiles", what, who.read(), once_each(count, kCtas * 32));
  std::vector<int> want;
  for (int block = 0; block < clusters * kCtas; ++block)
    for (int u = 0; u < kLog; ++u) {
      const int w = block / kCtas + u * clusters;
      want.push_back(w < count ? w : -1);
    }
  report.exact("static_tiles", "in turn, each CTA of a cluster the same", log.read(), want);
}

// `count` blocks over `clusters` clusters, three times with one counter: it must be zero again.
template <int kCtas>
void queue(Report& report, int clusters, int count, const char* what) {
  Device<unsigned> counter(2);
  for (int launches = 0; launches < 3; ++launches) {
    Device<int> who(count + 1), log(clusters * kCtas * 2 * kLog, -1);
    running = "schedule_tiles";
    launch_clusters(kCtas, queue_kernel<kCtas>, clusters * kCtas, 256, counter.data(), count,
                    Notes{who.data(), log.data(), count, 2});
    report.exact("schedule_tiles", what, who.read(), once_each(count, kCtas * (1 + 128)));
    const std::vector<unsigned> left = counter.read();
    report.exact("schedule_tiles", "the counter is zero again", {int(left[0]), int(left[1])},
                 std::vector<int>{0, 0});
    const std::vector<int> logs = log.read();
    std::vector<int> drawn, taken, by_warps, first, want_first;  // drawn: as CTA 0's thread took
    for (int block = 0; block < clusters * kCtas; ++block) {
      const std::vector<int> leader = log_of(logs, 2, block / kCtas * kCtas, 0),
                             one = log_of(logs, 2, block, 0), warps = log_of(logs, 2, block, 1);
      drawn.insert(drawn.end(), leader.begin(), leader.end());
      taken.insert(taken.end(), one.begin(), one.end());
      by_warps.insert(by_warps.end(), warps.begin(), warps.end());
      first.push_back(one[0]);
      want_first.push_back(block / kCtas < count ? block / kCtas : -1);
    }
    report.exact("schedule_tiles", "a cluster's own number first", first, want_first);
    report.exact("dynamic_tiles", "the same in every CTA", taken, drawn);
    report.exact("dynamic_tiles_warp", "the same in every CTA", by_warps, drawn);
  }
}

}  // namespace

void test_blocks(Report& report) {
  static_tiles<1>(report, 7, 300, "300 blocks, 7 CTAs");
  static_tiles<1>(report, 7, 3, "fewer blocks than CTAs");
  static_tiles<2>(report, 5, 301, "301 blocks, 5 clusters of 2");
  static_tiles<2>(report, 5, 4, "fewer blocks than clusters of 2");
  static_tiles<4>(report, 3, 100, "100 blocks, 3 clusters of 4");
  queue<1>(report, 7, 300, "300 blocks, 7 CTAs");
  queue<1>(report, 7, 3, "fewer blocks than CTAs");
  queue<1>(report, 1, 50, "one CTA");
  queue<2>(report, 7, 300, "300 blocks, 7 clusters of 2");
  queue<2>(report, 7, 3, "fewer blocks than clusters of 2");
  queue<2>(report, 1, 50, "one cluster of 2");
  queue<4>(report, 3, 100, "100 blocks, 3 clusters of 4");
}

}  // namespace conformance
