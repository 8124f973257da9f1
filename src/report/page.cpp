// The order of the page is the order of a stranger's questions: can I trust it, what does it
// compute, what changed, what was checked and what was not; then all details.
#include "report/page.h"

#include "report/checks.h"
#include "report/family.h"
#include "report/formula.h"
#include "report/mask_view.h"
#include "report/parts.h"

namespace kw::report {
namespace {

using OrderedJson = nlohmann::ordered_json;

// ---- the top

Markup chips(const Facts& f) {
  const OrderedJson& c = f.certificate;
  const OrderedJson& gpu = c["gpu"];
  const std::string gpu_verdict = gpu.is_null() ? "" : gpu.value("verdict", "inconclusive");
  Markup out = chip("plain", "For", c["target"].get<std::string>());
  out += chip("plain", "Check", c["effort"].get<std::string>());
  out += gpu.is_null() ? chip("open", "GPU", "not run yet")
                       : chip(gpu_verdict == "holds"     ? "good"
                              : gpu_verdict == "refuted" ? "bad"
                                                         : "unsure",
                              "GPU", say_gpu(c, f.gpu_report).headline);
  double best = 0;
  for (const Measured& m : f.measured) best = std::max(best, m.tflops);
  out += f.measured.empty() ? chip("open", "Speed", "not measured")
                            : chip(c["verdict"] == "holds" ? "good" : "plain", "Speed",
                                   fmt::format("{:.0f} TFLOP/s measured", best));
  return html("<ul class=\"chips\">\n{}</ul>\n", out);
}

Markup top(const Facts& f) {
  const OrderedJson& c = f.certificate;
  const Verdict v = say_verdict(c);
  return page_top(v.tone, c["spec"]["name"], v.word, v.sentence, chips(f));
}

// ---- what it computes, what changed

Markup changed_lines(const Facts& f) {
  const std::string expert = f.certificate["expert"]["name"];
  if (!f.diff)
    return html(
        "<p class=\"absent\">kernel.patch does not lead from from/expert.cu to "
        "kernel.cu.</p>\n");
  const Diff& d = *f.diff;
  const double share = d.lines ? 100.0 * d.changed() / d.lines : 0;
  if (d.changed() == 0)
    return html(
        "<p class=\"lines\"><strong>No line changed.</strong> It is the expert's kernel "
        "<code>{}</code> as it stands.</p>\n",
        expert);
  return html(
      "<p class=\"lines\"><strong><a href=\"#change\">{} of {} lines changed</a></strong> in "
      "the expert's kernel <code>{}</code> (+{} −{}); the rest is the expert's, byte for "
      "byte.</p>\n<div class=\"share\"><span style=\"width:{:.1f}%\"></span></div>\n",
      d.changed(), d.lines, expert, d.added, d.removed, share);
}

Markup checked(const Facts& f) {
  const OrderedJson& c = f.certificate;
  Markup out;
  if (!c["gpu"].is_null()) out += said(say_gpu(c, f.gpu_report));
  for (const Said& s : say_checks(c)) out += said(s);
  return html("<ul class=\"checked\">\n{}</ul>\n", out);
}

Markup rule_names(const Facts& f) {
  Markup out;
  std::vector<std::string> seen;
  for (const OrderedJson& rule : f.certificate["transfer"]["rules"]) {
    const std::string name = rule["rule"];
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    out += html("<li>{}</li>", name);
  }
  return out.empty()
             ? Markup()
             : html("<ul class=\"rules\"><li class=\"note\">by the rules</li>{}</ul>\n", out);
}

Markup summary(const Facts& f) {
  const Markup what =
      f.form ? formula(*f.form)
             : html("<pre>{}</pre>\n", f.certificate["spec"]["form"].get<std::string>());
  const std::string form = f.certificate["spec"]["form"];
  std::string sizes = form.substr(0, form.find('\n'));
  sizes = sizes.substr(std::min(sizes.find(": ") + 2, sizes.size()));
  const Markup picture =
      f.form && !Family::of(*f.form).has_mask()
          ? Markup()
          : html("<div class=\"picture\"><h2>What it keeps</h2>\n{}</div>", mask_figure(f.masks));
  return html(
      "<section class=\"summary\">{}\n"
      "<div class=\"words\"><h2>What it computes</h2>\n{}<p class=\"note\">{}</p>\n"
      "<h2>What changed</h2>\n{}{}<h2>What was checked</h2>\n{}</div></section>\n",
      picture, what, sizes, changed_lines(f), rule_names(f), checked(f));
}

// ---- what nobody checked

Markup limits(const Facts& f) {
  const OrderedJson& c = f.certificate;
  Markup open, trusted;
  if (c["gpu"].is_null()) open += said(say_gpu(c, f.gpu_report));
  for (const OrderedJson& line : c["not_checked"]) open += html("<li>{}</li>\n", plain(line));
  for (const OrderedJson& line : c["trusted"]) trusted += html("<li>{}</li>\n", plain(line));
  return html(
      "<section class=\"limits\"><div><h2>What was not checked</h2><ul class=\"unchecked\">\n"
      "{}</ul></div>\n<div><h2>What is trusted</h2><p class=\"note\">A fault here could hide "
      "from every check.</p><ul class=\"trusted\">\n{}</ul></div></section>\n",
      open, trusted);
}

// ---- the details

Markup change(const Facts& f) {
  if (!f.diff) return {};
  const Markup tl = f.new_tl.empty()
                        ? html(
                              "<p class=\"absent\">No TL beside the lines: the kernels "
                              "could not be lifted here.</p>\n")
                        : Markup();
  return section("change", "The change, line by line",
                 tl + diff_table(*f.diff, f.old_tl, f.new_tl));
}

Markup function(const Facts& f) {
  return section(
      "function", "Your function",
      html("<div class=\"columns\"><div><h3>{}</h3><pre>{}</pre></div><div><h3>As it was "
           "understood</h3><pre>{}</pre></div></div>\n",
           f.certificate["spec"]["file"]["name"].get<std::string>(), f.user_text,
           f.certificate["spec"]["form"].get<std::string>()));
}

Markup more_masks(const Facts& f) {
  Markup all;
  for (size_t n = 1; n < f.masks.pictures.size(); ++n) {
    const MaskPicture& p = f.masks.pictures[n];
    all += html("<figure>{}{}<figcaption>{}</figcaption></figure>\n", draw_mask(p), mask_legend(p),
                mask_caption(f.masks, p));
  }
  return all.empty() ? all
                     : section("masks", "The mask in other batch entries and heads",
                               html("<div class=\"columns masks\">{}</div>\n", all));
}

Markup pipeline(const Facts& f) {
  if (!f.pipeline.absent.empty())
    return section("pipeline", "Predicted pipeline",
                   html("<p class=\"absent\">Not predicted: {}.</p>\n", f.pipeline.absent));
  return section(
      "pipeline", "Predicted pipeline of a tile",
      html("<p>A model's prediction for {}, not a measurement: who in CTA 0 does what, in "
           "cycles, where one tile of the output ends and the next begins ({}).</p>\n<ul "
           "class=\"legend kinds\"><li><span class=\"swatch product\"></span>tensor cores "
           "multiply</li><li><span class=\"swatch compute\"></span>arithmetic</li><li><span "
           "class=\"swatch copy\"></span>copies</li><li><span class=\"swatch wait\"></span>waits"
           "</li></ul>\n<div class=\"wide\">{}</div>\n{}",
           f.pipeline.gpu, f.pipeline.shape, draw_pipeline(f.pipeline),
           folded("Share of this time that each one works", busy_table(f.pipeline))));
}

Markup speed(const Facts& f) {
  return section("speed", "Measured speed",
                 draw_speed(f.measured, f.gpus.string(), f.certificate["target"],
                            f.form ? std::string(kw::name(f.form->dtype)) : "bf16"));
}

Markup fact(const char* what, const std::string& value) {
  return html("<tr><th>{}</th><td>{}</td></tr>\n", what, value);
}

Markup resources(const Facts& f) {
  Markup rows;
  for (const OrderedJson& one : f.certificate["checked"]) {
    if (one["check"] != "cubin") continue;
    const OrderedJson& c = one["coverage"];
    rows += fact("Entry", c["entry"]) +
            fact("Registers of a thread at entry", c["registers_at_entry"].dump());
    rows += fact("Spilled", c["spill_bytes"].dump() + " bytes");
    rows += fact("Shared memory of a CTA",
                 with_commas(c["dynamic_shared_bytes"].get<int64_t>()) + " bytes");
  }
  if (f.launch.is_object())
    for (const auto& [field, words] : {std::pair("threads", "Threads of a CTA"),
                                       {"cluster", "CTAs of a cluster"},
                                       {"resident", "CTAs that share a multiprocessor"},
                                       {"parameter_bytes", "Bytes of arguments"}})
      if (f.launch.contains(field)) rows += fact(words, f.launch[field].dump());
  Markup constants;
  if (f.launch.is_object() && f.launch["constants"].is_object())
    for (const auto& [name, value] : f.launch["constants"].items())
      constants += html("<li><code>{} = {}</code></li>", name, value.dump());
  return section(
      "resources", "Registers and shared memory",
      html("<table class=\"facts\"><tbody>\n{}</tbody></table>\n<p class=\"note\">Constants "
           "of the kernel:</p><ul class=\"rules\">{}</ul>\n",
           rows, constants));
}

Markup transfer(const Facts& f) {
  const OrderedJson& t = f.certificate["transfer"];
  Markup rules, conditions, bindings, notes;
  for (const OrderedJson& r : t["rules"])
    rules += html(
        "<h3>{}</h3><div class=\"columns\"><pre class=\"before\">{}</pre><pre "
        "class=\"after\">{}</pre></div>\n",
        r["rule"].get<std::string>(), r["before"].get<std::string>(),
        r["after"].get<std::string>());
  for (const OrderedJson& c : t["conditions"])
    conditions += html("<li><code>{}</code>: {}</li>\n", plain(c["holds"]), plain(c["why"]));
  for (const OrderedJson& check : f.certificate["checked"])
    if (check["check"] == "indices")
      for (const OrderedJson& limit : check["coverage"]["limits"])
        conditions += html("<li><code>{}</code>: {}</li>\n", plain(limit),
                           plain(limit).find("==") == std::string::npos
                               ? "larger integers wrap"
                               : "of other numbers of heads it is not proved");
  for (const OrderedJson& b : t["bindings"]) {
    const std::string user = plain(b["user"]);
    bindings += html("<li><code>{}</code>: {}</li>\n", plain(b["argument"]),
                     user.empty() ? "the output" : "your " + user);
  }
  for (const OrderedJson& n : t["notes"]) notes += html("<li>{}</li>\n", plain(n));
  Markup out = folded("Rules that fired: TL before and after", rules);
  out += folded("Arguments of the kernel", html("<ul>{}</ul>\n", bindings));
  if (!notes.empty()) out += html("<ul class=\"unchecked\">{}</ul>\n", notes);
  if (!conditions.empty())
    out += html("<h3>A launch must fulfil</h3><ul class=\"unchecked\">{}</ul>\n", conditions);
  return out;
}

Markup evidence(const Facts& f) {
  const OrderedJson& c = f.certificate;
  Markup tools, files;
  for (const auto& [name, version] : c["tools"].items())
    tools += html("<tr><th>{}</th><td>{}</td></tr>\n", name, plain(version));
  for (const auto& [name, hash] : c["files"].items())
    files += html("<tr><th>{}</th><td><code>{}</code></td></tr>\n", name, plain(hash));
  const Markup again = html(
      "<p>Do all of it again: <code>kernelwright verify certificate.json</code>. On a machine with "
      "a "
      "GPU: <code>kernelwright-prove . --json &gt; proof.json</code>, <code>kernelwright certify . "
      "--proof proof.json</code>, <code>kernelwright report .</code></p>\n");
  return section(
      "evidence", "Evidence",
      again + transfer(f) + folded("Every check, with its cases and seeds", check_details(c)) +
          folded("Tools", html("<table class=\"facts\"><tbody>{}</tbody></table>\n", tools)) +
          folded("Files and their SHA-256",
                 html("<table class=\"facts hashes\"><tbody>{}</tbody></table>\n", files)));
}

}  // namespace

std::string page(const Facts& f) {
  const Markup body =
      top(f) +
      html("<main>\n{}</main>\n", summary(f) + limits(f) + change(f) + function(f) + more_masks(f) +
                                      pipeline(f) + resources(f) + speed(f) + evidence(f)) +
      html(
          "<footer><p>Written by kernelwright {} from certificate.json and the files "
          "beside it.</p></footer>\n",
          plain(f.certificate["kernelwright"]));
  return document(f.certificate["spec"]["name"], say_verdict(f.certificate).word, body);
}

}  // namespace kw::report
