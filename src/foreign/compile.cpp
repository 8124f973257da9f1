#include "foreign/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "support/files.h"
#include "support/lines.h"
#include "support/process.h"

namespace kw::foreign {
namespace fs = std::filesystem;
namespace {

constexpr double kMostSeconds = 900;
constexpr size_t kMostSaid = 4000;  // bytes

// Files include their neighbours by name, and a compiler looks beside the includer first: so the
// whole folder of each described file is copied, and stands before the sources' own.
bool copy_folders(const Description& description, const Sources& sources, const fs::path& to) {
  std::set<fs::path> folders;
  for (const auto& [path, hash] : description.files) folders.insert(fs::path(path).parent_path());
  std::error_code failed;
  for (const fs::path& folder : folders) {
    fs::create_directories(to / folder, failed);
    for (const auto& entry : fs::directory_iterator(sources.root / folder, failed))
      if (entry.is_regular_file())
        fs::copy_file(entry.path(), to / folder / entry.path().filename(),
                      fs::copy_options::overwrite_existing, failed);
    if (failed) return false;
  }
  return true;
}

// A relative folder of -I stands for the copy's and then for the sources'.
std::vector<std::string> options(const Description& description, const Sources& sources,
                                 const fs::path& copy, const std::string& torch) {
  std::vector<std::string> out;
  for (size_t n = 0; n < description.nvcc.size(); ++n) {
    std::string option = description.nvcc[n];
    if (const size_t at = option.find("{torch}"); at != std::string::npos)
      option.replace(at, 7, torch);
    const bool folder = n > 0 && description.nvcc[n - 1] == "-I" && fs::path(option).is_relative();
    if (!folder) {
      out.push_back(option);
      continue;
    }
    out.push_back((copy / option).string());
    out.insert(out.end(), {"-I", fs::absolute(sources.root / option).string()});
  }
  return out;
}

}  // namespace

std::string scrubbed(const std::string& text, const std::string& ours) {
  std::string out;
  bool about_ours = false;
  for (size_t at = 0; at < text.size() && out.size() < kMostSaid;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    // A finding begins with its file, "path(line): " or "path:line:"; what follows belongs to it.
    const size_t open = line.find_first_of("(:");
    const bool begins = !line.empty() && line[0] != ' ' && open != std::string::npos &&
                        open + 1 < line.size() &&
                        std::isdigit(static_cast<unsigned char>(line[open + 1]));
    if (begins) about_ours = line.find(ours) == 0;
    if (!begins && line.starts_with("ptxas")) about_ours = true;
    if (!about_ours) continue;
    for (size_t there; (there = line.find(ours + "/")) != std::string::npos;)
      line.erase(there, ours.size() + 1);
    // Whatever else is an absolute path is a place on this machine.
    for (size_t slash = line.find(" /"); slash != std::string::npos;
         slash = line.find(" /", slash + 1)) {
      const size_t stop = std::min(line.find_first_of(" \"'(:", slash + 1), line.size());
      if (stop > slash + 3) line.replace(slash + 1, stop - slash - 1, "<a file>");
    }
    out += line + "\n";
  }
  return out.substr(0, kMostSaid);
}

std::optional<Compiled> compile(const Description& description, const Sources& sources,
                                const std::map<std::string, std::vector<std::string>>& changed,
                                const std::string& torch, Diagnostics& diagnostics) {
  const TemporaryFolder scratch;
  const fs::path copy = scratch.path() / "sources";
  bool written = copy_folders(description, sources, copy);
  for (const auto& [path, lines] : changed)
    written = written && write_file(copy / path, joined(lines));
  const fs::path unit = copy / "unit.cu", cubin = scratch.path() / "kernel.cubin";
  if (!written || !write_file(unit, description.unit)) {
    diagnostics.error("driver.scratch", {}, "cannot write the sources into a temporary folder")
        .hint = "set TMPDIR to a folder that can be written";
    return std::nullopt;
  }
  std::vector<std::string> command = {"nvcc",         "-cubin",     "-arch=" + description.target,
                                      "-Xptxas",      "-v",         "-o",
                                      cubin.string(), unit.string()};
  for (const std::string& option : options(description, sources, copy, torch))
    command.push_back(option);
  const ProcessResult run = run_process(command, {}, kMostSeconds);
  if (run.exit_code == 127) {
    diagnostics
        .error("foreign.nvcc", {},
               "nvcc is not on the PATH, and a foreign kernel is compiled "
               "by it")
        .hint = "install the CUDA toolkit, or put its bin/ on the PATH";
    return std::nullopt;
  }
  if (run.exit_code != 0)
    return Compiled{"", run.timed_out
                            ? fmt::format("nvcc ran past {} s and was ended", kMostSeconds)
                            : scrubbed(run.err + run.out, copy.string())};
  const SourcePtr image = read_source(cubin.string());
  return Compiled{image ? image->text : "", scrubbed(run.err, copy.string())};
}

}  // namespace kw::foreign
