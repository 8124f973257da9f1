#include "driver/training/training_certificate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/training/memory.h"
#include "operator/family.h"

namespace kw::driver {
namespace {

// What no half's certificate can say, since it is about the other one.
constexpr char kChained[] =
    "both: one kernel after the other. On the CPU the backward kernel is given what the function "
    "has in fp64, rounded to fp32, and not what the forward kernel wrote; that is held against the "
    "same numbers by itself";
constexpr char kPassed[] =
    "both: that a caller passes on what the forward launch saved of the same inputs, unchanged";

// The one of two words that says less; `words` begins with the least.
std::string lesser(const Both& both, const char* field, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (both.forward.claims[field] == word || both.backward.claims[field] == word) return word;
  return both.forward.claims[field];
}

Claims facts_of(const char* name, const Half& half) {
  const Claims& c = half.claims;
  return {{"half", name},
          {"folder", name},
          {"verdict", c["verdict"]},
          {"holds_for", c["holds_for"]},
          {"form", c["spec"]["form"]},
          {"gpu", c["gpu"].is_null() ? Claims() : c["gpu"]["verdict"]},
          {"root", c["root"]}};
}

std::string rule_of(const spec::Output& o) {
  return o.rule == spec::Rule::sum
             ? "each element: at most what the terms of its sum may be off by"
             : "each row, against fp64: at most twice the larger of the error of the function's "
               "own "
               "gradient and half a unit in the last place, beside what fp32 loses where terms "
               "cancel";
}

Claims gradients_of(const Half& backward) {
  Claims all = Claims::array();
  for (const spec::Output& o : spec::outputs(backward.form)) {
    const auto at = std::find_if(backward.plan.arguments.begin(), backward.plan.arguments.end(),
                                 [&](const lower::LaunchArgument& a) { return a.name == o.name; });
    Claims dims = Claims::array(), checked = Claims::array();
    for (const tl::ExprPtr& d : at->dims) dims.push_back(tl::print(d));
    for (const Claims& one : backward.claims["checked"])
      if ((one["check"] == "values" || one["check"] == "exact") && one["holds"] == true)
        checked.push_back(one["check"]);
    all.push_back({{"of", o.of},
                   {"output", o.name},
                   {"dtype", at->type},
                   {"dims", dims},
                   {"rule", rule_of(o)},
                   {"checked", checked}});
  }
  return all;
}

Claims not_checked(const Both& both) {
  Claims out = {kChained, kPassed};
  for (const auto& [name, half] : {std::pair<const char*, const Half*>{"forward", &both.forward},
                                   {"backward", &both.backward}})
    for (const Claims& sentence : half->claims["not_checked"])
      out.push_back(fmt::format("{}: {}", name, sentence.get<std::string>()));
  return out;
}

std::string megabytes(int64_t bytes) {
  const double mb = static_cast<double>(bytes) / (1 << 20);
  return mb >= 10 ? fmt::format("{:.0f} MB", mb) : fmt::format("{:.2g} MB", mb);
}

}  // namespace

Claims training_claims(const Both& both) {
  const Claims& c = both.forward.claims;
  Claims passed = Claims::array();
  for (const Passed& p : both.passed)
    passed.push_back(
        {{"saved", p.saved}, {"from", p.from}, {"to", p.to}, {"dtype", p.dtype}, {"dims", p.dims}});
  return {{"schema", kTrainingSchema},
          {"kernelwright", c["kernelwright"]},
          {"verdict", lesser(both, "verdict", {"refuted", "invalid", "inconclusive", "holds"})},
          {"holds_for", lesser(both, "holds_for",
                               {"one order of the agents", "the launches explored",
                                "the sizes and data that ran", "every launch"})},
          {"effort", c["effort"]},
          {"target", c["target"]},
          {"halves", {facts_of("forward", both.forward), facts_of("backward", both.backward)}},
          {"not_checked", not_checked(both)},
          {"gradients", gradients_of(both.backward)},
          {"same_bits_in_every_run", both.backward.takes_turns},
          {"passed", passed},
          {"memory", memory_of(both)},
          {"spec",
           {{"file", c["spec"]["file"]},
            {"function", c["spec"]["function"]},
            {"dtype", c["spec"]["dtype"]},
            {"name", c["spec"]["name"]},
            {"function_sha256", function_sha256(both.forward.graph)}}}};
}

Claims training_certificate(const Both& both, const std::filesystem::path& folder) {
  Claims claims = training_claims(both);
  const Hashes files = hash_files(folder);
  claims["root"] = root_of(files);
  claims["files"] = files;
  return claims;
}

std::string memory_line(const Claims& training) {
  const Claims& memory = training["memory"];
  std::string out;
  bool open = false;
  for (const char* is : {"argument", "output", "saved", "given", "gradient", "scratch of forward",
                         "scratch of backward"}) {
    int64_t sum = 0;
    std::string most;
    int64_t largest = 0;
    for (const Claims& t : memory["tensors"]) {
      if (t["is"] != is) continue;
      if (t["bytes"].is_null()) {
        open = true;
        continue;
      }
      const int64_t bytes = t["bytes"];
      sum += bytes;
      if (bytes > largest) largest = bytes, most = t["name"];
    }
    if (sum < 1 << 14) continue;  // counters of a few words
    const std::string word = is == std::string("given") ? "the outputs' gradients" : is;
    const bool plural = word == "argument" || word == "output" || word == "gradient";
    const bool named = word == "saved" || word.rfind("scratch", 0) == 0;
    out += fmt::format("{}{}{} {}{}", out.empty() ? "" : ", ", word, plural ? "s" : "",
                       megabytes(sum), named ? fmt::format(" ({} in fp32)", most) : "");
  }
  return fmt::format("at {}: {}{}", memory["at"].get<std::string>(), out,
                     open ? "; and tensors whose sizes are their own" : "");
}

std::string half_line(const Claims& training, const std::string& half) {
  for (const Claims& one : training["halves"])
    if (one["half"] == half) {
      std::vector<std::string> names;
      for (const Claims& g : training["gradients"])
        names.push_back(
            fmt::format("{} of {}", g["output"].get<std::string>(), g["of"].get<std::string>()));
      std::string passed;
      for (const Claims& p : training["passed"])
        passed += fmt::format(", {}", p["from"].get<std::string>());
      return fmt::format(
          "{} for {}: {}", one["verdict"].get<std::string>(), one["holds_for"].get<std::string>(),
          half == "forward"
              ? fmt::format("the output{}",
                            passed.empty() ? "; nothing is saved" : " and what is saved" + passed)
              : fmt::format("{}", fmt::join(names, ", ")));
    }
  return "";
}

}  // namespace kw::driver
