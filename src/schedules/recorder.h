// Who writes down one agent's events while walking it. Internal to this folder.
#pragma once
#include <random>
#include <set>

#include "schedules/walk.h"

namespace kw::exec::schedule {

// A register tile or row vector of one agent, whether a product owns it, and which scores a tile
// holds or a lane sum has summed.
struct Register {
  bool defined = false;
  const tl::Stmt* in_flight = nullptr;
  std::shared_ptr<Scores> scores = std::make_shared<Scores>();
  Seen of;
};

class Pen {
 public:
  Pen(Walker& walker, int actor, ThreadBlock& block, const std::vector<Block>& sequence, Arms arms);
  // Walks to the end, or to a fault of the machine at hand.
  Stream run();
  Machine& machine() { return *m_; }

 private:
  // dispatch.cpp: which of the following a statement is
  Next record(const tl::Stmt& s);
  bool lacks_lanes(tl::Op op) const;

  // walk.cpp: control
  void step();
  Next var(const tl::Stmt& s);
  Next range_down_counted(const tl::Stmt& s);
  Next thread(const tl::Stmt& s);
  Next loop_over_blocks(const tl::Stmt& s);
  Next schedule_tiles(const tl::Stmt& s);
  int64_t begin_block(const tl::Stmt& s, int64_t u);

  // record.cpp: what statements touch and whom they wait for
  static constexpr int64_t kMeetBlock = -1, kMeetCluster = -2;  // beside the named barriers
  Next at(Kind kind, const tl::Stmt& s);
  Next init(const tl::Stmt& s);
  Next arrive(const tl::Stmt& s);
  Next turn(const tl::Stmt& s, Kind kind, int64_t first, int warps);
  Next turn_at(const tl::Stmt& s, Kind kind, int64_t id, int warps);
  Next sum_line(const tl::Stmt& s);
  Next meet(const tl::Stmt& s, int cta, int64_t id);
  Next cp_async_wait(const tl::Stmt& s);
  Next tma_load(const tl::Stmt& s);
  Next multicast(const tl::Stmt& s);
  Next send(const tl::Stmt& s);
  Next tma_store(const tl::Stmt& s);
  Next fill_columns(const tl::Stmt& s);
  Next add_columns(const tl::Stmt& s);
  Next warpgroup_copy(const tl::Stmt& s);
  Next upcast(const tl::Stmt& s);
  Next load(const tl::Stmt& s);
  Next store(const tl::Stmt& s);
  Next product(const tl::Stmt& s);
  void take_turns(const tl::Stmt& s, int64_t u);

  Event& emit(Kind kind, const tl::Stmt& s);
  Event& at_barrier(Kind kind, const tl::Stmt& s, tl::Hole hole, int cta);
  Event& at_ring(Kind kind, const tl::Stmt& s, int cta, const std::string& name, int64_t use);
  Event& at_tile(Kind kind, const tl::Stmt& s, tl::Hole hole, const Region& r, int cta = -1);
  int8_t counter_of(const tl::ExprPtr& index) const;
  bool is_tile(const tl::Stmt& s, tl::Hole hole) const;
  Region whole(const tl::Stmt& s, tl::Hole hole);
  Region rows_read(const tl::Stmt& s, tl::Hole hole);
  Region rows_of_warp(const tl::Stmt& s, tl::Hole hole, int columns = 0);
  Region columns(const tl::Stmt& s, tl::Hole hole, int columns);
  Region share(const tl::Stmt& s, tl::Hole hole, int64_t by);
  Region share_of_values(const tl::Stmt& s, tl::Hole hole, int64_t by);
  Region part(const tl::Stmt& s, tl::Hole hole, int rank);
  const Tables::Shape& shape(const tl::Stmt& s, tl::Hole hole);
  int strand_of(const tl::Stmt& s, tl::Hole hole, int cta, int64_t& use);

  // registers.cpp: this agent's registers
  Next declare(const tl::Stmt& s);
  void touches(const tl::Stmt& s);
  Next work(const tl::Stmt& s);
  Next online_max(const tl::Stmt& s);
  Next any_exceeds(const tl::Stmt& s);
  Next any_differs(const tl::Stmt& s);
  Next row_sum(const tl::Stmt& s);
  Next result(const tl::Stmt& s);
  void set_flag(const tl::Stmt& s, Seen of);
  int64_t wgmma_wait_group(const tl::Stmt& s);  // how many it leaves under way
  Next wgmma_wait(const tl::Stmt& s);
  void compute(const tl::Stmt& s, const std::string& name, int depth = 0);
  void shorten(const tl::Stmt& s);
  void reads(const tl::Stmt& s, const tl::ExprPtr& e);
  void reads(const tl::Stmt& s, const std::string& name, bool operand = false);
  void writes(const tl::Stmt& s, const std::string& name);
  void blame(const char* code, const tl::Stmt& s, const std::string& message,
             const tl::Stmt* other = nullptr);

  Walker& w_;
  Tables& t_;
  const std::vector<Block>& sequence_;
  Arms arms_;
  std::mt19937_64 random_;
  Machine* m_;
  Agent a_;
  int actor_, warp_;
  Stream out_;
  std::string block_counter_;
  std::vector<std::string> vars_;
  std::map<std::string, Register> registers_;
  std::map<std::string, Tables::Work> extents_;  // of register tiles and vectors
  struct Flight {
    std::string accumulator, left;
    const tl::Stmt* stmt;
    bool complete = false;
  };
  std::vector<Flight> flights_;
  friend class Walker;
};

}  // namespace kw::exec::schedule
