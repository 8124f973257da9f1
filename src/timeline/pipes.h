// What the warps of one multiprocessor share while they compute.
//
// A job is one warpgroup's arithmetic between two synchronisations. Alone it takes its busiest
// pipe's cycles; together, jobs slow down where a pipe would be asked for more than all of it.
// Speeds are max-min fair: all rise together until a pipe is full, and those that do not need it
// rise on.
#pragma once
#include <vector>

#include "timeline/cost.h"

namespace kw::timeline {

class Pipes {
 public:
  struct Job {
    int id = 0;
    Demand demand;
    double alone = 0, left = 0, speed = 0;  // cycles alone, of these still to go, share of full
  };

  // Takes the time up to `now` off what is under way.
  void advance(double now);
  void add(int id, const Demand& demand);
  // Ids of jobs that are done, taken out.
  std::vector<int> finished();
  // When the next one is done if nobody comes; infinite when there is none.
  double next() const;

 private:
  void share();
  std::vector<Job> jobs_;
  double now_ = 0;
};

}  // namespace kw::timeline
