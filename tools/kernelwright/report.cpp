// report: the page of a folder that make wrote, written again.
#include "driver/make/report.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"

namespace kw::cli {

void add_report(CLI::App& app, Result& result) {
  auto options = std::make_shared<driver::ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Write report.html again, with what a proof or a benchmark has found since");
  command->add_option("folder", options->folder, "a folder that make wrote")->required();
  command->add_option("--bench", options->bench,
                      "JSON of bench/bench.py: its cases of this kernel are kept in the folder");
  command->callback([options, &result] {
    Diagnostics d;
    const Exit exit = driver::report(*options, d);
    if (exit == Exit::holds) std::cout << options->folder << "/report.html\n";
    result = finish(exit, d, {});
  });
}

}  // namespace kw::cli
