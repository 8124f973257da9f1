// Each numbered condition of src/sketch's headers, by what the passes write: one test a condition,
// named by it, that fails where its code is broken.
//
//   F1, F2   parts.h               P1 to P5   place.h          S1   budget.h
//   T1 to T7 tiles.h; T3, T5 and T6, which only rank, by the tables of tiles.cpp too
//   Z1 to Z5 size.h                A1 to A6   schedule_alike.cpp
//   E1 to E5 schedule_engine.cpp
#include <gtest/gtest.h>

#include "in_clone.h"
#include "sketch/schedule.h"
#include "sketch/size.h"
#include "sketch/tiles.h"
#include "sketch_machines.h"

namespace kw::sketch {
namespace {

using Texts = std::vector<std::string>;

std::string sketch_text() { return read_source(in_clone("/sketches/attention.tl"))->text; }

Request request(const std::string& gpu, int64_t d, int64_t v) {
  return {machine_of(gpu), {{"D", d}, {"V", v}}, gpu == "t4" ? "f16" : "bf16"};
}

std::string sized(const std::string& gpu, int64_t d, int64_t v,
                  const std::string& text = sketch_text()) {
  Diagnostics found;
  const auto p = size(parsed(text), request(gpu, d, v), found);
  EXPECT_TRUE(p) << render(found);
  return p ? tl::print(*p) : "";
}

std::string scheduled(const std::string& gpu, int64_t d, int64_t v,
                      const std::string& text = sketch_text()) {
  Diagnostics found;
  const auto p = schedule(parsed(sized(gpu, d, v, text)), machine_of(gpu), found);
  EXPECT_TRUE(p) << render(found);
  return p ? tl::print(*p) : "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The part of a text from a line that holds `head` to the next one that is indented no further.
std::string block(const std::string& text, const std::string& head) {
  const size_t at = text.find(head);
  EXPECT_NE(at, std::string::npos) << head << " is not in\n" << text;
  if (at == std::string::npos) return "";
  const size_t line = text.rfind('\n', at) + 1;
  const size_t depth = text.find_first_not_of(' ', line) - line;
  size_t end = text.find('\n', at) + 1;
  while (end < text.size() && text.find_first_not_of(' ', end) - end > depth)
    end = text.find('\n', end) + 1;
  return text.substr(line, end - line);
}

// Whether these follow one another, whatever stands between them.
testing::AssertionResult in_order(const std::string& text, const Texts& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    const size_t next = text.find(part, at);
    if (next == std::string::npos)
      return testing::AssertionFailure() << "`" << part << "` does not follow in\n" << text;
    at = next + part.size();
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult has(const std::string& text, const std::string& part) {
  return in_order(text, {part});
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

Work work_for(const std::string& gpu, int64_t d, int64_t v) {
  Diagnostics found;
  const auto w = work(parsed(sketch_text()), request(gpu, d, v), found);
  EXPECT_TRUE(w) << render(found);
  return *w;
}

Sizes chosen(const std::string& gpu, int64_t d, int64_t v) {
  Diagnostics found;
  const auto s =
      choose_tiles(machine_of(gpu), work_for(gpu, d, v), gpu == "t4" ? "f16" : "bf16", found);
  EXPECT_TRUE(s) << render(found);
  return s.value_or(Sizes{});
}

// ---- place.h

TEST(Place, P1_what_is_copied_from_a_tensor_lies_in_shared_memory) {
  const std::string tiles = block(sized("a100", 128, 128), "shared:");
  EXPECT_TRUE(has(tiles, "tile q_s[WARPGROUPS]: element[ROWS, D]"));
  EXPECT_TRUE(has(tiles, "tile k_s: element[BN, D]"));
  EXPECT_TRUE(has(tiles, "tile v_s: element[BN, V]"));
}

TEST(Place, P2_an_accumulator_is_as_wide_as_the_tile_on_its_right) {
  const std::string text = sized("a100", 192, 128);
  EXPECT_TRUE(has(text, "accumulator s: real[ROWS, BN]"));
  EXPECT_TRUE(has(text, "accumulator acc: real[ROWS, V]"));
}

TEST(Place, P3_vectors_lane_sums_and_flags_are_what_their_first_statement_makes_them) {
  const std::string text = sized("a100", 128, 128);
  EXPECT_TRUE(has(text, "    row m, factor: real[ROWS]\n"));
  EXPECT_TRUE(has(text, "    lane_sum l: real[ROWS]\n"));
  EXPECT_TRUE(has(text, "    flag raised\n"));
}

TEST(Place, P4_the_output_leaves_through_the_rows_tile_where_it_is_as_wide) {
  EXPECT_EQ(count(sized("a100", 128, 128), "o_s"), 0u);
  EXPECT_TRUE(has(sized("a100", 192, 128), "tile o_s[WARPGROUPS]: element[ROWS, V]"));
  EXPECT_EQ(count(sized("h200", 192, 128), "o_s"), 0u);  // it stores a tile's first columns
}

TEST(Place, P5_scores_become_an_operand_after_all_that_touches_them) {
  EXPECT_TRUE(in_order(
      block(sized("a100", 128, 128), "for n in blocks"),
      {"map s[i, j] = exp2", "row_sum l += s", "to_operand p = s", "mma_add acc += p @ v_s"}));
}

// ---- tiles.h and budget.h

TEST(Tiles, T1_they_fit_the_shared_memory_with_the_slots_of_the_schedule) {
  const Machine l40s = machine_of("l40s");
  for (const auto& [d, v] : {std::pair(64, 64), {128, 128}, {192, 128}, {256, 256}}) {
    const Sizes s = chosen("l40s", d, v);
    const int64_t rows = s.rows * s.warpgroups * (d + (d == v ? 0 : v)),
                  keys = s.keys * (2 * d + v);
    EXPECT_LE(2 * (rows + keys), l40s.block_bytes) << d;
  }
  // To the last kilobyte: 163 of a multiprocessor's 164.
  Work one;
  one.shared = {{"q_s", false, 163 * 1024 / 128, 1}};
  EXPECT_EQ(resident(machine_of("a100"), one, {64, 32, 1}), 1);
  one.shared = {{"q_s", false, 164 * 1024 / 128, 1}};
  EXPECT_EQ(resident(machine_of("a100"), one, {64, 32, 1}), 0);
  Work wide = work_for("l40s", 256, 256);
  EXPECT_EQ(resident(l40s, wide, {64, 64, 1}), 0);  // 128 KB
  for (Work::Shared& tile : wide.shared) tile.slots = 0;
  EXPECT_GT(resident(l40s, wide, {64, 64, 1}), 0);
}

TEST(Tiles, T2_sixty_three_registers_are_left_beside_the_accumulators) {
  const Machine a100 = machine_of("a100");
  Work w = work_for("a100", 64, 64);
  w.columns = 64;
  EXPECT_EQ(resident(a100, w, {128, 128, 1}), 2);  // 128 + 64 + 63 = 255
  w.columns = 65;
  EXPECT_EQ(resident(a100, w, {128, 128, 1}), 0);
}

TEST(Tiles, T3_two_warpgroups_are_on_a_multiprocessor_where_there_is_room) {
  for (const char* gpu : {"a100", "l40s", "t4"}) {
    const Sizes s = chosen(gpu, 128, 128);
    const int64_t blocks = resident(machine_of(gpu), work_for(gpu, 128, 128), s);
    EXPECT_GE(s.warpgroups * blocks, 2) << gpu;
  }
}

TEST(Tiles, T4_the_longer_the_waits_the_longer_are_a_block_of_keys_products) {
  Machine m = machine_of("a10");
  m.gpu.product_latency = 0;
  const Work w = work_for("a10", 128, 128);
  const auto scores = [&](double cycles) {  // of a block of keys, by all of a multiprocessor
    m.gpu.barrier_latency = cycles;
    Diagnostics d;
    const Sizes s = choose_tiles(m, w, "bf16", d).value_or(Sizes{});
    const int64_t blocks = std::min<int64_t>(resident(m, w, s), s.warpgroups > 1 ? 1 : 2);
    return blocks * s.warpgroups * s.rows * s.keys;
  };
  EXPECT_EQ(scores(0), 2 * 64 * 32);
  EXPECT_EQ(scores(60), 2 * 64 * 64);
  EXPECT_EQ(scores(120), 3 * 64 * 64);
}

TEST(Tiles, T6_two_thread_blocks_of_one_warpgroup_go_before_one_of_two) {
  EXPECT_EQ(chosen("a100", 64, 64).warpgroups, 1);
  EXPECT_EQ(resident(machine_of("a100"), work_for("a100", 64, 64), chosen("a100", 64, 64)), 2);
}

TEST(Tiles, T7_more_keys_go_before_fewer) { EXPECT_EQ(chosen("a100", 64, 64).keys, 128); }

TEST(Budget, S1_slots_are_those_that_the_machines_copies_want) {
  const auto slots = [](const std::string& gpu) {
    std::string out;
    for (const Work::Shared& s : work_for(gpu, 128, 128).shared)
      out += s.name + " " + std::to_string(s.slots) + ", ";
    return out;
  };
  EXPECT_EQ(slots("a100"), "q_s 1, k_s 2, v_s 1, ");
  EXPECT_EQ(slots("t4"), "q_s 1, k_s 1, v_s 1, ");
  EXPECT_EQ(slots("h200"), "q_s 1, k_s 2, v_s 2, ");
}

TEST(Budget, WhatNothingFitsIsRefusedWithBothSumsAndTheColumnsThatWouldFit) {
  const auto said = [](const char* gpu, int64_t d, int64_t v) {
    Diagnostics found;
    EXPECT_FALSE(size(parsed(sketch_text()), request(gpu, d, v), found));
    return render(found);
  };
  // No whole number of steps: what cannot be cut (cut.h), and Hopper's schedule, which is not.
  for (const auto& [gpu, columns] : {std::pair("a100", 4112), {"h200", 4096}}) {
    const std::string text = said(gpu, columns, columns);
    EXPECT_TRUE(in_order(text, {"sketch.fit", "bytes of shared memory",
                                "q_s: ", "k_s: ", "v_s: ", "together ", "registers a thread, of ",
                                "no number of keys, rows or stages would fit; 16 times fewer "
                                "columns would: q_s 256, k_s 256, v_s 256"}));
  }
}

// ---- size.h

TEST(Size, Z1_the_grid_goes_by_blocks_of_rows_and_by_the_warpgroups_that_share_one) {
  const std::string text = sized("a100", 128, 128);
  EXPECT_TRUE(has(text,
                  "for part, h, b, me in grid(ceil_div(M, BM), H, B, WARPGROUPS):\n"
                  "        let i0 = part * BM + me * ROWS\n"));
  EXPECT_TRUE(has(text, "blocks: size = ceil_div(M, BM) * H * B"));
}

TEST(Size, Z2_the_loop_goes_by_blocks_of_keys) {
  const std::string loop = block(sized("a100", 128, 128), "for n in blocks(ceil_div(N, BN)):");
  EXPECT_TRUE(in_order(
      loop, {"copy k[b, g, n * BN] -> k_s", "from (i0, n * BN)", "copy v[b, g, n * BN] -> v_s"}));
  EXPECT_EQ(count(loop, "j0"), 0u);
}

TEST(Size, Z3_what_is_multiplied_again_is_reshaped_and_multiplied_as_the_operand) {
  const std::string text = sized("a100", 128, 128);
  EXPECT_TRUE(has(text, "operand p: element[ROWS, BN]"));
  EXPECT_TRUE(in_order(text, {"row_sum l += s\n", "to_operand p = s\n", "mma_add acc += p @ v_s"}));
}

TEST(Size, Z4_a_vector_that_a_map_begins_is_a_copy_of_the_one_that_it_reads) {
  const std::string text = sized("a100", 128, 128);
  EXPECT_TRUE(in_order(text, {"row offset = m: real[ROWS]\n",
                              "map_rows offset[i] = where(offset[i] == -inf, 0.0, offset[i] *"}));
  EXPECT_TRUE(has(text, "row sum = total(l), inverse = sum, lse_r = sum: real[ROWS]\n"));
}

TEST(Size, Z5_the_output_is_stored_in_its_tile_and_copied_from_there) {
  EXPECT_TRUE(
      has(sized("a100", 128, 128), "store acc -> q_s[me]\n        copy q_s[me] -> o[b, h, i0]\n"));
  EXPECT_TRUE(
      has(sized("a100", 192, 128), "store acc -> o_s[me]\n        copy o_s[me] -> o[b, h, i0]\n"));
}

// ---- parts.h

TEST(Parts, F1_blocks_are_counted_rows_first) {
  EXPECT_TRUE(in_order(
      block(scheduled("a100", 128, 128), "def block_of"),
      {"let rows = ceil_div(M, BM)\n", "return w % rows, w // rows % H, w // rows // H\n"}));
}

TEST(Parts, F2_blocks_before_the_end_need_no_mask_if_the_plan_masks_nothing_else) {
  EXPECT_TRUE(
      has(block(scheduled("a100", 128, 128), "def key_blocks"), "return ceil_div(N, BN), N // BN"));
  const std::string causal = replaced(sketch_text(), "where(j < N,", "where(j < N and j <= i,");
  EXPECT_TRUE(has(block(scheduled("a100", 128, 128, causal), "def key_blocks"),
                  "return ceil_div(N, BN), 0\n"));
}

// ---- schedule_alike.cpp

TEST(Alike, A1_the_first_products_tile_is_copied_a_block_ahead) {
  const std::string text = scheduled("a100", 128, 128);
  EXPECT_TRUE(has(text, "tile k_s: ring(2) of element[BN, D]"));
  EXPECT_TRUE(in_order(block(text, "step advance"),
                       {"if n > 0:\n", "cp_async k[c.b, g, (n - 1) * BN] -> k_s[n - 1]",
                        "mma s = q_s[me] @ k_s[n].T"}));
}

TEST(Alike, A2_each_tile_of_keys_is_a_group_of_its_own) {
  EXPECT_TRUE(in_order(block(scheduled("a100", 128, 128), "step advance"),
                       {"cp_async v", "\n        cp_async_commit\n", "cp_async k",
                        "\n        cp_async_commit\n", "cp_async_wait 1", "mma_add"}));
}

TEST(Alike, A3_all_warps_meet_after_each_wait) {
  const std::string step = block(scheduled("a100", 128, 128), "step advance");
  EXPECT_TRUE(has(step, "cp_async_wait 0\n        sync_block\n"));
  EXPECT_TRUE(has(step, "cp_async_wait 1\n        sync_block\n"));
}

TEST(Alike, A4_the_first_keys_come_in_one_group_with_the_rows) {
  const std::string text = scheduled("a100", 128, 128);
  EXPECT_TRUE(has(text,
                  "    cp_async q[c.b, c.h, i0] -> q_s[me] by 1\n"
                  "    cp_async k[c.b, g, (keys.count - 1) * BN] -> k_s[keys.count - 1] by "
                  "WARPGROUPS\n    cp_async_commit\n"));
}

TEST(Alike, A5_without_asynchronous_copies_all_warps_meet_before_and_after) {
  EXPECT_TRUE(has(scheduled("t4", 64, 64),
                  "        sync_block\n"
                  "        copy_in k[c.b, g, n * BN] -> k_s by WARPGROUPS\n"
                  "        copy_in v[c.b, g, n * BN] -> v_s by WARPGROUPS\n"
                  "        sync_block\n"
                  "        mma s = q_s[me] @ k_s.T\n"));
}

TEST(Alike, A6_a_warpgroups_warps_meet_before_the_output_is_stored_and_copied) {
  for (const char* gpu : {"a100", "t4"})
    EXPECT_TRUE(has(scheduled(gpu, 64, 64),
                    "    sync_warpgroup me\n"
                    "    store acc -> q_s[me]\n"
                    "    sync_warpgroup me\n"
                    "    copy_out q_s[me] -> o[c.b, c.h, i0] by 1\n"));
}

// ---- schedule_engine.cpp

TEST(Engine, E1_tensors_are_the_engines_and_each_tile_has_a_ring_with_two_barriers) {
  const std::string text = scheduled("h200", 128, 128);
  EXPECT_TRUE(has(text, "k: tiled in element[B, G, N, D]"));
  EXPECT_TRUE(has(text, "o: tiled out element[B, H, M, V]"));
  const std::string shared = block(text, "shared:");
  for (const char* part :
       {"tile q_s[WARPGROUPS]: ring(Q_SLOTS)", "tile k_s: ring(STAGES)", "tile v_s: ring(STAGES)",
        "barrier q_full: ring(Q_SLOTS)", "barrier q_free: ring(Q_SLOTS)",
        "barrier k_full, v_full: ring(STAGES)", "barrier k_free, v_free: ring(STAGES)"})
    EXPECT_TRUE(has(shared, part));
}

TEST(Engine, E2_one_thread_loads_rows_and_scores_keys_another_values_and_a_third_stores) {
  const std::string text = scheduled("h200", 128, 128);
  EXPECT_TRUE(in_order(block(text, "thread 0:"), {"tma_load q", "tma_load k"}));
  EXPECT_EQ(count(block(text, "thread 0:"), "tma_load"), 2u);
  EXPECT_TRUE(has(block(text, "thread 1:"), "tma_load v"));
  EXPECT_EQ(count(block(text, "thread 1:"), "tma_load"), 1u);
  EXPECT_TRUE(in_order(block(text, "thread 2:"), {"wait o_full[u]", "tma_store"}));
}

TEST(Engine, E3_the_next_scores_are_issued_first_and_slots_go_back_when_products_are_done) {
  EXPECT_TRUE(in_order(block(scheduled("h200", 128, 128), "step advance"),
                       {"wgmma s = q_s[me][u] @ k_s[t + 1].T", "wgmma_add acc += p @",
                        "wgmma_wait 1: s", "arrive k_free[t + 1]", "softmax(n, partial)",
                        "wgmma_wait 0: acc", "arrive v_free[t]", "to_operand p = s"}));
}

TEST(Engine, E4_the_output_leaves_by_the_rows_slot_after_the_warpgroups_warps_have_met) {
  const std::string text = scheduled("h200", 128, 128);
  EXPECT_TRUE(has(text,
                  "sync_warpgroup me\n            store acc -> q_s[me][u]\n"
                  "            fence_async\n            arrive o_full[u]\n"));
  EXPECT_TRUE(in_order(block(text, "thread 2:"),
                       {"tma_store q_s[r][u]", "tma_store_wait_read", "arrive q_free[u]"}));
}

TEST(Engine, E5_blocks_of_the_output_are_dealt_out_in_turn) {
  EXPECT_EQ(count(scheduled("h200", 128, 128), "for u, w in static_tiles(blocks, CTAS):"), 4u);
}

}  // namespace
}  // namespace kw::sketch
