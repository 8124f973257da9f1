// export: a made kernel in the layout of somebody else's library.
#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"
#include "driver/export/export_hf.h"

namespace kw::cli {

void add_export(CLI::App& app, Result& result) {
  auto options = std::make_shared<driver::ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Write a made kernel in the layout of another library");
  command->require_subcommand(1);
  CLI::App* hf = command->add_subcommand(
      "hf",
      "A repository for Hugging Face's `kernels`: get_local_kernel(DIR) loads it here, "
      "get_kernel from the Hub");
  hf->add_option("folder", options->folder, "a folder that make wrote")->required();
  hf->add_option("--to", options->to,
                 "the repository's folder to write; an earlier export there "
                 "is replaced")
      ->required();
  hf->add_option("--version", options->version, "the kernel's version on the Hub")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  hf->callback([options, &result] {
    Diagnostics d;
    const bool done = driver::export_hf(*options, d);
    if (done) std::cerr << "wrote " << options->to << "\n";
    result = finish(done ? Exit::holds : driver::exit_for(d), d, {});
  });
}

}  // namespace kw::cli
