// Turns: CTAs that add to the same sums, one after another, so that a sum's last bits are the same in every run.
//
//   kw::wait_turn(args.turns, {b, h, row}, n);      one thread, which tells the one that adds by a barrier
//   kw::pass_turn(args.turns, {b, h, row}, n + 1);  the one that has added, behind kw::tma_store_wait(), or has waited
//                                                   for the arrivals of the warps that have, behind kw::add_tile
//
// A pre-pass has written the first number. CTAs wait for none that is launched behind them: one that waits keeps
// its multiprocessor. The copy engine works beside the thread's own accesses; a fence between the two stands
// where the turn has come, as another does behind the tile's writers.
#pragma once
#include "../tile/tensors.cuh"
#include "warpgroups.cuh"
namespace kw {

namespace detail {
template <char... Dims> KW_DEVICE float* turn_at(const Tensor<scratch<float>, Dims...>& turns, Coords at) {
  return turns.row_to_write(at.batch, at.head, 0) + at.row;
}
}  // namespace detail

template <char... Dims> KW_DEVICE void wait_turn(const Tensor<scratch<float>, Dims...>& turns, Coords at, int number) {
  const float* const turn = detail::turn_at(turns, at);
  while (ptx::load_acquire(turn) != float(number)) {
  }
  ptx::fence_async_global();
}

template <char... Dims> KW_DEVICE void pass_turn(const Tensor<scratch<float>, Dims...>& turns, Coords at, int number) {
  ptx::store_release(detail::turn_at(turns, at), float(number));
}

}  // namespace kw
