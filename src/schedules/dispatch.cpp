// What each statement does to an agent: one case a statement, and no default, so that a new one
// does not compile until it says what it touches. What it reads and writes of registers stands in
// the table (tl/traits.h); what is shared between agents is said by the functions named here.
#include <fmt/format.h>

#include "exec/ops/exec_ops.h"
#include "schedules/recorder.h"
#include "tl/traits.h"

namespace kw::exec::schedule {

using tl::By;
using tl::Op;
using tl::Stmt;

namespace {

const char* all_of(By by) {
  return by == By::cluster     ? "its cluster"
         : by == By::block     ? "its CTA"
         : by == By::warpgroup ? "its warpgroup"
                               : "its warp";
}

}  // namespace

// Whether one thread comes to what needs more. Outside their `thread` blocks the loader's threads
// stand for all of their warpgroup, which meets the others at the kernel's begin and end.
bool Pen::lacks_lanes(Op op) const {
  const bool one = a_.guarded() || (a_.thread >= 0 && tl::traits(op).by < By::block);
  return one && tl::needs_all_lanes(op);
}

Next Pen::record(const Stmt& s) {
  if (lacks_lanes(s.op)) {
    blame("exec.sync", s,
          fmt::format("{} is run by one thread and needs all of {}", cite(s),
                      all_of(tl::traits(s.op).by)));
    return Next::on;
  }
  switch (s.op) {
    case Op::warpgroup:
    case Op::warpgroups:
    case Op::cluster:
    case Op::registers_up:
    case Op::range:
    case Op::if_:
    case Op::step:
    case Op::call:
    case Op::let:
    case Op::flag:
    case Op::count:
      return execute(*m_, a_, s);
    case Op::thread:
      return thread(s);
    case Op::static_tiles:
    case Op::dynamic_tiles:
    case Op::dynamic_tiles_warp:
      return loop_over_blocks(s);
    case Op::schedule_tiles:
      return schedule_tiles(s);
    case Op::range_down_rolled:
    case Op::range_down_counted:
    case Op::range_down:
      return range_down_counted(s);
    case Op::var:
      return var(s);
    case Op::init:
      return init(s);
    case Op::sync_cluster:
      return meet(s, 0, kMeetCluster);
    case Op::sync_block:
      return meet(s, a_.block->rank, 0);
    case Op::sync_warpgroup:
      return turn(s, Kind::sync, 8, 4);
    case Op::order_wait:
      return turn(s, Kind::sync, 1, 8);
    case Op::order_arrive:
      return turn(s, Kind::give, 1, 8);
    case Op::sum_line:
      return sum_line(s);
    case Op::wait:
      return at(Kind::wait, s);
    case Op::wait_free:
      return at(Kind::wait_free, s);
    case Op::arrive:
      return arrive(s);
    case Op::fence_async:
      return at(Kind::fence_async, s);
    case Op::tma_store_wait_read:
      return at(Kind::tma_store_wait_read, s);
    case Op::tma_store_wait:
      return at(Kind::tma_store_wait, s);
    // Between CTAs, in the order of their launch: the turn comes. What a CTA's own threads owe each
    // other for it stands in the laws (tl/laws/turns.cpp) and at its barriers.
    case Op::wait_turn:
    case Op::pass_turn:
      return Next::on;
    case Op::cp_async_commit:
      return at(Kind::commit, s);
    case Op::cp_async_wait:
      return cp_async_wait(s);
    case Op::wgmma_wait:
      return wgmma_wait(s);
    case Op::wgmma_wait_group:
      wgmma_wait_group(s);
      return Next::on;
    case Op::tma_load:
    case Op::tma_load_pages:
    case Op::tma_load_tile:
    case Op::tma_load_rows:
      return tma_load(s);
    case Op::tma_load_multicast:
      return multicast(s);
    case Op::tma_send:
      return send(s);
    case Op::tma_store:
    case Op::tma_store_tile:
    case Op::tma_add:
      return tma_store(s);
    case Op::cp_async:
    case Op::copy_in:
    case Op::copy_out:
    case Op::cp_async_tile:
    case Op::cp_async_rows:
    case Op::copy_tile_in:
    case Op::copy_tile_out:
      return warpgroup_copy(s);
    case Op::upcast:
      return upcast(s);
    case Op::load:
    case Op::get_rows:
      return load(s);
    case Op::fill_columns:
      return fill_columns(s);
    case Op::add_columns:
    case Op::scale_columns:
      return add_columns(s);
    case Op::store:
    case Op::store_transposed:
    case Op::store_columns:
    case Op::put_rows:
      return store(s);
    case Op::wgmma:
    case Op::wgmma_add:
    case Op::wgmma_add_transposed:
    case Op::wgmma_add_transposed_a:
    case Op::wgmma_add_columns:
    case Op::wgmma_add_rows:
    case Op::mma:
    case Op::mma_add:
    case Op::mma_add_transposed:
    case Op::mma_add_columns:
      return product(s);
    case Op::accumulator:
    case Op::operand:
    case Op::row:
    case Op::column:
    case Op::diagonal:
    case Op::lane_sum:
    case Op::line:
      return declare(s);
    case Op::online_max:
      return online_max(s);
    case Op::any_exceeds:
      return any_exceeds(s);
    case Op::any_differs:
      return any_differs(s);
    case Op::row_sum:
      return row_sum(s);
    case Op::fill:
    case Op::map:
    case Op::map_at:
    case Op::map_real:
    case Op::map_rows:
    case Op::set_rows:
    case Op::set_columns:
    case Op::set_diagonals:
    case Op::set_tile:
    case Op::set_line:
    case Op::map_line:
    case Op::to_operand:
    case Op::row_max:
    case Op::add:
      return work(s);
    case Op::store_rows:
    case Op::store_accumulator:
    case Op::store_part:
    case Op::store_line:
    case Op::add_tile:
    case Op::add_rows:
    case Op::add_each:
    case Op::add_diagonals:
      return result(s);
    case Op::include:
    case Op::element:
    case Op::param:
    case Op::toggle:
    case Op::level:
    case Op::args:
    case Op::arg_tiled:
    case Op::arg_tensor:
    case Op::arg_size:
    case Op::arg_i32:
    case Op::arg_f32:
    case Op::arg_workspace:
    case Op::arg_scratch:
    case Op::shared:
    case Op::ring:
    case Op::row_ring:
    case Op::tile:
    case Op::barrier:
    case Op::cluster_barrier:
    case Op::queue:
    case Op::record:
    case Op::def:
    case Op::kernel:
    case Op::warpgroups_kernel:
    case Op::lists:
    case Op::list_blocks:
    case Op::rows:
    case Op::each_row:
    case Op::sum:
    case Op::dot_row:
    case Op::write_row:
    case Op::write_value:
    case Op::after:
    case Op::add_parts:
    case Op::combine_parts:
    case Op::round_sums:
    case Op::sum_over:
    case Op::sum_tiles:
    case Op::plan:
    case Op::grid:
    case Op::blocks:
    case Op::return_:
    case Op::compute:
    case Op::copy:
      break;
  }
  blame("exec.name", s, fmt::format("{} does not stand in a kernel", cite(s)));
  return Next::on;
}

}  // namespace kw::exec::schedule
