// Sentences are made from the counts of a check's coverage (docs/certificate.md). A check that is
// not known here is said in the certificate's own words, never left out.
#include "report/checks.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace kw::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string figure(const OrderedJson& coverage, const char* field) {
  return with_commas(coverage.value(field, int64_t(0)));
}

// "1 case", "64 cases", of a field that is a number or a list.
std::string counted(const OrderedJson& coverage, const char* field, const std::string& noun) {
  const OrderedJson value = coverage.value(field, OrderedJson());
  return count(value.is_array()    ? int64_t(value.size())
               : value.is_number() ? value.get<int64_t>()
                                   : 0,
               noun);
}

// "2⁻¹¹⁵": the least power of two that is not below.
std::string power_of_two(double x) {
  static const char* const kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  if (!(x > 0)) return "0";
  std::string out = "2";
  for (const char c : fmt::format("{:.0f}", std::ceil(std::log2(x))))
    out += c == '-' ? "⁻" : kDigits[c - '0'];
  return out;
}

struct Words {
  const char* headline;
  std::string sentence;
};

Words say_values(const OrderedJson& c) {
  return {"Same numbers as your function",
          fmt::format("On {}, every one of {} output rows is within the accepted error of PyTorch "
                      "in fp64; the worst has {:.2f} of it.",
                      counted(c, "cases", "case"), figure(c, "rows"),
                      c.value("worst_error_over_allowed", 0.0))};
}

Words say_exact(const OrderedJson& c) {
  std::string text = fmt::format(
      "Without rounding, all {} rows of {} are equal element for element; a difference would be "
      "missed with a probability below {}.",
      figure(c, "rows"), counted(c, "runs", "run"),
      power_of_two(c.value("difference_missed_with_probability_below", 1.0)));
  std::string opaque;
  for (const OrderedJson& one : c.value("opaque_operations", OrderedJson::array()))
    opaque += (opaque.empty() ? "" : ", ") + one.get<std::string>();
  if (!opaque.empty()) text += fmt::format(" Taken as opaque: {}.", opaque);
  return {"Same formula as your function", text};
}

Words say_indices(const OrderedJson& c) {
  const size_t proved = c["proved"].size(), open = c["open"].size();
  return {open == 0 ? "Right for every size" : "Indices are not all decided",
          fmt::format("Of {} statements about its integers (which keys it keeps, which key blocks "
                      "it visits, what fits 32 bits) a solver has proved {} for every size.",
                      proved + open, proved)};
}

Words say_schedules(const OrderedJson& c) {
  const bool sequences = c.value("all_sequences_of_blocks", false);
  const bool lengths = c.value("any_number_of_key_blocks", false);
  return {
      "No race, no deadlock",
      fmt::format("In every order in which its {} (warps, copies, products) can run; for {}, "
                  "and {}.",
                  counted(c, "agents", "agent"),
                  sequences ? "every sequence of blocks"
                            : counted(c, "instances", "sequence") + " of blocks that were explored",
                  lengths ? "any number of key blocks" : "as many key blocks as were explored")};
}

Words words_for(const std::string& check, const OrderedJson& c) {
  if (check == "values") return say_values(c);
  if (check == "exact") return say_exact(c);
  if (check == "indices") return say_indices(c);
  if (check == "schedules") return say_schedules(c);
  if (check == "key_blocks")
    return {"Skips and masks the right tiles",
            fmt::format("Of {} blocks of keys that it skips or leaves unmasked, the skipped ones "
                        "keep nothing and the others keep everything.",
                        figure(c, "blocks"))};
  if (check == "laws")
    return {"Well-formed",
            fmt::format("It obeys all {} laws of the tile language.", figure(c, "laws"))};
  if (check == "lens")
    return {"The CUDA text is what was checked",
            fmt::format("Lifting kernel.cu gives back the checked program, {}, token for token.",
                        counted(c, "statements", "statement"))};
  if (check == "cubin")
    return {
        c.value("spill_bytes", int64_t(0)) ? "Compiles" : "Compiles without spills",
        fmt::format("{} registers at entry, {} bytes spilled, {} KB of shared memory; no global "
                    "variables, nothing undefined.",
                    figure(c, "registers_at_entry"), figure(c, "spill_bytes"),
                    with_commas((c.value("dynamic_shared_bytes", int64_t(0)) + 1023) / 1024))};
  return {"", ""};
}

std::string machine_of(const OrderedJson& gpu) {
  const OrderedJson machine = gpu.value("machine", OrderedJson::object());
  for (const char* field : {"gpu", "name", "device"})
    if (machine.contains(field) && machine[field].is_string()) return machine[field];
  return "a GPU";
}

// The worst error of all goldens over what is accepted; negative where none was compared, infinite
// where the report has null.
double worst_ratio(const OrderedJson& report) {
  double worst = -1;
  for (const OrderedJson& one : report.value("cases", OrderedJson::array()))
    for (const OrderedJson& golden :
         one.is_object() ? one.value("goldens", OrderedJson::array()) : OrderedJson::array()) {
      const OrderedJson ratio =
          golden.is_object() ? golden.value("worst_ratio", OrderedJson()) : OrderedJson();
      worst = std::max(worst, ratio.is_number() ? ratio.get<double>() : HUGE_VAL);
    }
  return worst;
}

bool ran(const OrderedJson& certificate, const std::string& check) {
  for (const OrderedJson& one : certificate["checked"])
    if (one["check"] == check) return true;
  return false;
}

// What a proof's first finding says; empty where it has none.
std::string first_finding(const OrderedJson& report) {
  for (const OrderedJson& one : report.value("cases", OrderedJson::array()))
    for (const OrderedJson& f :
         one.is_object() ? one.value("findings", OrderedJson::array()) : OrderedJson::array())
      if (f.is_object() && f.contains("message") && f["message"].is_string()) return f["message"];
  return "";
}

Markup as_items(const OrderedJson& coverage) {
  Markup out;
  for (const auto& [name, value] : coverage.items()) {
    std::string words = name;
    for (char& c : words) c = c == '_' ? ' ' : c;
    if (value.is_array() && !value.empty()) {
      Markup list;
      for (const OrderedJson& one : value)
        list += html("<li>{}</li>", one.is_string() ? one.get<std::string>() : one.dump());
      out += html("<dt>{}</dt><dd><details><summary>{}</summary><ul>{}</ul></details></dd>\n",
                  words, with_commas(int64_t(value.size())), list);
    } else if (value.is_array() || (value.is_string() && value.get<std::string>().empty())) {
      out += html("<dt>{}</dt><dd>none</dd>\n", words);
    } else {
      out += html("<dt>{}</dt><dd>{}</dd>\n", words,
                  value.is_string()           ? value.get<std::string>()
                  : value.is_number_integer() ? with_commas(value.get<int64_t>())
                  : value.is_boolean()        ? (value.get<bool>() ? "yes" : "no")
                                              : fmt::format("{:.3g}", value.get<double>()));
    }
  }
  return out;
}

}  // namespace

std::vector<Said> say_checks(const OrderedJson& certificate) {
  std::vector<Said> out;
  for (const OrderedJson& one : certificate["checked"]) {
    const std::string check = one["check"];
    const Words words = words_for(check, one["coverage"]);
    Said said{one["holds"], check, words.headline, words.sentence};
    if (said.headline.empty()) said.headline = check, said.sentence = one["claim"];
    out.push_back(said);
  }
  // What a stranger asks first comes first.
  const auto rank = [](const Said& s) {
    const std::string order[] = {"values",     "exact", "indices", "schedules",
                                 "key_blocks", "lens",  "cubin",   "laws"};
    return std::find(std::begin(order), std::end(order), s.check) - std::begin(order);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Said& a, const Said& b) { return rank(a) < rank(b); });
  return out;
}

Said say_gpu(const OrderedJson& certificate, const OrderedJson& report) {
  const OrderedJson& gpu = certificate["gpu"];
  if (gpu.is_null())
    return {false, "gpu", "Not run on a GPU yet",
            "Everything above was found on a CPU. kernelwright-prove, on a machine with a GPU, "
            "compares outputs there."};
  const std::string verdict = gpu.value("verdict", "inconclusive");
  const double worst = report.is_object() ? worst_ratio(report) : -1;
  const std::string error =
      worst < 0 ? "" : fmt::format("; worst error {:.2f} of what is accepted", worst);
  const std::string where = machine_of(gpu);
  const std::string cases = counted(gpu, "cases", "case");
  if (verdict == "holds")
    return {true, "gpu", fmt::format("Holds on {}", where),
            fmt::format("kernelwright-prove ran {} there{}.", cases, error)};
  if (verdict == "refuted") {
    const std::string finding = report.is_object() ? first_finding(report) : "";
    return {false, "gpu", fmt::format("Wrong on {}", where),
            fmt::format("kernelwright-prove ran {} there and found a difference{}{}{}.", cases,
                        error, finding.empty() ? "" : ": ", finding)};
  }
  return {false, "gpu", fmt::format("Undecided on {}", where),
          fmt::format("kernelwright-prove ran there and could not decide ({}).", cases)};
}

Verdict say_verdict(const OrderedJson& certificate) {
  const std::string verdict = certificate["verdict"], holds_for = certificate["holds_for"];
  const bool gpu = !certificate["gpu"].is_null();
  if (verdict == "refuted")
    return {"Wrong", "bad",
            gpu ? "A GPU gave another result than your function. Do not use this kernel."
                : "The check found a difference to your function. Do not use this kernel."};
  if (verdict != "holds")
    return {"Undecided", "unsure",
            gpu ? "The checks on the CPU hold, but the run on a GPU could not decide. Do not rely "
                  "on it."
                : "The check could not decide. Do not rely on this kernel."};
  const std::string by =
      gpu ? " Checked on a CPU and run on a GPU." : " Checked on a CPU; no GPU has run it yet.";
  const std::string found = "No difference to your function was found";
  if (holds_for == "every launch")
    return {"Holds", "good",
            fmt::format("{}: not in its numbers{}, nor in any order in which a GPU can run it.{}",
                        found, ran(certificate, "exact") ? ", not in exact arithmetic" : "", by)};
  if (holds_for == "the sizes and data that ran")
    return {
        "Holds where it ran", "unsure",
        found +
            ", at the sizes and data that ran; for all others it is not proved, and why is below." +
            by};
  if (holds_for == "the launches explored")
    return {"Holds where explored", "unsure",
            found + " in any launch that was explored; which were not, and why, is below." + by};
  return {"Holds in one order", "unsure",
          found +
              " with its parts run in one order; races and deadlocks were not looked for (a quick "
              "check)." +
              by};
}

Markup check_details(const OrderedJson& certificate) {
  Markup out;
  for (const OrderedJson& one : certificate["checked"])
    out += html("<h3>{}: {}</h3><p>{}</p><dl>{}</dl>\n", one["check"].get<std::string>(),
                one["holds"].get<bool>() ? "holds" : "does not hold",
                one["claim"].get<std::string>(), as_items(one["coverage"]));
  return out;
}

}  // namespace kw::report
