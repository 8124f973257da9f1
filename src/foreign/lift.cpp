#include "foreign/lift.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "propose/schema.h"

namespace kw::foreign {
namespace {

using Json = nlohmann::json;
using propose::schema::list;
using propose::schema::number;
using propose::schema::object;
using propose::schema::text;

// A name that stands in sentences and files.
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 60 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == ' ' || c == '-' || c == ',';
         });
}

// Where a line of code in what is read belongs to none of the regions; nothing: everywhere.
std::optional<Range> uncovered(const std::vector<Region>& regions, const Description& description,
                               const Sources& sources) {
  for (const Range& read : description.read)
    for (int n = read.first; n <= read.last; ++n) {
      const bool covered = !is_code(sources.line(read.file, n)) ||
                           std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
                             return r.range.holds(read.file, n);
                           });
      if (!covered) return Range{read.file, n, n};
    }
  return std::nullopt;
}

Json strings(const char* about) { return list({{"type", "string"}}, about); }

}  // namespace

const Region* Lift::region(const std::string& name) const {
  for (const Region& r : regions)
    if (r.name == name) return &r;
  return nullptr;
}

std::string Lift::program() const {
  std::string out;
  for (const Part& p : parts)
    for (const std::string& line : p.tl) out += line + "\n";
  return out;
}

const Part* Lift::part_of(int line) const {
  for (const Part& p : parts) {
    if (line <= static_cast<int>(p.tl.size())) return line > 0 ? &p : nullptr;
    line -= static_cast<int>(p.tl.size());
  }
  return nullptr;
}

std::vector<std::string> Lift::missing() const {
  std::set<std::string> told;
  for (const Part& p : parts) told.insert(p.regions.begin(), p.regions.end());
  for (const LeftOut& l : left_out) told.insert(l.region);
  std::vector<std::string> out;
  for (const Region& r : regions)
    if (!told.count(r.name)) out.push_back(r.name);
  return out;
}

nlohmann::ordered_json to_json(const Lift& lift) {
  using Ordered = nlohmann::ordered_json;
  Ordered notes = Ordered::array(), regions = notes, parts = notes, left_out = notes;
  for (const LineNote& n : lift.notes)
    notes.push_back({{"file", n.file}, {"line", n.line}, {"note", n.note}});
  for (const Region& r : lift.regions)
    regions.push_back({{"name", r.name},
                       {"file", r.range.file},
                       {"first", r.range.first},
                       {"last", r.range.last},
                       {"who", r.who}});
  for (const Part& p : lift.parts)
    parts.push_back({{"name", p.name}, {"regions", p.regions}, {"tl", p.tl}});
  for (const LeftOut& l : lift.left_out) left_out.push_back({{"region", l.region}, {"why", l.why}});
  return {{"description", lift.description},
          {"verdict", lift.verdict},
          {"who", lift.who},
          {"notes", notes},
          {"regions", regions},
          {"parts", parts},
          {"left_out", left_out}};
}

std::optional<Lift> read_lift(const SourcePtr& text, Diagnostics& diagnostics) {
  try {
    const Json json = Json::parse(text->text);
    Lift lift{json.at("description"), {}, {}, {}, {}, json.at("who"), json.at("verdict")};
    for (const Json& n : json.at("notes"))
      lift.notes.push_back({n.at("file"), n.at("line"), n.at("note")});
    for (const Json& r : json.at("regions"))
      lift.regions.push_back(
          {r.at("name"), {r.at("file"), r.at("first"), r.at("last")}, r.at("who")});
    for (const Json& p : json.at("parts"))
      lift.parts.push_back({p.at("name"), p.at("regions"), p.at("tl")});
    for (const Json& l : json.at("left_out"))
      lift.left_out.push_back({l.at("region"), l.at("why")});
    return lift;
  } catch (const Json::exception& error) {
    diagnostics
        .error("foreign.lift", {text, 0, 0},
               fmt::format("is not a lift that `foreign lift` wrote: {}", error.what()))
        .hint = "name another folder with --out, or remove this one to begin again";
    return std::nullopt;
  }
}

Json notes_schema() {
  const Json note = object({{"file", text("the file, as it is named above its lines")},
                            {"line", number("the line, as numbered")},
                            {"note", text("what it does, in the words of tiles and of threads")}});
  return object({{"notes", list(note,
                                "one for each line that names hardware: copies, barriers, "
                                "products, fences, predicates on threads")}});
}

Json regions_schema() {
  const Json region = object({{"name", text("a short name, used once")},
                              {"file", text("the file")},
                              {"first", number("its first line, as numbered")},
                              {"last", number("its last line")},
                              {"who", text("which threads run it: all, or which warps")}});
  return object({{"regions", list(region, "in the order of the text, without gaps in the code")}});
}

Json parts_schema() {
  const Json part = object(
      {{"name", text("a short name, used once; that of a part that is there replaces it")},
       {"after", text("the part that it follows; empty: the one before it in this answer, or for "
                      "a part that is there, where it stands")},
       {"regions", strings("the regions that it says; none for what the text has no line for")},
       {"tl", strings("its lines of TL, each with its indentation")}});
  const Json left = object({{"region", text("a region that no part says")},
                            {"why", text("why the program needs no statement for it")}});
  return object({{"parts", list(part, "parts of the program, in its order")},
                 {"left_out", list(left, "regions that are not in the program, and why")}});
}

Refusal add_notes(Lift& lift, const Json& answer, const Description& description) {
  std::vector<LineNote> notes;
  for (const Json& one : answer["notes"]) {
    LineNote n{one["file"], one["line"].get<int>(), one["note"]};
    const bool there = std::any_of(description.read.begin(), description.read.end(),
                                   [&](const Range& r) { return r.holds(n.file, n.line); });
    if (!there)
      return {"lift.note", fmt::format("a note is about line {} of '{}', which is not among the "
                                       "lines that are shown",
                                       n.line, n.file.substr(0, 60))};
    notes.push_back(std::move(n));
  }
  lift.notes = std::move(notes);
  return {};
}

Refusal add_regions(Lift& lift, const Json& answer, const Description& description,
                    const Sources& sources) {
  const auto refuse = [](std::string sentence) { return Refusal{"lift.region", sentence}; };
  std::vector<Region> regions;
  for (const Json& one : answer["regions"]) {
    Region r{
        one["name"], {one["file"], one["first"].get<int>(), one["last"].get<int>()}, one["who"]};
    if (!is_name(r.name))
      return refuse(
          "a region's name is empty, too long, or has other characters than letters, "
          "digits, spaces, commas, - and _");
    const bool inside =
        std::any_of(description.read.begin(), description.read.end(), [&](const Range& read) {
          return read.holds(r.range.file, r.range.first) && read.holds(r.range.file, r.range.last);
        });
    if (!inside || r.range.last < r.range.first)
      return refuse(fmt::format("region '{}' is not a range of the lines that are shown", r.name));
    for (const Region& other : regions) {
      if (other.name == r.name) return refuse(fmt::format("two regions are named '{}'", r.name));
      if (other.range.file == r.range.file && other.range.first <= r.range.last &&
          r.range.first <= other.range.last)
        return refuse(fmt::format("regions '{}' and '{}' overlap", other.name, r.name));
    }
    regions.push_back(std::move(r));
  }
  if (const auto gap = uncovered(regions, description, sources))
    return refuse(fmt::format("line {} of {} is code and in no region: `{}`", gap->first, gap->file,
                              sources.line(gap->file, gap->first)));
  lift.regions = std::move(regions);
  return {};
}

Refusal add_parts(Lift& lift, const Json& answer) {
  const auto refuse = [](std::string sentence) { return Refusal{"lift.part", sentence}; };
  Lift next = lift;
  const auto find = [&](const std::string& name) {
    return std::find_if(next.parts.begin(), next.parts.end(),
                        [&](const Part& p) { return p.name == name; });
  };
  std::string previous;
  for (const Json& one : answer["parts"]) {
    Part p{one["name"], one["regions"], one["tl"]};
    if (!is_name(p.name)) return refuse("a part's name is empty, too long, or no plain words");
    for (const std::string& region : p.regions)
      if (!next.region(region))
        return refuse(fmt::format("part '{}' says region '{}', which there is not", p.name,
                                  region.substr(0, 60)));
    for (const std::string& line : p.tl)
      if (std::any_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }))
        return refuse(fmt::format("a line of part '{}' has a control character", p.name));
    const std::string after = one["after"];
    if (const auto there = find(p.name); there != next.parts.end()) {
      if (!after.empty() && after != p.name)
        return refuse(fmt::format("part '{}' is there already and keeps its place", p.name));
      *there = p;
    } else {
      const std::string behind = after.empty() ? previous : after;
      const auto place = behind.empty() ? next.parts.end() : find(behind);
      if (!behind.empty() && place == next.parts.end())
        return refuse(fmt::format("part '{}' follows '{}', which there is not", p.name,
                                  behind.substr(0, 60)));
      next.parts.insert(behind.empty() ? place : place + 1, p);
    }
    previous = p.name;
  }
  for (const Json& one : answer["left_out"]) {
    LeftOut l{one["region"], one["why"]};
    if (!next.region(l.region))
      return refuse(
          fmt::format("region '{}', which is left out, is not there", l.region.substr(0, 60)));
    if (l.why.find_first_not_of(' ') == std::string::npos)
      return refuse(fmt::format("region '{}' is left out without a reason", l.region));
    std::erase_if(next.left_out, [&](const LeftOut& old) { return old.region == l.region; });
    next.left_out.push_back(std::move(l));
  }
  // A region that a part says now is no longer left out, unless this answer says both.
  for (const Part& p : next.parts)
    for (const std::string& region : p.regions) {
      const auto both = std::any_of(answer["left_out"].begin(), answer["left_out"].end(),
                                    [&](const Json& l) { return l["region"] == region; });
      if (both)
        return refuse(
            fmt::format("part '{}' says region '{}', which is left out too", p.name, region));
      std::erase_if(next.left_out, [&](const LeftOut& l) { return l.region == region; });
    }
  lift = std::move(next);
  return {};
}

}  // namespace kw::foreign
