// Visits that are no key blocks 0, 1, 2, ...: the function that says which key block a visit is.
#include "transfer/families/attention/visits.h"

#include <gtest/gtest.h>

#include "tl/laws/laws.h"
#include "transfer_form.h"

namespace kw::transfer {
namespace {

// The kernel of a target with numbered visits; "" after a refusal.
std::string numbered(const std::string& target, const std::vector<std::string>& body,
                     const tl::Program& source) {
  Diagnostics d;
  const spec::Form form = form_of("score s\n");
  const std::optional<Facts> facts = find_facts(source, d);
  EXPECT_TRUE(facts) << render(d);
  Edit edit(source, form, target_of(target), *facts, d);
  if (!number_visits(edit, body)) return "";
  Diagnostics laws;
  EXPECT_TRUE(tl::verify(edit.program, laws)) << render(laws);
  return tl::print(edit.program);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Visits, every_load_of_keys_and_every_mask_asks_which_key_block_it_is) {
  const std::string p = numbered("sm_90a", {"return n + 1"}, kernel_of("sm_90a"));
  EXPECT_NE(p.find("def key_block(c: Block, n: index) -> index:\n    return n + 1\n"),
            std::string::npos);
  EXPECT_EQ(count(p, "[c.b, g, key_block(c, n) * BN]"), 2u) << p;
  EXPECT_EQ(count(p, "from (i0, key_block(c, n) * BN)"), 1u) << p;
  EXPECT_EQ(count(p, " n * BN"), 0u) << p;
}

TEST(Visits, a_slot_is_chosen_by_the_visit_and_not_by_the_key_block) {
  const std::string p = numbered("sm_80", {"return n + 1"}, kernel_of("sm_80"));
  EXPECT_EQ(count(p, "k[c.b, g, key_block(c, n - 1) * BN] -> k_s[n - 1]"), 1u) << p;
  EXPECT_EQ(count(p, "k[c.b, g, key_block(c, keys.count - 1) * BN] -> k_s[keys.count - 1]"), 1u);
  EXPECT_EQ(count(p, "v[c.b, g, key_block(c, n) * BN]"), 1u) << p;
}

TEST(Visits, keys_that_are_no_number_of_key_blocks_are_refused) {
  tl::Program source = kernel_of("sm_80");
  tl::walk(source.body, [](tl::Stmt& s) {
    if (s.op == tl::Op::cp_async && s.tensor()->is_name("v"))
      s.row() = tl::binary("+", s.row(), tl::integer(0));
  });
  EXPECT_EQ(numbered("sm_80", {"return n"}, source), "");
}

}  // namespace
}  // namespace kw::transfer
