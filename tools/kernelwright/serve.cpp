// serve: becomes the Python process that speaks the Model Context Protocol.
//
// The protocol has an official Python SDK and no official C++ one, so the server is Python
// (python/kernelwright/serve) and calls this program back, one process a tool call. It is told
// which program that is, and which home and Python, so that all three belong together. It starts in
// our own folder, since Python looks for modules where it starts, and a workspace may hold
// anybody's.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "commands.h"
#include "console.h"
#include "driver/environment/home.h"

namespace kw::cli {
namespace {

// Returns only where it could not start.
int become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return errno;
}

}  // namespace

void add_serve(CLI::App& app, Result& result) {
  struct State {
    std::string root = ".";
    int jobs = 2, limit = 3600;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "serve",
      "Offer the stages to a coding agent as tools of the Model Context Protocol, on standard "
      "input and output; needs the Python package mcp");
  command->add_option("--root", state->root, "the folder whose files the tools may read and write")
      ->capture_default_str();
  command->add_option("--jobs", state->jobs, "stages at a time; others wait")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--limit", state->limit, "seconds that one stage may take")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->callback([state, &result] {
    Diagnostics d;
    if (const auto home = driver::find_home(d)) {
      const std::string python = driver::find_python(*home);
      setenv("KERNELWRIGHT_PROGRAM", driver::beside("kernelwright").c_str(), 1);
      setenv("KERNELWRIGHT_HOME", home->root.c_str(), 1);
      setenv("KERNELWRIGHT_PYTHON", python.c_str(), 1);
      setenv("PYTHONPATH", home->python().c_str(), 1);
      const std::string root = std::filesystem::absolute(state->root).string();
      std::filesystem::current_path(home->python());
      const int failed =
          become({python, "-m", "kernelwright.serve", "--root", root, "--jobs",
                  std::to_string(state->jobs), "--limit", std::to_string(state->limit)});
      d.error("driver.python", {}, fmt::format("cannot start '{}': {}", python, strerror(failed)))
          .hint = "set KERNELWRIGHT_PYTHON to a Python that has PyTorch and mcp";
    }
    result = finish(Exit::bad_input, d, {});
  });
}

}  // namespace kw::cli
