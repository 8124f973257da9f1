// `kernelwright tune`: which constants of a kernel are best on a GPU.
#include "driver/tune/tune.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "commands.h"
#include "console.h"

namespace kw::cli {

void add_tune(CLI::App& app, Result& result) {
  struct State {
    driver::TuneOptions options;
    Output output;
  };
  auto state = std::make_shared<State>();
  driver::TuneOptions& o = state->options;
  o.jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  CLI::App* command = app.add_subcommand(
      "tune",
      "Try a kernel's constants: compile the best guesses here, time them on a GPU (here, or "
      "elsewhere with kernelwright-tune-time), write the winner to a tile database");
  command->add_option("spec", o.spec, "the user's Python file, or a folder of an earlier run")
      ->required();
  add_function(command, o.function, o.dtype);
  add_target(command, o.target);
  command->add_option("--out", o.out, "folder to write; default out/NAME.tune");
  command->add_option("--tiles", o.tiles,
                      "the tile database for the winner; default tiles.json in the folder");
  command->add_option("--times", o.times,
                      "of an earlier run: the file of times, where it is not in the folder");
  command->add_option("--shape", o.shape,
                      "to tune for, as B=1,H=16,G=16,M=16384,N=16384; heads are the "
                      "specification's where none are named");
  command->add_option("--jobs", o.jobs, "compilers at a time")
      ->check(CLI::Range(1, 256))
      ->default_str("one a core");
  command->add_option("--keep", o.keep, "candidates to time, beside what is used at present")
      ->check(CLI::Range(1, 99))
      ->capture_default_str();
  command->add_flag("--json", state->output.json, "one JSON object a stage");
  command->callback([state, &result] {
    Diagnostics diagnostics;
    const Exit exit = driver::tune(state->options, to_console(state->output), diagnostics);
    result = finish(exit, diagnostics, state->output);
  });
}

}  // namespace kw::cli
