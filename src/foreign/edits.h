// Changes of foreign files, line by line: inserted, replaced, deleted, never a file written anew.
//
// An edit says which lines it is about and how the first of them reads, so a proposer that
// miscounts changes nothing. Edits stay inside the ranges that the change of the program touches,
// and those where the kernel's arguments are declared. They bring no preprocessor lines and no
// assembly: what a compiler would read from this machine, or leave out, is not a proposer's to say.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foreign/description.h"
#include "propose/answer.h"

namespace kw::foreign {

using Refusal = propose::Refusal;

struct FileEdit {
  std::string file;
  propose::LineEdit edit;
};

// An argument that the change adds: where it stands in the kernel's struct.
struct NewArgument {
  std::string name;
  int64_t offset = 0;
};

struct SourceEdits {
  std::string why;
  std::vector<FileEdit> edits;
  std::vector<NewArgument> arguments;
  int64_t parameter_bytes = 0;  // of the struct with them
};

inline constexpr int kMostEditedLines = 200;  // removed and added, of one change

nlohmann::json edits_schema();
SourceEdits edits_of(const nlohmann::json& answer);  // that fits the schema

// The files after the edits, those that changed. Refuses with edit.file, edit.range, edit.text,
// edit.expect, edit.overlap, edit.outside, edit.limit, edit.directive.
std::map<std::string, std::vector<std::string>> apply(const Sources& sources,
                                                      const std::vector<FileEdit>& edits,
                                                      const std::vector<Range>& allowed,
                                                      Refusal& refusal);

}  // namespace kw::foreign
