// The table of statements (tl/traits.h): what its columns say of each other and of the spellings.
#include "tl/traits.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tl/syntax/table.h"

namespace kw::tl {
namespace {

// What a statement does to these, its row has to say: a program's memory and who may touch it.
const std::set<std::string> kPlaces = {
    "tiled",   "tensor", "filled",   "workspace", "scratch", "queue",
    "shared",  "slot",   "barrier",  "left",      "row",     "accumulator",
    "operand", "column", "diagonal", "lane_sum",  "vector"};

std::set<std::string> mentioned(std::string_view effects) {
  std::set<std::string> holes;
  for (size_t at = 0; at < effects.size();) {
    const size_t colon = effects.find(':', at);
    holes.insert(std::string(effects.substr(at, colon - at)));
    at = colon + 3;
  }
  return holes;
}

std::string kind_of(const Row& row, Hole hole) {
  for (const Pattern* p : {&row.tl, &row.cuda})
    for (const Part& part : p->parts)
      if (part.hole() && part.name == hole) return part.kind;
  return "";
}

TEST(Traits, effects_name_holes_and_every_place_is_named) {
  for (const Row& row : table()) {
    const std::set<std::string> said = mentioned(traits(row.op).effects);
    std::set<std::string> holes;
    for (const Hole hole : row.holes) holes.emplace(word(hole));
    for (const std::string& hole : said)
      EXPECT_TRUE(holes.contains(hole)) << row.word << " " << hole;
    for (const Hole hole : row.holes)
      EXPECT_TRUE(said.contains(std::string(word(hole))) || !kPlaces.contains(kind_of(row, hole)))
          << row.word << " does not say what it does to " << word(hole);
  }
}

TEST(Traits, access_is_what_the_row_says_and_read_where_it_says_nothing) {
  EXPECT_EQ(access(Op::tma_load, Hole::tensor), Access::read);
  EXPECT_EQ(access(Op::tma_load, Hole::dst), Access::write);
  EXPECT_EQ(access(Op::tma_load, Hole::barrier), Access::update);
  EXPECT_EQ(access(Op::tma_load, Hole::batch), Access::read);  // what the row does not mention
  EXPECT_EQ(access(Op::each_row, Hole::tensor), Access::none);
  EXPECT_EQ(access(Op::online_max, Hole::alpha), Access::write);
  EXPECT_TRUE(has_element(Op::map_rows));
  EXPECT_FALSE(has_element(Op::set_rows));
}

TEST(Traits, who_runs_it_is_said_of_what_runs_and_of_nothing_else) {
  for (const Row& row : table()) {
    const bool runs = row.where == Block::body && !is(row.op, Family::plan);
    EXPECT_EQ(traits(row.op).by != By::none, runs) << row.word;
  }
}

TEST(Traits, what_completes_later_needs_the_gpu_that_has_it) {
  for (const Row& row : table()) {
    const Traits& t = traits(row.op);
    if (t.async == Async::cp_async) {
      EXPECT_EQ(t.needs, Needs::ampere) << row.word;
    }
    if (t.async == Async::tma || t.async == Async::wgmma) {
      EXPECT_EQ(t.needs, Needs::hopper) << row.word;
    }
    if (t.async == Async::tma) {
      EXPECT_EQ(t.by, By::thread) << row.word;
    }
    if (t.async == Async::wgmma) {
      EXPECT_EQ(t.by, By::warpgroup) << row.word;
    }
  }
}

TEST(Traits, a_copy_has_a_tensor_on_one_side_and_a_shared_tile_on_the_other) {
  for (const Row& row : table()) {
    const bool in = is(row.op, Family::copy_in), out = is(row.op, Family::copy_out);
    if (!in && !out) continue;
    const Access due = in ? Access::read : row.op == Op::tma_add ? Access::update : Access::write;
    EXPECT_EQ(access(row.op, Hole::tensor), due) << row.word;
    EXPECT_EQ(kind_of(row, in ? Hole::dst : Hole::src),
              row.op == Op::tma_load_rows || row.op == Op::cp_async_rows ? "slot" : "shared")
        << row.word;
  }
}

TEST(Traits, a_product_that_adds_is_written_so) {
  for (const Row& row : table()) {
    bool adds = false;
    for (const Part& p : row.tl.parts) adds = adds || p.text.ends_with("+=");
    EXPECT_EQ(adds_product(row.op), adds && is(row.op, Family::contract)) << row.word;
  }
}

TEST(Traits, a_loop_has_a_block_and_a_counter) {
  for (const Row& row : table())
    if (is_loop(row.op)) {
      EXPECT_EQ(row.holds, Block::body) << row.word;
      EXPECT_EQ(row.tl.parts[0].text, "for") << row.word;
    }
}

}  // namespace
}  // namespace kw::tl
