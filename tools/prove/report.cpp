#include "report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kw::prove {
namespace {

using Json = nlohmann::json;

// The worst error of all goldens over what is accepted there; null is infinity.
std::string worst_ratio(const Json& goldens) {
  double worst = -1;
  for (const Json& golden : goldens) {
    if (golden["worst_ratio"].is_null()) return "inf";
    worst = std::max(worst, golden["worst_ratio"].get<double>());
  }
  return worst < 0 ? "-" : fmt::format("{:.2f}", worst);
}

std::string number(const Json& time, const char* field, const char* format) {
  return time.contains(field) ? fmt::format(fmt::runtime(format), time[field].get<double>()) : "-";
}

}  // namespace

std::string table_head() {
  return fmt::format("{:28} {:>6} {:>15} {:>9} {:>9}  verdict\n", "case", "rows", "error/accepted",
                     "ms", "TFLOP/s");
}

std::string table_line(const Json& facts) {
  int64_t rows = 0;
  for (const Json& golden : facts["goldens"]) rows += golden["rows"].get<int64_t>();
  const Json time = facts.value("time", Json::object());
  std::string out =
      fmt::format("{:28} {:>6} {:>15} {:>9} {:>9}  {}\n", facts["name"].get<std::string>(), rows,
                  worst_ratio(facts["goldens"]), number(time, "median_ms", "{:.4f}"),
                  number(time, "tflops", "{:.1f}"), facts["verdict"].get<std::string>());
  for (const Json& finding : facts["findings"])
    out += fmt::format("  [{}] {}\n", finding["code"].get<std::string>(),
                       finding["message"].get<std::string>());
  return out;
}

}  // namespace kw::prove
