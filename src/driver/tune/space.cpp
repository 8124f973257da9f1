#include "driver/tune/space.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kw::driver {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Reads one space; stops at the first fault.
class Reader {
 public:
  Reader(const SourcePtr& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  std::optional<Space> read() {
    const OrderedJson json = OrderedJson::parse(source_->text, nullptr, false);
    Space space;
    if (!json.is_object()) return fault("is not a JSON object");
    for (const auto& [field, value] : json.items()) {
      if (field == "about") continue;
      if (field != "axes" && field != "first") return fault(field + ": is not a field here");
      if (!axes(value, field, field == "axes" ? space.axes : space.first)) return std::nullopt;
    }
    if (space.axes.empty()) return fault("axes: there are none");
    return space;
  }

 private:
  std::nullopt_t fault(const std::string& what) {
    diagnostics_.error("tune.space", {}, fmt::format("{}: {}", source_->name, what));
    return std::nullopt;
  }

  bool axes(const OrderedJson& list, const std::string& path, std::vector<Axis>& into) {
    if (!list.is_array()) return fault(path + ": is not a list"), false;
    for (const OrderedJson& one : list) {
      const std::string here = fmt::format("{}[{}]", path, into.size());
      if (!one.is_object() || one.empty())
        return fault(here + ": is not an object of names and lists"), false;
      Axis axis;
      for (const auto& [name, values] : one.items())
        if (!add(name, values, here, axis)) return false;
      into.push_back(std::move(axis));
    }
    return true;
  }

  // Puts entry n of a constant's list into setting n of the axis.
  bool add(const std::string& name, const OrderedJson& values, const std::string& path,
           Axis& axis) {
    const std::string here = path + "." + name + ": ";
    if (!values.is_array() || values.empty()) return fault(here + "is not a list of values"), false;
    if (axis.empty()) axis.resize(values.size());
    if (axis.size() != values.size())
      return fault(here +
                   fmt::format("has {} values, the list before it {}", values.size(), axis.size())),
             false;
    for (size_t n = 0; n < values.size(); ++n)
      if (values[n].is_boolean())
        axis[n].push_back({name, values[n].get<bool>()});
      else if (values[n].is_number_integer())
        axis[n].push_back({name, values[n].get<int64_t>()});
      else
        return fault(here + fmt::format("holds {}; a constant is a whole number, true or false",
                                        values[n].dump())),
               false;
    return true;
  }

  const SourcePtr& source_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<Space> read_space(const SourcePtr& source, Diagnostics& diagnostics) {
  return Reader(source, diagnostics).read();
}

std::vector<Setting> combinations(const std::vector<Axis>& axes) {
  std::vector<Setting> out = {{}};
  for (const Axis& axis : axes) {
    std::vector<Setting> longer;
    for (const Setting& begun : out)
      for (const Setting& entry : axis) {
        longer.push_back(begun);
        longer.back().insert(longer.back().end(), entry.begin(), entry.end());
      }
    out = std::move(longer);
  }
  return out;
}

}  // namespace kw::driver
