#include "foreign/lowering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compile/cubin.h"
#include "lower/launch_plan.h"
#include "lower/patch.h"
#include "propose/prompt.h"
#include "runtime/launch/launch_spec.h"
#include "support/lines.h"

namespace kw::foreign {
namespace {

using Json = nlohmann::json;

// A statement of `args:` that declares this name.
const tl::Stmt* declaration(const tl::Program& program, const std::string& name) {
  if (const tl::Stmt* args = program.find(tl::Op::args))
    for (const tl::Stmt& s : args->body)
      for (const tl::Item& d : s.names())
        if (d.name == name) return &s;
  return nullptr;
}

std::vector<std::string> arguments_of(const tl::Program& program) {
  std::vector<std::string> out;
  if (const tl::Stmt* args = program.find(tl::Op::args))
    for (const tl::Stmt& s : args->body)
      for (const tl::Item& d : s.names()) out.push_back(d.name);
  return out;
}

std::vector<std::string> new_arguments(const LowerTask& task) {
  std::vector<std::string> out;
  for (const std::string& name : arguments_of(task.target))
    if (!declaration(task.source, name)) out.push_back(name);
  return out;
}

const tl::ExprPtr& value_of(const tl::Stmt& s, const std::string& name) {
  for (const tl::Item& d : s.names())
    if (d.name == name) return d.expr;
  static const tl::ExprPtr none;
  return none;
}

// The entry of launch.json for an argument that is new.
std::optional<Json> entry_of(const tl::Program& program, const tl::Stmt& s, const NewArgument& a) {
  Json out = {{"name", a.name}, {"offset", a.offset}};
  switch (s.op) {
    case tl::Op::arg_tensor: {
      if (s.access()[0].name != "in") return std::nullopt;
      out["kind"] = "pointer";
      out["access"] = "read";
      const std::string& type = s.access()[0].type;
      const tl::Stmt* element = program.find(tl::Op::element);
      out["dtype"] = type == "element" && element ? element->type() : type;
      out["dims"] = Json::array();
      for (const tl::Item& d : s.dims())
        out["dims"].push_back(d.name.empty() ? lower::launch_json(d.expr) : Json(d.name));
      return out;
    }
    case tl::Op::arg_size:
      out["kind"] = "size";
      break;
    case tl::Op::arg_i32:
    case tl::Op::arg_f32:
      out["kind"] = "scalar";
      out["dtype"] = s.op == tl::Op::arg_i32 ? "i32" : "f32";
      break;
    default:
      return std::nullopt;
  }
  if (const tl::ExprPtr& value = value_of(s, a.name)) out["value"] = lower::launch_json(value);
  return out;
}

using Names = std::set<std::string>;

// The identifiers of a line.
Names names_in(std::string_view line) {
  Names out;
  for (size_t at = 0; at < line.size();) {
    const auto part = [&](size_t n) {
      return n < line.size() &&
             (std::isalnum(static_cast<unsigned char>(line[n])) || line[n] == '_');
    };
    size_t end = at;
    while (part(end)) ++end;
    if (end > at) out.insert(std::string(line.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// What a line of canonical text gives a value: `def x(...)`, `let a = 1, b = a`, `map s[i, j] =
// ...`.
Names written_by(std::string_view line) {
  Names out;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with("def ")) {
    out.insert(std::string(line.substr(4, line.find('(') - 4)));
    return out;
  }
  const bool let = line.starts_with("let ");
  for (size_t at = line.find(" = "); at != line.npos;
       at = let ? line.find(" = ", at + 1) : line.npos) {
    std::string_view left = line.substr(0, at);
    if (const size_t from = left.find(" from "); from != left.npos) left = left.substr(0, from);
    if (left.ends_with('+')) left.remove_suffix(1);
    if (const size_t bracket = left.find('['); bracket != left.npos) left = left.substr(0, bracket);
    const size_t begin = left.find_last_of(" ,") + 1;  // 0 where there is none
    if (begin < left.size()) out.insert(std::string(left.substr(begin)));
  }
  return out;
}

bool meet(const Names& a, const Names& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& n) { return b.count(n) > 0; });
}

class Lowerer {
 public:
  Lowerer(const LowerTask& task, Asker& asker, Diagnostics& diagnostics)
      : task_(task), asker_(asker), diagnostics_(diagnostics), touched_(touched_by(task)) {}

  Lowering run() {
    Lowering out;
    if (touched_.difference.empty()) {
      if (build_as_it_is(out.best)) out.done = out.best;
      return out;
    }
    const bool done = asker_.ask([&] { return question(); },
                                 [&](const Json& answer) { return take(answer, out.best); });
    if (done && !diagnostics_.has_errors()) out.done = out.best;
    return out;
  }

 private:
  // The source itself: what its lift says of it can be held against what it does.
  bool build_as_it_is(Lowered& source) {
    source.launch = task_.description.launch;
    const auto built = compile(task_.description, task_.sources, {}, task_.torch, diagnostics_);
    if (!built) return false;
    source.built = *built;
    const Complaint complaint =
        built->compiled() ? audit(source) : Complaint{{"lower.compile", "nvcc refuses it"}, ""};
    if (complaint.refusal.code.empty()) return true;
    diagnostics_
        .error("foreign.build", {}, "the sources as they are: " + complaint.refusal.sentence)
        .hint = "correct nvcc, unit, entry or launch of the description";
    return false;
  }

  Question question() {
    std::string regions, context;
    for (const Range& r : touched_.ranges) regions += numbered(task_.sources, r) + "\n";
    for (const Range& r : task_.description.read) context += numbered(task_.sources, r) + "\n";
    const auto user =
        propose::fill(task_.prompts.user,
                      {{"program", task_.lift.program()},
                       {"difference", touched_.difference},
                       {"regions", regions},
                       {"sources", context},
                       {"contract", task_.description.launch.dump(1)},
                       {"new_arguments", fmt::format("{}", fmt::join(new_arguments(task_), ", "))},
                       {"feedback", "{{feedback}}"}},
                      diagnostics_);
    return {"lower", task_.prompts.system, user.value_or(""), edits_schema()};
  }

  Complaint take(const Json& answer, Lowered& best) {
    if (diagnostics_.has_errors()) return {};
    const SourceEdits edits = edits_of(answer);
    Refusal refusal;
    Lowered next;
    next.files = apply(task_.sources, edits.edits, touched_.ranges, refusal);
    if (!refusal.code.empty()) return {refusal, ""};
    for (const auto& [path, lines] : next.files) {
      const lower::LineChanges changes =
          lower::line_changes(path, joined(task_.sources.lines.at(path)), joined(lines));
      next.patch += changes.patch;
      next.removed += changes.removed;
      next.added += changes.added;
    }
    best = next;
    const auto launch = contract(task_, edits, refusal);
    if (!launch) return {refusal, ""};
    next.launch = *launch;
    const auto built =
        compile(task_.description, task_.sources, next.files, task_.torch, diagnostics_);
    if (!built) return {};  // told in diagnostics_
    next.built = *built;
    best = next;
    if (!built->compiled())
      return {{"lower.compile", "nvcc refuses the changed sources"}, built->said};
    const Complaint complaint = audit(next);
    if (!complaint.refusal.code.empty() || !task_.prove) return complaint;
    return task_.prove(next);
  }

  // The entry is there, and takes as many bytes as the contract fills.
  Complaint audit(const Lowered& lowered) {
    Diagnostics found;
    const auto cubin = runtime::read_cubin(lowered.built.cubin, found);
    const int64_t bytes = lowered.launch["parameter_bytes"];
    for (const runtime::CubinEntry& e : cubin ? cubin->entries : std::vector<runtime::CubinEntry>())
      if (e.name == task_.description.entry) {
        if (e.parameter_bytes == bytes) return {};
        return {{"lower.parameters",
                 fmt::format("the compiled kernel takes {} bytes of parameters, and "
                             "parameter_bytes is {}",
                             e.parameter_bytes, bytes)},
                ""};
      }
    return {{"lower.entry", "the compiled sources have no kernel " + task_.description.entry}, ""};
  }

  const LowerTask& task_;
  Asker& asker_;
  Diagnostics& diagnostics_;
  const Touched touched_;
};

}  // namespace

Touched touched_by(const LowerTask& task) {
  const std::string from = task.lift.program(), to = tl::print(task.target);
  Touched out;
  out.difference = lower::line_changes("program.tl", from, to).patch;
  const lower::Lines before = lower::split_lines(from), after = lower::split_lines(to);
  const int count = static_cast<int>(before.size());
  std::set<const Part*> parts;
  Names computed;  // by the lines that differ
  for (const lower::Difference& d : lower::differences(before, after)) {
    // What is put between two lines belongs to both of their parts.
    const int first = static_cast<int>(d.from), last = static_cast<int>(d.from_end);
    if (first == last) {
      parts.insert(task.lift.part_of(std::max(1, first)));
      parts.insert(task.lift.part_of(std::min(first + 1, count)));
    }
    for (int line = first; line < last; ++line) {
      parts.insert(task.lift.part_of(line + 1));
      computed.merge(written_by(before[line]));
      // A return is its function's value.
      int head = line;
      while (head > 0 && before[head].starts_with(' ')) --head;
      if (before[head].starts_with("def ")) computed.merge(written_by(before[head]));
    }
    for (size_t line = d.to; line < d.to_end; ++line) computed.merge(written_by(after[line]));
  }
  // Values that are computed of these in turn, as long as there are more; tiles are not followed.
  for (size_t known = 0; known != computed.size();) {
    known = computed.size();
    for (const std::string_view line : before)
      if (line.find("let ") != line.npos && meet(names_in(line), computed))
        computed.merge(written_by(line));
  }
  for (int line = 0; line < count; ++line)
    if (meet(names_in(before[line]), computed)) parts.insert(task.lift.part_of(line + 1));
  for (const Part& p : task.lift.parts) {  // in their order
    if (!parts.count(&p)) continue;
    out.parts.push_back(p.name);
    for (const std::string& name : p.regions)
      if (const Region* r = task.lift.region(name)) out.ranges.push_back(r->range);
  }
  out.ranges.insert(out.ranges.end(), task.description.declarations.begin(),
                    task.description.declarations.end());
  return out;
}

std::optional<Json> contract(const LowerTask& task, const SourceEdits& edits, Refusal& refusal) {
  const auto refuse = [&](const char* code, std::string sentence) {
    refusal = {code, std::move(sentence)};
    return std::nullopt;
  };
  Json launch = task.description.launch;
  std::vector<std::string> due = new_arguments(task);
  for (const NewArgument& a : edits.arguments) {
    const tl::Stmt* s = declaration(task.target, a.name);
    if (std::erase(due, a.name) == 0 || !s)
      return refuse("lower.argument", fmt::format("'{}' is not an argument that the change adds",
                                                  a.name.substr(0, 60)));
    const auto entry = entry_of(task.target, *s, a);
    if (!entry)
      return refuse("lower.argument", fmt::format("argument `{}` cannot be passed in a struct that "
                                                  "is not ours",
                                                  tl::print_head(*s)));
    launch["arguments"].push_back(*entry);
  }
  if (!due.empty())
    return refuse("lower.argument",
                  fmt::format("no offset is given for the new argument {}", fmt::join(due, ", ")));
  launch["parameter_bytes"] = edits.parameter_bytes;
  Diagnostics found;
  if (!runtime::read_launch_spec(make_source("launch.json", launch.dump()), found))
    return refuse("lower.offset", found.all().empty() ? "" : found.all()[0].message);
  return launch;
}

Lowering lower(const LowerTask& task, Asker& asker, Diagnostics& diagnostics) {
  return Lowerer(task, asker, diagnostics).run();
}

}  // namespace kw::foreign
