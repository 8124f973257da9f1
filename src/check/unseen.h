// What the cases of a check would not see.
//
// A check holds what a program does on its cases against the function. How much that says depends
// on whether the cases can tell the function from another: so each integer that it is written with
// is made one larger, in turn, each comparison of reals another where they are equal, each of
// integers true and false, and the form with it evaluated on the cases until a row differs. And
// of each kind of statement one is left out, in turn, and the program run on two small cases: the
// first four of a kind until one is missed. What comes out the same stays unseen, and the report
// names it.
//
// A number of a mask that no case reaches may be proved (docs/soundness.md); a fence or a wait that
// makes no difference in one order of the agents is the schedules reading's to see.
#pragma once
#include <string>
#include <vector>

#include "check/trial.h"

namespace kw::check {

// Of a program that holds: numbers in every check, statements where Options::leave_out.
Unseen unseen(const tl::Program& program, const spec::Capture& capture,
              const std::vector<Case>& cases, const Options& options);

std::string print(const Unseen& unseen);

}  // namespace kw::check
