// kernelwright: attention kernels from PyTorch functions.
#include <exception>
#include <filesystem>
#include <iostream>

#include "commands.h"
#include "help.h"
#include "support/diagnostic.h"
#include "support/version.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Takes an attention function in PyTorch and an expert's CUDA kernel; gives a checked "
      "kernel.\n"
      "`kernelwright make FILE.py` is where to begin; `kernelwright COMMAND --help` says more."};
  app.footer(
      "Exit codes: 0 what ran holds, 1 refuted, 2 the input is at fault, 3 inconclusive, "
      "70 our own fault.");
  app.name("kernelwright");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("kernelwright ") + kw::version());
  int result = 0;
  kw::cli::add_make(app, result);
  kw::cli::add_port(app, result);
  kw::cli::add_rebase(app, result);
  kw::cli::add_tune(app, result);
  kw::cli::add_capture(app, result);
  kw::cli::add_lift(app, result);
  kw::cli::add_transfer(app, result);
  kw::cli::add_check(app, result);
  kw::cli::add_lower(app, result);
  kw::cli::add_build(app, result);
  kw::cli::add_prove(app, result);
  kw::cli::add_bench(app, result);
  kw::cli::add_verify(app, result);
  kw::cli::add_certify(app, result);
  kw::cli::add_report(app, result);
  kw::cli::add_exact(app, result);
  kw::cli::add_sketch(app, result);
  kw::cli::add_size(app, result);
  kw::cli::add_schedule(app, result);
  kw::cli::add_diff(app, result);
  kw::cli::add_explain(app, result);
  kw::cli::add_doctor(app, result);
  kw::cli::add_timeline(app, result);
  kw::cli::add_grammar(app, result);
  kw::cli::add_export(app, result);
  kw::cli::add_self_test(app, result);
  kw::cli::add_foreign(app, result);
  kw::cli::add_serve(app, result);
  kw::cli::add_eval(app, result);
  kw::cli::add_ask(app, result);
  kw::cli::add_transcript(app, result);
  kw::cli::arrange_help(app);
  if (argc == 1) {  // the name alone: show what there is
    std::cerr << app.help();
    return static_cast<int>(kw::Exit::bad_input);
  }
  const auto is_it = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argv[1][0] != '-' && app.get_subcommands(is_it).empty()) {
    std::cerr << "error[cli.command]: there is no command '" << argv[1]
              << "'\n  help: `kernelwright --help` lists them\n";
    return static_cast<int>(kw::Exit::bad_input);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(kw::Exit::bad_input);
  } catch (const std::filesystem::filesystem_error& e) {
    // What no stage said better. A file system that refuses is the machine's or the input's affair.
    std::cerr << "error[driver.file]: "
              << (e.path1().empty() ? "a file" : "'" + e.path1().string().substr(0, 200) + "'")
              << " cannot be used: " << e.code().message() << "\n"
              << "  help: look at the path, its rights and the room on its disk\n";
    return static_cast<int>(kw::Exit::bad_input);
  } catch (const std::exception& e) {
    std::cerr << "error[internal]: " << e.what() << "\n"
              << "  help: this is a fault of kernelwright's own; please report the input\n";
    return static_cast<int>(kw::Exit::own_fault);
  }
  return result;
}
