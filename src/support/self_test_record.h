// Whether this very build has shown that it can fail: the results of its self-tests.
//
// A check that no planted bug has ever failed proves nothing. Each self-test runs once for each
// build of the tool (and on a GPU, for each driver and card) and leaves one entry in
// $XDG_CACHE_HOME/kernelwright/self_test.json (else ~/.cache/kernelwright/). What certifies asks
// for it: without an entry, or after a failed one, nothing is certified.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace kw {

enum class SelfTest { passed, failed, not_run };

// The version and a hash of this program's file, so that another build has another name:
// "0.1.0-0a1b2c3d4e5f6071".
std::string build_name();

std::filesystem::path self_test_file();

// `kind` names what was tested: "cpu", or "gpu, driver 13.0, NVIDIA H200".
SelfTest self_test_result(const std::string& kind);

// Keeps `facts`, which hold "passed", beside the entries of other builds and kinds. Returns false
// and leaves errno when the file cannot be written.
bool keep_self_test(const std::string& kind, const nlohmann::json& facts);

}  // namespace kw
