#include "console.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/files.h"

namespace kw::cli {

bool give(const Output& output, const std::string& text, Diagnostics& diagnostics) {
  if (output.out.empty() || output.out == "-") {
    std::cout << text << (text.empty() || text.back() == '\n' ? "" : "\n");
    return true;
  }
  if (write_file(output.out, text)) return true;
  diagnostics.error("cli.write", {},
                    fmt::format("cannot write '{}': {}", output.out, std::strerror(errno)));
  return false;
}

int finish(Exit exit, const Diagnostics& diagnostics, const Output& output) {
  if (!diagnostics.all().empty()) {
    if (output.json)
      std::cerr << nlohmann::json{{"diagnostics", to_json(diagnostics)}}.dump(1) << "\n";
    else
      std::cerr << render(diagnostics);
  }
  return static_cast<int>(exit);
}

void say_stage(const std::string& stage, const std::string& text, double seconds,
               const Output& output) {
  if (output.json) {
    std::cout << nlohmann::json{{"stage", stage}, {"text", text}, {"seconds", seconds}}.dump()
              << "\n"
              << std::flush;  // who reads it shows progress
    return;
  }
  std::cerr << (seconds > 0 ? fmt::format("{:<9} {}  [{:.1f} s]\n", stage, text, seconds)
                            : fmt::format("{:<9} {}\n", stage, text))
            << std::flush;
}

std::function<void(const std::string&, const std::string&, double)> to_console(Output output) {
  return [output = std::move(output)](const std::string& stage, const std::string& text,
                                      double seconds) { say_stage(stage, text, seconds, output); };
}

SourcePtr read_input(const std::string& path, Diagnostics& diagnostics) {
  errno = 0;
  const SourcePtr source = read_source(path);
  if (source) return source;
  const int error = errno;
  Diagnostic& d = diagnostics.error("cli.read", {},
                                    fmt::format("cannot read '{}': {}", path, why_not_read(error)));
  if (error == EFBIG)
    d.hint = "name a file with a program or a kernel, which are texts of kilobytes";
  return nullptr;
}

}  // namespace kw::cli
