#include "driver/certificate/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/certificate/again.h"
#include "driver/certificate/verifier.h"
#include "driver/environment/proposer.h"
#include "driver/make/report.h"
#include "driver/training/training.h"
#include "report/page.h"
#include "support/version.h"

namespace kw::driver {
namespace fs = std::filesystem;

using Json = nlohmann::json;

namespace {

// Why a stage did not run, in a line.
std::string first_error(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    if (d.severity == Severity::error) return d.message.substr(0, d.message.find('\n'));
  return "no reason was given";
}

// Whether a machine lacks something, rather than an input being at fault.
bool lacks_a_tool(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all())
    for (const char* code : {"driver.python", "spec.no_pytorch", "build.no_nvrtc", "lift.libclang",
                             "driver.scratch", "build.nvrtc", "spec.run", "spec.limit"})
      if (d.code == code) return true;
  return false;
}

}  // namespace

Exit exit_of(const Claims& was, const std::vector<Item>& items) {
  bool unsure = false;
  for (const Item& item : items) {
    if (item.standing == Standing::changed && !item.remark) return Exit::refuted;
    unsure = unsure || item.standing == Standing::not_rerun;
  }
  if (was["verdict"] == "refuted") return Exit::refuted;
  return unsure || was["verdict"] != "holds" ? Exit::inconclusive : Exit::holds;
}

std::vector<Item> FolderVerifier::run(bool quick) {
  if (!files()) {
    nothing_more("a file is not the one that the certificate names");
  } else if (quick) {
    nothing_more("only hashes were asked for; nothing that the certificate claims was done again");
  } else {
    all();
    unread();
  }
  return std::move(items_);
}

// Where all holds, each file has been made again, or read to make another of it. What was not is
// nobody's, though the certificate names it with its hash.
void FolderVerifier::unread() {
  for (const Item& item : items_)
    if (item.standing != Standing::holds) return;
  const std::vector<std::string> whole = compared_whole();
  for (const auto& [name, text] : tree_.texts)
    if (!read_.count(name) &&
        std::none_of(whole.begin(), whole.end(),
                     [&name = name](const std::string& part) { return name.starts_with(part); }))
      add("file " + name, Standing::changed,
          "the certificate names it, and neither is it made of anything nor anything of it");
}

void FolderVerifier::add(const std::string& what, Standing standing, const std::string& detail,
                         bool remark) {
  items_.push_back({what, standing, detail, remark});
  const std::string text(name(standing));
  say_(what, detail.empty() ? text : fmt::format("{}: {}", text, detail), clock_.lap());
}

// A stage that gave nothing: the machine's lack, or the input's fault, which is a change.
void Verifier::failed_at(const std::string& what, const Diagnostics& d) {
  if (lacks_a_tool(d))
    add(what, Standing::not_rerun, first_error(d));
  else
    add(what, Standing::changed, "was accepted, is refused: " + first_error(d));
}

// As it was hashed.
std::string FolderVerifier::text_of(const std::string& file) const {
  read_.insert(file);
  const auto at = tree_.texts.find(file);
  return at == tree_.texts.end() ? std::string() : at->second;
}

// The entry of /checked with this id; null where the certificate has none.
Json Verifier::was_checked(const std::string& id) const {
  for (const Json& one : was_["checked"])
    if (one["check"] == id) return one;
  return nullptr;
}

std::vector<std::string> Verifier::compared_whole() const {
  return {"kw/", "prove/", "prove.json", std::string("from/") + kAttempts};
}

void Verifier::all() {
  say_same("vocabulary", other_vocabulary(tools_.home, tree_.texts));
  capture();
  if (read_program()) {
    if (read_expert()) transfer();
    begin_proof();
    lens();
    check();
    launch();
    proof();
    cubin();
  }
  words();
  gpu();
  say_same("report", draw_report(tools_, folder_, claims_) == text_of(report::kPage)
                         ? ""
                         : "report.html was drawn of this certificate, is another page");
  tools();
}

bool FolderVerifier::files() {
  constexpr size_t kShown = 12;
  const Hashes named = named_files(claims_);
  tree_ = read_tree(folder_, named);
  const std::vector<Stray>& strays = tree_.strays;
  for (size_t n = 0; n < std::min(strays.size(), kShown); ++n)
    add("file " + strays[n].name, Standing::changed, strays[n].what);
  if (strays.size() > kShown)
    add("files", Standing::changed, fmt::format("and {} more", strays.size() - kShown));
  const std::string was = was_["root"], is = root_of(named);
  if (was != is)
    add("root", Standing::changed,
        fmt::format("was {:.12}..., the hashes beside it give {:.12}...", was, is));
  if (strays.empty() && was == is) holds(fmt::format("{} files", named.size()));
  return strays.empty() && was == is;
}

// Which checks there are, each once: another sentence on one of them would be nobody's. And what
// is to be believed without one.
void Verifier::words() {
  if (report_) {
    std::vector<std::string> was, is;
    for (const Json& one : was_["checked"]) was.push_back(one["check"]);
    for (const Claims& one : check_facts(*report_)) is.push_back(one["check"]);
    is.insert(is.end(), {"lens", "cubin"});
    compare("checked", was, is);
  }
  compare("trusted", was_["trusted"], trusted());
}

// Other versions are worth a line; what they do is compared above.
void Verifier::tools() {
  Json is(tool_facts(tools_, graph_, compiler_)), was = was_["tools"];
  if (compiler_.empty()) is.erase("compiler"), was.erase("compiler");
  if (graph_.text.empty())
    for (const char* field : {"python", "torch"}) is.erase(field), was.erase(field);
  was["kernelwright"] = was_["kernelwright"], is["kernelwright"] = version();
  const std::string differs = difference(was, is);
  add("tools", differs.empty() ? Standing::holds : Standing::changed, differs, true);
}

std::string_view name(Standing s) {
  return s == Standing::holds     ? "still holds"
         : s == Standing::changed ? "changed"
                                  : "could not be rerun";
}

Verified verify(const VerifyOptions& options, const Say& say, Diagnostics& diagnostics) {
  Verified out;
  fs::path file = options.certificate;
  std::error_code failed;
  if (fs::is_directory(file, failed)) file /= "certificate.json";
  std::string why;
  const auto bytes = read_plain_file(file, why);
  if (!bytes) {
    diagnostics
        .error("certificate.file", {},
               why == "is not there"
                   ? fmt::format("there is no file '{}'", file.string())
                   : fmt::format("'{}' {}, and make writes a file that can be read", file.string(),
                                 why))
        .hint = "name a certificate.json that make wrote, or its folder";
    return out;
  }
  const SourcePtr text = make_source(file.string(), *bytes);
  const auto tools = find_tools(diagnostics);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (tools && is_of_training(*bytes))
    return verify_training(*tools, text, options, folder, say, diagnostics);
  const auto schema = tools ? certificate_schema(tools->home, diagnostics) : std::nullopt;
  const auto was = schema ? read_certificate(text, *schema, diagnostics) : std::nullopt;
  if (!was) {
    out.exit = exit_for(diagnostics);
    return out;
  }
  out.items = Verifier(*tools, folder, *was, say).run(options.quick);
  out.exit = exit_of(*was, out.items);
  return out;
}

}  // namespace kw::driver
