#include "report/parts.h"

#include <nlohmann/json.hpp>

#include "report/mask_view.h"
#include "report/style.h"

namespace kw::report {

Markup section(const char* id, const char* title, const Markup& body) {
  return html("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, title, body);
}

Markup folded(const std::string& title, const Markup& body) {
  return html("<details><summary>{}</summary>\n{}</details>\n", title, body);
}

Markup mask_figure(const Masks& masks) {
  if (masks.pictures.empty())
    return html("<figure><figcaption>The mask is not drawn: {}.</figcaption></figure>\n",
                masks.absent);
  const MaskPicture& p = masks.pictures[0];
  return html("<figure>{}{}<figcaption>{}</figcaption></figure>\n", draw_mask(p), mask_legend(p),
              mask_caption(masks, p));
}

Markup page_top(const std::string& tone, const std::string& name, const std::string& word,
                const std::string& sentence, const Markup& below) {
  const char* sign = tone == "good" ? "✓" : tone == "bad" ? "✗" : "?";
  return html(
      "<header class=\"{}\"><div class=\"inner\"><p class=\"brand\">kernelwright report</p>\n"
      "<h1>{}</h1>\n<p class=\"verdict\"><span class=\"sign\" aria-hidden=\"true\">{}</span> "
      "<strong>{}.</strong> {}</p>\n{}</div></header>\n",
      tone, name, sign, word, sentence, below);
}

std::string document(const std::string& name, const std::string& word, const Markup& body) {
  return html(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
             "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}: "
             "{} - "
             "kernelwright</title>\n<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
             name, word, style_sheet(), body)
      .text();
}

std::string plain(const nlohmann::ordered_json& json) {
  return json.is_string() ? json.get<std::string>() : json.dump();
}

Markup chip(const char* tone, const std::string& what, const std::string& says) {
  return html("<li class=\"chip {}\"><b>{}</b> {}</li>\n", tone, what, says);
}

Markup said(const Said& s) {
  return html("<li class=\"{}\"><b>{}.</b> {}</li>\n", s.holds ? "yes" : "no", s.headline,
              s.sentence);
}

}  // namespace kw::report
