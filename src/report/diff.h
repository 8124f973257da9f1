// The expert's kernel and the new one side by side, with the TL statements of every line.
//
// What changed is read off kernel.patch, the file that a user would apply, so the page cannot show
// another change than it. TL stands beside a line by the places of the lifted statements.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/html.h"
#include "tl/program.h"

namespace kw::report {

// A line of the new text beside one of the old; 0 and empty where there is none.
struct DiffRow {
  int old_line = 0, new_line = 0;
  std::string old_text, new_text;
  bool changed = false;
};

struct Diff {
  std::vector<DiffRow> rows;              // of the whole file
  int added = 0, removed = 0, lines = 0;  // lines: of the new text
  int changed() const { return added > removed ? added : removed; }
};

// Nothing when the patch is not one from `old_text` to `new_text`.
std::optional<Diff> read_patch(const std::string& patch, const std::string& old_text,
                               const std::string& new_text);

// The statements that begin on each line of the text that a program was lifted from.
std::map<int, std::string> statements_by_line(const tl::Program& program);

Markup diff_table(const Diff& diff, const std::map<int, std::string>& old_tl,
                  const std::map<int, std::string>& new_tl);

}  // namespace kw::report
