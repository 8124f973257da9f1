// A kernel of somebody else's, in nobody's vocabulary: which files it is, which of their lines a
// lift accounts for, how it is compiled, and how its parameters are filled.
//
//   { "name": "flash_attn_fwd", "target": "sm_80",
//     "files": [{"path": "src/fwd.h", "sha256": "..."}],
//     "read": [{"file": "src/fwd.h", "first": 49, "last": 480}],
//     "declarations": [{"file": "src/params.h", "first": 20, "last": 140}],
//     "unit": "#include ...", "entry": "_Z...",
//     "nvcc": ["-std=c++17", "-I", "src", "-I", "{torch}/include"],
//     "launch": {"threads": 128, "shared_bytes": 65536, "grid": ..., "arguments": [...]} }
//
// Paths are relative to the folder of the sources, which is named apart: a description is ours or
// the user's, the sources are fetched and stay as they are. "unit" is the translation unit that
// asks for one instantiation; "launch" is launch.json (runtime/launch/launch_spec.h) without
// "entry" and "target": the contract between the arguments of the TL program, by their names, and
// the bytes of the kernel's own struct. {torch} stands for the folder of PyTorch in the chosen
// Python.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace kw::foreign {

struct Range {
  std::string file;
  int first = 0, last = 0;  // lines from 1, both included

  bool holds(const std::string& in, int line) const {
    return in == file && first <= line && line <= last;
  }
};

// "src/fwd.h:12-19"
std::string print(const Range& range);

struct Description {
  std::string name, target, unit, entry;
  std::map<std::string, std::string> files;  // path -> SHA-256, or empty: whatever stands there
  std::vector<Range> read, declarations;
  std::vector<std::string> nvcc;
  nlohmann::json launch;  // whole: with entry and target
  std::string sha256;     // of its text
};

// Reports foreign.description with the field, foreign.target.
std::optional<Description> read_description(const SourcePtr& text, Diagnostics& diagnostics);

// The described files as they stand, by line.
struct Sources {
  std::filesystem::path root;
  std::map<std::string, std::vector<std::string>> lines;

  // The line, from 1, without its newline; empty past the end.
  const std::string& line(const std::string& file, int number) const;
};

// Reports foreign.sources for a file that cannot be read, or is another than the one described, and
// for a range that reaches past its file.
std::optional<Sources> read_sources(const Description& description,
                                    const std::filesystem::path& root, Diagnostics& diagnostics);

// `  12|code`, what a proposer sees and counts in, under a line with the file's name.
std::string numbered(const Sources& sources, const Range& range);

// Lines of code in a range: not blank, not comment alone, no brace alone.
bool is_code(std::string_view line);

}  // namespace kw::foreign
