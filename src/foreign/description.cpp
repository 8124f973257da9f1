#include "foreign/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/launch/launch_spec.h"
#include "support/files.h"
#include "support/lines.h"
#include "support/targets.h"

namespace kw::foreign {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// Reads one field after another; the first fault of a field is reported by its name.
class Reader {
 public:
  Reader(const Json& json, const SourcePtr& source, Diagnostics& diagnostics)
      : json_(json), source_(source), diagnostics_(diagnostics) {}

  void fault(const std::string& field, const std::string& what) {
    diagnostics_
        .error("foreign.description", {}, fmt::format("{}: {}: {}", source_->name, field, what))
        .hint = "src/foreign/description.h says what a description holds";
    good = false;
  }
  std::string text(const char* field) {
    const auto found = json_.find(field);
    if (found != json_.end() && found->is_string() && !found->get_ref<const std::string&>().empty())
      return found->get<std::string>();
    fault(field, found == json_.end() ? "is missing" : "is " + found->dump() + ", not a text");
    return {};
  }
  // An empty list where it is missing.
  const Json& list(const char* field) {
    static const Json none = Json::array();
    const auto found = json_.find(field);
    if (found == json_.end()) return none;
    if (found->is_array()) return *found;
    fault(field, "is " + found->dump() + ", not a list");
    return none;
  }
  std::vector<Range> ranges(const char* field, const std::map<std::string, std::string>& files) {
    std::vector<Range> all;
    for (const Json& one : list(field)) {
      Range r;
      try {
        r = {one.at("file").get<std::string>(), one.at("first").get<int>(),
             one.at("last").get<int>()};
      } catch (const Json::exception&) {
        fault(field, one.dump() + " is not {\"file\", \"first\", \"last\"}");
        continue;
      }
      if (!files.contains(r.file)) fault(field, r.file + " is not one of the described files");
      if (r.first < 1 || r.last < r.first) fault(field, one.dump() + " is not a range of lines");
      all.push_back(std::move(r));
    }
    return all;
  }

  bool good = true;

 private:
  const Json& json_;
  const SourcePtr& source_;
  Diagnostics& diagnostics_;
};

// Below the sources: relative, and never up.
bool stays_below(const fs::path& path) {
  return path.is_relative() && !path.empty() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& p) { return p == ".."; });
}

}  // namespace

std::string print(const Range& range) {
  return fmt::format("{}:{}-{}", range.file, range.first, range.last);
}

std::optional<Description> read_description(const SourcePtr& text, Diagnostics& diagnostics) {
  const Json json = Json::parse(text->text, nullptr, false);
  if (!json.is_object()) {
    diagnostics.error("foreign.description", {}, text->name + " is not a JSON object");
    return std::nullopt;
  }
  Reader reader(json, text, diagnostics);
  Description d;
  d.name = reader.text("name");
  d.target = reader.text("target");
  d.unit = reader.text("unit");
  d.entry = reader.text("entry");
  for (const Json& file : reader.list("files")) {
    const std::string path = file.value("path", "");
    if (!stays_below(path))
      reader.fault("files", fmt::format("'{}' is not a path below the sources", path));
    d.files[path] = file.value("sha256", "");
  }
  d.read = reader.ranges("read", d.files);
  if (d.read.empty() && reader.good) reader.fault("read", "names no lines to lift");
  d.declarations = reader.ranges("declarations", d.files);
  for (const Json& option : reader.list("nvcc"))
    if (option.is_string())
      d.nvcc.push_back(option.get<std::string>());
    else
      reader.fault("nvcc", option.dump() + " is not a text");
  const auto launch = json.find("launch");
  if (launch == json.end() || !launch->is_object())
    reader.fault("launch", "is missing, or no object");
  else
    d.launch = *launch;
  if (!reader.good) return std::nullopt;
  d.launch.emplace("cluster", 1);
  d.launch.emplace("resident", 1);
  d.launch["entry"] = d.entry;
  d.launch["target"] = d.target;
  Diagnostics found;
  if (!runtime::read_launch_spec(make_source("launch", d.launch.dump()), found)) {
    for (const Diagnostic& one : found.all()) reader.fault("launch", one.message);
    return std::nullopt;
  }
  d.sha256 = kw::sha256(text->text);
  return d;
}

const std::string& Sources::line(const std::string& file, int number) const {
  static const std::string none;
  const auto found = lines.find(file);
  if (found == lines.end() || number < 1 || number > static_cast<int>(found->second.size()))
    return none;
  return found->second[number - 1];
}

std::optional<Sources> read_sources(const Description& description, const fs::path& root,
                                    Diagnostics& diagnostics) {
  Sources sources{root, {}};
  const auto fault = [&](const std::string& what, const std::string& hint) {
    diagnostics.error("foreign.sources", {}, what).hint = hint;
  };
  const size_t before = diagnostics.all().size();
  for (const auto& [path, expected] : description.files) {
    errno = 0;
    const SourcePtr file = read_source((root / path).string());
    if (!file) {
      fault(fmt::format("cannot read {}: {}", (root / path).string(), std::strerror(errno)),
            "--sources names the folder that the description's paths begin in");
      continue;
    }
    if (const std::string found = kw::sha256(file->text); !expected.empty() && found != expected)
      fault(fmt::format("{} has the hash {:.12}, the described file {:.12}", path, found, expected),
            "it is another version, or was changed: lift it anew with a description of its own");
    sources.lines[path] = lines_of(file->text);
  }
  for (const auto* ranges : {&description.read, &description.declarations})
    for (const Range& r : *ranges)
      if (const auto lines = sources.lines.find(r.file);
          lines != sources.lines.end() && r.last > static_cast<int>(lines->second.size()))
        fault(fmt::format("{} reaches past the file, which has {} lines", print(r),
                          lines->second.size()),
              "correct the description");
  if (diagnostics.all().size() != before) return std::nullopt;
  return sources;
}

std::string numbered(const Sources& sources, const Range& range) {
  std::string out = range.file + "\n";
  for (int n = range.first; n <= range.last; ++n)
    out += fmt::format("{:>4}|{}\n", n, sources.line(range.file, n));
  return out;
}

bool is_code(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return false;
  line.remove_prefix(first);
  if (line.starts_with("//") || line.starts_with("#pragma")) return false;
  return line.find_first_not_of("{}();, \t\r") != std::string_view::npos;
}

}  // namespace kw::foreign
