#include "report/mask.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kw::report {
namespace {

using spec::binary;
using spec::ExprPtr;
using spec::integer;
using spec::Kind;
using transfer::Kept;
using Json = nlohmann::json;

ExprPtr index(const char* name) { return spec::leaf(Kind::index, spec::Type::integer, name); }
ExprPtr read(const char* tensor, ExprPtr at) {
  return spec::read(tensor, spec::Type::integer, {index("b"), std::move(at)});
}

// A function of q [B, 2, M, 128], k [B, 2, N, 128] and `extra`, of the given dimensions, that keeps
// what `keep` says.
spec::Form form_of(ExprPtr keep, Dtype dtype = Dtype::i32, std::vector<spec::Size> extra = {}) {
  spec::Form form;
  form.B.name = "B", form.M.name = "M", form.N.name = "N";
  form.H.constant = form.G.constant = 2;
  spec::Argument q;
  q.name = "q", q.is_tensor = true;
  q.dims = {{"B", 0}, {"", 2}, {"M", 0}, {"", 128}};
  spec::Argument k = q, data = q;
  k.name = "k", k.dims[2].name = "N";
  data.name = "data", data.dtype = dtype, data.dims = std::move(extra);
  form.arguments = {q, k};
  if (!data.dims.empty()) form.arguments.push_back(data);
  form.terms.emplace_back();
  form.terms[0].keep = std::move(keep);
  return form;
}

Json example(int64_t queries, int64_t keys, Json data = {}) {
  Json out = {{"q", {{"shape", {1, 2, queries, 128}}, {"values", nullptr}}},
              {"k", {{"shape", {1, 2, keys, 128}}, {"values", nullptr}}}};
  if (!data.is_null()) out["data"] = data;
  return out;
}

std::string tiles_of(const Masks& masks) {
  std::string out;
  const MaskPicture& p = masks.pictures.at(0);
  for (int64_t m = 0; m < p.tile_rows(); ++m, out += "/")
    for (int64_t n = 0; n < p.tile_columns(); ++n) {
      const Kept kept = p.tiles[m * p.tile_columns() + n];
      out += kept == Kept::all ? 'a' : kept == Kept::none ? '.' : 'm';
    }
  return out;
}

constexpr TileSize kTile = {256, 512};

TEST(Mask, CausalTilesAreDecided) {
  const Masks masks =
      draw_masks(form_of(binary("<=", index("j"), index("i"))), example(256, 256), kTile);
  EXPECT_EQ(masks.stretched, 4);
  EXPECT_EQ(tiles_of(masks), "m./m./am/am/");
}

// (i - j)² is no less than 0, which intervals do not see: every entry is asked.
TEST(Mask, WhereIntervalsCannotTellEntriesDo) {
  const ExprPtr far = binary("-", index("i"), index("j")), square = binary("*", far, far);
  const auto drawn = [&](const char* op, int64_t than) {
    return tiles_of(
        draw_masks(form_of(binary(op, square, integer(than))), example(256, 256), kTile));
  };
  EXPECT_EQ(drawn(">=", 0), "aa/aa/aa/aa/");
  EXPECT_EQ(drawn("<", 0), "../../../../");
  EXPECT_EQ(drawn(">=", 256), "ma/mm/mm/am/");
}

TEST(Mask, KeysPastTheLastOneNeedAMask) {
  const Masks masks = draw_masks(form_of(nullptr), example(1024, 700), kTile);
  EXPECT_EQ(masks.stretched, 1);
  EXPECT_EQ(tiles_of(masks), "am/am/am/am/");
}

TEST(Mask, LengthsGrowWithTheTokens) {
  const ExprPtr keep =
      binary("<", index("j"), spec::read("data", spec::Type::integer, {index("b")}));
  const Masks masks = draw_masks(form_of(keep, Dtype::i32, {{"B", 0}}),
                                 example(256, 256, {{"shape", {1}}, {"values", {128}}}), kTile);
  EXPECT_EQ(tiles_of(masks), "a./a./a./a./");
  EXPECT_EQ(masks.data, std::vector<std::string>{"data = 512"});
}

TEST(Mask, TheNumbersOfATokenAreRepeated) {
  std::string flags(256, '1');
  for (int n = 0; n < 128; ++n) flags[n] = '0';
  const ExprPtr keep = binary("!=", read("data", index("j")), integer(0));
  const Masks masks =
      draw_masks(form_of(keep, Dtype::boolean, {{"B", 0}, {"N", 0}}),
                 example(256, 256, {{"shape", {1, 256}}, {"values", flags}}), kTile);
  EXPECT_EQ(tiles_of(masks), ".a/.a/.a/.a/");
}

TEST(Mask, WordsOfBitsAreNotStretched) {
  const ExprPtr keep = binary("!=", read("data", index("j")), integer(0));
  const Masks masks = draw_masks(
      form_of(keep, Dtype::i32, {{"B", 0}, {"N", 0}}),
      example(256, 256, {{"shape", {1, 256}}, {"values", std::vector<int>(256, 1 << 30)}}), kTile);
  EXPECT_EQ(masks.stretched, 1);
  EXPECT_EQ(tiles_of(masks), "m/");
}

TEST(Mask, DataThatTheCaptureDoesNotKeepMakesNoPicture) {
  const ExprPtr keep = binary("!=", read("data", index("j")), integer(0));
  const spec::Form form = form_of(keep, Dtype::i32, {{"B", 0}, {"N", 0}});
  const Masks unkept =
      draw_masks(form, example(256, 256, {{"shape", {1, 256}}, {"values", nullptr}}), kTile);
  EXPECT_TRUE(unkept.pictures.empty());
  EXPECT_NE(unkept.absent.find("'data'"), std::string::npos);
  EXPECT_TRUE(draw_masks(form, Json::object(), kTile).pictures.empty());
}

TEST(Mask, OfALongExampleTheFirstPartIsDrawn) {
  const Masks masks =
      draw_masks(form_of(binary("<=", index("j"), index("i"))), example(8192, 8192), kTile);
  EXPECT_TRUE(masks.cropped);
  EXPECT_EQ(masks.pictures[0].queries, 4096);
}

TEST(Mask, HeadsThatDifferHavePicturesOfTheirOwn) {
  const ExprPtr keep = binary("<=", index("j"), binary("*", index("h"), integer(512)));
  EXPECT_EQ(draw_masks(form_of(keep), example(256, 256), kTile).pictures.size(), 2u);
}

}  // namespace
}  // namespace kw::report
