// What every page has: its head with the policy and the style, its coloured top, its sections.
#pragma once
#include <string>

#include "report/checks.h"
#include "report/html.h"
#include "report/mask.h"

namespace kw::report {

Markup section(const char* id, const char* title, const Markup& body);
Markup folded(const std::string& title, const Markup& body);

// The first picture of a mask with legend and caption, or why there is none.
Markup mask_figure(const Masks& masks);

// What a certificate has at a place, without quotes.
std::string plain(const nlohmann::ordered_json& json);

// A fact under the verdict. `tone` is "plain", "open", "good", "unsure" or "bad".
Markup chip(const char* tone, const std::string& what, const std::string& says);

// A check as a line of a list.
Markup said(const Said& s);

// The coloured top. `tone` is "good", "unsure" or "bad"; `below` stands under the verdict.
Markup page_top(const std::string& tone, const std::string& name, const std::string& word,
                const std::string& sentence, const Markup& below);

// The whole file: no scripts, nothing from elsewhere, as a policy in its head says too.
std::string document(const std::string& name, const std::string& word, const Markup& body);

}  // namespace kw::report
