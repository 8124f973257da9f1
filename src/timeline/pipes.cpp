#include "timeline/pipes.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kw::timeline {
namespace {

constexpr double kDone = 1e-6;

std::array<double, 4> pipes_of(const Demand& d) { return {d.issue, d.fma, d.alu, d.mufu}; }

}  // namespace

void Pipes::advance(double now) {
  for (Job& job : jobs_) job.left -= (now - now_) * job.speed;
  now_ = now;
}

void Pipes::add(int id, const Demand& demand) {
  const double alone = std::max(demand.alone(), kDone);
  jobs_.push_back({id, demand, alone, alone, 0});
  share();
}

std::vector<int> Pipes::finished() {
  std::vector<int> done;
  for (const Job& job : jobs_)
    if (job.left <= kDone) done.push_back(job.id);
  if (done.empty()) return done;
  std::erase_if(jobs_, [](const Job& job) { return job.left <= kDone; });
  share();
  return done;
}

double Pipes::next() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Job& job : jobs_) least = std::min(least, now_ + std::max(0.0, job.left) / job.speed);
  return least;
}

void Pipes::share() {
  std::vector<Job*> rising;
  for (Job& job : jobs_) {
    job.speed = 0;
    rising.push_back(&job);
  }
  std::array<double, 4> room = {1, 1, 1, 1};
  double level = 0;  // the speed of all that still rise
  while (!rising.empty()) {
    std::array<double, 4> slope{};
    for (const Job* job : rising)
      for (size_t p = 0; p < slope.size(); ++p) slope[p] += pipes_of(job->demand)[p] / job->alone;
    double step = 1 - level;
    int full = -1;
    for (size_t p = 0; p < slope.size(); ++p)
      if (slope[p] * step > room[p] + 1e-12) {
        step = room[p] / slope[p];
        full = int(p);
      }
    level += step;
    for (size_t p = 0; p < slope.size(); ++p) room[p] = std::max(0.0, room[p] - slope[p] * step);
    for (Job* job : rising) job->speed = level;
    if (full < 0) break;
    std::erase_if(rising, [&](const Job* job) { return pipes_of(job->demand)[full] > 0; });
  }
}

}  // namespace kw::timeline
