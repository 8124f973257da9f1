// report.html of a make that ended without a kernel: refuted, or undecided.
//
// Whoever opens it has ten seconds and one question: what is wrong, and where? So the page says,
// from the top: the verdict in red (or amber), the counterexample in a sentence, the numbers that
// differ, the first statement that differs as it stands in TL and in the CUDA text, and what to do.
// Then what the function keeps and computes, and the change line by line. Nothing on it is a
// kernel.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/form.h"
#include "report/diff.h"
#include "report/mask.h"

namespace kw::report {

// A line of a text, to be shown with those around it. Lines count from 1; 0: no such place.
struct Excerpt {
  std::string name, text;
  int line = 0;
};

// Something to do: a sentence, and a command or nothing.
struct Advice {
  std::string sentence, command;
};

struct Failed {
  nlohmann::ordered_json check;  // what check::to_json says: not "holds"
  std::string name, target, expert;
  std::string user_file, user_text;
  std::optional<spec::Form> form;
  Masks masks;
  Excerpt tl, cuda;  // the first statement that differs, in both texts
  std::vector<Advice> advice;
  std::optional<Diff> diff;  // from the expert's text to the refused one
  std::map<int, std::string> old_tl, new_tl;
};

// The whole file.
std::string failed_page(const Failed& failed);

}  // namespace kw::report
