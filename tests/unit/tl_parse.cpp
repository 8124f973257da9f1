#include <gtest/gtest.h>

#include "tl/program.h"
#include "tl/scope.h"

namespace kw::tl {
namespace {

std::string corpus(const std::string& name) { return KW_SOURCE_DIR "/tests/corpus/" + name; }

TEST(Parse, the_kernel_s_text_comes_back_as_it_is) {
  const SourcePtr source = read_source(corpus("sm90_attention_fwd.tl"));
  ASSERT_TRUE(source);
  Diagnostics d;
  const std::optional<Program> program = parse(source, d);
  ASSERT_TRUE(program) << render(d);
  EXPECT_EQ(print(*program), source->text);
}

}  // namespace
}  // namespace kw::tl
