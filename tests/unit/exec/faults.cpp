// Every fault of the executor, each from a small edit of the kernel.
#include <gtest/gtest.h>

#include "edited_program.h"
#include "exec/exec.h"
#include "num/random.h"

namespace kw {
namespace {

struct Fault {
  const char* name;
  const char* code;
  const char *from, *to;  // lines of the kernel's text, without indentation
};

void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }

exec::Launch launch(int64_t m = 300, int64_t n = 300) {
  exec::Launch l;
  l.tensors["q"] = draw({Draw::Kind::normal, 1}, 3, Dtype::bf16, {1, 2, m, 128});
  l.tensors["k"] = draw({Draw::Kind::normal, 2}, 3, Dtype::bf16, {1, 1, n, 128});
  l.tensors["v"] = draw({Draw::Kind::normal, 3}, 3, Dtype::bf16, {1, 1, n, 128});
  return l;
}

std::string edited(const char* from, const char* to) {
  std::string text = test::text_of("full");
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, std::string(from).size(), to);
}

std::string fault_of(const std::string& text, const exec::Launch& l) {
  const auto program = test::parsed("edited", text);
  if (!program) return "(not TL)";
  const exec::Outcome out = exec::run(*program, l);
  if (out.faults.empty()) return "(none)";
  EXPECT_FALSE(out.faults[0].message.empty());
  return out.faults[0].code;
}

const Fault kFaults[] = {
    {"deadlock", "exec.deadlock", "arrive q_free[u]\n", "\n"},
    {"arrival_out_of_turn", "exec.phase", "arrive q_free[u]",
     "arrive q_free[u]\n                arrive q_free[u]"},
    {"endless", "exec.endless", "fill m = -inf\n",
     "fill m = -inf\n            for t, n in range_down_counted(200000000, 0):\n                "
     "count t\n"},
    {"uninitialised_flag", "exec.uninitialised", "raised = online_max m, factor, s, slack, scale",
     "row_max m = s"},
    {"flag_about_scores_that_are_gone", "exec.stale",
     "                if late:\n                    raised = any_exceeds m, fresh, 4096.0\n", "\n"},
    {"flag_about_a_sum_of_scores_that_are_gone", "exec.stale",
     "                row_sum fresh += s\n                if late:\n                    raised = "
     "any_exceeds m, fresh, 4096.0\n",
     "                if late:\n                    raised = any_exceeds m, fresh, 4096.0\n"
     "                row_sum fresh += s\n"},
    {"uninitialised_row", "exec.uninitialised", "fill l = 0.0\n", "\n"},
    {"stale_slot", "exec.stale", "wgmma_add acc += p @ v_s[t]\n                if",
     "wgmma_add acc += p @ v_s[t + 2]\n                if"},
    {"barrier_two_phases_behind", "exec.phase", "wait q_full[u]",
     "wait q_full[u]\n            wait q_full[0]"},
    {"origin", "exec.origin", "from (i0, n * BN)", "from (i0 + 1, n * BN)"},
    {"origin_of_a_tile_without_place", "exec.origin", "fill m = -inf",
     "fill m = -inf\n            map_at acc[i, j] from (0, 0) = 0.0"},
    {"accumulator_as_operand", "exec.layout", "load q_s[me][u] -> q_r", "load q_s[me][u] -> s"},
    {"operand_as_accumulator", "exec.layout", "fill acc = 0.0", "fill p = 0.0"},
    {"shapes_of_a_product", "exec.shape", "accumulator s: real[64, BN]",
     "accumulator s: real[64, 64]"},
    {"index_missing", "exec.shape", "load q_s[me][u] -> q_r", "load q_s[u] -> q_r"},
    {"head_outside", "exec.bounds", "let g = c.h // (H // G)", "let g = c.h"},
    {"division_by_zero", "exec.bounds", "let g = c.h // (H // G)", "let g = c.h // (G - G)"},
    {"overflow", "exec.overflow", "let i0 = c.m * BM + (cta * WARPGROUPS + me) * 64",
     "let i0 = c.m * BM + (cta * WARPGROUPS + me) * 64, far = 65536 * 65536"},
    {"negative_field", "exec.negative", "return ceil_div(N, BN), N // BN",
     "return ceil_div(N, BN), N - 1000"},
    {"warpgroup_sync_by_one_thread", "exec.sync", "fence_async\n",
     "thread 0:\n                sync_warpgroup me\n"},
    {"copy_by_all_threads", "exec.sync", "fence_async\n",
     "fence_async\n            tma_store q_s[me][u] -> o[c.b, c.h, i0]\n"},
    {"copy_before_publish", "exec.not_published", "fence_async\n", "\n"},
    {"copy_of_a_slot_not_handed_over", "exec.not_arrived",
     "store acc -> q_s[me][u]\n            fence_async\n            arrive o_full[u]",
     "arrive o_full[u]\n            store acc -> q_s[me][u]\n            fence_async"},
    {"copy_of_a_slot_of_a_warpgroup_that_did_not_arrive", "exec.not_arrived", "arrive o_full[u]\n",
     "if me == WARPGROUPS - 1:\n                arrive o_full[u]\n                arrive "
     "o_full[u]\n"},
    {"slot_given_back_before_it_has_left", "exec.overwrite",
     "tma_store_wait_read\n                arrive q_free[u]", "arrive q_free[u]"},
    {"unknown_name", "exec.name", "let g = c.h // (H // G)", "let g = heads"},
    {"step_with_a_value_too_few", "exec.name", "softmax(n, partial, CHECK_LATE and not partial)",
     "softmax(n, partial)"},
    {"condition_is_a_number", "exec.type", "if PING_PONG and me == 0:", "if me:"},
    {"map_of_integers", "exec.type", "map acc[i, j] = acc[i, j] * inverse[i]",
     "map acc[i, j] = me"},
    {"lane_share_read_as_row", "exec.shape", "map acc[i, j] = acc[i, j] * inverse[i]",
     "map acc[i, j] = acc[i, j] * l[i]"},
    {"sketch", "exec.sketch", "fence_async\n", "compute s[i, j] = 0.0\n"},
};

// A tensor with an element that no int holds, read in a map and in scalar code.
TEST(Reads, of_an_i64_that_no_int_holds_fault) {
  std::string text =
      edited("B, H, G, M, N: size", "document: in i64[B, N]\n    B, H, G, M, N: size");
  const std::string mask = "where(j < N,";
  text.replace(text.find(mask), mask.size(), "where(document[c.b, j] == 1 and j < N,");
  exec::Launch l = launch();
  const Tensor& k = l.tensors.at("k");
  l.tensors["document"] = Tensor(Dtype::i64, {k.shape[0], k.shape[2]});
  for (double& x : l.tensors["document"].values) x = 1;
  EXPECT_EQ(fault_of(text, l), "(none)");
  l.tensors["document"].values.back() = 2147483648.0;  // the last block is masked
  EXPECT_EQ(fault_of(text, l), "exec.overflow");
}

class Faults : public testing::TestWithParam<Fault> {};
TEST_P(Faults, is_found) {
  const Fault& f = GetParam();
  EXPECT_EQ(fault_of(edited(f.from, f.to), launch()), f.code);
}
INSTANTIATE_TEST_SUITE_P(Edit, Faults, testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Flag, that_is_stale_names_the_product_that_made_it_so) {
  const auto program = test::parsed(
      "edited", edited("raised = any_exceeds m, fresh, 4096.0\n", "fill fresh = 0.0\n"));
  ASSERT_TRUE(program);
  const exec::Outcome out = exec::run(*program, launch());
  ASSERT_EQ(out.faults.size(), 1u);
  EXPECT_NE(render(out.faults[0])
                .find("raised was decided about scores that `wgmma s = q_r @ k_s[t + 1].T` has "
                      "overwritten"),
            std::string::npos)
      << render(out.faults[0]);
}

// Of two tiles of scores, each with a flag, one may be on its way while the other is looked at.
TEST(Flag, lasts_while_products_go_into_other_tiles) {
  const std::string text =
      edited("accumulator s: real[64, BN]", "accumulator s, other: real[64, BN]");
  const size_t read = text.find("                if CHECK_LATE and not partial and raised:");
  ASSERT_NE(read, std::string::npos);
  const auto with = [&](const std::string& tile) {
    return std::string(text).insert(read,
                                    "                mma " + tile + " = q_r @ k_s[t + 1].T\n");
  };
  EXPECT_EQ(fault_of(with("other"), launch()), "(none)");
  EXPECT_EQ(fault_of(with("s"), launch()), "exec.stale");
}

TEST(Launch, that_lacks_an_input_or_disagrees_on_a_size_is_refused) {
  exec::Launch l = launch();
  EXPECT_EQ(fault_of(test::text_of("full"), l), "(none)");
  l.tensors.erase("v");
  EXPECT_EQ(fault_of(test::text_of("full"), l), "exec.launch");
  l = launch();
  l.tensors["v"] = Tensor(Dtype::bf16, {1, 1, 299, 128});
  EXPECT_EQ(fault_of(test::text_of("full"), l), "exec.launch");
  l = launch();
  l.tensors["k"].dtype = Dtype::f16;
  EXPECT_EQ(fault_of(test::text_of("full"), l), "exec.launch");
}

TEST(Deadlock, names_who_waits_where_and_what_could_have_arrived) {
  const auto program =
      test::parsed("edited", edited("barrier o_full: ring(Q_SLOTS), arrivals 4 * WARPGROUPS",
                                    "barrier o_full: ring(Q_SLOTS), arrivals 9 * WARPGROUPS"));
  ASSERT_TRUE(program);
  const exec::Outcome out = exec::run(*program, launch());
  ASSERT_EQ(out.faults.size(), 1u);
  const std::string text = render(out.faults[0]);
  EXPECT_NE(text.find("`wait_free q_free[u]` can never complete"), std::string::npos) << text;
  EXPECT_NE(text.find("8 of 18 arrivals"), std::string::npos) << text;
  EXPECT_NE(text.find("warpgroup 0, thread 1 waits at"), std::string::npos) << text;
  EXPECT_NE(text.find("this could have arrived: `arrive q_free[u]`"), std::string::npos) << text;
}

TEST(Deadlock, says_that_a_part_of_a_tile_never_came) {
  const auto program = test::parsed(
      "edited",
      edited("tma_load_multicast v", "if cta == 0:\n                        tma_load_multicast v"));
  ASSERT_TRUE(program);
  const exec::Outcome out = exec::run(*program, launch());
  ASSERT_EQ(out.faults.size(), 1u);
  const std::string text = render(out.faults[0]);
  EXPECT_NE(text.find("1 of 1 arrivals in phase 0 and 1 of the 2 parts of a tile"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("of CTA 1 waits at"), std::string::npos) << text;
}

// Whoever waits for the others to end is not to blame.
TEST(Deadlock, of_a_cluster_does_not_blame_its_last_meeting) {
  const auto program =
      test::parsed("edited", edited("            arrive o_full[u]\n",
                                    "            arrive o_full[u]\n        wait k_full[t]\n"));
  ASSERT_TRUE(program);
  const exec::Outcome out = exec::run(*program, launch());
  ASSERT_EQ(out.faults.size(), 1u);
  const std::string text = render(out.faults[0]);
  EXPECT_EQ(out.faults[0].code, "exec.deadlock");
  EXPECT_NE(text.find("`wait k_full[t]` can never complete"), std::string::npos) << text;
}

}  // namespace
}  // namespace kw
