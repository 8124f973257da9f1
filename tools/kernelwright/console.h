// What every command shares: where its results go, how it speaks, and its exit code.
//
// What a command makes goes to standard output or --out; what it says goes to standard error. With
// --json both have a machine form: results as JSON, findings as {"diagnostics": [...]}.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "support/diagnostic.h"

namespace kw::cli {

struct Output {
  std::string out;  // a file; empty or "-": standard output
  bool json = false;
};

// Writes what a command made. Reports cli.write.
bool give(const Output& output, const std::string& text, Diagnostics& diagnostics);

// Prints the diagnostics (if any) and returns the exit code as a number.
int finish(Exit exit, const Diagnostics& diagnostics, const Output& output);

// One line of progress on standard error: "capture   prefix_lm: ...   1.2 s". With --json, an
// object
// {"stage", "text", "seconds"} on standard output instead.
void say_stage(const std::string& stage, const std::string& text, double seconds,
               const Output& output);

// The same as a function, for what says its stages; it keeps what of `output` it needs.
std::function<void(const std::string&, const std::string&, double)> to_console(Output output = {});

// "cannot read 'x': No such file or directory", as a diagnostic; null on failure.
SourcePtr read_input(const std::string& path, Diagnostics& diagnostics);

}  // namespace kw::cli
