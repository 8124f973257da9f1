// verify, certify and exact: whether a certificate still holds; what a GPU said, added to it; a
// build for a GPU that must give the executor's very bits.
#include "driver/certificate/verify.h"

#include <iostream>
#include <memory>

#include "commands.h"
#include "console.h"
#include "driver/certificate/certify.h"
#include "driver/proof/exact_build.h"
#include "support/files.h"

namespace kw::cli {
namespace {

const char* verdict_of(Exit exit) {
  return exit == Exit::holds          ? "holds"
         : exit == Exit::refuted      ? "refuted"
         : exit == Exit::inconclusive ? "inconclusive"
                                      : "invalid";
}

nlohmann::json to_json(const driver::Verified& verified) {
  nlohmann::json items = nlohmann::json::array();
  for (const driver::Item& i : verified.items)
    items.push_back({{"what", i.what},
                     {"standing", driver::name(i.standing)},
                     {"detail", i.detail},
                     {"remark", i.remark}});
  return {{"verdict", verdict_of(verified.exit)}, {"items", items}};
}

}  // namespace

void add_verify(CLI::App& app, Result& result) {
  struct State {
    driver::VerifyOptions options;
    Output output;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "verify", "Do all that a certificate says again, with the files beside it");
  command
      ->add_option("certificate", state->options.certificate,
                   "a certificate.json that make wrote, or its folder")
      ->required();
  command->add_flag("--quick", state->options.quick,
                    "compare the hashes of the files only, in no time; at best inconclusive");
  command->add_flag("--json", state->output.json, "the items as JSON");
  command->callback([state, &result] {
    Diagnostics d;
    const driver::Say say = [&](const std::string& what, const std::string& text, double s) {
      if (!state->output.json) say_stage(what, text, s, state->output);
    };
    const driver::Verified verified = driver::verify(state->options, say, d);
    if (state->output.json)
      std::cout << to_json(verified).dump(1) << "\n";
    else
      std::cout << verdict_of(verified.exit) << "\n" << std::flush;
    if (!state->output.json && !verified.items.empty() && verified.exit == Exit::refuted)
      std::cerr << "help: do not use this folder; make the kernel again from its specification, or "
                   "bring back what make wrote\n";
    result = finish(verified.exit, d, state->output);
  });
}

void add_certify(CLI::App& app, Result& result) {
  struct State {
    std::string folder, proof;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand(
      "certify", "Add what a GPU said (kernelwright-prove --json) to a certificate");
  command->add_option("folder", state->folder, "a folder that make wrote")->required();
  command->add_option("--proof", state->proof, "the report, or - for standard input")->required();
  command->callback([state, &result] {
    Diagnostics d;
    const SourcePtr proof = read_input(state->proof, d);
    const bool done = proof && driver::certify(state->folder, proof->text, d);
    result = finish(done ? Exit::holds : driver::exit_for(d), d, {});
  });
}

void add_exact(CLI::App& app, Result& result) {
  auto options = std::make_shared<driver::ExactBuildOptions>();
  CLI::App* command = app.add_subcommand(
      "exact", "Build a kernel in the small algebra (KW_EXACT), with the words that it must give");
  command->add_option("folder", options->folder, "a folder that make wrote")->required();
  command->add_option("--out", options->out, "folder to write, for kernelwright-prove")->required();
  command->callback([options, &result] {
    Diagnostics d;
    const Exit exit = driver::exact_build(*options, to_console(), d);
    result = finish(exit, d, {});
  });
}

}  // namespace kw::cli
