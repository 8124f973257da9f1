#include "support/includes.h"

#include <gtest/gtest.h>

namespace kw {
namespace {

// What is refused, or "" where nothing is.
std::string refused(const std::string& text, const std::string& name = "", bool angled = false) {
  const auto asked = asks_for_a_file(name, text, angled);
  return asked ? text.substr(asked->at, 8) + "|" + asked->message : "";
}

TEST(Includes, files_of_kw_and_what_only_looks_like_a_directive_pass) {
  for (const char* text :
       {"#include \"kw/kw.cuh\"\n", "  #  include \"kw/tile/tiles.cuh\"  // of kw\n",
        "#pragma once\n#define A(x) x \\\n  + 1\n#if 0\ndon't\n#endif\n",
        "// #include \"/etc/passwd\"\n/* \n#include <x>\n*/\n",
        "const char* s = \"\\\"#include <x>\";\n", "int n = 1'000'000; char c = '#';\n",
        "#include \"kw/kw.cuh\"\r\nint x;\r\n"})
    EXPECT_EQ(refused(text), "") << text;
  EXPECT_EQ(refused("#include \"../ptx/wgmma.cuh\"\n", "kw/tile/tiles.cuh"), "");
}

TEST(Includes, whatever_else_asks_for_a_file_is_refused_where_it_stands) {
  for (const char* text : {"#include \"/etc/passwd\"\n",
                           "#include \"../x\"\n",
                           "#include <x>\n",
                           "#include \"kw/../x\"\n",
                           "#include FILE\n",
                           "#include_next \"kw/kw.cuh\"\n",
                           "#import \"x\"\n",
                           "#embed \"x\"\n",
                           "int x;\n%: include \"x\"\n",
                           "/* a\n */ /**/ # /**/ include \"x\"\n",
                           "#inc\\\nlude \"x\"\n",
                           "#\\\r\ninclude \"x\"\n",
                           "#if __has_include(\"x\")\n#endif\n",
                           "#pragma GCC dependency \"x\"\n",
                           "_Pragma(\"GCC dependency \\\"x\\\"\")\n",
                           "import \"x\";\n",
                           "\"no end\n#include \"x\"\n",
                           "int n = 1'0;\n#include <x>  // '\n",
                           "x = '\\\\';\n#include <x>\n",
                           "\v\f#include \"x\"\n",
                           "#",
                           "# 1 \"x\"\n"})
    EXPECT_EQ(refused(text).empty(), std::string(text) == "#") << text;
  EXPECT_EQ(refused("int x;\n  #include <a/b.h>\n").substr(0, 27), "#include|`#include <a/b.h>`");
  EXPECT_NE(refused("#include \"../../x\"\n", "kw/tile/tiles.cuh"), "");
  EXPECT_NE(refused("#include \"/kw/x\"\n", "kw/tile/tiles.cuh"), "");
}

TEST(Includes, files_of_folders_that_a_compiler_is_given_stand_in_angles) {
  EXPECT_EQ(refused("#include <cute/tensor.hpp>\nint x;\n", "", true), "");
  EXPECT_NE(refused("#include <cute/tensor.hpp>\n"), "");
  for (const char* text :
       {"#include \"cute/tensor.hpp\"\n", "#include </etc/passwd>\n", "#include <cute/../../x>\n",
        "#include <x>\n", "#include <cute/x\n", "#include <cute/x>\n#include \"/etc/passwd\"\n"})
    EXPECT_NE(refused(text, "", true), "") << text;
}

TEST(Includes, texts_that_compilers_read_in_two_ways_are_refused) {
  for (const char* text : {"// \\ \n#include <x>\n", "x = \\\t\n1;\n", "// a\r#include <x>\n",
                           "R\"(\n)\"\n#include <x>\n", "u8R\"a(\n)a\"\n", "?\?=include <x>\n",
                           "// ?\?/\n#include <x>\n"})
    EXPECT_NE(refused(text), "") << text;
}

TEST(Includes, macros_are_seen_before_a_preprocessor_expands_them) {
  const auto place = [](const std::string& text) {
    const auto found = has_macros(text);
    return found ? text.substr(found->at, 6) : "";
  };
  for (const char* text :
       {"#define A 1\n", "  #  define A\n", "%: define A\n", "/* a\n */ /**/ # /**/ define A\n",
        "int x;\n#\\\ndefine A\n", "#\\\r\ndefine A\n", "\v\f#\tdefine A\n",
        "\"no end\n#define A\n", "int n = 1'0;\n#define A  // '\n", "#if 0\n#define A\n#endif\n"})
    EXPECT_EQ(place(text), "define") << text;
  EXPECT_NE(place("#def\\\nine A\n"), "");
  EXPECT_NE(place("?\?=define A\n"), "");
  EXPECT_NE(place("?\?/\n#define A\n"), "");
  EXPECT_EQ(place("int x = KW_REG8(KW_REG8(1));"), "KW_REG");
  EXPECT_EQ(place("#if KW_REG8(1)\n#endif\n"), "KW_REG");
  for (const char* text :
       {"#include \"kw/kw.cuh\"\n", "// #define A\n/*\n#define A\n*/\n",
        "const char* s = \"#define A KW_X\";\n", "int define; int kw_x;\n", "#pragma unroll 1\n"})
    EXPECT_EQ(place(text), "") << text;
}

}  // namespace
}  // namespace kw
