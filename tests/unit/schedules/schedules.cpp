// The schedules reading: right programs in every order, and a wrong program for each finding.
#include <gtest/gtest.h>

#include "edited_program.h"
#include "in_clone.h"
#include "schedules/schedule.h"

namespace kw {
namespace {

exec::ScheduleReport report_of(const std::string& text, bool close = false) {
  const auto program = test::parsed("edited", text);
  if (!program) return {};
  exec::ScheduleOptions options;
  options.close = close;
  return exec::check_schedules(*program, options);
}

std::string edited(const std::string& base, const std::string& from, const std::string& to) {
  std::string text = base == "gemm" || base == "attention_bwd"
                         ? read_source(in_clone("/tests/corpus/sm90_") + base + ".tl")->text
                     : base == "sm80"
                         ? read_source(in_clone("/tests/corpus/sm80_attention_fwd.tl"))->text
                     : base == "rms_norm" || base == "add_rms_norm"
                         ? read_source(in_clone("/tests/corpus/sm80_") + base + ".tl")->text
                     : base == "sm75" ? read_source(in_clone("/tests/sm75/attention_d64.tl"))->text
                                      : test::text_of(base);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string code_of(const exec::ScheduleReport& r) {
  return !r.unable.empty() ? r.unable : r.findings.empty() ? "(none)" : r.findings[0].code;
}

class RightInEveryOrder : public testing::TestWithParam<std::string> {};
TEST_P(RightInEveryOrder, holds) {
  const exec::ScheduleReport r = report_of(edited(GetParam(), "element", "element"));
  EXPECT_EQ(code_of(r), "(none)") << render(r.findings.empty() ? Diagnostic{} : r.findings[0]);
  EXPECT_GT(r.events, 1000);
}
// Nothing is copied to shared memory and nobody waits but at a sum, where a warpgroup's warps meet.
TEST(Lines, are_right_in_every_order) {
  for (const char* name : {"rms_norm", "add_rms_norm"}) {
    const exec::ScheduleReport r = report_of(edited(name, "element", "element"));
    EXPECT_EQ(code_of(r), "(none)") << render(r.findings.empty() ? Diagnostic{} : r.findings[0]);
  }
}
TEST(Lines, that_are_read_before_they_are_set_are_found) {
  EXPECT_EQ(code_of(report_of(edited("rms_norm", "    set_line x_r[j] = x[c.b, c.h, m, j]\n", ""))),
            "schedule.uninitialised");
  EXPECT_EQ(code_of(report_of(
                edited("add_rms_norm", "    map_line h_r[j] = x_r[j] + residual_r[j]\n", ""))),
            "schedule.uninitialised");
  EXPECT_EQ(code_of(report_of(
                edited("rms_norm", "    sum_line squares over j = x_r[j] * x_r[j]\n",
                       "    thread 0:\n        sum_line squares over j = x_r[j] * x_r[j]\n"))),
            "exec.sync");
}

INSTANTIATE_TEST_SUITE_P(
    Program, RightInEveryOrder,
    testing::Values("full", "gemm", "attention_bwd", "sm80", "sm75", "causal", "full_decode",
                    "prefix_lm_decode", "paged_decode", "full_bwd", "full_wide_bwd", "full_mla_bwd",
                    "full_sm80_bwd", "causal_bwd", "weights_bwd", "divided_bwd", "log_sums_bwd",
                    "softcap_bwd", "learned_bwd", "table_bwd", "pairs_bwd", "epilogue_bwd",
                    "turns_bwd", "full_wide_turns_bwd", "causal_bn80", "prefix_lm", "alibi",
                    "documents", "columns", "pair_bias", "pairs", "table", "alone",
                    "cluster_of_four", "cluster_of_one", "each_fetches", "f16", "narrow_output",
                    "ping_pong", "q_in_shared_memory", "queue", "swapped", "three_warpgroups"),
    [](const auto& info) { return info.param; });

// Though it comes to them alone, whatever they would do there.
TEST(OneThread, does_nothing_that_needs_its_warp_its_warpgroup_or_its_block) {
  const std::string wait = "                tma_store_wait_read\n";
  for (const std::string statement :
       {"sync_cluster", "init q_full", "sync_block", "sync_warpgroup 0", "fill acc = 0.0",
        "mma s = q_s[0][u] @ k_s[u].T", "copy_out q_s[0][u] -> o[c.b, c.h, 0] by 1"}) {
    const exec::ScheduleReport r =
        report_of(edited("full", wait, wait + "                " + statement + "\n"));
    EXPECT_EQ(code_of(r), "exec.sync") << statement;
  }
}

TEST(AllSequences, of_blocks_and_any_number_of_key_blocks_are_closed_over) {
  for (const char* name : {"full", "gemm", "attention_bwd", "ping_pong", "queue", "full_decode",
                           "prefix_lm_decode", "paged_decode"}) {
    const exec::ScheduleReport r = report_of(edited(name, "element", "element"), true);
    EXPECT_EQ(code_of(r), "(none)");
    EXPECT_TRUE(r.closed) << name << ": " << r.not_closed;
    // A CTA of the backward kernel has one block.
    EXPECT_GT(r.states, name == std::string("attention_bwd") ? -1 : 50);
    EXPECT_GT(r.period, 0) << name;
  }
}

// What keeps the two warpgroups of the backward kernel, and the thread that adds dQ, apart.
TEST(Backward, each_wait_and_arrival_is_needed) {
  const std::pair<const char*, const char*> missing[] = {
      {"            wait_free ds_free[t]\n", "schedule.overwrite"},
      {"                wait ds_full[t - 1]\n", "schedule.uninitialised"},
      {"                arrive ds_free[t - 1]\n", "schedule.deadlock"},
      {"                wait_free dq_free[t - 1]\n", "schedule.arrival"},
      {"                arrive q_free[t - 1]\n", "schedule.deadlock"},
      {"            wait do_full[t]\n", "schedule.not_arrived"},
      {"        order_wait me\n", "schedule.race"},
      {"                wait_free q_free[t]\n", "schedule.arrival"},
      {"                tma_store_wait_read\n", "schedule.overwrite"},
  };
  for (const auto& [line, code] : missing)
    EXPECT_EQ(code_of(report_of(edited("attention_bwd", line, ""))), code) << line;
}

// A warp's rows of a tile that was stored transposed are of all warps, its own warpgroup's too.
TEST(Backward, a_transposed_tile_is_there_when_all_warps_have_stored_it) {
  std::string text = edited("full_sm80_bwd", "        advance(x, false)\n    sync_block\n",
                            "        advance(x, false)\n");
  const std::string all = "ds_s[r][x] @ k_s[r]", own = "ds_s[me][x] @ k_s[me]";
  text.replace(text.find(all), all.size(), own);
  EXPECT_EQ(code_of(report_of(text)), "schedule.uninitialised");
}

// And those of the thread that adds tiles of elements which the products read, too.
TEST(Backward, a_tile_that_is_added_too_is_waited_for_and_given_back_once_more) {
  const std::string adds =
                        "                    tma_add ds_s[r][t] -> pairs[c.b, h, (m * ceil_div(N, "
                        "BN) + c.n) * BM, r * 64]\n",
                    left = "                tma_store_wait_read\n",
                    back = "                arrive ds_free[t]\n";
  const std::string wait = "                wait ds_full[t]\n";
  const std::tuple<std::string, std::string, const char*> wrong[] = {
      {wait, "", "schedule.uninitialised"},
      {back, "", "schedule.deadlock"},
      {adds + left + back, adds + back + left, "schedule.overwrite"},
      {"arrivals 4 * WARPGROUPS + 1", "arrivals 4 * WARPGROUPS", "schedule.arrival"}};
  for (const auto& [from, to, code] : wrong)
    EXPECT_EQ(code_of(report_of(edited("pairs_bwd", from, to))), code) << from;
}

// Turing's copies write as the threads do, and nothing is ever published.
TEST(AllSequences, any_number_of_key_blocks_that_come_through_registers) {
  const exec::ScheduleReport r = report_of(edited("sm75", "element", "element"), true);
  EXPECT_EQ(code_of(r), "(none)");
  EXPECT_GT(r.period, 0);
  EXPECT_TRUE(r.any_length());
}

// With three key blocks at most, and with as many as an argument says.
exec::ScheduleReport report_of_window(const char* blocks) {
  std::string text = test::text_of("full");
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("B, H, G, M, N: size\n", "B, H, G, M, N: size\n    width: i32\n");
  replace("return ceil_div(N, BN), N // BN",
          std::string("return min(") + blocks + ", ceil_div(N, BN)), 0");
  return report_of(text, true);
}

// What more turns of a loop do is known where they repeat; of one that no walk enters it is not.
TEST(AllSequences, say_which_loops_repeat) {
  const auto of = [](const std::string& text, const std::string& loop) {
    const auto program = test::parsed("edited", text);
    exec::ScheduleOptions options;
    options.close = true;
    const exec::ScheduleReport r = exec::check_schedules(*program, options);
    for (const auto& [s, turns] : r.turns)
      if (tl::print_head(*s).find(loop) != std::string::npos)
        return std::pair(turns, r.repeated.count(s) > 0);
    return std::pair(int64_t(-1), false);
  };
  const std::string full = "for n in range_down(min(keys.count, keys.full) - 1, 0):";
  EXPECT_EQ(of(edited("sm80", full, full), full).second, true);
  const std::string split = edited(
      "sm80", full + "\n        advance(n, false)",
      "for n in range_down(min(keys.count, keys.full) - 1, 420):\n        advance(n, false)\n"
      "    for n in range_down(min(min(keys.count, keys.full), 420) - 1, 0):\n"
      "        advance(n, false)");
  EXPECT_EQ(of(split, "keys.full) - 1, 420)"), std::pair(int64_t(0), false));
  EXPECT_EQ(of(split, "420) - 1, 0)").second, true);
}

// Integers below 0 are data too: where a width of -1 leaves a row no key, what is copied in for it
// is waited for in no loop.
TEST(AllSequences, have_blocks_that_data_below_0_leave_without_keys) {
  const auto of = [](const std::string& from, const std::string& to) {
    std::string text =
        edited("sm80", "B, H, G, M, N: size\n", "B, H, G, M, N: size\n    width: i32\n");
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return code_of(report_of(text.replace(at, from.size(), to), true));
  };
  const std::string loop = "range_down(min(keys.count, keys.full) - 1, 0)",
                    keys = "return ceil_div(N, BN), N // BN";
  const auto until = [&](const std::string& first) {
    return of(loop, "range_down(min(keys.count, keys.full) - 1, " + first + ")");
  };
  EXPECT_EQ(until("where(width < 0, keys.count, 0)"), "schedule.race");
  EXPECT_EQ(until("where(width < 0, 0, 0)"), "(none)");
  // And where there is none at all, a tile before the first is asked for.
  EXPECT_EQ(of(keys, "return where(width < 0, 0, ceil_div(N, BN)), N // BN"), "exec.bounds");
  EXPECT_EQ(of(keys, "return where(width < 0, 1, ceil_div(N, BN)), N // BN"), "(none)");
}

// Rows lie far beyond the last key, too: a window may have left it behind. Where such rows have no
// key block, a tile before the first is asked for.
TEST(AllSequences, have_blocks_of_rows_behind_all_keys) {
  const auto of = [](const std::string& count) {
    return code_of(
        report_of(edited("sm80", "return ceil_div(N, BN), N // BN",
                         "return where(i0 > N + 500, " + count + ", ceil_div(N, BN)), N // BN"),
                  true));
  };
  EXPECT_EQ(of("0"), "exec.bounds");
  EXPECT_EQ(of("1"), "(none)");
}

TEST(AllSequences, are_closed_for_any_length_where_no_block_visits_more_key_blocks) {
  const exec::ScheduleReport r = report_of_window("3");
  EXPECT_EQ(code_of(r), "(none)");
  EXPECT_TRUE(r.closed && r.bounded && r.any_length()) << r.not_closed;
  EXPECT_EQ(r.period, 0);
  EXPECT_FALSE(report_of_window("max(1, width // BN)").bounded);
  // What is said of rows beyond those that were walked, nobody has seen.
  EXPECT_FALSE(report_of_window("3 + i0 // 90000 * 50").any_length());
}

// A diagonal at the last key lies anywhere within a tile: a warpgroup of 64 rows of 256 may skip
// two blocks of 128 keys.
TEST(AllSequences, have_diagonals_within_a_tile) {
  const std::string all = "return ceil_div(N, BN), N // BN", mine = "mine.count):";
  std::string text = test::text_of("full");
  text.replace(text.find(all), all.size(),
               "return max(1, ceil_div(min(N, i0 + N + rows - M), BN)), "
               "max(0, min(N, i0 + N - M + 1)) // BN");
  const auto program = test::parsed("edited", text);
  exec::ScheduleOptions options;
  options.close = true;
  const exec::ScheduleReport r = exec::check_schedules(*program, options);
  int64_t most = -1;
  for (const auto& [loop, turns] : r.turns)
    if (tl::print_head(*loop).find(mine) != std::string::npos) most = std::max(most, turns);
  EXPECT_EQ(most, 2);
}

TEST(AllSequences, are_not_claimed_where_a_block_depends_on_its_place) {
  const exec::ScheduleReport r = report_of(
      edited(
          "full", "            fill acc = 0.0\n",
          "            if u > 0:\n                sync_warpgroup me\n            fill acc = 0.0\n"),
      true);
  EXPECT_EQ(code_of(r), "(none)");
  EXPECT_FALSE(r.closed);
  EXPECT_FALSE(r.not_closed.empty());
}

// A flag may add reads; of what else it decides about, one walk does not speak for all.
TEST(AllSequences, are_not_claimed_where_a_flag_decides_about_more_than_reads) {
  const std::string again = "                        mma s = q_r @ k_s[t + 1].T\n";
  const exec::ScheduleReport r = report_of(
      edited("full", again, "                        wait k_full[t + 1]\n" + again), true);
  EXPECT_EQ(code_of(r), "(none)");
  EXPECT_FALSE(r.closed);
  EXPECT_EQ(r.not_closed, "a flag decides about more than what is read");
}

struct Wrong {
  const char *name, *code, *base, *from, *to;
};
void PrintTo(const Wrong& w, std::ostream* out) { *out << w.name; }

const Wrong kWrong[] = {
    {"not_arrived", "schedule.not_arrived", "full",
     "            wait v_full[t]\n            wgmma_add acc += p @ v_s[t]\n            row "
     "sum",
     "            wgmma_add acc += p @ v_s[t]\n            row sum"},
    {"overwrite", "schedule.overwrite", "full",
     "wgmma_wait 0: acc\n                arrive v_free[t]\n",
     "arrive v_free[t]\n                wgmma_wait 0: acc\n"},
    {"store_over_what_another_warp_reads", "schedule.race", "q_in_shared_memory",
     "            sync_warpgroup me\n", "\n"},
    {"rows_of_what_other_warps_store", "schedule.uninitialised", "full_mla_bwd",
     "store_transposed dp.T -> ds_s[t]\n",
     "store_transposed dp.T -> ds_s[t]\n                operand own: element[64, 64]\n"
     "                load ds_s[t] -> own\n"},
    {"sent_while_the_last_one_is_under_way", "schedule.overwrite", "full_mla_bwd",
     "                wait_free ds_free[t]\n                store", "                store"},
    {"slots_free_in_one_cta", "schedule.overwrite", "full_mla_bwd",
     "barrier ds_free: ring(DS_SLOTS), arrivals 4 of each of CTAS",
     "barrier ds_free: ring(DS_SLOTS), arrivals 4"},
    {"sent_and_read_too_early", "schedule.uninitialised", "full_wide_bwd",
     "wait other_ds_full[t]\n                wgmma_add dq_r += other_ds_s[t] @ other_k_s[u]\n",
     "wgmma_add dq_r += other_ds_s[t] @ other_k_s[u]\n                wait other_ds_full[t]\n"},
    {"sent_without_a_fence", "schedule.fence", "full_mla_bwd",
     "store_transposed dp.T -> ds_s[t]\n                fence_async\n",
     "store_transposed dp.T -> ds_s[t]\n"},
    {"given_back_while_a_product_reads_it_turned", "schedule.overwrite", "full_mla_bwd",
     "wgmma_wait 0: dk_r\n                wgmma_wait 0: dq_r\n                wgmma_wait 0: "
     "more_dq_r\n    "
     "            arrive ds_free[t]\n",
     "arrive ds_free[t]\n                wgmma_wait 0: dk_r\n                wgmma_wait 0: dq_r\n  "
     "      "
     "        wgmma_wait 0: more_dq_r\n"},
    {"sm80_product_of_what_other_warps_store", "schedule.uninitialised", "full_sm80_bwd",
     "        advance(x, false)\n    sync_block\n", "        advance(x, false)\n"},
    {"sm80_sync_of_gradients_missing", "schedule.uninitialised", "full_sm80_bwd",
     "        cp_async_wait 0\n        sync_block\n", "        cp_async_wait 0\n"},
    {"sm80_values_not_waited", "schedule.not_arrived", "full_sm80_bwd", "        cp_async_wait 0\n",
     "\n"},
    {"sm80_one_slot_of_gradients", "schedule.stale", "full_sm80_bwd",
     "tile ds_s[WARPGROUPS]: ring(2)", "tile ds_s[WARPGROUPS]: ring(1)"},
    {"sm80_keys_overwritten_early", "schedule.race", "full_sm80_bwd",
     "    map dk_r[i, j] = dk_r[i, j] * scale\n    sync_block\n",
     "    map dk_r[i, j] = dk_r[i, j] * scale\n"},
    {"product_of_one_thread", "exec.sync", "sm80", "        mma_add acc += p @ v_s\n",
     "        thread 0:\n            mma_add acc += p @ v_s\n"},
    {"race_of_a_store_before_its_handover", "schedule.race", "full",
     "store acc -> q_s[me][u]\n            fence_async\n            arrive o_full[u]",
     "arrive o_full[u]\n            store acc -> q_s[me][u]\n            fence_async"},
    {"deadlock", "schedule.deadlock", "full", "arrive q_free[u]\n", "\n"},
    {"two_phases_behind", "schedule.phase", "full", "wait q_full[u]", "wait q_full[u + 2]"},
    {"may_wait_for_ever", "schedule.phase", "full", "            wait q_full[u]\n",
     "            arrive k_free[t]\n            wait q_full[u]\n"},
    {"arrival_for_another_phase", "schedule.arrival", "full",
     "                    wait_free v_free[t]\n", "\n"},
    {"arrival_too_many", "schedule.arrival", "full", "arrive q_free[u]",
     "arrive q_free[u]\n                arrive q_free[u]"},
    {"a_turn_given_twice", "schedule.arrival", "ping_pong",
     "order_arrive (me + 1) % WARPGROUPS\n            wgmma_wait 0: s",
     "order_arrive (me + 1) % WARPGROUPS\n                order_arrive (me + 1) % WARPGROUPS\n     "
     "       "
     "wgmma_wait 0: s"},
    {"fence", "schedule.fence", "full", "            fence_async\n", "\n"},
    {"fence_before_the_store", "schedule.fence", "full",
     "store acc -> q_s[me][u]\n            fence_async\n",
     "fence_async\n            store acc -> q_s[me][u]\n"},
    {"fence_after_the_handover", "schedule.fence", "full",
     "            fence_async\n            arrive o_full[u]\n",
     "            arrive o_full[u]\n            fence_async\n"},
    {"cluster_begins_apart", "schedule.cluster", "full", "    sync_cluster\n    warpgroup",
     "    warpgroup"},
    {"cluster_ends_apart", "schedule.cluster", "full",
     "            arrive o_full[u]\n    sync_cluster\n", "            arrive o_full[u]\n"},
    {"store_on_its_way", "schedule.exit", "full", "            tma_store_wait\n", "\n"},
    {"not_initialised", "schedule.uninitialised", "full", "init q_full, o_full,", "init q_full,"},
    {"register_not_written", "schedule.uninitialised", "full", "            fill l = 0.0\n", "\n"},
    {"in_flight", "schedule.in_flight", "full", "                wgmma_wait 0: acc\n", "\n"},
    {"stale", "schedule.stale", "full", "wgmma_add acc += p @ v_s[t]\n                if",
     "wgmma_add acc += p @ v_s[t + 2]\n                if"},
    {"flag_about_scores_that_are_gone", "exec.stale", "full",
     "                if late:\n                    raised = any_exceeds m, fresh, 4096.0\n", "\n"},
    {"sm80_not_waited", "schedule.not_arrived", "sm80", "        cp_async_wait 0\n", "\n"},
    {"sm80_sync_missing", "schedule.uninitialised", "sm80",
     "        cp_async_wait 1\n        sync_block\n", "        cp_async_wait 1\n"},
    {"sm80_sync_before_the_wait", "schedule.not_arrived", "sm80",
     "        cp_async_wait 1\n        sync_block\n",
     "        sync_block\n        cp_async_wait 1\n"},
    {"sm80_copy_before_the_sync", "schedule.not_arrived", "sm80",
     "        cp_async_wait 0\n        sync_block\n        cp_async v[c.b, g, n * BN] -> v_s by "
     "WARPGROUPS\n",
     "        cp_async v[c.b, g, n * BN] -> v_s by WARPGROUPS\n        cp_async_wait 0\n        "
     "sync_block\n"},
    {"sm75_reader_before_the_sync", "schedule.uninitialised", "sm75",
     "        sync_block\n        mma s", "        mma s"},
    {"sm75_copy_before_the_sync", "schedule.race", "sm75",
     "        sync_block\n        copy_in k[c.b, g, n * BN] -> k_s by WARPGROUPS\n",
     "        copy_in k[c.b, g, n * BN] -> k_s by WARPGROUPS\n        sync_block\n"},
    {"takers", "schedule.arrival", "queue", "takers 3 +", "takers 2 +"},
    // Products that follow each other: which step has been read.
    {"gemm_freed_while_read", "schedule.overwrite", "gemm",
     "                wgmma_wait_group 1\n                arrive free[t]\n",
     "                arrive free[t]\n                wgmma_wait_group 1\n"},
    {"gemm_too_many_in_flight", "schedule.overwrite", "gemm", "wgmma_wait_group 1",
     "wgmma_wait_group 2"},
    {"gemm_next_step_freed", "schedule.arrival", "gemm",
     "wgmma_wait_group 1\n                arrive free[t]\n",
     "wgmma_wait_group 1\n                arrive free[t + 1]\n"},
    {"gemm_never_named", "schedule.in_flight", "gemm", "wgmma_wait 0: acc", "wgmma_wait_group 0"},
    {"gemm_looked_at_in_flight", "schedule.in_flight", "gemm",
     "                wgmma_wait_group 1\n",
     "                wgmma_wait_group 1\n                map acc[i, j] = acc[i, j] * 2.0\n"},
    {"gemm_stored_before_it_is_free", "schedule.race", "gemm",
     "            wait_free o_free[u]\n            store acc -> o_s[me][u]\n",
     "            store acc -> o_s[me][u]\n            wait_free o_free[u]\n"},
    {"gemm_given_back_before_it_is_read", "schedule.overwrite", "gemm",
     "                tma_store_wait_read\n                arrive o_free[u]\n",
     "                arrive o_free[u]\n                tma_store_wait_read\n"},
    // Under `if raised`, which not all warps take.
    {"scores_once_more_of_the_next_tile", "schedule.stale", "full",
     "                        mma s = q_r @ k_s[t + 1].T\n",
     "                        mma s = q_r @ k_s[t + 2].T\n"},
    {"warps_with_a_raised_row_meet", "schedule.deadlock", "full",
     "                if raised:\n                    map acc",
     "                if raised:\n                    sync_warpgroup me\n                    map "
     "acc"},
};

class InSomeOrder : public testing::TestWithParam<Wrong> {};
TEST_P(InSomeOrder, is_found) {
  const Wrong& w = GetParam();
  const exec::ScheduleReport r = report_of(edited(w.base, w.from, w.to));
  EXPECT_EQ(code_of(r), w.code) << render(r.findings.empty() ? Diagnostic{} : r.findings[0]);
  if (r.findings.empty()) return;
  EXPECT_TRUE(r.findings[0].span.known() || std::string(w.code) == "schedule.exit");
}
INSTANTIATE_TEST_SUITE_P(Edit, InSomeOrder, testing::ValuesIn(kWrong),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Trace, names_both_statements_with_their_lines) {
  const exec::ScheduleReport r =
      report_of(edited("full", "wgmma_wait 0: acc\n                arrive v_free[t]\n",
                       "arrive v_free[t]\n                wgmma_wait 0: acc\n"));
  ASSERT_EQ(r.findings.size(), 1u);
  const std::string text = render(r.findings[0]);
  EXPECT_NE(text.find("`tma_load_multicast v"), std::string::npos) << text;
  EXPECT_NE(text.find("the reader: `wgmma_add acc += p @ v_s[t]`"), std::string::npos) << text;
  EXPECT_NE(text.find("warpgroup 1, warp"), std::string::npos) << text;
}

// What one agent a warpgroup would not show: three warps have not published.
TEST(Warps, are_agents_of_their_own) {
  EXPECT_EQ(code_of(report_of(edited("full", "            fence_async\n",
                                     "            thread 0:\n                fence_async\n"))),
            "schedule.fence");
}

class Checkers : public testing::TestWithParam<Wrong> {};
TEST_P(Checkers, agree_on_small_instances) {
  const Wrong& w = GetParam();
  const auto program = test::parsed(w.name, edited(w.base, w.from, w.to));
  ASSERT_TRUE(program);
  for (const auto& sequence : {std::vector<size_t>{0}, {0, 0}}) {
    const std::map<std::string, int64_t> small =
        std::string(w.base) == "sm80" || std::string(w.base) == "sm75" ||
                std::string(w.base) == "ping_pong"
            ? std::map<std::string, int64_t>{}
            : std::map<std::string, int64_t>{{"CTAS", 1}, {"BM", 64}};
    const bool one = sequence.size() > 1 && small.empty();
    const auto a = exec::compare_checkers(*program, small, one ? std::vector<size_t>{0} : sequence,
                                          1, 300'000);
    EXPECT_TRUE(a.agree()) << w.name << ": '" << a.clocks << "' and '" << a.explored << "'";
  }
}
INSTANTIATE_TEST_SUITE_P(Edit, Checkers, testing::ValuesIn(kWrong),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Checkers, agree_that_right_programs_are_right) {
  const auto program = test::parsed("full", test::text_of("full"));
  for (const auto& sequence : {std::vector<size_t>{0}, {0, 0}, {1, 0}, {0, 0, 2}}) {
    const auto a =
        exec::compare_checkers(*program, {{"CTAS", 1}, {"BM", 64}}, sequence, 1, 1'000'000);
    EXPECT_EQ(a.clocks, "");
    EXPECT_EQ(a.explored, "");
    EXPECT_FALSE(a.cut);
    EXPECT_GT(a.states, 100);
  }
}

}  // namespace
}  // namespace kw
