// What a kernel in CuTe may include: a compiler opens the file, and says what stands in it.
#include "eval/cute.h"

#include <gtest/gtest.h>

namespace kw::eval {
namespace {

bool taken(const std::string& line) {
  propose::Refusal refusal;
  const bool taken = only_cute_included("int a;\n" + line + "\nint b;\n", refusal);
  EXPECT_EQ(taken, refusal.code.empty());
  if (!taken) {
    EXPECT_EQ(refusal.code, "cute.include");
  }
  return taken;
}

TEST(EvalCute, AKernelReadsNoFileOfThisMachine) {
  for (const char* line :
       {"#include \"x.h\"", "#include <stdio.h>", "#include <cute/../../etc/passwd>",
        "%:include <x>", "?\?=include <x>", "#define X <cute/x>", "#include X",
        "/**/ #include </etc/passwd>", "#in\\", "#in\\ ", "a = __has_include(</etc/passwd>);",
        "#embed </etc/passwd>", "#include <cute/x.h> \"y\"", "  # include_next <cute/x.h>",
        "#line 1 \"x\"", "#pragma push_macro(\"x\")"})
    EXPECT_FALSE(taken(line)) << line;
}

TEST(EvalCute, ItIncludesCutlass) {
  for (const char* line :
       {"#include <cute/tensor.hpp>", "# include <cutlass/arch/barrier.h>  // a barrier",
        "#include <cuda/std/cstdint>", "  #pragma unroll", "#pragma unroll 2",
        "#ifndef __CUDACC_RTC__", "#endif", "int c = 1;"})
    EXPECT_TRUE(taken(line)) << line;
}

}  // namespace
}  // namespace kw::eval
