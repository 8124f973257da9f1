// Loops over key blocks that end at the first one that is needed, where no warpgroup only loads.
#include "transfer/families/attention/key_loops.h"

#include <gtest/gtest.h>

#include "tl/laws/laws.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

// The program whose key ranges have a first block, as text; what was reported after a refusal.
std::string ended(const std::string& target, const tl::Program& source) {
  Diagnostics d;
  const spec::Form form = form_of("score s\n");
  const std::optional<Facts> facts = find_facts(source, d);
  EXPECT_TRUE(facts) << render(d);
  Edit edit(source, form, target_of(target), *facts, d);
  return end_key_loops(edit, {true, false}) ? tl::print(edit.program) : render(d);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

// Both of Ampere's copies of keys ahead of the product, changed alike.
tl::Program ampere(const std::function<void(tl::Stmt&)>& change) {
  tl::Program p = kernel_of("sm_80");
  tl::walk(p.body, change);
  return p;
}

TEST(KeyLoops, what_is_copied_ahead_is_copied_as_far_as_the_first_block) {
  const std::string p = ended("sm_80", kernel_of("sm_80"));
  EXPECT_EQ(count(p, "if n > keys.first:"), 1u) << p;
  EXPECT_EQ(count(p, "if n > 0:"), 0u) << p;
}

TEST(KeyLoops, what_is_copied_as_it_is_visited_needs_nothing) {
  const std::string p = ended("sm_75", kernel_of("sm_75"));
  EXPECT_EQ(count(p, "record Keys: count, full, first"), 1u) << p;
  EXPECT_EQ(count(p, "copy_in k[c.b, g, n * BN]"), 1u) << p;
  EXPECT_EQ(count(p, "if n >"), 0u) << p;
}

TEST(KeyLoops, a_tile_of_columns_is_a_copy_of_keys_too) {
  const std::string said = ended("sm_75", [] {
    tl::Program p = kernel_of("sm_75");
    tl::walk(p.body, [](tl::Stmt& s) {
      if (s.op != tl::Op::copy_in || !s.tensor()->is_name("v")) return;
      Diagnostics d;
      auto tile =
          tl::parse_statement("copy_tile_in v[c.b, g, (n - 1) * BN, 0] -> v_s by WARPGROUPS", d);
      if (tile) s = *tile;
    });
    return p;
  }());
  EXPECT_NE(said.find("cannot start past key 0"), std::string::npos) << said;
}

TEST(KeyLoops, a_copy_ahead_that_nothing_guards_is_refused) {
  const tl::Program unguarded = ampere([](tl::Stmt& s) {
    if (s.op == tl::Op::if_ && s.body.size() == 1 && s.body[0].op == tl::Op::cp_async)
      s = tl::Stmt(s.body[0]);
  });
  const std::string said = ended("sm_80", unguarded);
  EXPECT_NE(said.find("transfer.kernel"), std::string::npos) << said;
  EXPECT_NE(said.find("cannot start past key 0"), std::string::npos) << said;
}

TEST(KeyLoops, a_copy_from_rows_that_are_no_block_is_refused) {
  const tl::Program shifted = ampere([](tl::Stmt& s) {
    if (s.op == tl::Op::cp_async && s.tensor()->is_name("v"))
      s.row() = tl::binary("+", s.row(), tl::integer(1));
  });
  EXPECT_NE(ended("sm_80", shifted).find("cannot start past key 0"), std::string::npos);
}

}  // namespace
}  // namespace kw::transfer
