#include "compile/compile_log.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace kw::runtime {
namespace {

bool matches(const std::string& line, const char* pattern, std::smatch& found) {
  return std::regex_search(line, found, std::regex(pattern));
}

// The number before `unit` in a line such as "Used 168 registers, used 16 barriers"; 0 if absent.
int number_before(const std::string& line, const std::string& unit) {
  std::smatch found;
  return std::regex_search(line, found, std::regex("(\\d+) " + unit)) ? std::stoi(found[1]) : 0;
}

bool is_loss(const std::string& line) {
  std::smatch found;
  return line.find("Potential Performance Loss") != std::string::npos ||
         matches(line, "\\(C75\\d\\d\\)", found);
}

// Properties follow the name of the function they are of, which may be one that an entry calls.
void read_ptxas_line(const std::string& line, std::string& function, CompileLog& log) {
  std::smatch found;
  if (matches(line, "Compiling entry function '([^']+)'", found)) {
    log.entries.push_back({.entry = found[1]});
    function = found[1];
  } else if (matches(line, "Function properties for (\\S+)", found)) {
    function = found[1];
  } else if (log.entries.empty()) {
    return;
  } else if (line.find("bytes stack frame") != std::string::npos) {
    // A called function's spills are spills of the entry as well.
    EntryResources& entry = log.entries.back();
    entry.stack += number_before(line, "bytes stack frame");
    entry.spill_stores += number_before(line, "bytes spill stores");
    entry.spill_loads += number_before(line, "bytes spill loads");
  } else if (line.find("registers") != std::string::npos && function == log.entries.back().entry) {
    log.entries.back().registers = number_before(line, "registers");
    log.entries.back().barriers = number_before(line, "barriers");
    log.entries.back().shared = number_before(line, "bytes smem");
  }
}

}  // namespace

CompileLog parse_compile_log(std::string_view text) {
  CompileLog log;
  std::string function, line;
  std::istringstream lines{std::string(text)};
  while (std::getline(lines, line)) {
    std::smatch found;
    if (is_loss(line)) {
      log.losses.push_back(line);
    } else if (line.rfind("ptxas error", 0) == 0 || line.rfind("ptxas fatal", 0) == 0 ||
               line.rfind("nvrtc: error", 0) == 0) {
      log.fatal.push_back(line);
    } else if (line.rfind("ptxas", 0) == 0) {
      read_ptxas_line(line, function, log);
    } else if (matches(line, "^(.+)\\((\\d+)\\): (catastrophic error|error|warning)[^:]*: (.*)$",
                       found)) {
      log.messages.push_back({found[1], std::stoi(found[2]), found[3] != "warning", found[4]});
    }
  }
  return log;
}

std::vector<std::string> unreported(const std::vector<EntryResources>& reported,
                                    const std::vector<std::string>& entries) {
  std::vector<std::string> missing;
  for (const std::string& entry : entries)
    if (std::none_of(reported.begin(), reported.end(),
                     [&](const EntryResources& r) { return r.entry == entry && r.registers > 0; }))
      missing.push_back(entry);
  return missing;
}

}  // namespace kw::runtime
