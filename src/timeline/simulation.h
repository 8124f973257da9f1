// The state of a simulation, and its loop. Internal to simulate*.cpp.
#pragma once
#include <deque>
#include <limits>
#include <queue>
#include <tuple>

#include "timeline/pipes.h"
#include "timeline/simulate.h"

namespace kw::timeline {

using namespace exec::schedule;

constexpr double kForever = std::numeric_limits<double>::infinity();

struct Product {
  int agent = 0;
  double cycles = 0;
  const tl::Stmt* stmt = nullptr;
};

struct Processor {
  Pipes pipes;
  std::deque<Product> products;  // the first is running
  double product_begin = 0, product_end = kForever, busy = 0;
  double reading = 0, coming = 0, going = 0;  // until when: from L2, into shared memory, out of it
};

// Of a ring of mbarriers.
struct Slot {
  int64_t completed = 0;
  int arrived = 0, missing = 0;
  std::vector<int> waiting;
};

// A named barrier.
struct Meeting {
  int64_t generation = 0;
  int arrived = 0;
  std::vector<int> waiting;
};

struct Agent {
  int actor = 0, copy = 0, processor = 0, track = 0;
  size_t at = 0;
  Demand pending;  // instructions beside the arithmetic that have not been run yet
  struct Piece {
    const tl::Stmt* stmt;
    double weight;
  };
  std::vector<Piece> pieces;  // of the job under way
  const tl::Stmt* waits = nullptr;
  double since = 0;   // when it began to wait, or its job
  int64_t turn = -1;  // generation of the named barrier that it has come to
  int operands = 0, issued = 0, done = 0, target = -1;
  double reading = 0, copying = 0, storing = 0, stored = 0;  // when the latest is done
  double bringing = -1;  // until when it waits for a copy_in; negative: for none
  std::vector<double> commits;
};

class Simulation {
 public:
  Simulation(const Tables& tables, const std::vector<Stream>& streams, const Gpu& gpu,
             const SimulateOptions& options, Diagnostics& diagnostics);
  std::optional<Timeline> run();

 private:
  // Something that happens by itself: an agent may go on, or (agent -1) a copy arrives.
  struct Due {
    double at;
    int64_t order;
    int agent, slot, ring;
    bool operator>(const Due& o) const { return std::tie(at, order) > std::tie(o.at, o.order); }
  };

  // simulate.cpp: time
  void add_tracks();
  bool settle();
  void end_product(Processor& p);
  void end_job(int agent);
  void advance(int agent);
  void deadlock();
  bool sleep(int agent, const Event& e);
  void wake(int agent, double at) { queue_.push({at, order_++, agent, 0, 0}); }
  void bar(int track, BarKind kind, double begin, double end, const tl::Stmt* s);

  // simulate_events.cpp: what each event does. False: the agent does not go on.
  bool step(int agent, const Event& e);
  bool wait(int agent, const Event& e, int64_t use);
  bool wgmma_wait(int agent, const Event& e);
  bool meet(int agent, const Event& e);
  bool compute(int agent, const Event& e);
  bool multiply(int agent, const Event& e);
  bool until(int agent, const Event& e, double time);
  void issue(int agent, const Event& e, bool async);
  void start_product(Processor& p);
  bool bring(int agent, const Event& e);
  void fill(int agent, const Event& e);
  double read_l2(int agent, const Event& e, bool again);
  void store(int agent, const Event& e);
  bool move(int agent, const Event& e);
  void arrive(int slot, int ring, int count, int parts);
  void mark(int agent);
  void run_job(int agent, const Demand& demand);
  double bytes(const Event& e) const;
  double flop_per_cycle(bool async);
  double l2_share() const { return gpu_.l2_bytes_per_cycle / gpu_.multiprocessors; }
  int slot_of(const Agent& a, int ring, int64_t use) const {
    return a.copy * t_.slots + t_.rings[ring].first + int(use % t_.rings[ring].length);
  }

  const Tables& t_;
  const std::vector<Stream>& streams_;
  const Gpu& gpu_;
  const SimulateOptions& o_;
  Diagnostics& diagnostics_;
  Timeline out_;
  std::vector<Processor> processors_;
  std::vector<Agent> agents_;
  std::vector<Slot> slots_;
  std::vector<Meeting> meetings_;
  std::vector<std::vector<double>> marks_;  // of each agent
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
  int64_t order_ = 0;
  double now_ = 0;
  int tensor_track_ = 0, copy_track_ = 0;
  bool failed_ = false;
};

}  // namespace kw::timeline
