// The order is that of a page about one kernel: can I trust it, what does it compute, what was
// checked; and then what is only said of two: gradients, what passes between them, memory.
#include "report/training.h"

#include "report/checks.h"
#include "report/formula.h"
#include "report/parts.h"

namespace kw::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The half that says less stands for both.
const OrderedJson& lesser(const TrainingFacts& f) {
  const OrderedJson &all = f.certificate, &b = f.backward.certificate;
  const bool backward = b["verdict"] == all["verdict"] &&
                        (all["verdict"] != "holds" || b["holds_for"] == all["holds_for"]);
  return backward ? b : f.forward.certificate;
}

Markup chips(const TrainingFacts& f) {
  Markup out = chip("plain", "For", f.certificate["target"].get<std::string>());
  out += chip("plain", "Check", f.certificate["effort"].get<std::string>());
  for (const auto* half : {&f.forward, &f.backward}) {
    const Verdict v = say_verdict(half->certificate);
    out += chip(v.tone.c_str(), half->name, v.word);
    out += half->certificate["gpu"].is_null()
               ? chip("open", half->name + " on a GPU", "not run yet")
               : chip("plain", half->name + " on a GPU", half->certificate["gpu"]["verdict"]);
  }
  return html("<ul class=\"chips\">\n{}</ul>\n", out);
}

Markup half(const TrainingFacts::Half& h) {
  Markup checks;
  for (const Said& s : say_checks(h.certificate)) checks += said(s);
  const Verdict v = say_verdict(h.certificate);
  const Markup what =
      h.form ? formula(*h.form)
             : html("<pre>{}</pre>\n", h.certificate["spec"]["form"].get<std::string>());
  return html(
      "<div><h2>The {0} kernel: {1}</h2>\n<p>{2}</p>\n{3}<h3>What was checked</h3>\n<ul "
      "class=\"checked\">\n{4}</ul>\n<p><a href=\"{0}/report.html\">Its own page</a>: the change "
      "line by line, the mask, the pipeline, cases and seeds.</p></div>\n",
      h.name, v.word, v.sentence, what, checks);
}

std::string dims(const OrderedJson& t) {
  std::string out;
  for (const OrderedJson& d : t["dims"]) out += (out.empty() ? "" : ", ") + plain(d);
  return t["dtype"].get<std::string>() + "[" + out + "]";
}

Markup gradients(const TrainingFacts& f) {
  Markup rows;
  for (const OrderedJson& g : f.certificate["gradients"]) {
    std::string checked;
    for (const OrderedJson& c : g["checked"]) checked += (checked.empty() ? "" : ", ") + plain(c);
    rows += html(
        "<tr><td><code>{}</code></td><td><code>{}</code></td><td><code>{}</code></td><td>{}</td>"
        "<td>{}</td></tr>\n",
        plain(g["output"]), plain(g["of"]), dims(g), plain(g["rule"]),
        checked.empty() ? "nothing" : checked);
  }
  const bool same = f.certificate["same_bits_in_every_run"];
  return section(
      "gradients", "The gradients",
      html("<table class=\"facts\"><thead><tr><th>Gradient</th><th>of</th><th>type</th><th>what is "
           "accepted</th><th>checked</th></tr></thead><tbody>\n{}</tbody></table>\n<p "
           "class=\"note\">{}</p>\n",
           rows,
           same ? "The same bits in every run: CTAs take turns."
                : "Sums of several CTAs are added up in any order: the last bits of dq may differ "
                  "from run to run."));
}

Markup passed(const TrainingFacts& f) {
  Markup rows;
  for (const OrderedJson& p : f.certificate["passed"])
    rows +=
        html("<tr><td><code>{}</code></td><td><code>{}</code></td><td><code>{}</code></td></tr>\n",
             plain(p["from"]), plain(p["to"]), dims(p));
  const std::string name = f.certificate["spec"]["name"];
  const Markup table =
      rows.empty() ? html("<p>Nothing: the gradients are made of the arguments alone.</p>\n")
                   : html(
                         "<table class=\"facts\"><thead><tr><th>the forward kernel writes</th>"
                         "<th>the backward kernel reads</th><th>type</th></tr></thead><tbody>\n{}"
                         "</tbody></table>\n",
                         rows);
  return section("passed", "What passes between the launches",
                 table + html("<p><code>{}::pass(in, back)</code> of <code>launch.h</code> hands "
                              "it over, with the arguments that both read.</p>\n",
                              name));
}

Markup memory(const TrainingFacts& f) {
  const OrderedJson& memory = f.certificate["memory"];
  Markup rows;
  int64_t sum = 0;
  for (const OrderedJson& t : memory["tensors"]) {
    const bool known = t["bytes"].is_number();
    if (known) sum += t["bytes"].get<int64_t>();
    rows +=
        html("<tr><td><code>{}</code></td><td>{}</td><td><code>{}</code></td><td>{}</td></tr>\n",
             plain(t["name"]), plain(t["is"]), dims(t),
             known ? with_commas(t["bytes"].get<int64_t>()) : "by its own size");
  }
  return section(
      "memory", "Memory of a forward and a backward pass",
      html("<table class=\"facts\"><thead><tr><th>Tensor</th><th>what it is</th><th>type</th>"
           "<th>bytes at {}</th></tr></thead><tbody>\n{}</tbody></table>\n<p class=\"note\">{} "
           "bytes together. What is saved, and the arguments, stay from the forward launch to the "
           "backward one.</p>\n",
           plain(memory["at"]), rows, with_commas(sum)));
}

Markup limits(const TrainingFacts& f) {
  Markup open;
  for (const OrderedJson& line : f.certificate["not_checked"])
    open += html("<li>{}</li>\n", plain(line));
  return section("limits", "What was not checked",
                 html("<ul class=\"unchecked\">\n{}</ul>\n", open));
}

Markup evidence(const TrainingFacts& f) {
  Markup files;
  for (const auto& [name, hash] : f.certificate["files"].items())
    files += html("<tr><th>{}</th><td><code>{}</code></td></tr>\n", name, plain(hash));
  return section(
      "evidence", "Evidence",
      html("<p>Do all of it again, for both: <code>kernelwright verify .</code>. On a machine with "
           "a GPU: <code>kernelwright-prove . --json &gt; proof.json</code>, <code>kernelwright "
           "certify . --proof proof.json</code></p>\n") +
          folded("Files and their SHA-256",
                 html("<table class=\"facts hashes\"><tbody>{}</tbody></table>\n", files)));
}

}  // namespace

std::string training_page(const TrainingFacts& f) {
  const OrderedJson& spec = f.certificate["spec"];
  const Verdict v = say_verdict(lesser(f));
  const Markup body =
      page_top(v.tone, spec["name"], v.word, "The function and its gradients. " + v.sentence,
               chips(f)) +
      html("<main>\n{}</main>\n",
           html("<section class=\"columns\">{}{}</section>\n", half(f.forward), half(f.backward)) +
               gradients(f) + passed(f) + memory(f) + limits(f) +
               section(
                   "function", "Your function",
                   html("<h3>{}</h3><pre>{}</pre>\n", plain(spec["file"]["name"]), f.user_text)) +
               evidence(f)) +
      html(
          "<footer><p>Written by kernelwright {} from certificate.json and the two folders beside "
          "it.</p></footer>\n",
          plain(f.certificate["kernelwright"]));
  return document(spec["name"], v.word, body);
}

}  // namespace kw::report
