#include "support/self_test_record.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/files.h"
#include "support/source.h"
#include "support/version.h"

namespace kw {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// All entries; an object, empty where there is no file that can be read.
Json entries() {
  const SourcePtr file = read_source(self_test_file().string());
  Json all = file ? Json::parse(file->text, nullptr, false) : Json();
  return all.is_object() ? all : Json::object();
}

std::string key(const std::string& kind) { return build_name() + ", " + kind; }

}  // namespace

std::string build_name() {
  static const std::string name = [] {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: a name, not a seal
    if (const SourcePtr self = read_source("/proc/self/exe", SIZE_MAX))
      for (const unsigned char byte : self->text) hash = (hash ^ byte) * 0x100000001b3;
    return fmt::format("{}-{:016x}", version(), hash);
  }();
  return name;
}

fs::path self_test_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache && *cache ? fs::path(cache) : fs::path(home ? home : "/") / ".cache";
  return base / "kernelwright" / "self_test.json";
}

SelfTest self_test_result(const std::string& kind) {
  const Json all = entries();
  const auto entry = all.find(key(kind));
  if (entry == all.end() || !entry->is_object()) return SelfTest::not_run;
  return entry->value("passed", false) ? SelfTest::passed : SelfTest::failed;
}

bool keep_self_test(const std::string& kind, const Json& facts) {
  Json all = entries();
  all[key(kind)] = facts;
  std::error_code failed;
  fs::create_directories(self_test_file().parent_path(), failed);
  return write_file(self_test_file(), all.dump(1));
}

}  // namespace kw
