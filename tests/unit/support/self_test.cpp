// Records of self-tests, and the edits that planted bugs are written as.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/edits.h"
#include "support/files.h"
#include "support/self_test_record.h"

namespace kw {
namespace {

TEST(SelfTestRecord, BelongsToOneBuildAndOneKind) {
  const std::string cache = testing::TempDir() + "/kw_cache_" + std::to_string(getpid());
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EXPECT_EQ(self_test_result("cpu"), SelfTest::not_run);
  ASSERT_TRUE(keep_self_test("cpu", {{"passed", true}}));
  ASSERT_TRUE(keep_self_test("gpu, driver 13.0, X", {{"passed", false}}));
  EXPECT_EQ(self_test_result("cpu"), SelfTest::passed);
  EXPECT_EQ(self_test_result("gpu, driver 13.0, X"), SelfTest::failed);
  EXPECT_EQ(self_test_result("gpu, driver 13.1, X"), SelfTest::not_run);
  // Another build's entry, a broken file, an entry without a result: not run.
  write_file(self_test_file(), R"({"0.1.0-0000000000000000, cpu": {"passed": true}})");
  EXPECT_EQ(self_test_result("cpu"), SelfTest::not_run);
  write_file(self_test_file(), "{");
  EXPECT_EQ(self_test_result("cpu"), SelfTest::not_run);
  write_file(self_test_file(),
             nlohmann::json{{build_name() + ", cpu", nlohmann::json::object()}}.dump());
  EXPECT_EQ(self_test_result("cpu"), SelfTest::failed);
  std::filesystem::remove_all(cache);
  unsetenv("XDG_CACHE_HOME");
}

std::optional<Edit> edit_of(const std::string& text, Diagnostics& d) {
  const std::string path = testing::TempDir() + "/kw_edit_" + std::to_string(getpid()) + ".edit";
  write_file(path, text);
  std::optional<Edit> edit = read_edit(path, d);
  std::filesystem::remove(path);
  return edit;
}

TEST(Edits, ReplaceTheOccurrenceThatTheySay) {
  Diagnostics d;
  const auto edit = edit_of("# What.\nfrom: 7\n@2\n- b\n+ c\n+   d\n", d);
  ASSERT_TRUE(edit) << render(d);
  EXPECT_EQ(edit->about, "What.");
  EXPECT_EQ(edit->head.at("from"), "7");
  EXPECT_EQ(apply_edit(*edit, "  b\na\n    b\n", d), "  b\na\n    c\n      d\n");
}

TEST(Edits, AreRefusedWhereTheTextHasNoSuchLine) {
  Diagnostics d;
  const auto edit = edit_of("- gone\n+ c\n", d);
  ASSERT_TRUE(edit);
  EXPECT_FALSE(apply_edit(*edit, "a\n", d));
  EXPECT_NE(d.all().at(0).message.find("the text has no line 'gone'"), std::string::npos);
  EXPECT_FALSE(edit_of("mistake\n", d));
  EXPECT_EQ(d.all().back().code, "edit.file");
}

}  // namespace
}  // namespace kw
