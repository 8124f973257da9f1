// The lists of key blocks that a pre-pass writes, over whole launches with data of many kinds, held
// against the predicate entry by entry: no kept entry in a key block that is not visited, no
// dropped one in a key block that is visited without a mask, and not many key blocks in vain.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "exec/machine.h"
#include "transfer/transfer.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

constexpr int64_t kBatch = 2, kHeads = 32, kGroups = 8;

struct Mask {
  const char* name;
  const char* text;
  double in_vain;  // at most so many key blocks are visited for one that is needed, in blocky data
};
const Mask kMasks[] = {
    {"documents", "argument document i64[B, N]\nkeep j <= i and document[b, i] == document[b, j]",
     1.2},
    {"both_ways", "argument document i32[B, N]\nkeep document[b, i] == document[b, j]", 1.2},
    {"other_documents", "argument document i32[B, N]\nkeep document[b, i] != document[b, j]", 1.2},
    {"share_question",
     "argument document i32[B, N]\nargument part i32[B, N]\nkeep j <= i and document[b, i] == "
     "document[b, j] and (part[b, i] == part[b, j] or part[b, j] == 0)",
     1.6},
    {"row_intervals",
     "argument start i32[B, M]\nargument end i32[B, M]\nkeep start[b, i] <= j and j < end[b, i]",
     1.2},
    {"padding", "argument valid bool[B, N]\nkeep valid[b, j]", 1.05},
    {"not_padding", "argument padded bool[B, N]\nkeep not padded[b, j] and j <= i", 1.05},
    {"heads", "argument own i32[H, M]\nkeep j // 16 == own[h, i] // 16", 1.3},
    {"pairs", "argument allowed bool[M, N]\nkeep allowed[i, j] or j < 5", 1.05},
    {"table", "argument allowed bool[B, R, C]\nkeep allowed[b, i // 64, j // 64]", 1.2},
    {"window",
     "argument own i32[B, N]\nkeep abs(own[b, i] - own[b, j]) <= 2 and i - 200 < j and j <= i",
     1.4},
    {"three_ranges", "keep j < 4 or 1000 <= j and j < 1010 or j <= i and i - 256 < j", 1.2},
    {"two_copies",
     "keep i % 512 // 64 == j % 512 // 64 or 512 <= j and j % 512 // 64 < i % 512 // 64", 2.0},
    {"words", "argument words i32[B, M, W]\nkeep (words[b, i, j // 32] >> (j % 32)) & 1 == 1", 1.7},
    {"clear_bits",
     "argument words i32[B, W]\nkeep (words[b, j // 32] >> (j % 32)) & 1 == 0 and j <= i", 1.7},
    {"flags", "argument own i32[B, N]\nkeep own[b, j] & 12 == 0 and j <= i", 8},
    {"choices",
     "argument own i32[B, N]\nkeep j <= i + where(own[b, j] < 40, 0, 70) + where(j < 64, 200, "
     "own[b, i])",
     8},
    {"remainder", "argument own i32[B, N]\nkeep own[b, j] % 3 == 1 and j <= i", 2.5},
};

struct Data {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, Tensor> tensors;
};

// Runs of equal values, or any, around the numbers that a predicate compares with.
Data data_of(const spec::Form& form, int64_t M, int64_t N, bool blocky, std::mt19937& random) {
  Data out;
  out.sizes = {{"B", kBatch}, {"H", kHeads},        {"G", kGroups},       {"M", M},
               {"N", N},      {"R", (M + 63) / 64}, {"C", (N + 63) / 64}, {"W", (N + 31) / 32}};
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (const spec::Argument& a : form.arguments) {
    std::vector<int64_t> shape;
    for (const spec::Size& d : a.dims)
      shape.push_back(d.name.empty() ? d.constant : out.sizes.at(d.name));
    Tensor t;
    t.dtype = a.dtype;
    t.shape = shape;
    if (is_float(a.dtype)) {
      t.values = {0};
    } else {
      t = Tensor(a.dtype, shape);
      const bool bits = a.dtype == Dtype::boolean;
      const int64_t most = bits                                                      ? 1
                           : a.name == "start" || a.name == "end" || a.name == "own" ? N + 3
                                                                                     : 4;
      int64_t value = draw(0, most);
      for (int64_t n = 0; n < t.count(); ++n) {
        const bool next = !blocky || n == 0 || draw(0, 149) == 0;
        if (next && a.name == "words")
          value = draw(0, 2) ? -draw(0, 1) : draw(INT32_MIN, INT32_MAX);
        else if (next && blocky && a.name == "document")
          ++value;  // texts one behind the other
        else if (next)
          value = draw(bits ? 0 : -1, most);
        t.values[n] = double(value);
      }
    }
    out.tensors[a.name] = std::move(t);
  }
  return out;
}

// A program whose pre-pass has run.
struct Listed {
  exec::Launch launch;
  std::unique_ptr<exec::Machine> machine;
};

std::unique_ptr<Listed> listed(const tl::Program& program, const Data& data) {
  auto out = std::make_unique<Listed>();
  out->launch.shapes_only = true;
  out->launch.tensors = data.tensors;
  out->launch.scalars = {{"H", double(kHeads)}, {"G", double(kGroups)}};
  const auto put = [&](const char* name, int64_t heads, int64_t rows) {
    Tensor& t = out->launch.tensors[name];
    t.dtype = Dtype::bf16;
    t.shape = {kBatch, heads, rows, 128};
    t.values = {0};
  };
  put("q", kHeads, data.sizes.at("M"));
  put("k", kGroups, data.sizes.at("N"));
  put("v", kGroups, data.sizes.at("N"));
  out->machine = std::make_unique<exec::Machine>(program, out->launch, nullptr);
  exec::declare(*out->machine);
  EXPECT_FALSE(out->machine->faults.any())
      << (out->machine->faults.any() ? render(out->machine->faults.first()) : "");
  return out;
}

struct Keys {
  int64_t count, full;
};

class Reader {
 public:
  Reader(exec::Machine& m, int64_t row_block, int64_t h, int64_t b) : m_(m), scope_(nullptr) {
    const tl::Stmt* block = m.records.at("Block");
    exec::Value c{exec::Type::record, 0, block, {row_block, h, b}, {}};
    scope_.names["c"] = c;
  }
  int64_t value(const std::string& text) {
    Diagnostics d;
    return exec::integer_of({m_, &scope_, m_.kernel}, tl::parse_expr(text, d));
  }
  Keys keys(int64_t i0, const std::string& rows) {
    const std::string call = fmt::format("key_blocks(c, {}, {})", i0, rows);
    return {value(call + ".count"), value(call + ".full")};
  }

 private:
  exec::Machine& m_;
  exec::Scope scope_;
};

class Judge {
 public:
  Judge(const spec::Form& form, const Data& data) : keep_(form.terms[0].keep), data_(data) {
    scope_.indices = data.sizes;
    // A query or a key past the end of what it reads gets the last element, as in a kernel's maps.
    scope_.read = [this](const std::string& name, std::vector<int64_t> at) {
      const Tensor& tensor = data_.tensors.at(name);
      for (size_t d = 0; d < at.size(); ++d)
        if (at[d] < 0 || at[d] >= tensor.shape[d]) at[d] = tensor.shape[d] - 1;
      return tensor.at(at);
    };
  }
  bool kept(int64_t b, int64_t h, int64_t i, int64_t j) {
    for (const auto& [name, value] : {std::pair("b", b), {"h", h}, {"i", i}, {"j", j}})
      scope_.indices[name] = value;
    return spec::evaluate(keep_, scope_) != 0;
  }

 private:
  const spec::ExprPtr keep_;
  const Data& data_;
  spec::Scope scope_;
};

struct Sum {
  int64_t visited = 0, needed = 0;
};

// One block of query rows: what the cluster visits, and what each warpgroup does of that.
void judge_block(exec::Machine& m, Judge& judge, const Data& data, int64_t row_block, int64_t h,
                 int64_t b, int64_t warpgroup_rows, Sum& sum) {
  const int64_t M = data.sizes.at("M"), N = data.sizes.at("N");
  const auto param = [&](const char* name) { return int64_t(m.constants.at(name).x); };
  const int64_t BM = param("BM"), BN = param("BN");
  Reader reader(m, row_block, h, b);
  const Keys all = reader.keys(row_block * BM, "BM");
  ASSERT_FALSE(m.faults.any()) << render(m.faults.first());
  std::vector<int64_t> blocks;
  for (int64_t n = 0; n < all.count; ++n)
    blocks.push_back(reader.value(fmt::format("key_block(c, {})", n)));
  EXPECT_EQ(std::set<int64_t>(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_GE(all.count, 1);
  for (int64_t i0 = row_block * BM; i0 < (row_block + 1) * BM; i0 += warpgroup_rows) {
    const Keys mine = warpgroup_rows == BM ? all : reader.keys(i0, std::to_string(warpgroup_rows));
    EXPECT_LE(mine.count, all.count);
    EXPECT_GE(mine.count, std::max<int64_t>(1, mine.full));
    EXPECT_EQ(mine.full, all.full);
    if (i0 >= M) continue;
    sum.visited += mine.count;
    bool any = false;
    for (int64_t key = 0; key * BN < N; ++key) {
      int64_t kept = 0, first = -1;
      for (int64_t i = i0; i < std::min(i0 + warpgroup_rows, M); ++i)
        for (int64_t j = key * BN; j < std::min((key + 1) * BN, N); ++j)
          if (judge.kept(b, h, i, j)) ++kept, first = i;
      const int64_t at = std::find(blocks.begin(), blocks.end(), key) - blocks.begin();
      any = any || kept;
      sum.needed += kept > 0;
      if (kept) {
        EXPECT_LT(at, mine.count) << "row " << first << " keeps a key of block " << key;
      }
      if (at < mine.full) {
        EXPECT_EQ(kept, BN * (std::min(i0 + warpgroup_rows, M) - i0)) << "block " << key;
      }
    }
    sum.needed += !any;
  }
}

class Lists : public testing::TestWithParam<Mask> {};

TEST_P(Lists, leave_out_nothing_that_is_kept_and_mask_all_that_is_not) {
  const std::string text = GetParam().text;
  const size_t keep = text.find("keep ");
  const spec::Form form = form_of(text.substr(0, keep) + "score s\n" + text.substr(keep) + "\n");
  std::mt19937 random(7);
  for (const char* name : {"sm_90a", "sm_80"}) {
    Diagnostics d;
    const auto result = transfer(kernel_of(name), form, target_of(name), d);
    ASSERT_TRUE(result) << render(d);
    ASSERT_TRUE(result->program.find(tl::Op::lists)) << "no pre-pass";
    const int64_t rows = std::string(name) == "sm_80" ? 128 : 64;
    for (const bool blocky : {true, false}) {
      Sum sum;
      for (const auto& [M, N] : {std::pair<int64_t, int64_t>(520, 520), {130, 200}, {64, 1}}) {
        const Data data = data_of(form, M, N, blocky, random);
        const auto run = listed(result->program, data);
        Judge judge(form, data);
        const int64_t BM = int64_t(run->machine->constants.at("BM").x);
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t w = 0; w * BM < M; ++w)
            judge_block(*run->machine, judge, data, w, b + 1, b, rows, sum);
      }
      if (!blocky) continue;
      EXPECT_LE(double(sum.visited), GetParam().in_vain * double(sum.needed)) << name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Mask, Lists, testing::ValuesIn(kMasks),
                         [](const auto& info) { return info.param.name; });

TEST(Lists, are_written_only_where_the_data_says_something) {
  for (const char* text :
       {"argument prefix i32[B]\nscore s\nkeep j <= i or j < prefix[b]\n",
        "argument gate f32[B, N]\nscore s\nkeep gate[b, j] > 0.0\n", "score s\nkeep j <= i\n"}) {
    Diagnostics d;
    const auto result = transfer(kernel_of("sm_90a"), form_of(text), target_of("sm_90a"), d);
    if (!result) continue;
    EXPECT_FALSE(result->program.find(tl::Op::lists)) << text;
  }
}

}  // namespace
}  // namespace kw::transfer
