#include "propose/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "propose/words.h"
#include "support/lines.h"
#include "tl/laws/laws.h"

namespace kw::propose {
namespace {

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(' ') + 1 - first);
}

bool inserts(const LineEdit& e) {
  return e.kind == EditKind::insert_before || e.kind == EditKind::insert_after;
}

// Edits by number, each held against the lines.
class Patch {
 public:
  Patch(const std::vector<std::string>& lines, const Edits& edits, Refusal& refusal)
      : lines_(lines), edits_(edits.edits), refusal_(refusal) {}

  std::optional<std::string> run() {
    if (edits_.empty() || edits_.size() > kMostEdits)
      return refuse("edit.limit", fmt::format("the answer has {} edits, 1 to {} are due",
                                              edits_.size(), kMostEdits));
    size_t added = 0;
    for (size_t n = 0; n < edits_.size(); ++n) {
      if (!right(n, edits_[n])) return std::nullopt;
      added += edits_[n].text.size();
    }
    if (added > kMostLines)
      return refuse(
          "edit.limit",
          fmt::format("the edits have {} lines of text, at most {} are read", added, kMostLines));
    return text();
  }

 private:
  std::nullopt_t refuse(const char* code, std::string sentence) {
    refusal_ = {code, std::move(sentence)};
    return std::nullopt;
  }

  bool right(size_t n, const LineEdit& e) {
    const std::string name = fmt::format("edits[{}] ({} {}..{})", n,
                                         kEditNames[static_cast<size_t>(e.kind)], e.first, e.last);
    const int count = static_cast<int>(lines_.size());
    if (e.first < 1 || e.last < e.first || e.last > count || (inserts(e) && e.first != e.last)) {
      refuse("edit.range",
             fmt::format("{}: the program has lines 1 to {}{}", name, count,
                         inserts(e) ? ", and an insertion stands at one of them" : ""));
      return false;
    }
    if ((e.kind == EditKind::remove) != e.text.empty()) {
      refuse("edit.text", fmt::format("{}: its text has {} lines, {} due", name, e.text.size(),
                                      e.kind == EditKind::remove ? "none is" : "at least one is"));
      return false;
    }
    for (const std::string& line : e.text)
      if (const std::string why = unfit(line); !why.empty()) {
        refuse("edit.text", fmt::format("{}: a line of its text has {}", name, why));
        return false;
      }
    const std::string_view is = trimmed(lines_[e.first - 1]);
    if (trimmed(e.expect) != is) {
      refuse("edit.expect", fmt::format("{}: line {} is `{}`, and the edit expects `{}`", name,
                                        e.first, is, clipped(std::string(trimmed(e.expect)), 200)));
      return false;
    }
    for (int line = e.first; line <= e.last; ++line)
      if (const auto [other, is_new] = edit_at_.emplace(line, n); !is_new) {
        refuse("edit.overlap",
               fmt::format("{}: line {} is in edits[{}] too", name, line, other->second));
        return false;
      }
    return true;
  }

  static std::string unfit(const std::string& line) {
    if (line.size() > kMostColumns) return fmt::format("{} bytes", line.size());
    for (const unsigned char c : line)
      if (c < 0x20 || c >= 0x7F)
        return c == '\n'   ? std::string("a line break: each line is an entry of its own")
               : c == '\t' ? std::string("a tab: indent with four spaces a level")
                           : fmt::format("the byte 0x{:02x}, which TL has not", c);
    return {};
  }

  std::string text() const {
    std::string out;
    const auto add = [&](const LineEdit& e) {
      for (const std::string& line : e.text) out += line + "\n";
    };
    for (int line = 1; line <= static_cast<int>(lines_.size()); ++line) {
      const auto found = edit_at_.find(line);
      const LineEdit* e = found == edit_at_.end() ? nullptr : &edits_[found->second];
      if (e && e->first == line && e->kind != EditKind::insert_after) add(*e);
      if (!e || inserts(*e)) out += lines_[line - 1] + "\n";
      if (e && e->kind == EditKind::insert_after) add(*e);
    }
    return out;
  }

  const std::vector<std::string>& lines_;
  const std::vector<LineEdit>& edits_;
  Refusal& refusal_;
  std::map<int, size_t> edit_at_;
};

// An argument as a launch and a check see it: its statement without the value. In the order of the
// names, since one statement may declare several.
std::map<std::string, std::string> declared_arguments(const tl::Program& program) {
  std::map<std::string, std::string> out;
  const tl::Stmt* args = program.find(tl::Op::args);
  if (!args) return out;
  for (const tl::Stmt& s : args->body)
    for (const tl::Item& d : s.names()) {
      tl::Stmt one = s;
      tl::Item item = d;
      item.expr = nullptr;
      one.names() = {item};
      out[d.name] = tl::print_head(one) + (d.expr ? " = ..." : "");
    }
  return out;
}

// The first argument of the source that the program has not, or has otherwise.
std::string changed_argument(const tl::Program& source, const tl::Program& program, bool no_lse) {
  const auto was = declared_arguments(source), is = declared_arguments(program);
  for (const auto& [name, declaration] : was) {
    const auto now = is.find(name);
    if (now == is.end() && no_lse && name == "lse") continue;
    if (now == is.end())
      return fmt::format("the program has no argument `{}`, and the launcher passes it",
                         declaration);
    if (now->second != declaration)
      return fmt::format("the argument `{}` has become `{}`", declaration, now->second);
  }
  return {};
}

std::multiset<std::string> heads_of(const tl::Program& program, tl::Op op) {
  std::multiset<std::string> out;
  for (const tl::Stmt& s : program.body)
    if (s.op == op) out.insert(op == tl::Op::include ? s.file() : s.name());
  return out;
}

}  // namespace

Refusal refusal_of(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::error) continue;
    std::string sentence = d.message;
    if (d.span.known())
      sentence += fmt::format(", at `{}`", trimmed(line_of(*d.span.source, d.span.start().line)));
    for (const Note& note : d.notes) sentence += "; " + note.message;
    if (const tl::Law* law = tl::law(d.code))
      sentence += fmt::format(". Law {}: {}", law->id, law->text);
    else if (!d.hint.empty())
      sentence += "; " + d.hint;
    return {d.code, one_line(sentence)};
  }
  return {"tl.syntax", "the program cannot be read"};
}

std::vector<std::string> lines_of(const tl::Program& program) {
  return kw::lines_of(tl::print(program));
}

std::string numbered(const std::vector<std::string>& lines) {
  std::string out;
  for (size_t n = 0; n < lines.size(); ++n) out += fmt::format("{:>4}|{}\n", n + 1, lines[n]);
  return out;
}

std::optional<std::string> apply(const std::vector<std::string>& lines, const Edits& edits,
                                 Refusal& refusal) {
  return Patch(lines, edits, refusal).run();
}

std::optional<tl::Program> read_program(const std::string& text, const tl::Program& source,
                                        bool no_lse, Refusal& refusal) {
  Diagnostics diagnostics;
  std::optional<tl::Program> program = tl::parse(make_source("answer.tl", text), diagnostics);
  if (!program) {
    refusal = refusal_of(diagnostics);
    return std::nullopt;
  }
  if (heads_of(source, tl::Op::include) != heads_of(*program, tl::Op::include)) {
    refusal = {"edit.include", "what is included has changed: no edit may name a file"};
    return std::nullopt;
  }
  if (const std::string changed = changed_argument(source, *program, no_lse); !changed.empty()) {
    refusal = {"edit.arguments", changed + ": arguments stay, new ones may join them"};
    return std::nullopt;
  }
  for (const tl::Op op : {tl::Op::kernel, tl::Op::warpgroups_kernel})
    if (heads_of(source, op) != heads_of(*program, op)) {
      refusal = {"edit.kernel",
                 "the module has other kernels than the source: its kernel keeps its "
                 "name and stays the only one"};
      return std::nullopt;
    }
  if (tl::verify(*program, diagnostics)) return program;
  refusal = refusal_of(diagnostics);
  return std::nullopt;
}

}  // namespace kw::propose
