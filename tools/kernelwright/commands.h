// One function adds one command; each file holds a group.
#pragma once
#include <CLI/CLI.hpp>

#include "check/check.h"

namespace kw::cli {

// The exit code of the command that ran; main returns it.
using Result = int;

void add_make(CLI::App& app, Result& result);  // make.cpp
void add_port(CLI::App& app, Result& result);  // port.cpp
void add_rebase(CLI::App& app, Result& result);
void add_tune(CLI::App& app, Result& result);     // tune.cpp
void add_capture(CLI::App& app, Result& result);  // stages.cpp: one command a stage
void add_lift(CLI::App& app, Result& result);
void add_transfer(CLI::App& app, Result& result);
void add_check(CLI::App& app, Result& result);
void add_lower(CLI::App& app, Result& result);
void add_build(CLI::App& app, Result& result);  // gpu.cpp
void add_prove(CLI::App& app, Result& result);
void add_bench(CLI::App& app, Result& result);
void add_verify(CLI::App& app, Result& result);  // verify.cpp
void add_certify(CLI::App& app, Result& result);
void add_report(CLI::App& app, Result& result);  // report.cpp
void add_exact(CLI::App& app, Result& result);
void add_sketch(CLI::App& app, Result& result);  // sketch.cpp
void add_size(CLI::App& app, Result& result);
void add_schedule(CLI::App& app, Result& result);
void add_diff(CLI::App& app, Result& result);  // questions.cpp
void add_explain(CLI::App& app, Result& result);
void add_doctor(CLI::App& app, Result& result);
void add_timeline(CLI::App& app, Result& result);   // timeline.cpp
void add_grammar(CLI::App& app, Result& result);    // proposer.cpp
void add_export(CLI::App& app, Result& result);     // export.cpp
void add_self_test(CLI::App& app, Result& result);  // self_test.cpp
void add_foreign(CLI::App& app, Result& result);    // foreign.cpp
void add_serve(CLI::App& app, Result& result);      // serve.cpp
void add_eval(CLI::App& app, Result& result);       // eval.cpp
void add_ask(CLI::App& app, Result& result);        // ask.cpp
void add_transcript(CLI::App& app, Result& result);

// --check quick|default|full, for commands that check.
void add_effort(CLI::App* command, check::Effort& effort);
void add_require(CLI::App* command, bool& proof);

// --function and --dtype, for commands that read a specification.
void add_function(CLI::App* command, std::string& function, std::string& dtype);
// --target
void add_training(CLI::App* command, spec::Training& training,
                  const char* of_backward = "of its gradients");
void add_target(CLI::App* command, std::string& target);

}  // namespace kw::cli
