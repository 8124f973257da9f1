// The laws of the lens on edits of the Hopper kernel: PutGet, and the bytes outside the changed
// statements. Each edit is one that a rule or a person makes: text of the lifted program replaced.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "in_clone.h"
#include "lower/lower.h"
#include "support/files.h"
#include "support/process.h"
#include "tl/syntax/table.h"

namespace kw::lower {
namespace {

const std::string kRoot = in_clone();
const std::string kKernel = "kernels/sm90/attention_fwd.cu";

const lift::Toolchain& toolchain() {
  static const lift::Toolchain t = lift::find_toolchain(kRoot + "/cuda", {kRoot + "/.venv"});
  return t;
}

const SourcePtr& kernel() {
  static const SourcePtr s = make_source(kKernel, read_source(kRoot + "/" + kKernel)->text);
  return s;
}

tl::Program lifted(const SourcePtr& cuda) {
  Diagnostics d;
  std::optional<tl::Program> p = lift::lift(cuda, toolchain(), d);
  EXPECT_TRUE(p) << render(d);
  return p ? std::move(*p) : tl::Program{};
}

struct Replacement {
  std::string from, to;
  int times = 1;
};

std::string replaced(std::string text, const std::vector<Replacement>& replacements) {
  for (const Replacement& r : replacements) {
    int times = 0;
    for (size_t at = 0; (at = text.find(r.from, at)) != std::string::npos; at += r.to.size()) {
      text.replace(at, r.from.size(), r.to);
      ++times;
    }
    EXPECT_EQ(times, r.times) << r.from;
  }
  return text;
}

// Lowers the kernel's program with the replacements made, and checks the laws on the result.
std::string edited(const std::vector<Replacement>& replacements) {
  const tl::Program original = lifted(kernel());
  const std::string wanted = replaced(tl::print(original), replacements);
  Diagnostics d;
  const std::optional<tl::Program> program = tl::parse(make_source("edited.tl", wanted), d);
  EXPECT_TRUE(program) << render(d);
  if (!program) return {};
  const std::optional<Lowered> out = lower(*program, kernel(), toolchain(), d);
  EXPECT_TRUE(out) << render(d);
  if (!out) return {};
  const SourcePtr text = make_source(kKernel, out->text);
  EXPECT_EQ(tl::print(lifted(text)), wanted);  // PutGet
  const std::optional<Lowered> same = lower(*program, text, toolchain(), d);
  EXPECT_TRUE(same && same->text == out->text);  // GetPut of the result
  const std::optional<Lowered> back = lower(original, text, toolchain(), d);
  EXPECT_TRUE(back) << render(d);
  return out->changes.patch;
}

// The lines of a patch that begin with the mark, without it.
std::string marked(const std::string& patch, char mark) {
  std::string out;
  for (size_t at = 0; at < patch.size();) {
    const size_t end = patch.find('\n', at) + 1;
    const std::string line = patch.substr(at, end - at);
    if (line[0] == mark && line.substr(0, 3) != std::string(3, mark)) out += line.substr(1);
    at = end;
  }
  return out;
}

const std::string kI3(12, ' '), kI4(16, ' ');
const std::string kScale = "    scale: f32 = rsqrt(D) * log2e\n";

const std::map<std::string, std::vector<Replacement>>& edits();

TEST(Lower, an_unchanged_program_gives_the_expert_s_own_bytes) {
  Diagnostics d;
  // Through TL text, which carries no spans.
  const auto program = tl::parse(make_source("k.tl", tl::print(lifted(kernel()))), d);
  const std::optional<Lowered> out = lower(*program, kernel(), toolchain(), d);
  ASSERT_TRUE(out) << render(d);
  EXPECT_EQ(out->text, kernel()->text);
  EXPECT_EQ(out->changes.patch, "");
  EXPECT_EQ(out->lines, std::count(out->text.begin(), out->text.end(), '\n'));
  EXPECT_TRUE(d.all().empty()) << render(d);
}

TEST(Lower, prefix_lm_changes_only_what_it_must) {
  const std::string patch =
      edited({{kScale, "    prefix: in i32[B]\n" + kScale},
              {"    return ceil_div(N, BN), N // BN\n",
               "    let last = min(N, max(i0 + rows + N - M, prefix[c.b]))\n"
               "    let whole = min(N, max(i0 + 1 + N - M, prefix[c.b]))\n"
               "    return max(ceil_div(last, BN), 1), max(whole, 0) // BN\n"},
              {kI3 + "step softmax", kI3 + "let shift = N - M\n" + kI3 +
                                         "let kept = prefix[c.b]\n" + kI3 + "step softmax"},
              {"where(j < N, s[i, j], -inf)",
               "where(j < N and (j <= i + shift or j < kept), s[i, j], -inf)"}});
  EXPECT_EQ(marked(patch, '+'),
            "    kw::Tensor<const int, 'B'> prefix;\n"
            "    const int last = kw::min(args.N, kw::max(i0 + rows + args.N - args.M, "
            "args.prefix(c.b)));\n"
            "    const int whole = kw::min(args.N, kw::max(i0 + 1 + args.N - args.M, "
            "args.prefix(c.b)));\n"
            "    return {kw::max(kw::ceil_div(last, BN), 1), kw::max(whole, 0) / BN};\n"
            "            const int shift = args.N - args.M;\n"
            "            const int kept = args.prefix(c.b);\n"
            "                    kw::map_at(s, kw::Origin{i0, n * BN}, [&](kw::real x, kw::Place "
            "i, kw::Place j) { "
            "return j < args.N && (j <= i + shift || j < kept) ? x : kw::minus_infinity; });\n");
}

TEST(Lower, alibi_adds_lines_and_changes_none) {
  const std::string patch =
      edited({{kScale, "    slopes: in f32[H]\n" + kScale},
              {kI3 + "step softmax", kI3 + "let slope = slopes[c.h]\n" + kI3 + "step softmax"},
              {kI4 + "if partial:\n",
               kI4 + "map_real s[i, j] from (i0, n * BN) = s[i, j] + slope * (j - i)\n" + kI4 +
                   "if partial:\n"}});
  EXPECT_EQ(marked(patch, '-'), "");
  EXPECT_EQ(marked(patch, '+'),
            "    kw::Tensor<const float, 'H'> slopes;\n"
            "            const kw::real slope = args.slopes(c.h);\n"
            "                kw::map_real(s, kw::Origin{i0, n * BN}, [&](kw::real x, "
            "kw::Coordinate i, kw::Coordinate j) { return x + slope * (j - i); });\n");
}

TEST(Lower, a_work_order_by_sections_is_an_argument_and_a_function) {
  const std::string patch = edited(
      {{kScale,
        "    section: size = heads_at_once(N * D * 4, ceil_div(M, BM), H // G, B * H)\n" + kScale},
       {"    return w % rows, w // rows % H, w // rows // H\n",
        "    let per_section = rows * section\n"
        "    let head = w // per_section * section + w % section\n"
        "    return rows - 1 - w % per_section // section, head % H, head // H\n"}});
  EXPECT_NE(
      patch.find("+    kw::size section = kw::heads_at_once(N * D * 4, kw::ceil_div(M, BM), H "
                 "/ G, B * H);"),
      std::string::npos);
  EXPECT_NE(patch.find("+    return {rows - 1 - w % per_section / args.section, head % args.H, "
                       "head / args.H};"),
            std::string::npos)
      << patch;
}

TEST(Lower, division_that_may_be_negative_floors_by_name) {
  const std::string patch =
      edited({{"ceil_div(N, BN), N // BN", "ceil_div(N, BN), (N - M) // BN + (N - M) % BN"}});
  EXPECT_EQ(marked(patch, '+'),
            "    return {kw::ceil_div(args.N, BN), kw::floor_div(args.N - args.M, BN) + "
            "kw::floor_mod(args.N - args.M, BN)};\n");
}

TEST(Lower, sums_of_reals_in_comparisons_are_rounded_by_name) {
  const std::string patch = edited(
      {{"exp2(fma(s[i, j], scale, -offset[i]))",
        "where(s[i, j] * scale - offset[i] * scale + 1.0 < scale, s[i, j] * scale - 1.0, 0.0)"}});
  EXPECT_EQ(marked(patch, '+'),
            "                kw::map(s, [&](kw::real x, kw::real o) { return "
            "kw::rounded_sum(kw::rounded_difference(x * args.scale, o * args.scale), 1.0f) < "
            "args.scale ? x * args.scale - 1.0f : 0.0f; }, offset);\n");
}

TEST(Lower, a_map_that_gains_a_vector_keeps_the_parameter_names) {
  const std::string patch = edited(
      {{"exp2(fma(s[i, j], scale, -offset[i]))", "exp2(fma(s[i, j], factor[i], -offset[i]))"}});
  EXPECT_EQ(marked(patch, '+'),
            "                kw::map(s, [&](kw::real x, kw::real f, kw::real o) { return "
            "kw::exp2(kw::fma(x, f, -o)); }, factor, offset);\n");
}

TEST(Lower, vectors_of_columns_and_rows_are_ints_or_reals_of_a_lambda) {
  const std::string mask = "map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)";
  const std::string text = edited(
      {{mask,
        "column d: i32[BN]\n" + kI4 + "    column x: real[BN]\n" + kI4 + "    row r: i32[64]\n" +
            kI4 + "    set_columns d[j] from n * BN = j % 48\n" + kI4 +
            "    set_columns x[j] from n * BN = f32(j) * scale\n" + kI4 +
            "    set_rows r[i] from i0 = i % 48\n" + kI4 +
            "    map_at s[i, j] from (i0, n * BN) = where(r[i] // 3 == d[j] // 3, s[i, j] + x[j], "
            "-inf)"}});
  for (const char* line :
       {"kw::ColumnVector<int, BN> d;", "kw::RowVector<int, 64> r;",
        "kw::set_columns(d, n * BN, [&](int j) { return kw::floor_mod(j, 48); });",
        "kw::set_columns(x, n * BN, [&](int j) { return float(j) * args.scale; });",
        "kw::set_rows(r, i0, [&](int i) { return kw::floor_mod(i, 48); });",
        "[&](kw::real x, kw::Place i, kw::Place j, int r, int d, kw::real x2) { return "
        "kw::floor_div(r, 3) == "
        "kw::floor_div(d, 3) ? x + x2 : kw::minus_infinity; }, r, d, x);"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Lower, vectors_of_distances_are_set_by_a_lambda_of_the_distance) {
  const std::string mask = "map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)";
  const std::string text = edited(
      {{mask,
        "diagonal near: real[64, BN]\n" + kI4 + "    diagonal kind: i32[64, BN]\n" + kI4 +
            "    set_diagonals near[d] from (i0, n * BN) = f32(d) * scale\n" + kI4 +
            "    set_diagonals kind[d] from (i0, n * BN) = d % 4\n" + kI4 +
            "    map_at s[i, j] from (i0, n * BN) = where(kind[j - i] == 1, s[i, j] + near[j - i], "
            "-inf)"}});
  for (const char* line :
       {"kw::DiagonalVector<kw::real, 64, BN> near;", "kw::DiagonalVector<int, 64, BN> kind;",
        "kw::set_diagonals(near, kw::Origin{i0, n * BN}, [&](int d) { return float(d) * "
        "args.scale; "
        "});",
        "kw::set_diagonals(kind, kw::Origin{i0, n * BN}, [&](int d) { return kw::floor_mod(d, 4); "
        "});",
        "[&](kw::real x, kw::Place i, kw::Place j, int k, kw::real n) { return k == 1 ? x + n : "
        "kw::minus_infinity; }, kind, near);"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Lower, a_tile_is_set_from_the_rows_of_a_tensor) {
  const std::string mask = "map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)";
  const std::string text = edited(
      {{"B, H, G, M, N: size", "bias: in bf16[H, M, N]\n    B, H, G, M, N: size"},
       {mask, "operand b: bf16[64, BN]\n" + kI4 +
                  "    set_tile b[i, j] from (i0, n * BN) = bias[c.h, max(i, 1), j]\n" + kI4 +
                  "    map s[i, j] = s[i, j] + scale * b[i, j]\n" + kI4 + "    " + mask}});
  for (const char* line :
       {"kw::Operand<kw::bf16, 64, BN> b;",
        "kw::set_tile(b, kw::Origin{i0, n * BN}, "
        "[&](int i) { return args.bias.row(c.h, kw::max(i, 1)); });",
        "kw::map(s, [&](kw::real x, kw::real b) { return x + args.scale * b; }, b);"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Lower, a_parameter_never_hides_a_name_of_the_body) {
  const std::string patch =
      edited({{kI3 + "step softmax", kI3 + "let x = f32(c.h)\n" + kI3 + "step softmax"},
              {"exp2(fma(s[i, j], scale, -offset[i]))", "exp2(fma(s[i, j], x, -offset[i]))"}});
  EXPECT_NE(patch.find("[&](kw::real x2, kw::real o) { return kw::exp2(kw::fma(x2, x, -o)); }"),
            std::string::npos)
      << patch;
}

TEST(Lower, braces_appear_where_a_second_statement_does) {
  const std::string patch =
      edited({{kI4 + "if raised:\n",
               kI4 + "if raised:\n" + kI4 + "    map_rows l[i] = l[i] * factor[i]\n"}});
  EXPECT_EQ(marked(patch, '+'),
            "                if (raised) {\n"
            "                    kw::map_rows(l, [&](kw::real x, kw::real f) { return x * f; }, "
            "factor);\n"
            "                    kw::map(acc, [&](kw::real x, kw::real f) { return x * f; }, "
            "factor);\n"
            "                }\n");
}

TEST(Lower, git_applies_the_patch_to_the_expert_s_file) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "kw_lower_patch";
  fs::remove_all(folder);
  fs::create_directories((folder / kKernel).parent_path());
  ASSERT_TRUE(write_file(folder / kKernel, kernel()->text));
  Diagnostics d;
  const auto program = tl::parse(
      make_source("k.tl", replaced(tl::print(lifted(kernel())), edits().at("window"))), d);
  const std::optional<Lowered> out = lower(*program, kernel(), toolchain(), d);
  ASSERT_TRUE(out) << render(d);
  const ProcessResult r =
      run_process({"git", "-C", folder.string(), "apply", "-"}, out->changes.patch);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_source((folder / kKernel).string())->text, out->text);
  fs::remove_all(folder);
}

// ---- what lower says

std::string complaints(const std::vector<Replacement>& replacements) {
  Diagnostics d;
  const std::string text = replaced(tl::print(lifted(kernel())), replacements);
  const auto program = tl::parse(make_source("edited.tl", text), d);
  EXPECT_TRUE(program) << render(d);
  if (program) lower(*program, kernel(), toolchain(), d);
  return render(d);
}

TEST(Lower, warns_of_the_comment_beside_a_changed_statement) {
  const std::string text = complaints({{"slack: f32 = 8.0 / scale", "slack: f32 = 4.0 / scale"}});
  EXPECT_NE(
      text.find("warning[lower.stale_comment]: the comment stands beside a statement that was "
                "changed"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("// how far a score may exceed"), std::string::npos) << text;
  EXPECT_EQ(complaints({{"    fence_async\n", "    fence_async\n            fence_async\n"}}), "");
}

TEST(Lower, the_comment_beside_constants_outlives_their_values) {
  EXPECT_EQ(complaints({{"toggle PING_PONG = false", "toggle PING_PONG = true"}}), "");
  EXPECT_EQ(complaints({{"BM = 256, BN = 128", "BM = 128, BN = 64"}}), "");
  EXPECT_NE(complaints({{"Q_SLOTS", "SLOTS_OF_Q", 5}}), "");
}

TEST(Lower, names_the_place_of_what_has_no_cuda_spelling) {
  EXPECT_NE(
      complaints({{"    fence_async\n", "    copy acc -> o\n"}})
          .find("error[lower.unspellable]: 'copy' exists only before scheduling, in 'copy acc "
                "-> o'"),
      std::string::npos);
  EXPECT_NE(complaints({{"fill acc = 0.0", "fill acc = nobody"}}).find("unknown name 'nobody'"),
            std::string::npos);
  EXPECT_NE(complaints({{"s[i, j], scale, -offset[i]", "s[i, j], scale, -offset[j]"}})
                .find("'offset' is a row vector, and no element of it is at hand here"),
            std::string::npos);
  EXPECT_NE(complaints({{"scale, -offset[i]", "f32(i), -offset[i]"}})
                .find("'i' is a coordinate: only map_at and map_real have them"),
            std::string::npos);
  EXPECT_NE(complaints({{"let i0 = c.m * BM", "let i0 = i0 + c.m * BM"}})
                .find("the value of 'i0' mentions an outer 'i0'"),
            std::string::npos);
  EXPECT_NE(complaints({{"let i0 = c.m * BM", "let i0 = c.m / BM"}})
                .find("'/' divides reals, and neither side is one: write '//'"),
            std::string::npos);
}

TEST(Lower, shows_clang_s_refusal_in_the_lowered_text) {
  EXPECT_NE(
      complaints({{"evict_first", "evict_never"}}).find("kernels/sm90/attention_fwd.cu (lowered):"),
      std::string::npos);
}

// ---- every other byte

// Inserts a statement before the k-th one that stands in a block (and is no `else`); false if there
// is none.
bool insert_at(std::vector<tl::Stmt>& body, const tl::Stmt& stmt, int& k) {
  for (size_t at = 0; at < body.size(); ++at) {
    const tl::Row& row = tl::row(body[at].op);
    if (row.where == tl::Block::body && row.op != tl::Op::warpgroups && k-- == 0) {
      body.insert(body.begin() + at, stmt);
      return true;
    }
    if (insert_at(body[at].body, stmt, k)) return true;
  }
  return false;
}

std::string without_space(std::string text) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return text;
}

// A new statement adds its own text and, in a block without braces, the braces; nothing else.
TEST(Lower, a_new_statement_anywhere_leaves_every_other_byte) {
  Diagnostics d;
  const std::optional<tl::Stmt> sync = tl::parse_statement("sync_warpgroup 7", d);
  const tl::Program original = lifted(kernel());
  int braced = 0, places = 0;
  for (int k = 0;; k += 3, ++places) {
    tl::Program program = original;
    int count = k;
    if (!insert_at(program.body, *sync, count)) break;
    const std::optional<Lowered> out = lower(program, kernel(), toolchain(), d);
    ASSERT_TRUE(out) << k << render(d);
    const std::string removed = marked(out->changes.patch, '-');
    if (removed.empty()) {
      const std::string added = marked(out->changes.patch, '+');
      EXPECT_EQ(without_space(added), "kw::sync_warpgroup(7);") << k;
      std::string text = out->text;
      text.erase(text.find(added, 0), added.size());
      EXPECT_TRUE(text == kernel()->text) << k << out->changes.patch;
      continue;
    }
    ++braced;
    std::string text = without_space(marked(out->changes.patch, '+'));
    for (const char* gone : {"{kw::sync_warpgroup(7);", "}"}) {
      const size_t at = gone[0] == '}' ? text.rfind(gone) : text.find(gone);
      ASSERT_NE(at, std::string::npos) << out->changes.patch;
      text.erase(at, std::string(gone).size());
    }
    // Comments stay, too, though one may have moved behind the brace.
    EXPECT_EQ(text.size(), without_space(removed).size()) << out->changes.patch;
  }
  EXPECT_GT(places, 25);
  EXPECT_GT(braced, 0);
}

const std::map<std::string, std::vector<Replacement>>& edits() {
  static const std::map<std::string, std::vector<Replacement>> all = {
      {"softcap",
       {{kScale, "    cap: f32\n    inverse_cap: f32\n" + kScale},
        {kI4 + "if partial:\n",
         kI4 + "map s[i, j] = cap * tanh(s[i, j] * inverse_cap)\n" + kI4 + "if partial:\n"}}},
      {"smaller_blocks_more_stages", {{"BN = 128", "BN = 64"}, {"STAGES = 2", "STAGES = 3"}}},
      {"plain_running_maximum", {{"s, slack, scale", "s, 0.0, scale"}}},
      {"no_turns",
       {{"toggle PING_PONG = false\n", ""},
        {"        if PING_PONG and me == 0:\n            order_arrive 0\n", ""},
        {kI4 + "if PING_PONG:\n" + kI4 + "    order_wait me\n", "", 2},
        {kI4 + "if PING_PONG:\n" + kI4 + "    order_arrive (me + 1) % WARPGROUPS\n", "", 2},
        {kI3 + "if PING_PONG:\n" + kI3 + "    order_wait me\n", ""},
        {kI3 + "if PING_PONG:\n" + kI3 + "    order_arrive (me + 1) % WARPGROUPS\n", ""}}},
      {"window",
       {{kScale, "    window: i32\n" + kScale},
        {"record Keys: count, full", "record Keys: count, full, first"},
        {"N // BN\n", "N // BN, max(0, i0 - window) // BN\n"},
        {"range_down_rolled(keys.count - 1, 0)", "range_down_rolled(keys.count - 1, keys.first)",
         2},
        {"mine.full) - 1, 0)", "mine.full) - 1, mine.first)"},
        {"where(j < N, ", "where(j < N and j > i - window, "}}},
      {"rename", {{"offset", "reference", 5}}},
      {"move",
       {{"fill fresh = 0.0\n" + kI4 + "row_sum fresh += s\n",
         "row_sum fresh += s\n" + kI4 + "fill fresh = 0.0\n"}}},
      {"mask_without_branch", {{kI4 + "if partial:\n" + kI4 + "    map_at s", kI4 + "map_at s"}}},
      {"tiles_together",
       {{"    tile k_s: ring(STAGES) of element[BN, D]\n    tile v_s: ring(STAGES) of element[BN, "
         "V]\n",
         "    tile k_s, v_s: ring(STAGES) of element[BN, D]\n"}}},
      {"barriers_apart",
       {{"    barrier k_full, v_full: ring(STAGES), arrivals 1\n",
         "    barrier k_full: ring(STAGES), arrivals 1\n"
         "    barrier v_full: ring(STAGES), arrivals 1\n"}}},
      {"element", {{"element bf16", "element f16"}}},
      {"widths", {{"D = 128, V = 128", "D = 192, V = 128"}, {"BN = 128", "BN = 64"}}},
      {"q_in_shared_memory", {{"Q_IN_REGISTERS = true", "Q_IN_REGISTERS = false"}}},
      {"first_and_last",
       {{kI3 + "let i0", kI3 + "let z = 3\n" + kI3 + "let i0"},
        {"            arrive o_full[u]\n",
         "            arrive o_full[u]\n        sync_warpgroup me\n"}}},
      {"new_loop",
       {{kI3 + "fill acc = 0.0\n", kI3 + "fill acc = 0.0\n" + kI3 + "for z in range(MATH):\n" +
                                       kI3 + "    if z == 1:\n" + kI3 + "        fill s = 0.0\n" +
                                       kI3 + "        fill l = 0.0\n"}}},
      {"rolled",
       {{"in range_down_counted(mine.count - 2,", "in range_down_rolled(mine.count - 2,"}}},
      {"unrolled", {{"in range_down_rolled(", "in range_down_counted(", 3}}},
      {"before_a_directive",
       {{"                for t, n in range_down_rolled(keys.count - 1, 0):\n                    "
         "wait_free "
         "k_free[t]\n",
         "                if u == 0:\n                    for t, n in range_down_rolled(keys.count "
         "- 1, "
         "0):\n                        wait_free k_free[t]\n                for t, n in "
         "range_down_rolled(keys.count - 1, 0):\n                    wait_free k_free[t]\n"}}},
      {"new_function",
       {{"kernel attention_fwd",
         "def half(c: Block) -> Keys:\n    return c.m, 0\nkernel attention_fwd"}}},
      {"advance_without_overlap",
       {{kI4 + "if Q_IN_REGISTERS:\n" + kI4 + "    wgmma s = q_r @ k_s[t + 1].T\n" + kI4 +
             "if not Q_IN_REGISTERS:\n" + kI4 + "    wgmma s = q_s[me][u] @ k_s[t + 1].T\n" + kI4 +
             "wait v_full[t]\n" + kI4 + "wgmma_add acc += p @ v_s[t]\n",
         kI4 + "wait v_full[t]\n" + kI4 + "wgmma_add acc += p @ v_s[t]\n" + kI4 +
             "wgmma_wait 0: acc\n" + kI4 + "wgmma s = q_r @ k_s[t + 1].T\n"},
        {kI4 + "wgmma_wait 1: s\n", kI4 + "wgmma_wait 0: s\n"},
        {kI4 + "    arrive k_free[t + 1]\n" + kI4 + "wgmma_wait 0: acc\n",
         kI4 + "    arrive k_free[t + 1]\n"}}},
      {"queue",
       {{kScale, "    counter: workspace[2]\n" + kScale},
        {"record Block",
         "    queue work: ring(2), takers 3 + 4 * WARPGROUPS of each of CTAS\nrecord Block"},
        {"k_free, v_free\n    sync", "k_free, v_free, work\n    sync"},
        {"        for u, w in static_tiles(blocks, CTAS):\n                let",
         "        for u, w in dynamic_tiles(work, blocks):\n                let", 3},
        {"for u, w in static_tiles(blocks, CTAS):\n            let",
         "for u, w in dynamic_tiles_warp(work, blocks):\n            let"},
        {"    warpgroups me",
         "        thread 3:\n            schedule_tiles work, counter, blocks\n    warpgroups "
         "me"}}},
      {"alone",
       {{" of each of CTAS\nrecord", "\nrecord"},
        {"    cluster cta of CTAS\n", ""},
        {"    sync_cluster\n", "", 2},
        {"(cta * WARPGROUPS + r)", "r", 2},
        {"(cta * WARPGROUPS + me)", "me"},
        {"tma_load_multicast", "tma_load", 2},
        {" of each of CTAS, arrive", ", arrive", 2},
        {"static_tiles(blocks, CTAS)", "static_tiles(blocks, 1)", 4}}},
      {"cluster_of_four", {{"CTAS = 2", "CTAS = 4"}}},
      {"cluster_of_a_number",
       {{"cluster cta of CTAS", "cluster rank of 2"},
        {"cta * WARPGROUPS", "rank * WARPGROUPS", 3}}},
      {"first_statement", {{"element bf16\n", "param FIRST = 1\nelement bf16\n"}}},
  };
  return all;
}

class Edits : public testing::TestWithParam<std::string> {};
TEST_P(Edits, lift_back_to_what_was_lowered) { EXPECT_NE(edited(edits().at(GetParam())), ""); }

std::vector<std::string> edit_names() {
  std::vector<std::string> out;
  for (const auto& [name, _] : edits()) out.push_back(name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Lower, Edits, testing::ValuesIn(edit_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kw::lower
