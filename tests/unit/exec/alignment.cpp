// Addresses of which the device takes it for granted that they are multiples of 4, 8 or 16 bytes.
#include <gtest/gtest.h>

#include "edited_program.h"
#include "exec/exec.h"
#include "num/random.h"

namespace kw {
namespace {

constexpr int64_t B = 1, H = 2, M = 40;

// Rows of C elements, twice as large, and of these a tile.
const char* const kText = R"(include "kw/kw.cuh"
element bf16
param C = 72
args:
    x: in element[B, H, M, C]
    y: out element[B, H, M, C]
    B, H, M: size
    blocks: size = H * B
    x_rows: scratch element[B, H, M, C]
shared:
    tile t_s: element[64, 128]
rows twice, threads 256, w of B:
    for b, h, r in each_row(x_rows, w):
        write_row x_rows[b, h, r] over j < C = x[b, h, r, j] * 2.0
kernel copies, threads 128, resident 1, warpgroups me:
    let u = block_index(blocks)
    cp_async_tile x_rows[u // H, u % H, 0, 0] -> t_s by 1
    cp_async_commit
    cp_async_wait 0
    sync_block
    copy_tile_out t_s -> y[u // H, u % H, 0, 0] by 1
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

exec::Outcome run(int64_t columns, const std::string& text) {
  const auto program =
      test::parsed("alignment", replaced(text, "C = 72", "C = " + std::to_string(columns)));
  if (!program) return {};
  exec::Launch launch;
  launch.tensors["x"] = draw({Draw::Kind::normal, 1}, 3, Dtype::bf16, {B, H, M, columns});
  return exec::run(*program, launch);
}
Diagnostic fault_of(int64_t columns, const std::string& text = kText) {
  const exec::Outcome out = run(columns, text);
  return out.faults.empty() ? Diagnostic{} : out.faults[0];
}

TEST(Alignment, rows_of_a_scratch_are_copied_where_each_begins_at_a_multiple_of_16_bytes) {
  for (const int64_t columns : {72, 80, 128}) EXPECT_EQ(fault_of(columns).code, "") << columns;
  for (const int64_t columns : {36, 74, 100})
    EXPECT_EQ(fault_of(columns).code, "exec.alignment") << columns;
  EXPECT_NE(fault_of(36).message.find("72 bytes, which is no multiple of 16"), std::string::npos);
}

TEST(Alignment, of_an_argument_it_is_a_condition_of_the_launch) {
  EXPECT_EQ(fault_of(36, replaced(kText, "cp_async_tile x_rows", "cp_async_tile x")).code, "");
}

TEST(Alignment, a_lane_writes_words_of_two_columns) {
  const std::string text = replaced(kText, "cp_async_tile x_rows", "cp_async_tile x");
  EXPECT_EQ(fault_of(36, text).code, "");
  EXPECT_EQ(fault_of(37, text).code, "exec.alignment");
}

}  // namespace
}  // namespace kw
