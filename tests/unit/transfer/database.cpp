// Tile databases as text: what is read, what is refused, and what is written.
#include <gtest/gtest.h>

#include "in_clone.h"
#include "transfer/tile_database.h"

namespace kw::transfer {
namespace {

constexpr const char* kRow = R"({"targets": ["sm_90a"], "D": 64, "V": 64, "keys": "alike",
    "constants": {"BM": 384, "PING_PONG": true}, "why": "557 TFLOP/s"})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return text.replace(text.find(from), from.size(), to);
}

std::string file(const std::string& rows) { return "{\"rows\": [" + rows + "]}"; }

// Code and message of everything that is wrong with it.
std::string refusals(const std::string& text) {
  Diagnostics d;
  EXPECT_FALSE(read_tiles(make_source("t.json", text), d));
  std::string out;
  for (const Diagnostic& one : d.all()) out += one.code + ": " + one.message + "\n";
  return out;
}

TEST(TileDatabase, a_row_is_read_with_its_constants_in_order) {
  Diagnostics d;
  const auto read = read_tiles(make_source("t.json", file(kRow)), d);
  ASSERT_TRUE(read) << render(d);
  ASSERT_EQ(read->rows.size(), 1u);
  const Tiles& row = read->rows[0];
  EXPECT_TRUE(row.is_for("sm_90a"));
  EXPECT_FALSE(row.is_for("sm_90"));
  EXPECT_EQ(row.dim, 64);
  EXPECT_EQ(row.keys, Keys::alike);
  EXPECT_EQ(text_of(row.constants), "BM = 384, PING_PONG = true");
  EXPECT_EQ(row.place, "t.json: rows[0]");
}

TEST(TileDatabase, the_shipped_ones_are_written_as_they_are_read) {
  const SourcePtr source = read_source(in_clone("/kernels/sm90/tiles.json"));
  Diagnostics d;
  const auto read = read_tiles(source, d);
  ASSERT_TRUE(read) << render(d);
  EXPECT_EQ(print(*read), source->text);
}

TEST(TileDatabase, a_row_of_a_product_has_none_of_D_V_and_keys) {
  const SourcePtr source = read_source(in_clone("/kernels/sm80/gemm.tiles.json"));
  Diagnostics d;
  const auto read = read_tiles(source, d);
  ASSERT_TRUE(read) << render(d);
  EXPECT_TRUE(read->rows.at(0).of_product());
  EXPECT_EQ(print(*read), source->text);
  const std::string half = with(with(kRow, "\"D\": 64, ", ""), "\"keys\": \"alike\",", "");
  EXPECT_EQ(refusals(file(half)),
            "tiles.field: t.json: rows[0].D: is missing\n"
            "tiles.field: t.json: rows[0].keys: is missing\n");
}

TEST(TileDatabase, no_json_is_refused_at_its_place) {
  Diagnostics d;
  EXPECT_FALSE(read_tiles(make_source("t.json", "{\"rows\": [\n  oops]}"), d));
  ASSERT_EQ(d.all().size(), 1u);
  EXPECT_EQ(d.all()[0].code, "tiles.syntax");
  EXPECT_EQ(d.all()[0].span.place(), "t.json:2:3");
}

TEST(TileDatabase, every_wrong_field_is_refused_by_its_path) {
  EXPECT_EQ(refusals("[]"), "tiles.field: t.json: is not an object with a list \"rows\"\n");
  EXPECT_EQ(refusals(R"({"rows": [], "row": 1})"),
            "tiles.field: t.json: row: is not a field here; there are about, rows\n");
  EXPECT_EQ(refusals(file("7")), "tiles.field: t.json: rows[0]: is not an object\n");
  const std::pair<std::pair<const char*, const char*>, const char*> faults[] = {
      {{"[\"sm_90a\"]", "\"sm_90a\""}, "targets: is \"sm_90a\", not a list of targets (sm_90a)"},
      {{"[\"sm_90a\"]", "[]"}, "targets: is [], not a list of targets (sm_90a)"},
      {{"\"D\": 64", "\"D\": \"64\""}, "D: is \"64\", not a number of columns"},
      {{"\"D\": 64", "\"D\": 0"}, "D: is 0, not a number of columns"},
      {{"\"V\": 64, ", ""}, "V: is missing"},
      {{"alike", "some"}, "keys: is 'some', not one of any, alike, by_row, window, sparse"},
      {{"384", "3.5"}, "constants.BM: is 3.5; a constant is a whole number, true or false"},
      {{"\"why\"", "\"reason\""},
       "reason: is not a field here; there are targets, D, V, keys, constants, why"},
  };
  for (const auto& [change, message] : faults)
    EXPECT_EQ(refusals(file(with(kRow, change.first, change.second)))
                  .rfind(std::string("tiles.field: t.json: rows[0].") + message + "\n", 0),
              0u)
        << message << "\n"
        << refusals(file(with(kRow, change.first, change.second)));
}

TEST(TileDatabase, all_faults_are_told_at_once) {
  const std::string two = with(kRow, "64", "-1") + std::string(", ") + with(kRow, "true", "null");
  EXPECT_EQ(refusals(file(two)),
            "tiles.field: t.json: rows[0].D: is -1, not a number of columns\n"
            "tiles.field: t.json: rows[1].constants.PING_PONG: is null; a constant is a whole "
            "number, true or false\n");
}

}  // namespace
}  // namespace kw::transfer
