// Reading measurements. Other programs wrote these files, maybe other versions of them: a field
// that is missing or of another type leaves its case out.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "report/roofline.h"
#include "support/files.h"

namespace kw::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson part(const OrderedJson& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  return object.is_object() && found != object.end() ? *found : OrderedJson();
}

std::string text(const OrderedJson& object, const char* field) {
  const OrderedJson value = part(object, field);
  return value.is_string() ? value.get<std::string>() : "";
}

double number(const OrderedJson& object, const char* field) {
  const OrderedJson value = part(object, field);
  return value.is_number() ? value.get<double>() : 0;
}

// As Python's json.dumps(..., sort_keys=True) writes it, without the driver's version.
std::string python_dump(const OrderedJson& environment) {
  const nlohmann::json sorted(environment);
  std::string out;
  for (const auto& [name, value] : sorted.items())
    if (name != "driver")
      out += (out.empty() ? "" : ", ") + nlohmann::json(name).dump(-1, ' ', true) + ": " +
             value.dump(-1, ' ', true);
  return "{" + out + "}";
}

struct Sizes {
  double B = 0, H = 0, G = 0, M = 0, N = 0, D = 0, V = 0;
  // Of q, k, v and o, two bytes each.
  double bytes() const { return 2 * (B * H * M * (D + V) + B * G * N * (D + V)); }
};

// "causal B1 H128/8 S8192 D192/128": the second number is the keys' and the values', else the same.
Sizes sizes_in(const std::string& name) {
  const auto pair = [&](const char* letter, double& first, double& second) {
    std::smatch found;
    if (!std::regex_search(name, found, std::regex(fmt::format(" {}(\\d+)(?:/(\\d+))?", letter))))
      return;
    first = std::stod(found[1]);
    second = found[2].matched ? std::stod(found[2]) : first;
  };
  Sizes s;
  double unused = 0;
  pair("B", s.B, unused);
  pair("H", s.H, s.G);
  pair("S", s.M, s.N);
  pair("D", s.D, s.V);
  return s;
}

double intensity(double flop, const Sizes& sizes) {
  return sizes.bytes() > 0 ? flop / sizes.bytes() : 0;
}

}  // namespace

OrderedJson cases_of(const OrderedJson& bench, const std::string& cubin,
                     const std::string& launch) {
  OrderedJson out = OrderedJson::object();
  const OrderedJson cases = part(bench, "cases");
  if (!cases.is_object()) return out;
  for (const auto& [name, result] : cases.items()) {
    const std::string signature = text(result, "signature");
    const OrderedJson environment = part(result, "environment");
    if (signature.empty() || !environment.is_object()) continue;
    if (sha256(python_dump(environment) + cubin + launch).substr(0, signature.size()) == signature)
      out[name] = result;
  }
  return out;
}

std::vector<Measured> measured_by_bench(const OrderedJson& cases) {
  std::vector<Measured> out;
  if (!cases.is_object()) return out;
  for (const auto& [name, result] : cases.items()) {
    const OrderedJson rows = part(result, "rows"), ours = part(rows, "ours");
    const double tflops = number(ours, "tflops");
    if (text(ours, "status") != "ok" || tflops <= 0) continue;
    std::vector<double> times;
    for (const OrderedJson& t : part(ours, "rounds_ms"))
      if (t.is_number()) times.push_back(t);
    std::sort(times.begin(), times.end());
    const double median =
        times.empty() ? 0 : (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
    Measured m{name,
               text(part(result, "environment"), "gpu"),
               fmt::format("{}, bench.py, {}", ours.contains("burst_ms") ? "sustained" : "burst",
                           text(result, "date")),
               tflops,
               intensity(tflops * median * 1e9, sizes_in(name)),
               {}};
    for (const auto& [peer, row] : rows.items())
      if (peer != "ours" && text(row, "status") == "ok" && number(row, "tflops") > 0)
        m.peers.push_back({peer, number(row, "tflops")});
    std::stable_sort(m.peers.begin(), m.peers.end(),
                     [](const auto& a, const auto& b) { return a.tflops > b.tflops; });
    out.push_back(std::move(m));
  }
  return out;
}

std::vector<Measured> measured_by_proof(const OrderedJson& report, const OrderedJson& prove,
                                        const OrderedJson& launch) {
  std::vector<Measured> out;
  for (const OrderedJson& one : part(report, "cases")) {
    const OrderedJson time = part(one, "time");
    const double tflops = number(time, "tflops"), ms = number(time, "median_ms");
    if (tflops <= 0 || ms <= 0) continue;
    const std::string name = text(one, "name");
    Sizes s;
    for (const OrderedJson& c : part(prove, "cases")) {
      const OrderedJson sizes = part(c, "sizes");
      if (text(c, "name") != name) continue;
      s = {number(sizes, "B"),
           number(sizes, "H"),
           number(sizes, "G"),
           number(sizes, "M"),
           number(sizes, "N"),
           number(part(launch, "constants"), "D"),
           number(part(launch, "constants"), "V")};
      if (s.V == 0) s.V = s.D;
    }
    out.push_back({name,
                   text(part(report, "machine"), "gpu"),
                   "kernelwright-prove",
                   tflops,
                   intensity(tflops * ms * 1e9, s),
                   {}});
  }
  return out;
}

}  // namespace kw::report
