// Totals of rows in a scratch and their sums over dimensions, of a small kernel: rows of a tensor,
// 64 columns at a time. All numbers are integers, so that sums are exact
// until a result in bf16 is rounded.
#include <gtest/gtest.h>

#include "edited_program.h"
#include "exec/exec.h"
#include "num/random.h"

namespace kw {
namespace {

constexpr int64_t B = 2, H = 3, M = 150, N = 5, kTimes = 8;

const char* const kText = R"(include "kw/kw.cuh"
element bf16
args:
    x: in f32[B, H, M, N]
    d_head: out f32[H]
    d_row: out element[B, M]
    B, H, M, N: size
    blocks: size = ceil_div(M, 128) * H * B
    part: scratch f32[B, H, M]
shared:
    tile t_s: element[64, 64]
rows zeros, threads 256, w of B:
    for b, h, r in each_row(part, w):
        write_value part[b, h, r] = 0.0
kernel totals, threads 256, resident 1, warpgroups me:
    let w = block_index(blocks)
    let rows = ceil_div(M, 128), u = w // rows
    let i0 = w % rows * 128 + me * 64
    accumulator s: real[64, 8]
    row x_r: real[64]
    lane_sum l: real[64]
    for n in range(N):
        set_rows x_r[i] from i0 = x[u // H, u % H, i, n]
        fill s = 0.0
        map s[i, j] = s[i, j] + x_r[i]
        fill l = 0.0
        row_sum l += s
        add_rows l -> part[u // H, u % H, i0]
after sums, threads 256, w of B:
    sum_over part by w -> d_head
    sum_over part by w -> d_row
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

exec::Launch launch_of() {
  exec::Launch launch;
  Tensor x(Dtype::f32, {B, H, M, N});
  const Random random(3, 0);
  for (size_t n = 0; n < x.values.size(); ++n) x.values[n] = double(random.word(n) % 199) - 99;
  launch.tensors["x"] = x;
  return launch;
}

exec::Outcome run(const std::string& text, const exec::Launch& launch) {
  const auto program = test::parsed("totals", text);
  return program ? exec::run(*program, launch) : exec::Outcome{};
}
Diagnostic fault_of(const std::string& text) {
  const exec::Outcome out = run(text, launch_of());
  return out.faults.empty() ? Diagnostic{} : out.faults[0];
}
std::string code_of(const std::string& text) { return fault_of(text).code; }

TEST(Totals, are_summed_over_the_dimensions_that_a_result_lacks) {
  const exec::Launch launch = launch_of();
  const exec::Outcome out = run(kText, launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  std::vector<double> head(H), row(B * M);
  for (int64_t n = 0; n < B * H * M * N; ++n) {
    const int64_t i = n / N % M, h = n / N / M % H, b = n / N / M / H;
    head[h] += kTimes * launch.tensors.at("x").values[n];
    row[b * M + i] += kTimes * launch.tensors.at("x").values[n];
  }
  for (double& x : row) x = round_to(Dtype::bf16, x);
  EXPECT_EQ(out.outputs.at("d_head").values, head);
  EXPECT_EQ(out.outputs.at("d_row").values, row);
}

TEST(Totals, of_every_dimension_are_the_scratch_itself) {
  const std::string text = replaced(kText, "d_row: out element[B, M]", "d_row: out f32[B, H, M]");
  const exec::Launch launch = launch_of();
  const exec::Outcome out = run(text, launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  std::vector<double> all(B * H * M);
  for (int64_t n = 0; n < B * H * M * N; ++n)
    all[n / N] += kTimes * launch.tensors.at("x").values[n];
  EXPECT_EQ(out.outputs.at("d_row").values, all);
}

TEST(Totals, in_the_exact_reading_are_sums_of_all_terms) {
  const exact::Algebra algebra(0, 5);
  exec::Launch launch = launch_of();
  uint64_t name = 0;
  for (double& v : launch.tensors.at("x").values) v = double(++name);
  launch.algebra = &algebra;
  const exec::Outcome out = run(kText, launch);
  ASSERT_TRUE(out.faults.empty()) << render(out.faults[0]);
  std::vector<exact::Element> head(H, algebra.integer(0)), row(B * M, algebra.integer(0));
  for (int64_t n = 0; n < B * H * M * N; ++n) {
    const int64_t i = n / N % M, h = n / N / M % H, b = n / N / M / H;
    const exact::Element x = algebra.mul(algebra.integer(kTimes), algebra.draw(uint64_t(n + 1)));
    head[h] = algebra.add(head[h], x);
    row[b * M + i] = algebra.add(row[b * M + i], x);
  }
  for (int64_t h = 0; h < H; ++h) {
    EXPECT_TRUE(algebra.equal(out.exact.at("d_head")[h], head[h]).holds) << h;
    EXPECT_FALSE(algebra.equal(out.exact.at("d_head")[h], head[(h + 1) % H]).holds) << h;
  }
  for (int64_t n : {0L, 63L, 64L, 149L, 150L, B * M - 1})
    EXPECT_TRUE(algebra.equal(out.exact.at("d_row")[n], row[n]).holds) << n;
}

// A sum that several make has no order: CTAs, warpgroups of one, threads of one warpgroup.
TEST(Totals, to_which_two_threads_add_are_refused) {
  const std::string adds = "add_rows l -> part[u // H, u % H, i0]";
  for (const char* elsewhere :
       {"part[0, u % H, i0]", "part[u // H, 0, i0]", "part[u // H, u % H, w % rows * 128]",
        "part[u // H, u % H, i0 + n]", "part[u // H, u % H, i0 + n * 8]"}) {
    const Diagnostic d = fault_of(replaced(kText, adds, std::string("add_rows l -> ") + elsewhere));
    EXPECT_EQ(d.code, "exec.order") << elsewhere;
    EXPECT_EQ(d.notes.size(), 1u) << elsewhere;
  }
  EXPECT_NE(fault_of(replaced(kText, adds, "add_rows l -> part[0, u % H, i0]"))
                .message.find("row 0 of warpgroup 0 of CTA 6, and row 0 of warpgroup 0 of CTA 0"),
            std::string::npos);
  EXPECT_NE(fault_of(replaced(kText, adds, "add_rows l -> part[u // H, u % H, i0 + n]"))
                .message.find("row 0 of warpgroup 0 of CTA 0, and row 1 of warpgroup 0 of CTA 0"),
            std::string::npos);
  // One thread adds as often as it likes.
  EXPECT_EQ(code_of(replaced(kText, adds, adds + "\n        " + adds)), "");
}

// Which CTA has a tile is decided on the device: one that has two of them here may have one there.
TEST(Totals, of_two_tiles_are_refused_though_one_CTA_has_both) {
  std::string text = replaced(kText, "    let w = block_index(blocks)\n",
                              "    for t, w in static_tiles(blocks, 1):\n");
  const size_t from = text.find("    let rows"), to = text.find("after sums");
  std::string body = text.substr(from, to - from), moved;
  for (const std::string& line : lines_of(body)) moved += line.empty() ? "" : "    " + line + "\n";
  text.replace(from, to - from, moved);
  EXPECT_EQ(code_of(text), "");
  const Diagnostic d = fault_of(replaced(text, "part[u // H, u % H, i0]", "part[0, u % H, i0]"));
  EXPECT_EQ(d.code, "exec.order");
  EXPECT_NE(d.message.find("warpgroup 0, tile 6, and row 0 of warpgroup 0, tile 0"),
            std::string::npos)
      << d.message;
}

TEST(Totals, of_what_no_pre_pass_has_written_are_refused) {
  const std::string pass =
      "rows zeros, threads 256, w of B:\n    for b, h, r in each_row(part, w):\n"
      "        write_value part[b, h, r] = 0.0\n";
  const Diagnostic none = fault_of(replaced(kText, pass, ""));
  EXPECT_EQ(none.code, "exec.uninitialised");
  EXPECT_NE(none.message.find("no pre-pass writes the rows of part"), std::string::npos);
  // A loop over another tensor, with fewer rows.
  std::string few = replaced(kText, "each_row(part, w)", "each_row(other, w)");
  few = replaced(few, "    part: scratch", "    L: size = M - 1\n    part: scratch");
  few = replaced(few, "part: scratch f32[B, H, M]\n",
                 "part: scratch f32[B, H, M]\n    other: scratch f32[B, H, L]\n");
  few = replaced(few, "        write_value part",
                 "        write_value other[b, h, r] = 0.0\n        write_value part");
  const Diagnostic added = fault_of(few);
  EXPECT_EQ(added.code, "exec.uninitialised");
  EXPECT_NE(added.message.find("add_rows l"), std::string::npos) << added.message;
  const Diagnostic summed =
      fault_of(replaced(few, "        add_rows l -> part[u // H, u % H, i0]\n", ""));
  EXPECT_EQ(summed.code, "exec.uninitialised");
  EXPECT_NE(summed.message.find("sum_over part"), std::string::npos) << summed.message;
}

TEST(Totals, that_do_not_fit_are_refused) {
  const std::string adds = "add_rows l -> part[u // H, u % H, i0]";
  for (const char* outside : {"part[u // H + 1, u % H, i0]", "part[u // H, u % H - 1, i0]",
                              "part[u // H, u % H, i0 - 64]", "part[u // H, u % H + 1, i0]"})
    EXPECT_EQ(code_of(replaced(kText, adds, std::string("add_rows l -> ") + outside)),
              "exec.bounds")
        << outside;
  EXPECT_EQ(code_of(replaced(kText, adds, "add_rows l -> x[u // H, u % H, i0]")), "exec.shape");
  EXPECT_EQ(code_of(replaced(kText, "d_row: out element[B, M]", "d_row: out element[M, B]")),
            "exec.shape");
  EXPECT_EQ(code_of(replaced(kText, "d_head: out f32[H]", "d_head: out f32[N]")), "exec.shape");
  EXPECT_EQ(code_of(replaced(kText, "sum_over part by w -> d_head", "sum_over x by w -> d_head")),
            "exec.shape");
  EXPECT_EQ(code_of(replaced(kText, "by w -> d_row", "by w -> d_head")), "exec.written_twice");
}

}  // namespace
}  // namespace kw
