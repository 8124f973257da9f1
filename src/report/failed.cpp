#include "report/failed.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "report/formula.h"
#include "report/parts.h"
#include "support/version.h"

namespace kw::report {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr int kAround = 3;  // lines of context

const OrderedJson& counterexample(const Failed& f) {
  static const OrderedJson none = nullptr;
  const auto found = f.check.find("counterexample");
  return found == f.check.end() ? none : *found;
}

bool refuted(const Failed& f) { return f.check["verdict"] == "refuted"; }
// A row of numbers that differs, and not a fault or a race of the program's.
bool has_row(const OrderedJson& e) { return e.is_object() && e["i"].get<int64_t>() >= 0; }
bool has_sizes(const OrderedJson& e) { return e.is_object() && !e["sizes"].empty(); }

std::string sizes(const OrderedJson& e) {
  std::string out;
  for (const auto& [name, value] : e["sizes"].items())
    out += fmt::format("{} {}, ", name, value.get<int64_t>());
  return out + fmt::format("{} and {}", count(e["heads"].get<int64_t>(), "query head"),
                           count(e["key_heads"].get<int64_t>(), "key head"));
}

std::string row(const OrderedJson& e) {
  return fmt::format("batch {}, head {}, query {}", e["b"].get<int64_t>(), e["h"].get<int64_t>(),
                     e["i"].get<int64_t>());
}

// What the first diagnostic says: the fault of a refutation, or why nothing could be decided.
std::string first_said(const Failed& f) {
  const OrderedJson& all = f.check["diagnostics"];
  return all.empty() ? "" : all[0]["message"].get<std::string>();
}

// ---- the top

std::string no_kernel(const Failed& f) {
  return f.target.empty() ? "" : " No kernel was written.";  // a check of a program writes none
}

std::string sentence(const Failed& f) {
  if (!refuted(f))
    return fmt::format("The check could not decide{}.{}",
                       first_said(f).empty() ? "" : ": " + first_said(f), no_kernel(f));
  const OrderedJson& e = counterexample(f);
  std::string what;
  if (has_row(e) && e["output"] == "key blocks")
    what = fmt::format("The kernel chooses its key blocks wrongly at {}: {}", row(e),
                       e["message"].get<std::string>());
  else if (has_row(e))
    what = fmt::format("The kernel's output {} is not your function's at {}",
                       e["output"].get<std::string>(), row(e));
  else
    what = "The kernel can go wrong as it runs: " +
           (e.is_object() ? e["message"].get<std::string>() : first_said(f));
  return what + "." + no_kernel(f);
}

Markup chips(const Failed& f) {
  const auto chip = [](const char* what, const std::string& says) {
    return html("<li class=\"chip plain\"><b>{}</b> {}</li>\n", what, says);
  };
  Markup out = f.target.empty() ? Markup() : chip("For", f.target);
  out += chip("Check", f.check["effort"]);
  if (!f.expert.empty()) out += chip("From", f.expert);
  if (has_sizes(counterexample(f))) out += chip("Smallest case", sizes(counterexample(f)));
  return html("<ul class=\"chips\">\n{}</ul>\n", out);
}

// ---- the counterexample

std::string shown_number(const OrderedJson& value) {
  return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : "nan";
}

Markup numbers(const OrderedJson& e) {
  if (!has_row(e)) return {};
  if (e["got"].empty())
    return html("<p><code>{}</code> at {}: {}.</p>\n", e["output"].get<std::string>(), row(e),
                e["message"].get<std::string>());
  Markup rows;
  for (size_t k = 0; k < e["got"].size(); ++k) {
    const bool element = e["output"] == "o" || e["got"].size() > 1;
    const std::string which =
        element ? fmt::format("{}[{}]", e["output"].get<std::string>(), e["columns"][k].dump())
                : e["output"].get<std::string>();
    rows += html("<tr><th><code>{}</code></th><td class=\"got\">{}</td><td>{}</td></tr>\n", which,
                 shown_number(e["got"][k]), shown_number(e["want"][k]));
  }
  const char* unit = e["reading"] == "exact" ? "Numbers of the exact algebra, equal or wrong"
                                             : "The worst elements of the row";
  return html(
      "<table class=\"numbers\"><thead><tr><th>at {}</th><th>this kernel</th><th>your "
      "function</th></tr></thead><tbody>\n{}</tbody></table>\n<p class=\"note\">{}; {}.</p>\n",
      row(e), rows, unit, e["message"].get<std::string>());
}

// The lines around the one to show, by their numbers.
std::map<int, std::string> around(const Excerpt& x) {
  std::map<int, std::string> lines;
  int n = 0;
  for (size_t at = 0; at < x.text.size();) {
    const size_t end = std::min(x.text.find('\n', at), x.text.size());
    ++n;
    if (std::abs(n - x.line) <= kAround) lines[n] = x.text.substr(at, end - at);
    at = end + 1;
  }
  return lines;
}

// Without the indentation that all of them have.
void unindent(std::map<int, std::string>& lines) {
  size_t common = std::string::npos;
  for (const auto& [n, line] : lines) common = std::min(common, line.find_first_not_of(" \t"));
  for (auto& [n, line] : lines) line.erase(0, common);
}

Markup excerpt(const char* language, const Excerpt& x) {
  if (x.line == 0) return {};
  std::map<int, std::string> lines = around(x);
  unindent(lines);
  Markup shown;
  for (const auto& [n, line] : lines)
    shown += html("<code class=\"{}\" data-line=\"{}\">{}</code>\n", n == x.line ? "blamed" : "", n,
                  line);
  return html("<div><h3>{}, line {} of {}</h3><div class=\"excerpt\">\n{}</div></div>\n", language,
              x.line, x.name, shown);
}

Markup places(const Failed& f) {
  const OrderedJson& e = counterexample(f);
  if (f.tl.line == 0 && f.cuda.line == 0) return {};
  const std::string difference = e.is_object() ? e["difference"].get<std::string>() : "";
  return section(
      "statement",
      has_row(e) && difference.empty() ? "The statement that decides it"
      : has_row(e)                     ? "The first statement that differs"
                                       : "The statement that goes wrong",
      (difference.empty() ? Markup() : html("<p class=\"difference\">{}</p>\n", difference)) +
          html("<div class=\"columns\">{}{}</div>\n", excerpt("TL", f.tl),
               excerpt("CUDA", f.cuda)));
}

std::string place(const OrderedJson& at) {
  return at.is_null() ? ""
                      : fmt::format("{}:{}", at["file"].get<std::string>(), at["line"].get<int>());
}

// What the checker said in words of its own, with its notes.
Markup findings(const Failed& f) {
  Markup out;
  for (const OrderedJson& d : f.check["diagnostics"]) {
    Markup notes;
    for (const OrderedJson& n : d["notes"])
      notes +=
          html("<li>{} <code>{}</code></li>\n", n["message"].get<std::string>(), place(n["place"]));
    out += html("<li><b>{}</b> <code>{}</code> <code>{}</code>{}</li>\n",
                d["message"].get<std::string>(), d["code"].get<std::string>(), place(d["place"]),
                notes.empty() ? Markup() : html("<ul>{}</ul>", notes));
  }
  return out.empty() ? out : html("<ul class=\"findings\">\n{}</ul>\n", out);
}

// What the checker itself proposes comes first.
Markup advice(const Failed& f) {
  Markup out;
  for (const OrderedJson& d : f.check["diagnostics"])
    if (std::string hint = d["hint"]; !hint.empty()) {
      hint[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(hint[0])));
      out += html("<li>{}.</li>\n", hint);
    }
  for (const Advice& a : f.advice)
    out += html("<li>{}{}</li>\n", a.sentence,
                a.command.empty() ? Markup() : html("<pre>{}</pre>", a.command));
  return html("<ol class=\"advice\">\n{}</ol>\n", out);
}

Markup what_ran(const Failed& f) {
  const OrderedJson& c = f.check;
  const OrderedJson& exact = c["exact"];
  const std::string not_run = exact["not_run"];
  std::string text = c["values"].get<bool>()
                         ? fmt::format("Values: {}, {}. ", count(c["cases"].get<int64_t>(), "case"),
                                       count(c["rows"].get<int64_t>(), "row"))
                         : "Values: not run. ";
  text += exact["ran"].get<bool>()
              ? fmt::format("Exact: {}. ", count(exact["cases"].get<int64_t>(), "case"))
              : fmt::format("Exact: not run{}. ", not_run.empty() ? "" : ", " + not_run);
  text += c.contains("schedules") ? "Schedules: looked at." : "Schedules: not run.";
  return html("<p class=\"note\">{} A check ends at the first thing that is wrong.</p>\n", text);
}

Markup understood(const Failed& f) {
  return html(
      "<section class=\"summary\"><div class=\"picture\"><h2>What your function keeps</h2>\n{}"
      "</div>\n<div class=\"words\"><h2>What it computes</h2>\n{}<h2>{}</h2>\n<pre>{}</pre></div>"
      "</section>\n",
      mask_figure(f.masks), f.form ? formula(*f.form) : Markup(), f.user_file, f.user_text);
}

}  // namespace

std::string failed_page(const Failed& f) {
  const char* tone = refuted(f) ? "bad" : "unsure";
  const std::string word = refuted(f) ? "REFUTED" : "INCONCLUSIVE";
  const char* title = refuted(f) ? "The counterexample" : "Why it could not be decided";
  Markup body = page_top(tone, f.name, word, sentence(f), chips(f));
  Markup main = html(
      "<section class=\"failure\"><div><h2>{}</h2>\n{}{}{}</div>\n<div><h2>What to do</h2>\n{}"
      "</div></section>\n",
      title, numbers(counterexample(f)), findings(f), what_ran(f), advice(f));
  main += places(f) + understood(f);
  if (f.diff)
    main += section("change", "The change that was refused, line by line",
                    diff_table(*f.diff, f.old_tl, f.new_tl));
  body += html("<main class=\"{}\">\n{}</main>\n", tone, main);
  body += html("<footer><p>Written by kernelwright {}, which wrote no kernel.</p></footer>\n",
               version());
  return document(f.name, word, body);
}

}  // namespace kw::report
