// Foreign kernels as commands see them: a folder for the lift, a folder for what was lowered.
//
//   LIFT/  kernel.json (the description)  lift.json  kernel.tl
//   OUT/   kernel.patch  kernel.tl  kernel.cubin  launch.json  prove.json  prove/
//
// A lift's folder is written after every answer that was taken; the same command again goes on
// where it was. What was lowered is proven on a GPU or it is not: `kernelwright-prove OUT`.
#pragma once
#include <functional>
#include <string>

#include "check/check.h"
#include "foreign/lift.h"
#include "models/providers/provider.h"
#include "operator/capture/capture.h"
#include "support/diagnostic.h"

namespace kw::driver {

struct ForeignOptions {
  std::string kernel;         // of lift: the description; of lower: the lift's folder
  std::string sources;        // the folder that the description's paths begin in
  spec::CaptureRequest spec;  // what the program computes
  std::string target;         // of lower: another than the description's; or empty
  std::string program;        // of lower: the changed TL program
  std::string out;            // the folder to write
  int attempts = 12;          // answers, at most
  int answer_tokens = 32768;  // of each
  bool gpu = false;           // of lower: each answer that compiles is proven on this machine's GPU
  check::Effort effort = check::Effort::usual;
};

struct ForeignEnd {
  Exit exit = Exit::own_fault;
  std::string said;         // lines for a person: what there is and what is missing
  std::string explanation;  // a counterexample, or what a compiler says
};

// Exit 0: the lifted program obeys the laws and computes the function. 3: the answers came to an
// end before; what was taken is kept, and said.
ForeignEnd lift_foreign(const ForeignOptions& options, models::Provider& provider,
                        Diagnostics& diagnostics);

// Exit 3, always, until a GPU has proven the result: with a complete folder, or with the change
// that came furthest in OUT/best.patch. 0: it was proven here (`gpu`). 1: the changed program does
// not compute the function; or the GPU refutes sources that nobody changed, and so their lift.
ForeignEnd lower_foreign(const ForeignOptions& options, models::Provider& provider,
                         Diagnostics& diagnostics);

}  // namespace kw::driver
