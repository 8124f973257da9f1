// Programs as small edits of others: tests/wrong/*.edit.
//
//   # A key after the query is kept.                what it is
//   base: causal                                    full (the corpus), or a name in
//   tests/wrong/right expect: refuted
//   first: map_at s                                 how the first statement that differs begins
//   - map_at s[i, j] from (i0, n * BN) = ...        lines of the program, without indentation ...
//   + map_at s[i, j] from (i0, n * BN) = ...        ... and what stands in their place
//   @2                                              the next `-` lines: their second occurrence
//
// A `+` line's indentation beyond its first space is relative to the first line replaced.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/source.h"
#include "tl/program.h"

namespace kw::test {

struct Edit {
  std::string name, base = "full";
  std::map<std::string, std::string> head;  // expect: ...
  struct Hunk {
    int occurrence = 1;
    std::vector<std::string> from, to;
  };
  std::vector<Hunk> hunks;
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

inline Edit read_edit(const std::string& path) {
  Edit edit;
  const SourcePtr source = read_source(path);
  if (!source) {
    ADD_FAILURE() << "cannot read " << path;
    return edit;
  }
  edit.name = path.substr(path.rfind('/') + 1);
  edit.name = edit.name.substr(0, edit.name.rfind('.'));
  int occurrence = 1;
  bool in_from = false;
  for (const std::string& line : lines_of(source->text)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '@') {
      occurrence = std::stoi(line.substr(1));
      in_from = false;
    } else if (line[0] == '-') {
      if (!in_from) edit.hunks.push_back({occurrence, {}, {}});
      in_from = true;
      occurrence = 1;
      edit.hunks.back().from.push_back(line.substr(2));
    } else if (line[0] == '+') {
      in_from = false;
      edit.hunks.back().to.push_back(line.substr(2));
    } else {
      const size_t colon = line.find(": ");
      const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
      (key == "base" ? edit.base : edit.head[key]) = value;
    }
  }
  return edit;
}

inline std::string text_of(const std::string& name);

inline std::string apply(const Edit& edit) {
  std::vector<std::string> lines = lines_of(text_of(edit.base));
  for (const Edit::Hunk& h : edit.hunks) {
    int seen = 0;
    size_t at = 0, indent = 0;
    for (; at + h.from.size() <= lines.size(); ++at) {
      bool same = true;
      for (size_t k = 0; k < h.from.size() && same; ++k) {
        const size_t first = lines[at + k].find_first_not_of(' ');
        if (k == 0) indent = first == std::string::npos ? 0 : first;
        // Later lines keep their own indentation relative to the first.
        same = lines[at + k] == std::string(indent, ' ') + h.from[k];
      }
      if (same && ++seen == h.occurrence) break;
    }
    if (seen != h.occurrence) {
      ADD_FAILURE() << edit.name << ": no such line: " << h.from[0];
      return {};
    }
    lines.erase(lines.begin() + at, lines.begin() + at + h.from.size());
    std::vector<std::string> to;
    for (const std::string& line : h.to) to.push_back(std::string(indent, ' ') + line);
    lines.insert(lines.begin() + at, to.begin(), to.end());
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline std::string text_of(const std::string& name) {
  const std::string tests = KW_SOURCE_DIR "/tests";
  if (name == "full") return read_source(tests + "/corpus/sm90_attention_fwd.tl")->text;
  return apply(read_edit(tests + "/wrong/right/" + name + ".edit"));
}

inline std::optional<tl::Program> parsed(const std::string& name, const std::string& text) {
  Diagnostics d;
  std::optional<tl::Program> p = tl::parse(make_source(name + ".tl", text), d);
  EXPECT_TRUE(p) << render(d);
  return p;
}

}  // namespace kw::test
