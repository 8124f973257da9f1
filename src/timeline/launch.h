// A launch of a program at a shape: its blocks, the kinds that they are of, and the order in which
// clusters come to them.
#pragma once
#include "schedules/instances.h"
#include "timeline/predict.h"

namespace kw::timeline {

enum class Order { dealt, queued };

// The shape with those of the program's sizes that follow from others: G is H, N is M. Of a
// product, which has a size K, B and H are 1.
Shape completed(const tl::Program& program, Shape shape);

class LaunchModel {
 public:
  // Null with diagnostics where the program does not fit the shape or cannot be walked.
  static std::unique_ptr<LaunchModel> make(const tl::Program& program, const Gpu& gpu,
                                           const Shape& shape, Diagnostics& diagnostics);

  struct Kind {
    int64_t first = 0;                                // a block of it
    int64_t turns = 0;                                // of all loops of all agents
    double lone = 0, period = 0, busy = 0, flop = 0;  // cycles: alone, among others, of products
  };

  // Which kind each block is of; kinds are ordered by turns.
  const std::vector<int>& blocks() const { return kind_of_; }
  std::vector<Kind>& kinds() { return kinds_; }
  // `repeat` blocks like w, one after the other.
  std::optional<Timeline> simulate(int64_t w, int repeat, bool record, Diagnostics& diagnostics);

  Order order() const { return order_; }
  bool loops() const { return walker_->loops_over_blocks(); }
  int resident() const { return resident_; }
  int64_t slots() const { return slots_; }  // clusters, or CTAs, at a time
  double tensor_bytes() const { return tensor_bytes_; }

 private:
  LaunchModel(const tl::Program& program, const Gpu& gpu) : program_(program), gpu_(gpu) {}
  bool survey(Diagnostics& diagnostics);
  std::vector<int64_t> turns(int64_t w, Diagnostics& diagnostics);
  bool read_program(Diagnostics& diagnostics);
  int64_t shared_bytes() const;
  exec::schedule::Block block(int64_t w) const { return {sized_, w, 0, ""}; }

  const tl::Program& program_;
  const Gpu& gpu_;
  std::shared_ptr<exec::schedule::Sized> sized_;
  std::unique_ptr<exec::schedule::Walker> walker_;
  std::vector<int> kind_of_;
  std::vector<Kind> kinds_;
  Order order_ = Order::queued;
  int resident_ = 1;
  int64_t slots_ = 1;
  double tensor_bytes_ = 0;
  std::string dtype_ = "bf16";
};

}  // namespace kw::timeline
