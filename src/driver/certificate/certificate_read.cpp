// Reading a certificate, and what differs between two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "driver/certificate/schema.h"
#include "driver/certificate/verify.h"

namespace kw::driver {
namespace {

using Json = nlohmann::json;

bool refuse(Diagnostics& diagnostics, const char* code, const std::string& what,
            const std::string& hint) {
  diagnostics.error(code, {}, what).hint = hint;
  return false;
}

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

// Reals are measured: another libm or number of threads moves their last digits.
bool same_number(const Json& was, const Json& is) {
  if (!was.is_number_float() && !is.is_number_float()) return was == is;
  const double a = was, b = is;
  return std::abs(a - b) <= 0.01 * std::max(std::abs(a), std::abs(b));
}

// Of two lists, what the longer one has more; as a whole they would be cut before it.
std::string of_lists(const Json& was, const Json& is) {
  const auto first_not_in = [](const Json& list, const Json& other) -> const Json* {
    for (const Json& one : list)
      if (std::find(other.begin(), other.end(), one) == other.end()) return &one;
    return nullptr;
  };
  std::string out = fmt::format("was {} long, is {}", was.size(), is.size());
  if (const Json* gone = first_not_in(was, is))
    out += fmt::format(": {} is not there", shown(*gone));
  if (const Json* more = first_not_in(is, was))
    out += fmt::format(": {} was not there", shown(*more));
  return out;
}

void collect(const Json& was, const Json& is, const std::string& at,
             std::vector<std::string>& out) {
  if (was.is_number() && is.is_number()) {
    if (!same_number(was, is))
      out.push_back(fmt::format("{}: was {}, is {}", at, shown(was), shown(is)));
  } else if (was.is_object() && is.is_object()) {
    for (const auto& [name, value] : was.items())
      if (is.contains(name))
        collect(value, is[name], at + "/" + name, out);
      else
        out.push_back(fmt::format("{}/{}: was {}, is not there", at, name, shown(value)));
    for (const auto& [name, value] : is.items())
      if (!was.contains(name))
        out.push_back(fmt::format("{}/{}: was not there, is {}", at, name, shown(value)));
  } else if (was.is_array() && is.is_array() && was.size() == is.size()) {
    for (size_t n = 0; n < was.size(); ++n)
      collect(was[n], is[n], fmt::format("{}/{}", at, n), out);
  } else if (was.is_array() && is.is_array() && was.dump().size() + is.dump().size() > 160) {
    out.push_back(fmt::format("{}: {}", at, of_lists(was, is)));
  } else if (was != is) {
    out.push_back(fmt::format("{}: was {}, is {}", at, shown(was), shown(is)));
  }
}

// Whether a name of a file leads to a place below the folder that it is in. "a..b" does.
bool is_inside(const std::string& file) {
  for (size_t at = 0; at <= file.size();) {
    const size_t end = std::min(file.find('/', at), file.size());
    const std::string part = file.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
      return false;
    at = end + 1;
  }
  return true;
}

constexpr int kDeepest = 100;  // of an expression in a launch plan; certificates have 5 levels

}  // namespace

std::optional<Claims> parse_claims(const std::string& text, std::string& why) {
  using Event = Claims::parse_event_t;
  bool deep = false;
  std::vector<std::set<std::string>> open;  // the names of each object around
  std::string twice;
  const auto look = [&](int depth, Event event, Claims& value) {
    deep |= depth > kDeepest;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end && !open.empty()) open.pop_back();
    if (event == Event::key && !open.empty() && !open.back().insert(value).second) twice = value;
    return !deep;
  };
  try {  // parse() says where a text ends early, and only by an exception
    Claims claims = Claims::parse(text, look);
    if (!deep && twice.empty()) return claims;
    why = deep ? fmt::format("values are nested more than {} deep", kDeepest)
               : fmt::format("one object has '{}' twice", twice);
  } catch (const Claims::exception& error) {
    why = error.what();
    why = why.substr(std::min(why.find("] ") + 2, why.size()));
  }
  return std::nullopt;
}

std::string difference(const Json& was, const Json& is) {
  std::vector<std::string> all;
  collect(was, is, "", all);
  if (all.empty()) return {};
  return all[0] + (all.size() > 1 ? fmt::format(" (and {} more)", all.size() - 1) : "");
}

std::optional<Json> certificate_schema(const Home& home, Diagnostics& diagnostics,
                                       const char* file) {
  const std::string path = (home.root / "docs" / file).string();
  const SourcePtr text = read_source(path);
  Json schema = text ? Json::parse(text->text, nullptr, false) : Json(Json::value_t::discarded);
  if (schema.is_object()) return schema;
  diagnostics.error("driver.schema", {}, fmt::format("{} cannot be read", path)).hint =
      "set KERNELWRIGHT_HOME to a folder that holds cuda/, kernels/, python/ and docs/";
  return std::nullopt;
}

std::optional<Claims> read_certificate(const SourcePtr& text, const Json& schema,
                                       Diagnostics& diagnostics) {
  const std::string& name = text->name;
  const std::string again = "make the kernel again, or take the certificate that make wrote";
  std::string why;
  std::optional<Claims> claims = parse_claims(text->text, why);
  if (!claims) {
    refuse(diagnostics, "certificate.json", fmt::format("{} cannot be read as JSON: {}", name, why),
           again);
    return std::nullopt;
  }
  const Claims version = claims->is_object() ? claims->value("schema", Claims()) : Claims();
  const std::string due = schema["properties"]["schema"]["const"];
  if (!version.is_string() || version != due) {
    const bool of_two = version == kTrainingSchema && due == kCertificateSchema;
    refuse(diagnostics, "certificate.schema",
           of_two
               ? fmt::format("{} is of a function and its gradients, two kernels, and this takes "
                             "the folder of one",
                             name)
               : fmt::format("{} has schema {}, and this program reads \"{}\"", name,
                             shown(version), due),
           of_two ? "name the folder `forward` or `backward` in it"
                  : "make the kernel again with this kernelwright (the specification is in from/), "
                    "or use the one that made it");
    return std::nullopt;
  }
  if (const auto wrong = mismatch(Json(*claims), schema)) {
    refuse(diagnostics, "certificate.form", fmt::format("{}: {}", name, *wrong), again);
    return std::nullopt;
  }
  for (const auto& [file, hash] : (*claims)["files"].items())
    if (!is_inside(file)) {
      refuse(diagnostics, "certificate.form",
             fmt::format("{}: /files names '{}', which is not inside the certificate's folder",
                         name, file),
             again);
      return std::nullopt;
    }
  return claims;
}

}  // namespace kw::driver
