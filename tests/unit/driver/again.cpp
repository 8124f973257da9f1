// What verify derives again: the same change by the same rules, with the tiles that make had.
#include "driver/certificate/again.h"

#include <gtest/gtest.h>

#include "driver/environment/tiles.h"
#include "driver/environment/tools.h"
#include "in_clone.h"
#include "transfer_form.h"

namespace kw::driver {
namespace {

// The normaliser's rule takes out a constant that the tiles' row has set: the program does not
// tell.
TEST(TransferredAgain, has_the_tiles_that_a_later_rule_took_out_of_the_program) {
  setenv("KERNELWRIGHT_HOME", in_clone().c_str(), 1);
  Diagnostics d;
  const auto tools = find_tools(d);
  ASSERT_TRUE(tools) << render(d);
  const auto shipped = find_tiles(tools->home, "", d);
  ASSERT_TRUE(shipped) << render(d);
  const tl::Program kernel = transfer::kernel_of("sm_90a");
  for (const char* text : {"head_dim 64\nscore sigmoid(s * 0.125 - 3.0)\nnormaliser none\n",
                           "head_dim 64\nscore tanh(s * 0.00625) * 20.0\nkeep j <= i\n"}) {
    const spec::Form form = transfer::form_of(text);
    const auto made = transfer::transfer(kernel, form, {"sm_90a", *shipped, 0}, d);
    ASSERT_TRUE(made) << render(d);
    std::string differs;
    const auto again = transferred_again({kernel, true, made->program, "rules", "sm_90a", *shipped},
                                         std::nullopt, form, differs, d);
    ASSERT_TRUE(again) << differs << render(d);
    ASSERT_EQ(again->rules.size(), made->rules.size());
    for (size_t n = 0; n < made->rules.size(); ++n) {
      EXPECT_EQ(again->rules[n].before, made->rules[n].before) << made->rules[n].name;
      EXPECT_EQ(again->rules[n].after, made->rules[n].after) << made->rules[n].name;
    }
  }
}

}  // namespace
}  // namespace kw::driver
