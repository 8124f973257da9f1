// Runs the Python process that captures, in the sandbox and within limits, and puts what it wrote
// where it was asked for.
//
// The process writes into a temporary folder of its own, never into the user's: so the sandbox need
// leave nothing else writable, what PyTorch's compiler leaves in TMPDIR goes away with it, and a
// file of the user's is replaced only by a whole one. What ends badly is told apart here: the
// specification's fault, the machine's lack, and our own.
#include <fmt/format.h>

#include <cstring>

#include "driver/environment/sandbox.h"
#include "driver/environment/tools.h"
#include "support/files.h"
#include "support/source.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

std::string last_lines(const std::string& text, int count) {
  size_t at = text.find_last_not_of(" \n") + 1;
  const size_t end = at;
  while (count-- > 0 && at != std::string::npos && at > 0) at = text.rfind('\n', at - 1);
  return at == std::string::npos || at >= end ? text.substr(0, end)
                                              : text.substr(at + 1, end - at - 1);
}

// The bytes that begin no character of UTF-8, from where they stand; npos where all do.
size_t not_utf8(const std::string& text) {
  for (size_t k = 0; k < text.size();) {
    const unsigned char c = text[k];
    const size_t size = c < 0x80                ? 1
                        : c >= 0xc2 && c < 0xe0 ? 2
                        : c >> 4 == 0xe         ? 3
                        : c >> 3 == 0x1e        ? 4
                                                : 0;
    if (!size || k + size > text.size()) return k;
    for (size_t n = 1; n < size; ++n)
      if ((text[k + n] & 0xc0) != 0x80) return k;
    k += size;
  }
  return std::string::npos;
}

// The name goes into the certificate, which names files inside of its folder in UTF-8.
bool may_be_captured(const spec::CaptureRequest& request, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* code, const std::string& message, const char* hint) {
    diagnostics.error(code, {}, message).hint = hint;
    return false;
  };
  std::error_code failed;
  if (!fs::exists(request.spec, failed))
    return refuse("spec.file", fmt::format("there is no file '{}'", request.spec), "");
  if (!fs::is_regular_file(request.spec, failed))
    return refuse("spec.file", fmt::format("'{}' is not a regular file", request.spec),
                  "name a Python file, a definition in JSON, or a folder that capture wrote");
  if (const auto bytes = fs::file_size(request.spec, failed); !failed && bytes > kLargestText)
    return refuse("spec.file",
                  fmt::format("'{}' has {} bytes, and a specification at most {}", request.spec,
                              bytes, kLargestText),
                  "read data from a file of their own, in example_inputs()");
  const std::string name = fs::path(request.spec).filename().string();
  if (name.find("..") != std::string::npos)
    return refuse("spec.name",
                  fmt::format("the file's name '{}' has '..' in it, and a certificate names files "
                              "inside of its own folder",
                              name),
                  "rename the file");
  if (const size_t at = not_utf8(request.spec); at != std::string::npos)
    return refuse("spec.name",
                  fmt::format("byte {} of the file's name is {:#04x}, and a certificate names "
                              "files in UTF-8",
                              at, static_cast<unsigned char>(request.spec[at])),
                  "rename the file");
  if (const std::string wrong = too_long(request.out); !wrong.empty())
    return refuse("driver.out", "cannot write the capture: " + wrong, "name another with --out");
  if (fs::exists(request.out, failed) && !fs::is_directory(request.out, failed))
    return refuse("driver.out",
                  fmt::format("'{}' is a file, and a capture is a folder", request.out.string()),
                  "name another with --out");
  return true;
}

// What the process reads, wherever it lies: the file and its neighbours, which it may import, the
// folder that it is named from, and Python itself.
std::vector<fs::path> read_by(const Tools& tools, const std::string& spec) {
  std::error_code failed;
  const fs::path file = fs::absolute(spec, failed), python = tools.python;
  std::vector<fs::path> out = {file.parent_path(), file, fs::current_path(failed),
                               tools.home.python()};
  if (python.has_parent_path())
    for (const fs::path& way : {fs::absolute(python, failed), fs::canonical(python, failed)})
      out.push_back(way.parent_path().parent_path());
  return out;
}

bool put(const fs::path& made, const fs::path& out, Diagnostics& diagnostics) {
  const fs::path target = out.has_filename() ? out : out.parent_path();  // "out/x/"
  std::error_code failed;
  if (!fs::exists(made, failed)) {
    diagnostics
        .error("spec.exits", {},
               "Python ended, and said that all is well, before the function was captured")
        .hint = "the file, or what it imports, ends the process: os._exit() does";
    return false;
  }
  StagedFolder staged(target);
  fs::rename(made, staged.path(), failed);
  if (failed) {  // another file system
    failed.clear();
    fs::copy(made, staged.path(), fs::copy_options::recursive, failed);
  }
  if (!failed && staged.commit()) return true;
  diagnostics.error("driver.write", {},
                    fmt::format("cannot write the capture into '{}': {}", target.string(),
                                failed ? failed.message() : "the folder cannot be replaced"));
  return false;
}

// "numpy" of Python's "No module named 'numpy'".
std::string missing_module(const std::string& said) {
  const std::string words = "No module named '";
  const size_t at = said.rfind(words);
  if (at == std::string::npos) return "";
  const std::string rest = said.substr(at + words.size());
  return rest.substr(0, rest.find_first_of("'."));
}

void report_failure(const Tools& tools, const std::string& spec, const ProcessResult& run,
                    Diagnostics& diagnostics) {
  const auto report = [&](const char* code, const std::string& message, const std::string& hint) {
    diagnostics.error(code, {}, message).hint = hint;
  };
  const std::string last = last_lines(run.err, 3), module = missing_module(run.err);
  const bool not_started = run.exit_code == 127 || run.exit_code == 126;
  if (run.timed_out || !run.exceeded.empty())
    report("spec.limit",
           fmt::format("the capture of '{}' {} and was ended", spec,
                       run.timed_out ? fmt::format("ran past {:g} s", capture_limits().seconds)
                                     : "took " + run.exceeded),
           "what the file does when it is imported, and example_inputs(), are to be small, or the "
           "machine has too much else to do: docs/deployment/isolation.md has the limits");
  else if (not_started && last.find("env: ") == 0)
    report(
        "driver.python",
        fmt::format("'{}' cannot be started: {}", tools.python, last.substr(last.rfind(": ") + 2)),
        "set KERNELWRIGHT_PYTHON to a Python that has PyTorch, or run scripts/setup");
  else if (!module.empty() && module != "kernelwright")
    report("driver.python",
           fmt::format("'{}' has no {}, which a capture needs", tools.python,
                       module == "torch" ? "PyTorch" : module),
           "run scripts/setup, or set KERNELWRIGHT_PYTHON to a Python that has it");
  else if (run.exit_code == 128 + 9)
    report("spec.limit",
           fmt::format("the capture of '{}' was killed by another (signal 9), as the system does "
                       "when memory is short",
                       spec),
           "use smaller example inputs, or a machine with more memory");
  else if (run.exit_code > 128 && run.exit_code < 128 + 65)
    report("spec.exits",
           fmt::format("the process of the capture was ended by signal {} ({})",
                       run.exit_code - 128, strsignal(run.exit_code - 128)),
           "what the file loads, its example_inputs() or the function does it: an extension that "
           "crashes, os.kill()");
  else
    report("internal.capture",
           fmt::format("capture ended with exit code {}: {}", run.exit_code, last), "");
}

}  // namespace

std::optional<spec::Capture> capture(const Tools& tools, const spec::CaptureRequest& request,
                                     Diagnostics& diagnostics) {
  if (!may_be_captured(request, diagnostics)) return std::nullopt;
  const std::optional<Sandbox> sandbox = find_sandbox(diagnostics);
  if (!sandbox) return std::nullopt;
  const TemporaryFolder scratch;
  std::error_code failed;
  const fs::path temporary = sandbox->isolates() ? "/tmp" : scratch.path() / "tmp";
  if (!scratch.path().empty()) fs::create_directory(scratch.path() / "tmp", failed);
  if (scratch.path().empty() || failed) {
    diagnostics.error("driver.scratch", {}, "cannot make a temporary folder").hint =
        "set TMPDIR to a folder that can be written";
    return std::nullopt;
  }
  spec::CaptureRequest there = request;
  there.out = scratch.path() / "capture";
  // Safe path: a json.py of the user's where the command runs is not Python's own. The folder of
  // the specification is looked through all the same, once the file is loaded. UTF-8: source texts
  // and names of files are, whatever the locale says.
  std::vector<std::string> command = {
      "env",
      "PYTHONSAFEPATH=1",
      "PYTHONUTF8=1",
      "PYTHONPATH=" + tools.home.python().string(),
      "TMPDIR=" + temporary.string(),
      std::string("KERNELWRIGHT_ISOLATED=") + (sandbox->isolates() ? "1" : "")};
  for (const std::string& word : spec::capture_command(there, tools.python))
    command.push_back(word);
  ProcessLimits limits = capture_limits();
  limits.started = [&](pid_t group) { scratch.ends_with_us(group); };
  const ProcessResult run = run_process(
      sandbox->around(command, scratch.path(), read_by(tools, request.spec)), {}, limits);
  scratch.ends_with_us(0);
  if (run.exit_code == 0 && run.exceeded.empty())
    return put(there.out, request.out, diagnostics) ? spec::load_capture(request.out, diagnostics)
                                                    : std::nullopt;
  if (run.exit_code == 2 && spec::read_problems(run.out, diagnostics)) return std::nullopt;
  report_failure(tools, request.spec, run, diagnostics);
  return std::nullopt;
}

namespace {

// A folder was captured once, with options of its own: others than these are asked of no one.
std::optional<spec::Capture> captured_so(const spec::CaptureRequest& request,
                                         Diagnostics& diagnostics) {
  std::optional<spec::Capture> capture = spec::load_capture(request.spec, diagnostics);
  if (!capture) return std::nullopt;
  const spec::Form& form = capture->form;
  const auto refuse = [&](const std::string& asked, const std::string& is) {
    diagnostics
        .error("spec.folder", {},
               fmt::format("{} is asked for, and {} was captured {}", asked, request.spec, is))
        .hint = "capture the file again with that option, or give the file in the folder's place";
    return std::nullopt;
  };
  using spec::Training;
  if (request.training != Training::none && request.training != capture->training)
    return refuse(request.training == Training::backward ? "--backward" : "--save-for-backward",
                  "without it");
  if (!request.function.empty() && request.function != form.name)
    return refuse("--function " + request.function, "of the function " + form.name);
  if (!request.dtype.empty() && request.dtype != name(form.dtype))
    return refuse("--dtype " + request.dtype, fmt::format("in {}", name(form.dtype)));
  return capture;
}

}  // namespace

std::optional<spec::Capture> open_spec(const Tools& tools, const spec::CaptureRequest& request,
                                       Diagnostics& diagnostics) {
  if (fs::is_directory(request.spec)) return captured_so(request, diagnostics);
  if (!request.out.empty()) return capture(tools, request, diagnostics);
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    diagnostics.error("driver.scratch", {}, "cannot make a temporary folder").hint =
        "set TMPDIR to a folder that can be written";
    return std::nullopt;
  }
  spec::CaptureRequest there = request;
  there.out = folder.path() / "capture";
  return capture(tools, there, diagnostics);
}

}  // namespace kw::driver
