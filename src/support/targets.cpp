#include "support/targets.h"

namespace kw {
namespace {

constexpr int64_t operator""_KB(unsigned long long n) { return static_cast<int64_t>(n) * 1024; }

constexpr int64_t kReserved = reserved_shared_bytes;
constexpr TargetLimits kTargets[] = {
    {"sm_90a", "sm90", 227_KB, 228_KB, kReserved, 4096, true, true, true, "Hopper: H100, H200"},
    {"sm_80", "sm80", 163_KB, 164_KB, kReserved, 2048, true, false, false, "Ampere: A100, A30"},
    {"sm_86", "sm80", 99_KB, 100_KB, kReserved, 1024, true, false, false,
     "Ampere: A10, A40, RTX 30"},
    {"sm_89", "sm80", 99_KB, 100_KB, kReserved, 1024, true, false, true, "Ada: L4, L40S, RTX 40"},
    {"sm_90", "sm80", 227_KB, 228_KB, kReserved, 4096, true, false, true,
     "Hopper without its own instructions"},
    {"sm_75", "", 64_KB, 64_KB, 0, 1024, false, false, false, "Turing: T4, RTX 20, RTX 8000"},
};

}  // namespace

std::span<const TargetLimits> targets() { return kTargets; }

const TargetLimits* find_target(std::string_view name) {
  for (const TargetLimits& t : kTargets)
    if (t.name == name) return &t;
  return nullptr;
}

std::string target_names(bool with_text) {
  std::string names;
  for (const TargetLimits& t : kTargets)
    if (!with_text || !t.folder.empty()) names += (names.empty() ? "" : ", ") + std::string(t.name);
  return names;
}

}  // namespace kw
