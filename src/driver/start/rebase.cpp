#include "driver/start/rebase.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "driver/certificate/tree.h"
#include "driver/certificate/verify.h"
#include "driver/make/out_folder.h"
#include "driver/start/by_rules.h"
#include "lower/lower.h"
#include "lower/merge.h"
#include "report/page.h"
#include "support/files.h"
#include "tl/analysis/diff.h"
#include "tl/laws/laws.h"
#include "transfer/families/attention/facts.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

// Pages and measurements that tools of ours write about a kernel, and write again.
const std::set<std::string> kAboutIt = {report::kPage, "bench.json"};

// Folder and file as the user typed the folder. The variant may be a stranger's: a link is not
// followed.
SourcePtr read_in(const fs::path& folder, const std::string& name) {
  std::string why;
  const auto bytes = read_plain_file(folder / name, why);
  return bytes ? make_source((folder / name).string(), *bytes) : nullptr;
}

class Reader {
 public:
  Reader(const Tools& tools, const fs::path& folder, Diagnostics& diagnostics)
      : tools_(tools), folder_(folder), diagnostics_(diagnostics) {}

  // What make needs to do it again; nothing after a report.
  std::optional<MakeOptions> read() {
    if (!read_certificate() || !only_the_kernel_is_edited()) return std::nullopt;
    const SourcePtr expert = read_in(folder_, "from/expert.cu");
    const std::optional<std::string> checked = checked_text(*expert);
    if (!checked) return std::nullopt;
    Earlier earlier;
    earlier.edited = edited_text(*checked);
    if (!earlier.edited || !is_a_kernel(earlier.edited, *checked)) return std::nullopt;
    const SourcePtr kept = names("from/rules.cu") ? read_in(folder_, "from/rules.cu") : nullptr;
    earlier.by_rules = make_source("from/rules.cu", kept ? kept->text : *checked);
    if (!set_constants(expert, earlier)) return std::nullopt;
    MakeOptions options;
    const fs::path spec = fs::path(was_["spec"]["file"]["name"].get<std::string>()).filename();
    options.spec = (folder_ / "from" / spec).string();
    options.function = was_["spec"]["function"];
    options.dtype = was_["spec"]["dtype"];
    options.target = was_["target"];
    options.earlier = std::move(earlier);
    return options;
  }

  // Files of the folder that nobody wrote but the user; they stay where they are.
  std::vector<std::string> users_files() const {
    std::vector<std::string> out;
    for (const auto& [name, hash] : hash_files(folder_))
      if (!names(name) && !kAboutIt.contains(name)) out.push_back(name);
    return out;
  }

 private:
  bool names(const std::string& file) const { return was_["files"].contains(file); }

  bool refuse(const char* code, const std::string& what, const std::string& hint) {
    diagnostics_.error(code, {}, what).hint = hint;
    return false;
  }

  bool read_certificate() {
    std::string why;
    const fs::path file = folder_ / "certificate.json";
    const auto bytes = read_plain_file(file, why);
    if (!bytes)
      return refuse(
          "rebase.variant",
          why == "is not there"
              ? fmt::format("'{}' has no certificate.json", folder_.string())
              : fmt::format("'{}' {}, and a rebase reads regular files", file.string(), why),
          "name a folder that kernelwright make, port or rebase wrote");
    const SourcePtr text = make_source(file.string(), *bytes);
    const auto schema = certificate_schema(tools_.home, diagnostics_);
    const auto was = schema ? driver::read_certificate(text, *schema, diagnostics_) : std::nullopt;
    if (!was) return false;
    was_ = *was;
    for (const char* needed : {"kernel.cu", "kernel.tl", "kernel.patch", "from/expert.cu"})
      if (!names(needed))
        return refuse("rebase.variant",
                      fmt::format("'{}': its certificate names no {}", folder_.string(), needed),
                      "make the variant again");
    return true;
  }

  std::string hash(const std::string& file) const { return was_["files"][file]; }

  bool is_as_written(const std::string& file) const {
    const SourcePtr is = read_in(folder_, file);
    return is && sha256(is->text) == hash(file);
  }

  // Also of a file behind a link to a folder.
  bool refuse_link(const std::string& file) {
    std::string why;
    const bool itself = !read_plain_file(folder_ / file, why);
    return refuse("rebase.edited",
                  fmt::format("'{}' {}, and a rebase reads regular files of the folder",
                              (folder_ / file).string(), itself ? why : "lies behind a link"),
                  "put the file itself there");
  }

  bool only_the_kernel_is_edited() {
    bool good = true;
    const Hashes found = hash_files(folder_);
    std::error_code unknown;
    for (const auto& [file, unused] : was_["files"].items()) {
      if (kAboutIt.contains(file)) continue;
      const bool there = found.contains(file);
      if (!there && fs::exists(fs::symlink_status(folder_ / file, unknown))) {
        good = refuse_link(file);
        continue;
      }
      const bool kernel = file == "kernel.cu" || file == "kernel.tl";
      if (is_as_written(file) || (kernel && there)) continue;
      good = refuse("rebase.edited",
                    there ? fmt::format("'{}' is not the file that certificate.json names",
                                        (folder_ / file).string())
                          : fmt::format("'{}' is named in certificate.json and is not there",
                                        (folder_ / file).string()),
                    "a rebase replays edits of kernel.cu or kernel.tl and writes every other file "
                    "anew: it would lose this one; put back what was there");
    }
    return good;
  }

  // kernel.cu as it was checked: the expert's text with kernel.patch.
  std::optional<std::string> checked_text(const Source& expert) {
    const SourcePtr patch = read_in(folder_, "kernel.patch");
    std::optional<std::string> text = lower::apply_patch(expert.text, patch->text);
    if (text && sha256(*text) == hash("kernel.cu")) return text;
    refuse("rebase.variant",
           fmt::format("'{}': from/expert.cu and kernel.patch do not give the kernel.cu that the "
                       "certificate names",
                       folder_.string()),
           "make the variant again");
    return std::nullopt;
  }

  // kernel.cu with the edits of whichever of the two files was edited.
  SourcePtr edited_text(const std::string& checked) {
    const SourcePtr kernel = read_in(folder_, "kernel.cu");
    if (is_as_written("kernel.tl")) return kernel;
    std::optional<tl::Program> program = tl::parse(read_in(folder_, "kernel.tl"), diagnostics_);
    if (!program || !tl::verify(*program, diagnostics_)) return nullptr;
    if (is_as_written("kernel.cu")) {
      const auto lowered =
          lower::lower(*program, make_source(kernel->name, checked), tools_.clang, diagnostics_);
      return lowered ? make_source((folder_ / "kernel.tl").string() + ", in CUDA", lowered->text)
                     : nullptr;
    }
    const auto lifted = lift::lift(kernel, tools_.clang, diagnostics_);
    if (!lifted) return nullptr;
    if (tl::equal(*lifted, *program)) return kernel;
    refuse("rebase.two_edits",
           fmt::format("{0}/kernel.cu and {0}/kernel.tl were both edited, and mean different "
                       "programs; from the first to the second:\n{1}",
                       folder_.string(), tl::print_diff(*lifted, *program)),
           "edit one of them, and put the other back");
    return nullptr;
  }

  // Faults of an edit are said of the file that was edited, before anything is merged.
  bool is_a_kernel(const SourcePtr& edited, const std::string& checked) {
    if (edited->text == checked) return true;
    const auto program = lift::lift(edited, tools_.clang, diagnostics_);
    return program && tl::verify(*program, diagnostics_);
  }

  bool set_constants(const SourcePtr& expert, Earlier& earlier) {
    const auto was = lift::lift(expert, tools_.clang, diagnostics_);
    const auto now = was ? lift::lift(earlier.by_rules, tools_.clang, diagnostics_) : std::nullopt;
    if (now) earlier.constants = constants_set(*was, *now);
    return now.has_value();
  }

  const Tools& tools_;
  const fs::path folder_;
  Diagnostics& diagnostics_;
  nlohmann::json was_;
};

// ---- conflicts

// Lines of a source as a place; of no lines, the line that they would follow.
Span span_of(const SourcePtr& source, const lower::Lines& lines, lower::LineRange range) {
  if (lines.empty()) return {};
  if (range.begin == range.end) range.begin = range.begin > 0 ? range.begin - 1 : 0;
  range.end = std::max(range.end, range.begin + 1);
  const char* text = source->text.data();
  const std::string_view first = lines[std::min(range.begin, lines.size() - 1)];
  const std::string_view last = lines[std::min(range.end, lines.size()) - 1];
  const size_t indent = std::min(first.find_first_not_of(" \t"), first.size() - 1);
  const size_t end = static_cast<size_t>(last.data() - text) + last.size() - last.ends_with('\n');
  const size_t begin = static_cast<size_t>(first.data() - text) + indent;
  return {source, static_cast<uint32_t>(begin), static_cast<uint32_t>(std::max(begin, end))};
}

// Where lines of the text that the rules wrote come from in the kernel that they wrote it into.
lower::LineRange in_expert(const lower::Lines& expert, const lower::Lines& written,
                           const lower::LineRange& range) {
  const std::vector<lower::Difference> all = lower::differences(expert, written);
  const auto line = [&](size_t to) {  // of the expert's text, the same one or the next before
    ptrdiff_t shift = 0;
    for (const lower::Difference& d : all) {
      if (to < d.to) break;
      if (to < d.to_end) return std::min(d.from + (to - d.to), d.from_end);
      shift = static_cast<ptrdiff_t>(d.from_end) - static_cast<ptrdiff_t>(d.to_end);
    }
    return static_cast<size_t>(static_cast<ptrdiff_t>(to) + shift);
  };
  return {line(range.begin), line(range.end)};
}

std::string quoted_lines(const lower::Lines& lines, const lower::LineRange& range) {
  std::string out;
  for (size_t k = range.begin; k < range.end; ++k)
    out += fmt::format("\n    {}", lines[k].substr(0, lines[k].find_last_not_of("\r\n") + 1));
  return out.empty() ? "\n    (nothing)" : out;
}

std::string first_line(const lower::LineRange& range) {
  return range.begin == range.end ? fmt::format("after line {}", range.begin)
                                  : fmt::format("line {}", range.begin + 1);
}

}  // namespace

std::vector<std::string> add_row_of(const Earlier& earlier, const spec::Form& form,
                                    const std::string& target, const tl::Program& kernel,
                                    std::vector<transfer::Tiles>& rows) {
  std::vector<std::string> missing;
  if (earlier.constants.empty()) return missing;
  for (const transfer::Constant& c : earlier.constants)
    if (!transfer::constant_named(kernel, c.name))
      missing.push_back(fmt::format("{} = {}", c.name, transfer::text_of(c.value)));
  // After rows that the user names for this rebase.
  const auto end = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return !r.users; });
  rows.insert(end, row_of(earlier.constants, form, target, kernel));
  return missing;
}

Replay replay(const Earlier& earlier, const SourcePtr& expert, const std::string& by_rules,
              Diagnostics& diagnostics) {
  lower::Merged merged = lower::merge(earlier.by_rules->text, earlier.edited->text, by_rules);
  const lower::Lines edited = lower::split_lines(earlier.edited->text),
                     was = lower::split_lines(earlier.by_rules->text),
                     now = lower::split_lines(by_rules), in_file = lower::split_lines(expert->text);
  for (const lower::Meeting& m : merged.conflicts) {
    Diagnostic& d = diagnostics.error(
        "rebase.conflict", span_of(earlier.edited, edited, m.mine),
        fmt::format("this edit by hand is in conflict with the new kernel; the rules had "
                    "written:{}",
                    quoted_lines(was, m.base)));
    d.notes.push_back({"edited by hand to:" + quoted_lines(edited, m.mine), {}});
    d.notes.push_back({"with the new kernel the rules write:" + quoted_lines(now, m.theirs),
                       span_of(expert, in_file, in_expert(in_file, now, m.theirs))});
    d.hint = "take this edit back in the variant, rebase, and make it again in the result";
  }
  if (!merged.text) return {};
  std::vector<std::string> said;
  for (const auto& r : merged.replayed)
    said.push_back(fmt::format("{} -> {}{}", first_line(r.mine), r.at + 1,
                               r.already ? " (the new kernel has it)" : ""));
  return {std::move(merged.text),
          said.empty() ? "no edits by hand"
                       : fmt::format("{} edit{} by hand: {}", said.size(),
                                     said.size() == 1 ? "" : "s", fmt::join(said, ", "))};
}

bool keeps_arguments(const transfer::Result& transferred, const tl::Program& program,
                     Diagnostics& diagnostics) {
  bool good = true;
  for (const transfer::Binding& b : transferred.bindings)
    if (!transfer::declaration_of_argument(program, b.argument)) {
      diagnostics
          .error("rebase.argument", {},
                 fmt::format("the edited kernel has no argument `{}`, which the rules gave it for "
                             "`{}` of the specification",
                             b.argument, b.user.empty() ? "the output" : b.user))
          .hint = "keep the names of the arguments that the rules write";
      good = false;
    }
  return good;
}

Made rebase(const RebaseOptions& options, const Say& say, Diagnostics& diagnostics) {
  Made out;
  const fs::path variant = out_folder(options.variant, "");
  const auto tools = find_tools(diagnostics);
  if (tools) {
    Reader reader(*tools, variant, diagnostics);
    std::optional<MakeOptions> again = reader.read();
    if (again) {
      again->kernel = options.onto;
      again->tiles = options.tiles;
      again->effort = options.effort;
      again->gpu = options.gpu;
      again->out = options.out.empty() ? variant.string() + "-rebased" : options.out;
      std::error_code failed;
      if (!fs::equivalent(variant, again->out, failed)) {
        for (const std::string& file : reader.users_files())
          say("", fmt::format("'{}' stays where it is", (variant / file).string()), 0);
        return make(*again, say, diagnostics);
      }
      diagnostics
          .error("driver.out", {},
                 fmt::format("'{}' is the variant itself, which is only read", again->out))
          .hint = "name another folder with --out";
    }
  }
  out.exit = exit_for(diagnostics);
  return out;
}

}  // namespace kw::driver
