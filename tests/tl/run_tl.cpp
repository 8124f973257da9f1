// Runs the tests that are TL text: run_tl [--bless] FILE...
//
// A file asks its questions in its head and then holds cases: whole modules, or edits of a kernel
// of the corpus (or of the first case of another file here), written like a diff. An expected error
// stands as a comment on the line that must be blamed; a missing, a misplaced and an extra error
// all fail. --bless rewrites the expectations.
//
//   # ask: roundtrip verify
//   # target: sm_75           (the laws of this target are asked, too)
//   # base: attention_fwd
//   # case: the tile is not transposed
//   - wgmma s = q_r @ k_s[t].T
//   + wgmma s = q_r @ v_r[t].T      # error[wgmma.C1]: ...
//     accumulator s: real[64, BN]        # a line of the base, shown because it is blamed
//   # module: a sketch
//   level sketch
//   ...
//
// In an edit, lines are looked for from the last one found onwards; `+` lines get its indentation
// and what they have beyond one space.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "in_clone.h"
#include "support/files.h"
#include "tl/laws/laws.h"
#include "tl/laws/laws_target.h"
#include "tl/program.h"

namespace {

using kw::tl::Program;
using Lines = std::vector<std::string>;

struct Case {
  std::string title;
  bool module = false;
  int line = 0;  // of its title, from 1
  Lines lines;   // as written, expectations and all
};

struct File {
  std::string path, ask, base, target;
  Lines head;
  std::vector<Case> cases;
};

// A case as a program, and where its lines went: shown[n] is the program's line of case line n
// (from 1); for a removed line -n, n being the line that follows it; 0 for an empty one.
struct Text {
  Lines lines;
  std::vector<int> shown;
  std::string problem;
};

Lines split(const std::string& text) {
  Lines out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

std::string join(const Lines& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

size_t indent(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

constexpr char kMark[] = "# error[";

std::string without_expectation(std::string line) {
  const size_t at = line.find(kMark);
  if (at != std::string::npos) line.resize(at);
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

// "error[code]: message", one for each expected error of the line.
Lines expectations(const std::string& line) {
  Lines out;
  for (size_t at = line.find(kMark); at != std::string::npos;) {
    const size_t next = line.find(kMark, at + 1);
    std::string one = line.substr(at + 2, next == std::string::npos ? next : next - at - 2);
    one.resize(one.find_last_not_of(' ') + 1);
    out.push_back(one);
    at = next;
  }
  return out;
}

File parse_file(const std::string& path) {
  File file{path, "", "", "", {}, {}};
  int number = 0;
  for (const std::string& line : split(read(path))) {
    ++number;
    const auto field = [&](const char* key, std::string& into) {
      if (line.rfind(key, 0) == 0) into = line.substr(std::string(key).size());
    };
    std::string title;
    field("# case: ", title);
    const bool edit = !title.empty();
    field("# module: ", title);
    if (!title.empty()) {
      file.cases.push_back({title, !edit, number, {}});
    } else if (file.cases.empty()) {
      field("# ask: ", file.ask);
      field("# base: ", file.base);
      field("# target: ", file.target);
      file.head.push_back(line);
    } else {
      file.cases.back().lines.push_back(line);
    }
  }
  return file;
}

Text module_text(const Case& c) {
  Text out;
  for (const std::string& line : c.lines) {
    out.lines.push_back(without_expectation(line));
    out.shown.push_back(static_cast<int>(out.lines.size()));
  }
  return out;
}

Text edited_text(const Case& c, Lines base) {
  Text out{std::move(base), {}, ""};
  size_t at = 0, depth = 0;  // where to look on; the indentation of what was found last
  bool removing = false;     // the line before was a removed one
  for (const std::string& written : c.lines) {
    const std::string line = without_expectation(written);
    out.shown.push_back(0);
    if (line.empty()) continue;
    if (line[0] == '+') {
      const std::string text = line.size() > 2 ? line.substr(2) : "";
      out.lines.insert(out.lines.begin() + at, std::string(depth, ' ') + text);
      out.shown.back() = static_cast<int>(++at);
      removing = false;
      continue;
    }
    const std::string wanted = line.substr(line.find_first_not_of(' ', 1));
    size_t found = at;
    while (found < out.lines.size() && out.lines[found].substr(indent(out.lines[found])) != wanted)
      ++found;
    if (found == out.lines.size()) {
      out.problem = fmt::format("the base has no line `{}` from line {} on", wanted, at + 1);
      return out;
    }
    const size_t here = indent(out.lines[found]);
    depth = removing && line[0] == '-' ? std::min(depth, here) : here;
    removing = line[0] == '-';
    at = found;
    if (line[0] == '-') {
      out.lines.erase(out.lines.begin() + at);
      out.shown.back() = -static_cast<int>(at + 1);
    } else {
      out.shown.back() = static_cast<int>(++at);
    }
  }
  return out;
}

class Runner {
 public:
  explicit Runner(bool bless) : bless_(bless) {}

  void run(const std::string& path) {
    File file = parse_file(path);
    if (file.ask.empty() || file.cases.empty()) return fail(path, 1, "no `# ask:` line or no case");
    bool changed = false;
    for (Case& c : file.cases) changed |= run_case(file, c);
    if (!changed) return;
    Lines out = file.head;
    for (const Case& c : file.cases) {
      out.push_back((c.module ? "# module: " : "# case: ") + c.title);
      out.insert(out.end(), c.lines.begin(), c.lines.end());
    }
    kw::write_file(path, join(out));
    fmt::print("blessed {}\n", path);
  }

  int failures() const { return failures_; }
  int cases() const { return cases_; }

 private:
  void fail(const std::string& path, int line, const std::string& message) {
    fmt::print("{}:{}: {}\n", path, line, message);
    ++failures_;
  }

  // Whether --bless changed the case.
  bool run_case(const File& file, Case& c) {
    ++cases_;
    const Text text = c.module ? module_text(c) : edited_text(c, base(file.base));
    if (!text.problem.empty()) {
      fail(file.path, c.line, text.problem);
      return false;
    }
    kw::Diagnostics diagnostics;
    const auto source = kw::make_source(file.path + ": " + c.title, join(text.lines));
    const std::optional<Program> program = kw::tl::parse(source, diagnostics);
    if (program && file.ask.find("verify") != std::string::npos)
      if (kw::tl::verify(*program, diagnostics) && !file.target.empty())
        kw::tl::verify_for(*program, file.target, diagnostics);
    if (program && file.ask.find("roundtrip") != std::string::npos) roundtrip(file, c, *program);
    std::multimap<int, std::string> got;
    for (const kw::Diagnostic& d : diagnostics.all())
      if (d.code != "tl.syntax" && !kw::tl::law(d.code))
        fail(file.path, c.line, fmt::format("{} is no law of laws.def", d.code));
    for (const kw::Diagnostic& d : diagnostics.all())
      got.insert({d.span.known() ? d.span.start().line : 1,
                  fmt::format("error[{}]: {}", d.code, d.message)});
    return bless_ ? bless(c, text, got) : (compare(file, c, text, got), false);
  }

  void compare(const File& file, const Case& c, const Text& text,
               std::multimap<int, std::string> got) {
    for (size_t n = 0; n < c.lines.size(); ++n)
      for (const std::string& want : expectations(c.lines[n])) {
        bool met = false;
        for (auto [at, end] = got.equal_range(text.shown[n]); at != end && !met; ++at)
          if (at->second == want) {
            got.erase(at);
            met = true;
            break;
          }
        if (!met) fail(file.path, c.line + 1 + int(n), fmt::format("missing: {}", want));
      }
    for (const auto& [line, message] : got)
      fail(file.path, c.line,
           fmt::format("{}: unexpected, at `{}`: {}", c.title, text.lines[line - 1], message));
  }

  void roundtrip(const File& file, const Case& c, const Program& program) {
    kw::Diagnostics diagnostics;
    const std::string once = kw::tl::print(program);
    const auto again = kw::tl::parse(kw::make_source("printed", once), diagnostics);
    if (!again || !kw::tl::equal(*again, program))
      fail(file.path, c.line,
           c.title + ": what is printed reads back differently\n" + kw::render(diagnostics));
    else if (kw::tl::print(*again) != once)
      fail(file.path, c.line, c.title + ": printing twice differs");
  }

  bool bless(Case& c, const Text& text, std::multimap<int, std::string> got) {
    const Lines before = c.lines;
    Lines out;
    const auto expect = [&](std::string line, int at) {
      for (auto [m, end] = got.equal_range(at); m != end; ++m) line += "  # " + m->second;
      got.erase(at);
      out.push_back(line);
    };
    for (size_t n = 0; n < c.lines.size(); ++n) {
      // Blamed lines of the base that the case does not show yet.
      while (text.shown[n] && !got.empty() && got.begin()->first < std::abs(text.shown[n]))
        show(text, got, expect);
      expect(without_expectation(c.lines[n]), text.shown[n]);
    }
    Lines blank;
    while (!out.empty() && out.back().empty()) {
      blank.push_back("");
      out.pop_back();
    }
    while (!got.empty()) show(text, got, expect);
    out.insert(out.end(), blank.begin(), blank.end());
    c.lines = out;
    return c.lines != before;
  }

  template <class Expect>
  void show(const Text& text, const std::multimap<int, std::string>& got, Expect expect) {
    const int at = got.begin()->first;
    const std::string& line = text.lines[at - 1];
    expect("  " + line.substr(indent(line)), at);
  }

  // A kernel of the corpus, or the first case of a file of tests/tl.
  static Lines base(const std::string& name) {
    const std::string tests = kw::in_clone() + "/tests/";
    for (const std::string& file : {"sm90_" + name, name + "_attention_fwd", name}) {
      const Lines corpus = split(read(tests + "corpus/" + file + ".tl"));
      if (!corpus.empty()) return corpus;
    }
    const File file = parse_file(tests + "tl/" + name + ".tl");
    if (file.cases.empty()) return {};
    const Case& first = file.cases[0];
    return first.module ? module_text(first).lines : edited_text(first, base(file.base)).lines;
  }

  bool bless_;
  int failures_ = 0, cases_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const bool bless = argc > 1 && std::string(argv[1]) == "--bless";
  Runner runner(bless);
  for (int n = bless ? 2 : 1; n < argc; ++n) runner.run(argv[n]);
  fmt::print("{} cases, {} failures\n", runner.cases(), runner.failures());
  return runner.failures() || !runner.cases() ? 1 : 0;
}
