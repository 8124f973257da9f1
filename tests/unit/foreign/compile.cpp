// What a compiler says of a foreign kernel, on its way into a prompt.
#include "foreign/compile.h"

#include <gtest/gtest.h>

namespace kw::foreign {
namespace {

constexpr char kOurs[] = "/tmp/kernelwright.x1/sources";

TEST(Scrubbed, findings_about_the_sources_stay_with_their_echo_and_lose_the_folder) {
  EXPECT_EQ(
      scrubbed("/tmp/kernelwright.x1/sources/src/a.h(12): error: identifier \"x\" is undefined\n"
               "      return x;\n"
               "             ^\n",
               kOurs),
      "src/a.h(12): error: identifier \"x\" is undefined\n      return x;\n             ^\n");
}

TEST(Scrubbed, nothing_is_quoted_of_another_file) {
  EXPECT_EQ(scrubbed("/etc/hostname(1): error: this declaration has no type\n"
                     "  secret-host\n"
                     "  ^\n"
                     "/tmp/kernelwright.x1/sources/src/a.h:3:1: error: expected ';'\n",
                     kOurs),
            "src/a.h:3:1: error: expected ';'\n");
}

TEST(Scrubbed, a_path_inside_of_a_finding_is_no_path_of_this_machine) {
  const std::string said = scrubbed(
      "/tmp/kernelwright.x1/sources/src/a.h(3): error: cannot open /home/somebody/secret.h\n"
      "          detected during instantiation at line 7 of "
      "/tmp/kernelwright.x1/sources/src/b.h\n",
      kOurs);
  EXPECT_EQ(said.find("/home"), std::string::npos) << said;
  EXPECT_EQ(said.find("/tmp"), std::string::npos) << said;
  EXPECT_NE(said.find("cannot open <a file>"), std::string::npos) << said;
  EXPECT_NE(said.find("at line 7 of src/b.h"), std::string::npos) << said;
}

TEST(Scrubbed, what_ptxas_says_stays_and_endless_output_ends) {
  EXPECT_EQ(scrubbed("ptxas info    : Used 255 registers\n", kOurs),
            "ptxas info    : Used 255 registers\n");
  std::string endless;
  for (int n = 0; n < 10000; ++n)
    endless += std::string(kOurs) + "/a.h(1): error: again and again and again\n";
  EXPECT_LE(scrubbed(endless, kOurs).size(), 4000u);
}

TEST(IsCode, of_lines_that_a_lift_must_account_for) {
  for (const char* code : {"x = 1;", "  if (a) {", "return;", "#define X 1"})
    EXPECT_TRUE(is_code(code)) << code;
  for (const char* none : {"", "   ", "// text", "  });", "#pragma unroll", "}"})
    EXPECT_FALSE(is_code(none)) << none;
}

}  // namespace
}  // namespace kw::foreign
