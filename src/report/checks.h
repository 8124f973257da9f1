// A certificate in plain sentences: what was checked, what was not, and what is trusted.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/html.h"

namespace kw::report {

// One check that a certificate lists, as a person would say it.
struct Said {
  bool holds = false;
  std::string check;     // "values", as the certificate names it
  std::string headline;  // "Same numbers as PyTorch"
  std::string sentence;  // with the counts
};
std::vector<Said> say_checks(const nlohmann::ordered_json& certificate);

// What a GPU said, or that none did. `report` is gpu.json; null where there is none.
Said say_gpu(const nlohmann::ordered_json& certificate, const nlohmann::ordered_json& report);

// The first line of the page, and the word for its colour.
struct Verdict {
  std::string word;      // "Holds"
  std::string tone;      // "good", "unsure", "bad"
  std::string sentence;  // for which launches, by what
};
Verdict say_verdict(const nlohmann::ordered_json& certificate);

// Every check with its claim, its counts and its cases, to be unfolded.
Markup check_details(const nlohmann::ordered_json& certificate);

}  // namespace kw::report
